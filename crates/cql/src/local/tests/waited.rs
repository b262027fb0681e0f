//! Statements that waited for others which change roles or the schema: what they may do is asked when their turn comes.

use crate::backend::{Backend, Identity, NoRows, Request, ResultColumns, RowsOut};
use crate::budget::RequestBudget;
use crate::error::CqlError;
use crate::local::{AccessOptions, Authenticator, Authorizer, LocalBackend, LocalOptions};
use crate::plan::Plan;
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use std::sync::Arc;

fn open() -> Arc<LocalBackend> {
    open_on(&Machine::new(1))
}

fn open_on(machine: &Machine) -> Arc<LocalBackend> {
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
    let access = AccessOptions {
        authenticator: Authenticator::Password,
        authorizer: Authorizer::Cassandra,
        ..AccessOptions::default()
    };
    let backend = LocalBackend::new(database, LocalOptions { access, ..LocalOptions::default() });
    backend.begin_logins(Some("pw")).unwrap();
    backend
}

fn admin(backend: &LocalBackend, statement: &str) {
    let identity = Identity::server();
    backend
        .query(statement, &Request::plain(&identity, &[]), &mut NoRows)
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// Runs the part of a statement that comes after the wait.
fn run_after_wait(backend: &LocalBackend, identity: &Identity, statement: &str) -> Result<(), CqlError> {
    let prepared = backend.prepare(statement, None, &Identity::server()).unwrap();
    let request = Request::plain(identity, &[]);
    let work = RequestBudget::of(&request, backend.database());
    match &prepared.plan {
        Plan::Ddl(plan) => {
            backend.change_schema(&[(plan, &*prepared.needs)], (&request, &work), None).map(drop)
        }
        Plan::Access(access) => {
            backend.run_access((access, &*prepared.needs), &request, &mut NoRows).map(drop)
        }
        _ => panic!("{statement} does not wait"),
    }
}

#[test]
fn a_statement_whose_role_ended_while_it_waited_changes_nothing() {
    let role = ["CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'pw'"];
    let rights = ["GRANT ALL ON ALL KEYSPACES TO app", "GRANT ALL ON ALL ROLES TO app"];
    let ends: [&[&str]; 5] = [
        &["DROP ROLE app"],
        &["DROP ROLE app", role[0], rights[0], rights[1]],
        &["ALTER ROLE app WITH LOGIN = false"],
        &["ALTER ROLE app WITH LOGIN = false", "ALTER ROLE app WITH LOGIN = true"],
        &["DELETE FROM system_auth.roles WHERE role = 'app'", role[0], rights[0], rights[1]],
    ];
    let statements = [
        "CREATE KEYSPACE own WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.own (p int PRIMARY KEY)",
        "CREATE INDEX own ON k.t (v)",
        "CREATE TYPE k.own (v int)",
        "ALTER TABLE k.t ADD own int",
        "DROP TABLE k.t",
        "DROP KEYSPACE k",
        "CREATE ROLE own",
        "ALTER ROLE other WITH LOGIN = true",
        "DROP ROLE other",
        "GRANT other TO app",
        "GRANT SELECT ON k.t TO other",
        "REVOKE MODIFY ON k.t FROM other",
        "ADD IDENTITY 'own' TO ROLE other",
        "LIST ROLES",
        "LIST ALL PERMISSIONS OF other",
    ];
    for end in ends {
        let backend = open();
        for statement in [
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE k.t (p int PRIMARY KEY, v int)",
            "CREATE ROLE other",
            "GRANT MODIFY ON k.t TO other",
        ]
        .into_iter()
        .chain(role)
        .chain(rights)
        {
            admin(&backend, statement);
        }
        let app = backend.log_in_by_password("app", "pw", None).map_err(|refused| refused.error).unwrap();
        backend.check_session(&app, true).unwrap();
        end.iter().for_each(|statement| admin(&backend, statement));
        let before = backend.schema().version;
        for statement in statements {
            let found = run_after_wait(&backend, &app, statement);
            assert!(matches!(found, Err(CqlError::SessionEnded(_))), "{end:?}, {statement}: {found:?}");
        }
        assert_eq!(backend.schema().version, before, "{end:?}");
    }
}

#[test]
fn a_right_that_is_revoked_while_a_statement_waits_does_not_count() {
    let backend = open();
    for statement in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'pw'",
    ] {
        admin(&backend, statement);
    }
    let app = backend.log_in_by_password("app", "pw", None).map_err(|refused| refused.error).unwrap();
    for (right, statement) in [
        ("CREATE ON ALL KEYSPACES", "CREATE TABLE k.t (p int PRIMARY KEY)"),
        ("ALTER ON KEYSPACE k", "CREATE TYPE k.own (v int)"),
        ("CREATE ON ALL ROLES", "CREATE ROLE own"),
    ] {
        admin(&backend, &format!("GRANT {right} TO app"));
        admin(&backend, &format!("REVOKE {right} FROM app"));
        let found = run_after_wait(&backend, &app, statement);
        assert!(matches!(found, Err(CqlError::Unauthorized(_))), "{statement}: {found:?}");
    }
    admin(&backend, "GRANT CREATE ON ALL KEYSPACES TO app");
    run_after_wait(&backend, &app, "CREATE TABLE k.t (p int PRIMARY KEY)").unwrap();
}

