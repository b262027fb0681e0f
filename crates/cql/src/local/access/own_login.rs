//! The login of programs that the server itself runs, such as the scripts of `serve --init`. They may do everything.
//!
//! Its password is drawn for each use and is worth nothing afterwards. The server lets nobody else in meanwhile.

use crate::backend::Identity;
use crate::local::LocalBackend;

use super::logins::sasl_plain;

/// The name in such a login. It is no role.
const USER: &str = "helenus-init";

/// A login that counts until it is dropped.
pub struct OwnLogin<'a> {
    backend: &'a LocalBackend,
    password: String,
}

impl std::fmt::Debug for OwnLogin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{USER} *******")
    }
}

impl OwnLogin<'_> {
    /// The name to log in with.
    pub fn user(&self) -> &'static str {
        USER
    }

    /// The password to log in with.
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl Drop for OwnLogin<'_> {
    fn drop(&mut self) {
        *self.backend.access().own_password.lock() = None;
    }
}

impl LocalBackend {
    /// Makes a login for programs that the server runs itself; `None` if clients need not log in. There is one at a time.
    pub fn own_login(&self) -> Option<OwnLogin<'_>> {
        if !self.access().has_logins() {
            return None;
        }
        let mut drawn = [0; 16];
        self.database().host().random.fill(&mut drawn);
        let password = drawn.map(|byte| format!("{byte:02x}")).concat();
        *self.access().own_password.lock() = Some(password.clone());
        Some(OwnLogin { backend: self, password })
    }

    /// The identity of the server, if a token has its login.
    pub(crate) fn log_in_as_server(&self, token: &[u8]) -> Option<Identity> {
        let own = self.access().own_password.lock();
        let (user, password) = sasl_plain(token).ok()?;
        (user == USER && own.as_ref() == Some(&password)).then(Identity::server)
    }
}
