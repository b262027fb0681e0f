//! The limits of a role: set by OPTIONS, kept in `system_auth`, shown, and refused in words by name.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "support/collected.rs"]
mod collected;

use collected::Collected;
use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_host::{Clock, Host};
use helenus_model::types::Elements;
use std::sync::Arc;

const NAMES: [&str; 5] =
    ["connections_max", "requests_max", "request_bytes_max", "memory_max", "statement_timeout"];

fn open(machine: &Machine) -> Arc<LocalBackend> {
    open_on(machine.host())
}

fn open_on(host: Host) -> Arc<LocalBackend> {
    let (database, _) = Database::open(host, DatabaseOptions::new("/db")).unwrap();
    let access = AccessOptions {
        authenticator: Authenticator::Password,
        authorizer: Authorizer::Cassandra,
        ..AccessOptions::default()
    };
    let backend = LocalBackend::new(database, LocalOptions { access, ..LocalOptions::default() });
    backend.begin_logins(None).unwrap();
    backend
}

fn run(backend: &LocalBackend, as_whom: &Identity, statement: &str) -> Result<(), CqlError> {
    match backend.query(statement, &Request::plain(as_whom, &[]), &mut NoRows)?.outcome {
        Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
        _ => {}
    }
    Ok(())
}

fn admin(backend: &LocalBackend, statement: &str) {
    run(backend, &Identity::server(), statement).unwrap();
}

fn cells(backend: &LocalBackend, as_whom: &Identity, query: &str) -> Result<Vec<Option<Vec<u8>>>, CqlError> {
    let mut cells = Collected::default();
    backend.query(query, &Request::plain(as_whom, &[]), &mut cells)?;
    Ok(cells.into_cells())
}

/// The options of a role in LIST ROLES, as `name=value`.
fn listed(backend: &LocalBackend, role: &str) -> Vec<String> {
    let found = cells(backend, &Identity::of_role("cassandra"), &format!("LIST ROLES OF {role}")).unwrap();
    let map = found[3].clone().unwrap();
    // The elements of a map follow each other as those of a list with twice as many.
    let count = u32::from_be_bytes(map[..4].try_into().unwrap());
    let as_list = [&(2 * count).to_be_bytes()[..], &map[4..]].concat();
    let texts: Vec<String> =
        Elements::of_list(&as_list).flatten().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
    texts.chunks(2).map(|pair| pair.join("=")).collect()
}

fn session(backend: &LocalBackend, role: &str) -> Result<Identity, String> {
    let address = Some([10, 0, 0, 1].into());
    backend.log_in_by_password(role, "pw", address).map_err(|refused| refused.error.to_string())
}

fn overloaded<T: std::fmt::Debug>(refused: Result<T, CqlError>, limit: &str) {
    match refused.unwrap_err() {
        CqlError::Overloaded(text) => {
            assert!(text.starts_with("Role app ") && text.contains(limit), "{text}");
        }
        other => panic!("{limit}: {other:?}"),
    }
}

