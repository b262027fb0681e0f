//! Logins of the HTTP port: name and password of a role, in the header `Authorization: Basic`.
//!
//! Asked for by `/metrics`, which names keyspaces and tables, where the port is reached from beyond this machine, and by
//! `/changes`, which shows data, wherever clients have to log in. Passwords are checked by the login pool, as those of all
//! interfaces.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helenus_cql::CqlError;
use helenus_cql::audit::EventType;
use helenus_cql::backend::{Backend, Identity};
use helenus_cql::syntax::cut_at_password;
use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::{Request, StatusCode};

use crate::audit::{Audit, AuditEntry, AuditUser};
use crate::logins::TOO_MANY_LOGINS;
use crate::thread_pool::Turn;

use super::state::{HttpState, Stage};

/// What the client is asked for.
pub(super) const CHALLENGE: &str = "Basic realm=\"Helenus\", charset=\"UTF-8\"";

/// Checks the login of a request, and returns whose it is. As for all interfaces, nothing is done while the audit log cannot be written
/// and has to be (`block: true`), and a role does nothing from a datacenter or network that it may not come from.
///
/// # Errors
/// Status and text for the client: there is no login, it is wrong, too many wait, the database is not open, the audit log is blocked, or the
/// role may not use the server from there.
pub(super) async fn check_login(
    request: &Request<Incoming>,
    client: SocketAddr,
    state: &HttpState,
) -> Result<Identity, (StatusCode, String)> {
    let unauthorized = |text: &str| Err((StatusCode::UNAUTHORIZED, format!("{text}\n")));
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((user, password)) = header.and_then(credentials) else {
        return unauthorized("log in with the name and password of a role (Basic)");
    };
    let watched = match state.stage() {
        Stage::Open(watched) | Stage::Stopping(Some(watched)) => watched,
        Stage::Opening(_) | Stage::Stopping(None) => {
            return unauthorized("logins are checked once the database is open");
        }
    };
    if let Some(refusal) = watched.audit.refusal() {
        return Err((StatusCode::SERVICE_UNAVAILABLE, format!("{refusal}\n")));
    }
    let pool = Arc::clone(watched.native.login_pool());
    let role = user.clone();
    // Not all of the server: the thread that drops it waits for the pool's.
    let (backend, audit) = (Arc::clone(&watched.backend), Arc::clone(&watched.audit));
    drop(watched);
    let path = request.uri().path().to_owned();
    let check = move |turn: Turn| {
        let checked = match turn {
            Turn::Run => backend.log_in_by_password(&user, &password, Some(client.ip())),
            Turn::Refuse => Err(CqlError::Overloaded(TOO_MANY_LOGINS.to_owned()).into()),
        };
        if audit.is_on() {
            let refusal = checked.as_ref().err().map(|refused| refused.error.to_string());
            write_entry(&audit, (&user, client), refusal.as_deref());
        }
        // As in Cassandra, the login itself succeeds from everywhere.
        checked.map(|identity| {
            backend.check_session(&identity, true).map(|()| identity).map_err(|refused| {
                if audit.is_on() {
                    write_refused(&audit, (&user, client), &format!("GET {path}; {refused}"));
                }
                refused
            })
        })
    };
    match pool.run((Some(client), &role), check).await {
        Some(Ok(Ok(identity))) => Ok(identity),
        Some(Ok(Err(refused))) => Err((StatusCode::FORBIDDEN, format!("{refused}\n"))),
        Some(Err(refused)) => {
            tokio::time::sleep(refused.wait).await;
            unauthorized(&refused.error.to_string())
        }
        None => unauthorized("the login could not be checked"),
    }
}

/// Writes a login to the audit log. `refusal`: the text of one that failed.
fn write_entry(audit: &Audit, (user, client): (&str, SocketAddr), refusal: Option<&str>) {
    let (event, operation) = match refusal {
        None => (EventType::LoginSuccess, "LOGIN SUCCESSFUL".to_owned()),
        Some(refusal) => (EventType::LoginError, format!("LOGIN FAILURE; {}", cut_at_password(refusal))),
    };
    let user = AuditUser::of(refusal.is_none().then_some(user), AuditUser::Nobody);
    write(audit, (event, user, client), &operation);
}

/// Writes a request to the audit log whose role has logged in and may not make it.
fn write_refused(audit: &Audit, (user, client): (&str, SocketAddr), operation: &str) {
    let user = AuditUser::of(Some(user), AuditUser::Nobody);
    write(audit, (EventType::UnauthorizedAttempt, user, client), operation);
}

fn write(audit: &Audit, (event, user, client): (EventType, AuditUser<'_>, SocketAddr), operation: &str) {
    audit.write(&AuditEntry {
        event,
        user,
        source: Some(client),
        timestamp_ms: audit.now_ms(),
        batch: None,
        keyspace: None,
        is_of_session: false,
        scope: None,
        operation,
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
