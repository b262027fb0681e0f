//! What is left of a role, a table or a keyspace when it is dropped: no start makes it again, no session and no grant outlives it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{
    AccessOptions, Authenticator, Authorizer, CqlError, GivenPassword, LocalBackend, LocalOptions,
};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use std::sync::Arc;

fn open(machine: &Machine) -> Arc<LocalBackend> {
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
    let access = AccessOptions {
        authenticator: Authenticator::Password,
        authorizer: Authorizer::Cassandra,
        ..AccessOptions::default()
    };
    LocalBackend::new(database, LocalOptions { access, ..LocalOptions::default() })
}

fn run(backend: &LocalBackend, as_whom: &Identity, statement: &str) -> Result<(), CqlError> {
    match backend.query(statement, &Request::plain(as_whom, &[]), &mut NoRows)?.outcome {
        Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
        _ => {}
    }
    Ok(())
}

fn admin(backend: &LocalBackend, statement: &str) {
    run(backend, &Identity::server(), statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
}

#[derive(Default)]
struct Count(usize);

impl RowsOut for Count {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}
    fn cell(&mut self, _value: Option<&[u8]>) {}
    fn end_row(&mut self) {
        self.0 += 1;
    }
    fn bytes(&self) -> usize {
        0
    }
    fn clear(&mut self) {
        self.0 = 0;
    }
}

fn count(backend: &LocalBackend, query: &str) -> usize {
    let mut count = Count::default();
    backend.query(query, &Request::plain(&Identity::server(), &[]), &mut count).unwrap();
    count.0
}

fn session(backend: &LocalBackend, role: &str) -> Result<Identity, CqlError> {
    backend.log_in_by_password(role, "pw", None).map_err(|refused| refused.error)
}

/// What becomes of a role that is not there and is named with a password at the start, by who else may log in.
#[test]
fn no_start_makes_a_role_where_a_superuser_can_log_in() {
    let superuser = "CREATE ROLE s WITH SUPERUSER = true AND PASSWORD = 'pw'";
    for (others, is_made) in [
        (vec![], true),
        (vec!["CREATE ROLE o WITH LOGIN = true"], true),
        (vec![superuser], true),
        (vec![superuser, "CREATE ROLE heir", "GRANT s TO heir"], true),
        (vec![superuser, "ALTER ROLE s WITH LOGIN = true"], false),
        (vec![superuser, "CREATE ROLE heir WITH LOGIN = true", "GRANT s TO heir"], false),
    ] {
        for role in ["cassandra", "owner"] {
            let machine = Machine::new(1);
            let backend = open(&machine);
            backend.begin_logins(None).unwrap();
            others.iter().for_each(|statement| admin(&backend, statement));
            // The password of a role is checked by bcrypt, which takes its time.
            admin(&backend, "DROP ROLE cassandra");
            drop(backend);
            let backend = open(&machine);
            let first = backend.begin_logins_as(role, Some("pw")).unwrap();
            let expected = if is_made { GivenPassword::Made } else { GivenPassword::NoRole };
            assert_eq!((first.given, first.is_superuser), (Some(expected), is_made), "{role}: {others:?}");
            assert_eq!(session(&backend, role).is_ok(), is_made, "{role}: {others:?}");
        }
    }
}

#[test]
fn a_role_that_was_dropped_comes_back_by_no_start() {
    let machine = Machine::new(1);
    let backend = open(&machine);
    assert_eq!(backend.begin_logins_as("owner", Some("pw")).unwrap().given, Some(GivenPassword::Made));
    let owner = session(&backend, "owner").unwrap();
    for statement in [
        "CREATE ROLE second WITH SUPERUSER = true AND LOGIN = true",
        "CREATE ROLE plain WITH LOGIN = true AND PASSWORD = 'pw'",
        "CREATE ROLE clerk WITH LOGIN = true",
        "GRANT DROP ON ALL ROLES TO clerk",
    ] {
        run(&backend, &owner, statement).unwrap();
    }
    // An ordinary role drops the ordinary one that the configuration names, and a superuser the first superuser.
    run(&backend, &Identity::of_role("clerk"), "DROP ROLE plain").unwrap();
    run(&backend, &Identity::of_role("second"), "DROP ROLE owner").unwrap();
    drop(backend);
    for role in ["plain", "owner", "plain"] {
        let backend = open(&machine);
        let first = backend.begin_logins_as(role, Some("pw")).unwrap();
        assert_eq!((first.given, first.is_superuser), (Some(GivenPassword::NoRole), false), "{role}");
        session(&backend, role).unwrap_err();
        // The way back of the server's owner.
        backend.set_lost_password("cassandra", "pw").unwrap();
        run(&backend, &session(&backend, "cassandra").unwrap(), "DROP ROLE IF EXISTS nobody").unwrap();
        run(&backend, &Identity::of_role("second"), "DROP ROLE cassandra").unwrap();
    }
}