#[test]
fn options_are_kept_shown_changed_and_end_with_their_role() {
    let machine = Machine::new(1);
    let backend = open(&machine);
    let given = "{'connections_max': '2', 'requests_max': '3', 'request_bytes_max': '1MiB', 'memory_max': '64KiB', \
                 'statement_timeout': '5s'}";
    admin(&backend, &format!("CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true AND OPTIONS = {given}"));
    let all = [
        "connections_max=2",
        "memory_max=64KiB",
        "request_bytes_max=1MiB",
        "requests_max=3",
        "statement_timeout=5s",
    ];
    assert_eq!(listed(&backend, "app"), all);
    admin(&backend, "ALTER ROLE app WITH OPTIONS = {'requests_max': '', 'connections_max': '1'}");
    let left = ["connections_max=1", "memory_max=64KiB", "request_bytes_max=1MiB", "statement_timeout=5s"];
    assert_eq!(listed(&backend, "app"), left, "what is not named stays");
    drop(backend);
    let backend = open(&machine);
    assert_eq!(listed(&backend, "app"), left, "after a restart");
    let first = session(&backend, "app").unwrap();
    assert!(session(&backend, "app").unwrap_err().contains("its option connections_max"));
    let shown = "SELECT role, connections, connections_max, refused FROM system_views.role_limits";
    let long = |number: i64| Some(number.to_be_bytes().to_vec());
    let rows = cells(&backend, &Identity::of_role("cassandra"), shown).unwrap();
    assert_eq!(rows, [Some(b"app".to_vec()), long(1), long(1), long(1)]);
    drop(first);
    admin(&backend, "DROP ROLE app");
    admin(&backend, "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true");
    assert!(listed(&backend, "app").is_empty(), "a new role of the name has no limits");
    let _two = [session(&backend, "app").unwrap(), session(&backend, "app").unwrap()];
}

#[test]
fn who_may_not_set_limits_and_what_is_no_limit_is_told() {
    let machine = Machine::new(1);
    let backend = open(&machine);
    admin(&backend, "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true");
    admin(&backend, "GRANT ALTER ON ROLE app TO app");
    let app = Identity::of_role("app");
    let own = run(&backend, &app, "ALTER ROLE app WITH OPTIONS = {'connections_max': '100'}").unwrap_err();
    assert!(matches!(own, CqlError::Unauthorized(_)), "{own:?}");
    for name in NAMES {
        let wrong = format!("ALTER ROLE app WITH OPTIONS = {{'{name}': 'many'}}");
        let refused = run(&backend, &Identity::server(), &wrong).unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
    }
    let typo = run(&backend, &Identity::server(), "ALTER ROLE app WITH OPTIONS = {'conections_max': '1'}");
    let typo = typo.unwrap_err().to_string();
    assert!(NAMES.iter().all(|name| typo.contains(name)), "{typo}");
    let taken =
        run(&backend, &Identity::server(), "CREATE ROLE \"helenus.limits/app\"").unwrap_err().to_string();
    assert!(taken.contains("the server's own"), "{taken}");
    assert!(listed(&backend, "app").is_empty(), "nothing has changed");
}

#[test]
fn a_change_acts_on_a_running_session() {
    let machine = Machine::new(1);
    let backend = open(&machine);
    for statement in [
        "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true",
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c))",
        "GRANT SELECT ON KEYSPACE k TO app",
        "GRANT MODIFY ON KEYSPACE k TO app",
    ] {
        admin(&backend, statement);
    }
    let filler = "x".repeat(1000);
    for row in 0..200 {
        admin(&backend, &format!("INSERT INTO k.t (k, c, v) VALUES (1, {row}, '{filler}')"));
    }
    let app = session(&backend, "app").unwrap();
    let read = || cells(&backend, &app, "SELECT * FROM k.t");
    assert!(read().is_ok() && app.begin(1 << 20).unwrap().is_none(), "without limits nothing is counted");

    admin(&backend, "ALTER ROLE app WITH OPTIONS = {'memory_max': '64KiB'}");
    overloaded(read(), "memory_max");
    assert!(cells(&backend, &app, "SELECT * FROM k.t LIMIT 10").is_ok());
    assert!(cells(&backend, &Identity::of_role("cassandra"), "SELECT * FROM k.t").is_ok(), "another role");

    admin(
        &backend,
        "ALTER ROLE app WITH OPTIONS = {'memory_max': '', 'requests_max': '1', 'request_bytes_max': '1KiB'}",
    );
    assert!(read().is_ok());
    let first = app.begin(10).unwrap();
    overloaded(app.begin(10), "requests_max");
    admin(&backend, "ALTER ROLE app WITH OPTIONS = {'requests_max': '5'}");
    overloaded(app.begin(1 << 10), "request_bytes_max");
    drop(first);
    assert!(app.begin(1 << 10).is_ok());
}

