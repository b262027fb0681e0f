//! Logins: the check of name and password, and the first superuser.
//!
//! Source: `PasswordAuthenticator`, `CassandraRoleManager.setupDefaultRole`.

use super::passwords;
use super::roles::DEFAULT_ROLE;
use super::state::now_ns;
use super::store::Changes;
use crate::backend::{Identity, LoginRefused};
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use std::net::IpAddr;
use std::sync::Arc;

/// The password that the default role has in a new Cassandra.
const DEFAULT_PASSWORD: &str = "cassandra";

/// The refusal of the default password from another machine.
const DEFAULT_REFUSED: &str = "the role cassandra still has its default password, which is accepted from the server's own \
     machine only: change it there (ALTER ROLE cassandra WITH PASSWORD = '...'), or start the server with --password-file \
     FILE, or with --allow-default-password";

const SET_PASSWORD: &str = "UPDATE system_auth.roles SET salted_hash = ? WHERE role = ?";
const ADD_DEFAULT: &str = "INSERT INTO system_auth.roles (role, is_superuser, can_login, salted_hash) \
     VALUES (?, true, true, ?)";

/// The state of the default role when the server starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstLogin {
    /// It has its default password.
    DefaultPassword,
    /// It has another password, or does not exist.
    OwnPassword,
}

/// Name and password of a token.
///
/// # Errors
/// `BadCredentials`, in Cassandra's words.
pub fn sasl_plain(token: &[u8]) -> Result<(String, String)> {
    helenus_logins::sasl_plain(token).map_err(CqlError::BadCredentials)
}

impl LocalBackend {
    /// Logs in with a SASL PLAIN token. Blocks for tens of milliseconds.
    ///
    /// # Errors
    /// As `log_in_by_password`.
    pub(crate) fn log_in_with_token(
        &self,
        token: &[u8],
        client: Option<IpAddr>,
    ) -> std::result::Result<Identity, LoginRefused> {
        let (user, password) = sasl_plain(token)?;
        self.log_in_by_password(&user, &password, client)
    }

    /// Logs in by name and password. Blocks for tens of milliseconds. `client` is the client's address.
    ///
    /// # Errors
    /// `BadCredentials`, in Cassandra's words; `Overloaded` after too many failures of the role at the address.
    pub fn log_in_by_password(
        &self,
        user: &str,
        password: &str,
        client: Option<IpAddr>,
    ) -> std::result::Result<Identity, LoginRefused> {
        if !self.access().takes_passwords() {
            let text =
                "This server takes no passwords: clients log in by the certificate that they show to TLS";
            return Err(CqlError::BadCredentials(text.to_owned()).into());
        }
        let attempts = &self.access().attempts;
        if let Some(address) = client {
            let admitted = attempts.admit(address, user, now_ns(self.database()));
            admitted.map_err(|later| CqlError::Overloaded(later.text(user)))?;
        }
        let checked = self.check_password(user, password, client);
        let Some(address) = client else { return Ok(checked?) };
        let now = now_ns(self.database());
        match checked {
            Ok(identity) => {
                attempts.succeeded(address, user, now);
                Ok(identity)
            }
            Err(error) => Err(LoginRefused { error, wait: attempts.failed(address, user, now) }),
        }
    }

    fn check_password(&self, user: &str, password: &str, client: Option<IpAddr>) -> Result<Identity> {
        let incorrect =
            || CqlError::BadCredentials(format!("Provided username {user} and/or password are incorrect"));
        let unable =
            |error: &CqlError| CqlError::BadCredentials(format!("Unable to perform authentication: {error}"));
        let stored = self.stored_hash(user).map_err(|error| unable(&error))?;
        // For a role without a password as much time passes, so that the time does not tell which roles exist.
        let is_right =
            passwords::matches(password, stored.as_deref().map_or(passwords::OF_NOBODY, String::as_str));
        if !is_right || stored.is_none() {
            return Err(incorrect());
        }
        let role = self.role(user, true).map_err(|error| unable(&error))?;
        if !role.is_some_and(|role| role.can_login) {
            return Err(CqlError::BadCredentials(format!("{user} is not permitted to log in")));
        }
        let is_own_machine = client.is_none_or(|address| address.to_canonical().is_loopback());
        // By the hash, since other texts may have the same.
        let is_default = || Ok::<bool, CqlError>(user == DEFAULT_ROLE && self.has_default_password()?);
        if !is_own_machine && !self.access().options.allows_default_password && is_default()? {
            return Err(CqlError::BadCredentials(DEFAULT_REFUSED.to_owned()));
        }
        Ok(Identity::of_role(user).at(client))
    }