/// A session that is idle while its role ends sees nothing of the end by itself.
#[test]
fn a_session_is_none_of_the_next_role_with_the_name_of_its_own() {
    let make = "CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'pw'";
    let lock = ["ALTER ROLE app WITH LOGIN = false", "ALTER ROLE app WITH LOGIN = true"];
    for end in [["DROP ROLE app", make], ["DROP USER app", make], lock] {
        for is_known in [false, true] {
            let machine = Machine::new(1);
            let backend = open(&machine);
            backend.begin_logins(Some("pw")).unwrap();
            admin(&backend, make);
            let (idle, other) = (session(&backend, "app").unwrap(), session(&backend, "cassandra").unwrap());
            if is_known {
                backend.check_session(&idle, true).unwrap();
            }
            end.iter().for_each(|statement| admin(&backend, statement));
            let ended = [
                backend.check_session(&idle, true),
                run(&backend, &idle, "SELECT key FROM system.local"),
                run(&backend, &idle, "LIST ROLES"),
                backend.check_permissions(&idle, &[], ("k", "t"), true),
            ];
            for found in ended {
                assert!(matches!(found, Err(CqlError::SessionEnded(_))), "{end:?}: {found:?}");
            }
            backend.check_session(&session(&backend, "app").unwrap(), true).unwrap();
            backend.check_session(&other, true).unwrap();
        }
    }
}

/// Who has removed the row of a role, and what was left then: a Cassandra on the same files leaves the limits, a superuser's DELETE
/// leaves everything.
#[test]
fn a_role_has_nothing_of_an_earlier_one_of_its_name() {
    let statements = [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (p int PRIMARY KEY)",
        "CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'pw' AND OPTIONS = {'connections_max': '1', 'requests_max': '7'}",
        "CREATE ROLE other WITH LOGIN = true AND PASSWORD = 'pw'",
        "CREATE ROLE member WITH LOGIN = true AND PASSWORD = 'pw'",
        "CREATE ROLE above",
        "GRANT SELECT ON k.t TO app",
        "GRANT app TO member",
        "GRANT above TO app",
        "GRANT ALTER ON ROLE app TO other",
    ];
    let kept = [
        "DELETE FROM system_auth.role_permissions WHERE role = 'app'",
        "DELETE FROM system_auth.role_members WHERE role = 'app'",
    ];
    for left in 0..1_u32 << kept.len() {
        for (made, has_limit) in [
            ("CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'pw'", false),
            ("CREATE ROLE IF NOT EXISTS app WITH LOGIN = true AND PASSWORD = 'pw'", false),
            ("CREATE USER app WITH PASSWORD 'pw' NOSUPERUSER", false),
            (
                "CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'pw' AND OPTIONS = {'memory_max': '1MiB'}",
                true,
            ),
        ] {
            for restart in [false, true] {
                let machine = Machine::new(1);
                let mut backend = open(&machine);
                backend.begin_logins(Some("pw")).unwrap();
                statements.iter().for_each(|statement| admin(&backend, statement));
                let idle = session(&backend, "app").unwrap();
                run(&backend, &idle, "SELECT * FROM k.t").unwrap();
                admin(&backend, "DELETE FROM system_auth.roles WHERE role = 'app'");
                for (number, delete) in kept.iter().enumerate() {
                    if left & 1 << number == 0 {
                        admin(&backend, delete);
                    }
                }
                if restart {
                    drop(backend);
                    backend = open(&machine);
                }
                admin(&backend, made);
                let how = format!("{made}, left {left:b}, restart {restart}");
                if !restart {
                    let found = run(&backend, &idle, "SELECT key FROM system.local");
                    assert!(matches!(found, Err(CqlError::SessionEnded(_))), "{how}: {found:?}");
                }
                // The limit of one connection is that of the earlier role.
                let new = session(&backend, "app").unwrap();
                let second = session(&backend, "app");
                assert!(second.is_ok(), "{how}: {second:?}");
                let found = run(&backend, &new, "SELECT * FROM k.t");
                assert!(matches!(found, Err(CqlError::Unauthorized(_))), "{how}: {found:?}");
                let other = session(&backend, "other").unwrap();
                let found = run(&backend, &other, "ALTER ROLE app WITH PASSWORD = 'mine'");
                assert!(matches!(found, Err(CqlError::Unauthorized(_))), "{how}: {found:?}");
                // Whoever was a member of the earlier one has nothing of the new one.
                admin(&backend, "GRANT SELECT ON k.t TO app");
                run(&backend, &new, "SELECT * FROM k.t").unwrap();
                if left & 2 != 0 {
                    let member = session(&backend, "member").unwrap();
                    let found = run(&backend, &member, "SELECT * FROM k.t");
                    assert!(matches!(found, Err(CqlError::Unauthorized(_))), "{how}: {found:?}");
                    admin(&backend, "GRANT app TO member");
                }
                let row = "SELECT role FROM system_auth.cidr_permissions WHERE role = 'helenus.limits/app'";
                assert_eq!(count(&backend, row), usize::from(has_limit), "{how}");
            }
        }
    }
}

