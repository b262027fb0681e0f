//! The cost of stored hashes: a login stores the hash again if its cost is not that of the configuration, and nothing else changes by it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "support/collected.rs"]
mod collected;

use collected::Collected;
use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
use helenus_cql::{AccessOptions, Authenticator, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use std::net::IpAddr;
use std::sync::Arc;

const COST_4: &str = "$2a$04$JSEVJfVYJoYTzM7vKuVAO.dHKS9ZGjV7vrCPJqxRPbYxyyLHPzQUu";
/// The hash of `two`.
const COST_12: &str = "$2a$12$N9qo8uLOickgx2ZMRZoMyefqgdKwArsNY1NjKISXLgnmXoTHz7izy";

fn node(machine: &Machine, password_cost: u32) -> Arc<LocalBackend> {
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
    let access = AccessOptions {
        authenticator: Authenticator::Password,
        password_cost,
        password_interval: std::time::Duration::ZERO,
        ..AccessOptions::default()
    };
    let backend = LocalBackend::new(database, LocalOptions { access, ..LocalOptions::default() });
    backend.begin_logins(None).unwrap();
    backend
}

fn run(backend: &LocalBackend, statement: &str) -> Result<Vec<String>, String> {
    let identity = Identity::server();
    let answer = backend.query(statement, &Request::plain(&identity, &[]), &mut NoRows);
    let answer = answer.map_err(|error| error.to_string())?;
    if let Outcome::Done(ticket) = answer.outcome {
        ticket.wait().unwrap();
    }
    Ok(answer.warnings)
}

/// The cost of a role's stored hash, and when it was written.
fn stored(backend: &LocalBackend, role: &str) -> (String, i64) {
    let identity = Identity::server();
    let mut cells = Collected::default();
    let query =
        format!("SELECT salted_hash, writetime(salted_hash) FROM system_auth.roles WHERE role = '{role}'");
    backend.query(&query, &Request::plain(&identity, &[]), &mut cells).unwrap();
    let cells: Vec<Vec<u8>> = cells.into_cells().into_iter().map(Option::unwrap_or_default).collect();
    let hash = String::from_utf8(cells[0].clone()).unwrap();
    (hash[..7].to_owned(), i64::from_be_bytes(cells[1].as_slice().try_into().unwrap()))
}

#[test]
fn a_login_stores_a_hash_of_another_cost_again_and_a_wrong_password_does_not() {
    let machine = Machine::new(1);
    // A server of before.
    run(&node(&machine, 4), "CREATE ROLE low WITH PASSWORD = 'two' AND LOGIN = true").unwrap();
    let backend = node(&machine, 11);
    let here: IpAddr = [127, 0, 0, 1].into();
    for (role, hash, warnings) in [("high", COST_12, 0), ("copied", COST_4, 1)] {
        let set = format!("CREATE ROLE {role} WITH HASHED PASSWORD = '{hash}' AND LOGIN = true");
        assert_eq!(run(&backend, &set).unwrap().len(), warnings, "{role}");
    }
    for (role, cost) in [("low", "$2a$04$"), ("high", "$2a$12$")] {
        let before = stored(&backend, role);
        assert_eq!(before.0, cost);
        assert!(backend.log_in_by_password(role, "one", Some(here)).is_err());
        assert_eq!(stored(&backend, role), before, "a wrong password changes nothing");
        assert!(backend.log_in_by_password(role, "two", Some(here)).is_ok());
        let after = stored(&backend, role);
        assert_eq!(
            after,
            ("$2a$11$".to_owned(), before.1 + 1),
            "of the new cost, and no change of the password in time"
        );
        assert!(backend.log_in_by_password(role, "two", Some(here)).is_ok(), "the password is the same");
        assert_eq!(stored(&backend, role), after, "once");
        assert!(backend.log_in_by_password(role, "one", Some(here)).is_err());
    }
    run(&backend, "CREATE ROLE own WITH PASSWORD = 'two' AND LOGIN = true").unwrap();
    assert_eq!(stored(&backend, "own").0, "$2a$11$");
}

#[test]
fn a_password_of_more_than_72_bytes_is_refused_wherever_one_is_set() {
    let machine = Machine::new(1);
    let backend = node(&machine, 10);
    let (fits, long) = ("a".repeat(72), "ä".repeat(37));
    run(&backend, &format!("CREATE ROLE r WITH PASSWORD = '{fits}' AND LOGIN = true")).unwrap();
    assert!(backend.log_in_by_password("r", &fits, None).is_ok());
    for statement in [
        format!("ALTER ROLE r WITH PASSWORD = '{long}'"),
        format!("CREATE ROLE s WITH PASSWORD = '{long}'"),
        format!("ALTER USER r WITH PASSWORD '{long}'"),
        format!("CREATE USER s WITH PASSWORD '{long}'"),
    ] {
        let refused = run(&backend, &statement).unwrap_err();
        assert!(refused.contains("74 bytes") && !refused.contains(&long), "{refused}");
    }
    for refused in [backend.set_lost_password("r", &long), backend.begin_logins(Some(&long)).map(|_| ())] {
        assert!(refused.unwrap_err().to_string().contains("at most 72"));
    }
    assert!(backend.log_in_by_password("r", &fits, None).is_ok(), "nothing has changed");
}

/// A hash that was read before the password was changed lets nobody in: it is compared with the role's own once more after the check.
#[test]
fn a_password_that_was_changed_since_its_hash_was_read_is_refused() {
    let machine = Machine::new(1);
    let backend = node(&machine, 4);
    run(&backend, "CREATE ROLE app WITH PASSWORD = 'one' AND LOGIN = true").unwrap();
    run(&backend, "CREATE ROLE other WITH PASSWORD = 'two' AND LOGIN = true").unwrap();
    assert!(backend.log_in_by_password("app", "one", None).is_ok(), "its hash is remembered for a while");
    // A write to the table itself leaves what is remembered.
    let mut cells = Collected::default();
    let identity = Identity::server();
    let query = "SELECT salted_hash FROM system_auth.roles WHERE role = 'other'";
    backend.query(query, &Request::plain(&identity, &[]), &mut cells).unwrap();
    let hash = String::from_utf8(cells.into_cells().remove(0).unwrap()).unwrap();
    run(&backend, &format!("UPDATE system_auth.roles SET salted_hash = '{hash}' WHERE role = 'app'"))
        .unwrap();
    assert!(backend.log_in_by_password("app", "one", None).is_err());
    assert!(backend.log_in_by_password("app", "two", None).is_ok());
}