    /// The hash of a role's password. A hash may be as old as `credentials_validity`; that there is none is not cached.
    fn stored_hash(&self, user: &str) -> Result<Option<Arc<String>>> {
        let now = now_ns(self.database());
        if let Some(found) = self.access().credentials.get(user, now) {
            return Ok(Some(found));
        }
        let Some(hash) = self.role(user, true)?.and_then(|role| role.salted_hash) else { return Ok(None) };
        let hash = Arc::new(hash);
        self.access().credentials.keep(user, &hash, now);
        Ok(Some(hash))
    }

    /// Makes the default role if there are no roles, and sets its password if one is given. Called once, before the
    /// first client. Does nothing if there are no logins.
    ///
    /// # Errors
    /// Those of a read and a write.
    pub fn begin_logins(&self, password: Option<&str>) -> Result<FirstLogin> {
        self.begin_logins_as(DEFAULT_ROLE, password)
    }

    /// The same for a role of another name, which the owner of the server chose in place of the default role.
    ///
    /// # Errors
    /// As `begin_logins`.
    pub fn begin_logins_as(&self, role: &str, password: Option<&str>) -> Result<FirstLogin> {
        if !self.access().has_logins() {
            return Ok(FirstLogin::OwnPassword);
        }
        let hash = |password| {
            passwords::hash(password, self.database())
                .ok_or_else(|| CqlError::Invalid(passwords::NO_HASH.to_owned()))
        };
        let mut changes = Changes::default();
        if let Some(password) = password {
            changes.add_texts(ADD_DEFAULT, &[role, &hash(password)?]);
            self.change(&changes, None)?.wait()?;
        } else if self.ask("SELECT role FROM system_auth.roles LIMIT 1", &[], true)?.is_empty() {
            // Any later write replaces what is written at time 0.
            changes.add_texts(ADD_DEFAULT, &[DEFAULT_ROLE, &hash(DEFAULT_PASSWORD)?]);
            self.change(&changes, Some(0))?.wait()?;
        }
        self.access().forget();
        Ok(match self.has_default_password()? {
            true => FirstLogin::DefaultPassword,
            false => FirstLogin::OwnPassword,
        })
    }

    /// Whether clients log in and the default role still has its default password.
    ///
    /// # Errors
    /// Those of a read.
    pub fn has_default_password(&self) -> Result<bool> {
        if !self.access().takes_passwords() {
            return Ok(false);
        }
        let Some(stored) = self.role(DEFAULT_ROLE, true)?.and_then(|role| role.salted_hash) else {
            return Ok(false);
        };
        // A check takes long, so its result is kept with the hash.
        let mut checked = self.access().default_checked.lock();
        if let Some((_, is_default)) = checked.as_ref().filter(|(hash, _)| *hash == stored) {
            return Ok(*is_default);
        }
        let is_default = passwords::matches(DEFAULT_PASSWORD, &stored);
        *checked = Some((stored, is_default));
        Ok(is_default)
    }

    /// Sets the password of a role for the server's owner, who may have no other way in: that of the default role is made
    /// if it is missing, and made a superuser that may log in.
    ///
    /// # Errors
    /// Clients need not log in; there is no such role; those of a read and a write.
    pub fn set_lost_password(&self, role: &str, password: &str) -> Result<()> {
        let invalid = |text: String| Err(CqlError::Invalid(text));
        if !self.access().takes_passwords() {
            return invalid(
                "clients of this server need no password; start it with authenticator: PasswordAuthenticator"
                    .to_owned(),
            );
        }
        if password.is_empty() {
            return invalid("the password is empty".to_owned());
        }
        let _changing = self.access().changing.lock();
        let hash = passwords::hash(password, self.database())
            .ok_or_else(|| CqlError::Invalid(passwords::NO_HASH.to_owned()))?;
        let mut changes = Changes::default();
        if role == DEFAULT_ROLE {
            changes.add_texts(ADD_DEFAULT, &[DEFAULT_ROLE, &hash]);
        } else if self.role(role, true)?.is_some() {
            changes.add_texts(SET_PASSWORD, &[&hash, role]);
        } else {
            return invalid(format!("Role {role} doesn't exist"));
        }
        self.change(&changes, None)?.wait()?;
        self.access().forget();
        Ok(())
    }
}