/// The rows of an answer.
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

/// Asked at each change of a file, also those of the log that the statements wait for.
#[test]
fn no_cache_has_a_permission_of_a_dropped_or_new_object_while_its_end_is_waited_for() {
    let keyspace =
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE k.t (p int PRIMARY KEY)";
    let left = [
        "INSERT INTO system_auth.role_permissions (role, resource, permissions) \
         VALUES ('app', 'data/k/t', {'SELECT'})",
        "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES ('data/k/t', 'app')",
    ];
    for statements in [&["DROP TABLE k.t"][..], &["DROP TABLE k.t", left[0], left[1], table]] {
        let machine = Machine::new(1);
        let backend = open_on(&machine);
        let role = "CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'pw'";
        for statement in [keyspace, table, role, "GRANT SELECT ON k.t TO app"] {
            admin(&backend, statement);
        }
        let app = backend.log_in_by_password("app", "pw", None).map_err(|refused| refused.error).unwrap();
        let needs = backend.prepare("SELECT p FROM k.t", None, &Identity::server()).unwrap().needs.clone();
        assert!(backend.authorize(&app, &needs, true).is_ok());
        let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let (of_watcher, of_backend, server) = (asked.clone(), Arc::downgrade(&backend), Identity::server());
        let is_stale = move || {
            let Some(backend) = of_backend.upgrade() else { return false };
            let (mut rows, query) = (
                Count::default(),
                "SELECT role FROM system_auth.role_permissions WHERE role = 'app' AND resource = 'data/k/t'",
            );
            let request = Request { may_block: false, ..Request::plain(&server, &[]) };
            let is_granted = backend.query(query, &request, &mut rows).map_or(true, |_| rows.0 > 0);
            let is_allowed = backend.authorize(&app, &needs, false).is_ok();
            of_watcher.fetch_add(u32::from(!is_granted), std::sync::atomic::Ordering::Relaxed);
            is_allowed && !is_granted
        };
        let stale = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let found = stale.clone();
        machine.on_every_change(move |_| {
            found.fetch_or(is_stale(), std::sync::atomic::Ordering::Relaxed);
        });
        for statement in statements {
            admin(&backend, statement);
        }
        machine.stop_watching();
        assert!(
            asked.load(std::sync::atomic::Ordering::Relaxed) > 0,
            "{statements:?}: never asked without the grant"
        );
        assert!(!stale.load(std::sync::atomic::Ordering::Relaxed), "{statements:?}");
    }
}