/// A clock that goes on whenever it is read.
struct Ticking(Machine, Arc<dyn Clock>);

impl Clock for Ticking {
    fn wall_us(&self) -> i64 {
        self.1.wall_us()
    }
    fn monotonic_ns(&self) -> u64 {
        self.0.advance(1_000_000);
        self.1.monotonic_ns()
    }
}

/// Its rows go nowhere, so that time passes with the work alone. Of pages none takes long.
#[test]
fn explain_analyze_ends_when_the_time_of_its_role_has_passed() {
    let machine = Machine::new(1);
    let host = machine.host();
    let clock = Arc::new(Ticking(machine.clone(), host.clock.clone()));
    let backend = open_on(Host { clock, ..host });
    for statement in [
        "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true AND OPTIONS = {'statement_timeout': '300ms'}",
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (k int, c int, PRIMARY KEY (k, c))",
        "GRANT SELECT ON KEYSPACE k TO app",
    ] {
        admin(&backend, statement);
    }
    for row in 0..1000 {
        admin(&backend, &format!("INSERT INTO k.t (k, c) VALUES ({}, {row})", row % 30));
    }
    let app = session(&backend, "app").unwrap();
    let explained = |as_whom: &Identity, rest: &str| {
        let query = format!("EXPLAIN ANALYZE SELECT * FROM k.t {rest}");
        let request = Request { page_size: Some(1), ..Request::plain(as_whom, &[]) };
        backend.query(&query, &request, &mut NoRows).map(|_| ())
    };
    overloaded(explained(&app, ""), "statement_timeout");
    assert!(explained(&app, "LIMIT 3").is_ok());
    assert!(explained(&Identity::of_role("cassandra"), "").is_ok(), "another role");
}

/// Takes rows, and lets time pass with each.
struct Slow<'a>(&'a Machine);

impl RowsOut for Slow<'_> {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}
    fn cell(&mut self, _value: Option<&[u8]>) {}
    fn end_row(&mut self) {
        self.0.advance(1_000_000);
    }
    fn bytes(&self) -> usize {
        0
    }
    fn clear(&mut self) {}
}

#[test]
fn a_statement_ends_when_the_time_of_its_role_has_passed() {
    let machine = Machine::new(1);
    let backend = open(&machine);
    for statement in [
        "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true AND OPTIONS = {'statement_timeout': '100ms'}",
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (k int, c int, PRIMARY KEY (k, c))",
        "GRANT SELECT ON KEYSPACE k TO app",
    ] {
        admin(&backend, statement);
    }
    for row in 0..3000 {
        admin(&backend, &format!("INSERT INTO k.t (k, c) VALUES ({}, {row})", row % 30));
    }
    let app = session(&backend, "app").unwrap();
    let read = |as_whom: &Identity, rest: &str| {
        let query = format!("SELECT * FROM k.t {rest}");
        backend.query(&query, &Request::plain(as_whom, &[]), &mut Slow(&machine)).map(|_| ())
    };
    overloaded(read(&app, ""), "statement_timeout");
    overloaded(read(&app, "USING TIMEOUT 1h"), "statement_timeout");
    assert!(read(&app, "LIMIT 10").is_ok());
    assert!(read(&Identity::of_role("cassandra"), "").is_ok(), "another role");
    admin(&backend, "ALTER ROLE app WITH OPTIONS = {'statement_timeout': '1m'}");
    assert!(read(&app, "").is_ok());
}

