//! Logins of the HTTP port: name and password of a role, in the header `Authorization: Basic`.
//!
//! Asked for by `/metrics`, which names keyspaces and tables, where the port is reached from beyond this machine, and by
//! `/changes`, which shows data, wherever clients have to log in. Passwords
//! are checked on threads of their own, and few at a time, because a check takes tens of milliseconds.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helenus_cql::audit::EventType;
use helenus_cql::backend::Identity;
use helenus_cql::syntax::cut_at_password;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use tokio::sync::Semaphore;

use crate::audit::{Audit, AuditEntry};

use super::state::{HttpState, Stage};

/// What the client is asked for.
pub(super) const CHALLENGE: &str = "Basic realm=\"Helenus\", charset=\"UTF-8\"";

/// The most checks at a time.
const CHECKS_MAX: usize = 2;

/// Checks the logins of requests.
pub(super) struct HttpLogins {
    room: Arc<Semaphore>,
}

impl Default for HttpLogins {
    fn default() -> HttpLogins {
        HttpLogins { room: Arc::new(Semaphore::new(CHECKS_MAX)) }
    }
}

impl HttpLogins {
    /// Checks the login of a request, and returns whose it is.
    ///
    /// # Errors
    /// The text for the client: there is no login, it is wrong, or the database is not open.
    pub async fn check(
        &self,
        request: &Request<Incoming>,
        client: SocketAddr,
        state: &HttpState,
    ) -> Result<Identity, String> {
        let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some((user, password)) = header.and_then(credentials) else {
            return Err("log in with the name and password of a role (Basic)\n".to_owned());
        };
        let watched = match state.stage() {
            Stage::Open(watched) | Stage::Stopping(Some(watched)) => watched,
            Stage::Opening(_) | Stage::Stopping(None) => {
                return Err("logins are checked once the database is open\n".to_owned());
            }
        };
        let Ok(room) = Arc::clone(&self.room).acquire_owned().await else {
            return Err("the server stops\n".to_owned());
        };
        let checked = tokio::task::spawn_blocking(move || {
            let _room = room;
            let checked = watched.backend.log_in_by_password(&user, &password, Some(client.ip()));
            if watched.audit.is_on() {
                let refusal = checked.as_ref().err().map(|refused| refused.error.to_string());
                write_entry(&watched.audit, (&user, client), refusal.as_deref());
            }
            checked
        });
        match checked.await {
            Ok(Ok(identity)) => Ok(identity),
            Ok(Err(refused)) => {
                tokio::time::sleep(refused.wait).await;
                Err(format!("{}\n", refused.error))
            }
            Err(_panicked) => Err("the login could not be checked\n".to_owned()),
        }
    }
}

/// Writes a login to the audit log. `refusal`: the text of one that failed.
fn write_entry(audit: &Audit, (user, client): (&str, SocketAddr), refusal: Option<&str>) {
    let (event, operation) = match refusal {
        None => (EventType::LoginSuccess, "LOGIN SUCCESSFUL".to_owned()),
        Some(refusal) => (EventType::LoginError, format!("LOGIN FAILURE; {}", cut_at_password(refusal))),
    };
    audit.write(&AuditEntry {
        event,
        user: refusal.is_none().then_some(user),
        source: Some(client),
        timestamp_ms: audit.now_ms(),
        batch: None,
        keyspace: None,
        scope: None,
        operation: &operation,
    });
}

/// Name and password of a header.
fn credentials(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_basic_headers_are_read() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        for (header, expected) in [
            ("Basic Y2Fzc2FuZHJhOnB3", pair("cassandra", "pw")),
            ("basic  Y2Fzc2FuZHJhOnB3 ", pair("cassandra", "pw")),
            ("Basic YTpiOmM=", pair("a", "b:c")),
            ("Basic YQ==", None),
            ("Basic !", None),
            ("Bearer Y2Fzc2FuZHJhOnB3", None),
            ("Basic", None),
            ("", None),
        ] {
            assert_eq!(credentials(header), expected, "{header}");
        }
    }
}