/// A role that a start or `passwd` makes has nothing of an earlier one either.
#[test]
fn a_role_that_its_owner_makes_has_nothing_of_an_earlier_one() {
    for by_start in [false, true] {
        let machine = Machine::new(1);
        let backend = open(&machine);
        backend.begin_logins(Some("pw")).unwrap();
        admin(&backend, "ALTER ROLE cassandra WITH OPTIONS = {'connections_max': '1'}");
        admin(&backend, "ADD IDENTITY 'spiffe://old/admin' TO ROLE 'cassandra'");
        let old = session(&backend, "cassandra").unwrap();
        admin(&backend, "DELETE FROM system_auth.roles WHERE role = 'cassandra'");
        let backend = match by_start {
            true => {
                drop(backend);
                let backend = open(&machine);
                assert_eq!(backend.begin_logins(Some("pw")).unwrap().given, Some(GivenPassword::Made));
                backend
            }
            false => {
                backend.set_lost_password("cassandra", "pw").unwrap();
                let found = run(&backend, &old, "SELECT key FROM system.local");
                assert!(matches!(found, Err(CqlError::SessionEnded(_))), "{found:?}");
                backend
            }
        };
        let both = (session(&backend, "cassandra"), session(&backend, "cassandra"));
        assert!(both.0.is_ok() && both.1.is_ok(), "by start {by_start}: {both:?}");
        let identities = count(&backend, "SELECT identity FROM system_auth.identity_to_role");
        assert_eq!(identities, 0, "by start {by_start}: an old certificate logs in as the new role");
    }
}

/// A server that ends between a DROP and the write that follows it leaves the grants on what was dropped.
#[test]
fn what_was_granted_on_a_dropped_object_is_none_of_the_next_with_its_name() {
    let keyspace =
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE k.t (p int PRIMARY KEY)";
    for (resource, again) in [
        ("data/k/t", vec![table]),
        ("data/k", vec!["DROP KEYSPACE k", keyspace, table]),
        ("data/k/*", vec!["DROP KEYSPACE k", keyspace, table]),
    ] {
        let machine = Machine::new(1);
        let backend = open(&machine);
        backend.begin_logins(None).unwrap();
        for statement in [keyspace, "CREATE ROLE r WITH LOGIN = true", "CREATE ROLE maker WITH LOGIN = true"]
        {
            admin(&backend, statement);
        }
        for statement in ["GRANT CREATE ON ALL KEYSPACES TO maker", "GRANT DROP ON ALL KEYSPACES TO maker"] {
            admin(&backend, statement);
        }
        let own_resource = "data/other";
        let mut left = vec![own_resource];
        if resource == "data/k/t" {
            left.push(resource);
        }
        let leave = |resource: &str| {
            admin(
                &backend,
                &format!(
                    "INSERT INTO system_auth.role_permissions (role, resource, permissions) VALUES ('r', '{resource}', {{'SELECT'}})"
                ),
            );
            admin(
                &backend,
                &format!(
                    "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES ('{resource}', 'r')"
                ),
            );
        };
        left.into_iter().for_each(leave);
        let (maker, r) = (Identity::of_role("maker"), Identity::of_role("r"));
        for statement in &again {
            run(&backend, &maker, statement).unwrap();
            if *statement == "DROP KEYSPACE k" {
                leave(resource);
            }
        }
        let found = run(&backend, &r, "SELECT * FROM k.t");
        assert!(matches!(found, Err(CqlError::Unauthorized(_))), "{resource}: {found:?}");
        run(&backend, &maker, "SELECT * FROM k.t").unwrap();
        run(&backend, &maker, "GRANT SELECT ON k.t TO r").unwrap();
        run(&backend, &maker, "CREATE TABLE IF NOT EXISTS k.t (p int PRIMARY KEY)").unwrap();
        run(&backend, &r, "SELECT * FROM k.t").unwrap();
    }
}

#[test]
fn a_role_has_a_bounded_number_of_roles() {
    let machine = Machine::new(1);
    let backend = open(&machine);
    backend.begin_logins(None).unwrap();
    let names: Vec<String> = (0..999).map(|number| format!("'r{number}'")).collect();
    for name in &names {
        admin(
            &backend,
            &format!(
                "INSERT INTO system_auth.roles (role, is_superuser, can_login) VALUES ({name}, false, false)"
            ),
        );
    }
    for name in ["many", "more", "above"] {
        admin(&backend, &format!("CREATE ROLE {name}"));
    }
    admin(
        &backend,
        &format!("UPDATE system_auth.roles SET member_of = {{{}}} WHERE role = 'many'", names.join(", ")),
    );
    for (statement, is_taken) in [
        ("GRANT more TO many", false),
        ("GRANT many TO above", false),
        ("REVOKE r7 FROM many", true),
        ("GRANT more TO many", true),
        ("GRANT more TO above", true),
    ] {
        let found = run(&backend, &Identity::server(), statement);
        match is_taken {
            true => found.unwrap(),
            false => assert!(
                matches!(&found, Err(CqlError::Invalid(text)) if text.contains("1000")),
                "{statement}: {found:?}"
            ),
        }
    }
}