/// What stands in the table may be of a later version, or of a statement on the table itself.
#[test]
fn a_stored_limit_that_is_not_understood_keeps_nobody_out_and_goes_with_the_next_change() {
    let row = "SELECT cidr_groups FROM system_auth.cidr_permissions WHERE role = 'helenus.limits/app'";
    for unknown in [
        "future_max=3",
        "future_max",
        "",
        "=",
        "requests_max",
        "requests_max=none",
        "memory_max=1B",
        "connections_max=0",
    ] {
        let machine = Machine::new(1);
        let backend = open(&machine);
        admin(&backend, "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true");
        admin(
            &backend,
            &format!(
                "INSERT INTO system_auth.cidr_permissions (role, cidr_groups) VALUES ('helenus.limits/app', {{'{unknown}', \
                 'statement_timeout=5s'}})"
            ),
        );
        session(&backend, "app").unwrap_or_else(|error| panic!("{unknown}: {error}"));
        assert_eq!(listed(&backend, "app"), ["statement_timeout=5s"], "{unknown}");
        admin(&backend, "ALTER ROLE app WITH OPTIONS = {'memory_max': '1MiB'}");
        let stored = cells(&backend, &Identity::of_role("cassandra"), row).unwrap()[0].clone().unwrap();
        let texts: Vec<&[u8]> = Elements::of_list(&stored).flatten().collect();
        assert_eq!(texts, [&b"memory_max=1MiB"[..], b"statement_timeout=5s"], "{unknown}");
    }
}

/// Rows may be kept until the last one is read: to be sorted, grouped, measured or folded.
#[test]
fn rows_that_are_kept_until_the_last_count_for_memory_max() {
    let machine = Machine::new(1);
    let backend = open(&machine);
    for statement in [
        "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true AND OPTIONS = {'memory_max': '64KiB'}",
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c))",
        "CREATE TABLE k.a (k int PRIMARY KEY, v text, e vector<float, 2>)",
        "CREATE CUSTOM INDEX ON k.a (e) USING 'StorageAttachedIndex'",
        "GRANT SELECT ON KEYSPACE k TO app",
    ] {
        admin(&backend, statement);
    }
    let long = "v".repeat(4 << 10);
    for row in 0..40 {
        admin(&backend, &format!("INSERT INTO k.t (k, c, v) VALUES ({}, {row}, '{long}')", row % 2));
        admin(&backend, &format!("INSERT INTO k.a (k, v, e) VALUES ({row}, '{long}', [{row}, 1])"));
    }
    let app = session(&backend, "app").unwrap();
    let many = ["max(v)"; 20].join(", ");
    for (query, few) in [
        ("SELECT v FROM k.t".to_owned(), "SELECT v FROM k.t LIMIT 8".to_owned()),
        (
            "SELECT v FROM k.t WHERE k IN (0, 1) ORDER BY c".to_owned(),
            "SELECT v FROM k.t WHERE k IN (0, 1) AND c < 8 ORDER BY c".to_owned(),
        ),
        (
            "SELECT c, max(v) FROM k.t WHERE k IN (0, 1) GROUP BY k, c ORDER BY c".to_owned(),
            "SELECT c, max(v) FROM k.t WHERE k IN (0, 1) AND c < 8 GROUP BY k, c ORDER BY c".to_owned(),
        ),
        (
            "SELECT v FROM k.a ORDER BY e ANN OF [1, 1] LIMIT 40".to_owned(),
            "SELECT v FROM k.a ORDER BY e ANN OF [1, 1] LIMIT 8".to_owned(),
        ),
        (format!("SELECT {many} FROM k.t"), "SELECT max(v), max(v) FROM k.t".to_owned()),
        (format!("SELECT k, {many} FROM k.t GROUP BY k"), "SELECT k, max(v) FROM k.t GROUP BY k".to_owned()),
    ] {
        let run = |as_whom: &Identity, query: &str| cells(&backend, as_whom, query).map(|_| ());
        overloaded(run(&app, &query), "memory_max");
        run(&app, &few).unwrap_or_else(|error| panic!("{few}: {error}"));
        run(&Identity::of_role("cassandra"), &query).unwrap_or_else(|error| panic!("{query}: {error}"));
    }
}
