//! A cut that would take protections away from clients is refused with the reason; the password of the target is in no file of the server.

use std::fs;
use std::path::Path;
use std::process::Command;

use end_to_end::{Cql, Server, binary, refused, tool};
use moving::{until_done, wait_for_tail};
use tempfile::TempDir;

#[path = "cluster/moving.rs"]
mod moving;

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// A server that is to be moved.
struct Source {
    server: Server,
    data: String,
    folder: TempDir,
}

/// A server with a table, and these lines of a configuration.
fn source(lines: &str) -> Source {
    source_of(lines, Cql::connect)
}

/// The same, whose clients connect in this way.
fn source_of(lines: &str, connect: impl Fn(&str) -> Cql) -> Source {
    let folder = TempDir::with_prefix("helenus-cut-").expect("a temporary directory");
    let config = folder.path().join("helenus.yaml");
    fs::write(&config, lines).expect("written");
    let server = Server::start_with(&["--config", text(&config)]);
    let cql = connect(server.address());
    cql.run("CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE app.t (k int PRIMARY KEY, v text)");
    cql.run("INSERT INTO app.t (k, v) VALUES (1, 'x')");
    let data = text(&server.data()).to_owned();
    Source { server, data, folder }
}

impl Source {
    fn verb<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["move"], args, &["--data", &self.data]].concat()
    }

    /// Replaces the lines of the configuration, for a reload.
    fn configure(&self, lines: &str) {
        fs::write(self.folder.path().join("helenus.yaml"), lines).expect("written");
    }

    /// The command that starts a move as the first superuser of the target.
    fn start_of(&self, target: &Server) -> Vec<String> {
        let password = self.folder.path().join("password");
        fs::write(&password, "cassandra\n").expect("written");
        let access = [
            "start",
            "--to",
            target.address(),
            "--username",
            "cassandra",
            "--password-file",
            text(&password),
        ];
        self.verb(&access).into_iter().map(str::to_owned).collect()
    }

    fn start_as_default(&self, target: &Server) {
        tool(&self.start_of(target));
        wait_for_tail(&self.data);
    }
}

#[test]
fn a_cut_is_refused_by_the_name_of_the_setting_that_would_not_be_kept() {
    for (lines, name) in [
        (
            "audit_logging_options:\n  enabled: true\n  logger: [{class_name: FileAuditLogger}]\n",
            "audit_logging_options",
        ),
        ("native_transport_throw_on_overload: true\n", "native_transport_throw_on_overload"),
        ("keyspaces_fail_threshold: 50\n", "guardrails"),
    ] {
        let source = source(lines);
        let target = Server::start_with(&["--memory"]);
        tool(&source.verb(&["start", "--to", target.address()]));
        wait_for_tail(&source.data);
        let said = refused(&source.verb(&["cutover", "--dry-run"]));
        assert!(said.contains("does not support") && said.contains(name), "{said}");
        assert!(refused(&source.verb(&["cutover"])).contains(name));
    }
    // An audit log that was turned on later counts, and after a cut it cannot be.
    let source = source("audit_logging_options:\n  logger: [{class_name: FileAuditLogger}]\n");
    let target = Server::start_with(&["--memory"]);
    tool(&source.verb(&["start", "--to", target.address()]));
    wait_for_tail(&source.data);
    let admin = |verb: &'static str| ["admin", verb, "--data", source.data.as_str()];
    tool(&admin("enableauditlog"));
    assert!(refused(&source.verb(&["cutover"])).contains("audit_logging_options"));
    tool(&admin("disableauditlog"));
    until_done(&source.verb(&["cutover", "--pause", "5s"]));
    let said = refused(&admin("enableauditlog"));
    assert!(said.contains("target of the move"), "{said}");
    // Nor guardrails.
    source.configure("keyspaces_fail_threshold: 50\n");
    let said = refused(&admin("reloadsettings"));
    assert!(said.contains("target of the move") && said.contains("guardrails"), "{said}");
    source.configure("");
    tool(&admin("reloadsettings"));
}

#[test]
fn a_guardrail_that_was_set_while_the_server_runs_refuses_the_cut() {
    let source = source("");
    let target = Server::start_with(&["--memory"]);
    tool(&source.verb(&["start", "--to", target.address()]));
    wait_for_tail(&source.data);
    tool(&source.verb(&["cutover", "--dry-run"]));
    let reload = ["admin", "reloadsettings", "--data", source.data.as_str()];
    source.configure("keyspaces_fail_threshold: 50\n");
    tool(&reload);
    assert!(refused(&source.verb(&["cutover"])).contains("guardrails"));
    source.configure("");
    tool(&reload);
    until_done(&source.verb(&["cutover", "--pause", "5s"]));
}

#[test]
fn what_writes_beside_clients_is_refused_after_a_cut_and_a_closed_door_refuses_it() {
    let source = source("");
    let target = Server::start_with(&["--memory"]);
    tool(&source.verb(&["start", "--to", target.address()]));
    wait_for_tail(&source.data);
    let admin = |verb: &'static str| ["admin", verb, "--data", source.data.as_str()];
    tool(&admin("disablebinary"));
    for args in [&["cutover", "--dry-run"][..], &["cutover"]] {
        let said = refused(&source.verb(args));
        assert!(said.contains("helenus admin enablebinary"), "{said}");
    }
    tool(&admin("enablebinary"));
    let pull = ["pull", target.address(), "--tables", "app.t", "--data", &source.data];
    tool(&pull);
    until_done(&source.verb(&["cutover", "--pause", "5s"]));
    let refresh = ["admin", "refresh", "app", "t", "--data", &source.data];
    for args in [&pull[..], &refresh, &admin("disablebinary")] {
        let said = refused(args);
        assert!(said.contains("target of the move") || said.contains("by its target"), "{args:?}: {said}");
    }
    until_done(&source.verb(&["rollback"]));
    tool(&pull);
    tool(&refresh);
}

const LOGINS: [&str; 3] = ["--memory", "--authenticator", "PasswordAuthenticator"];

fn by_default(address: &str) -> Cql {
    Cql::connect_as(address, ("cassandra", "cassandra")).expect("the first login")
}

#[test]
fn a_target_that_checks_less_refuses_the_cut() {
    let permissions = ["--authorizer", "CassandraAuthorizer"];
    let networks = ["--set", "network_authorizer=CassandraNetworkAuthorizer"];
    for (more, expected) in [
        (vec![], "checks permissions and the target is not known to"),
        (permissions.to_vec(), "the target is not known to limit them: far"),
        ([permissions, networks].concat(), ""),
    ] {
        let source = source_of(
            "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\n\
             network_authorizer: CassandraNetworkAuthorizer\n",
            by_default,
        );
        let here = by_default(source.server.address());
        here.run("CREATE ROLE far WITH ACCESS TO DATACENTERS {'datacenter1'}");
        let target = Server::start_with(&[&LOGINS[..], &more].concat());
        source.start_as_default(&target);
        let said = match expected {
            "" => tool(&source.verb(&["cutover", "--dry-run"])),
            _ => refused(&source.verb(&["cutover", "--dry-run"])),
        };
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn a_target_that_shows_what_is_masked_here_refuses_the_cut_and_the_start() {
    let source = source_of(
        "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\ndynamic_data_masking_enabled: true\n",
        by_default,
    );
    let here = by_default(source.server.address());
    here.run("ALTER TABLE app.t ALTER v MASKED WITH DEFAULT");
    let permissions = ["--authorizer", "CassandraAuthorizer", "--set", "dynamic_data_masking_enabled=true"];
    let target = Server::start_with(&[&LOGINS[..], &permissions].concat());
    let there = by_default(target.address());
    source.start_as_default(&target);
    tool(&source.verb(&["cutover", "--dry-run"]));
    for (change, expected) in [
        ("DROP MASKED", "has the mask system.mask_default() here and no mask at the target"),
        ("MASKED WITH mask_null()", "here and the mask system.mask_null() at the target"),
    ] {
        there.run(&format!("ALTER TABLE app.t ALTER v {change}"));
        let said = refused(&source.verb(&["cutover"]));
        assert!(said.contains(expected), "{said}");
    }
    tool(&source.verb(&["abort"]));
    let said = refused(&source.start_of(&target));
    assert!(said.contains("system.mask_null() at the target"), "{said}");
}

#[test]
fn clients_that_do_not_log_in_get_a_role_of_their_own_and_the_password_stays_in_its_file() {
    let source = source("");
    let target = Server::start_with(&[
        "--memory",
        "--authenticator",
        "PasswordAuthenticator",
        "--authorizer",
        "CassandraAuthorizer",
    ]);
    let admin = Cql::connect_as(target.address(), ("cassandra", "cassandra")).expect("the first login");
    admin
        .run("CREATE ROLE mover WITH LOGIN = true AND SUPERUSER = true AND PASSWORD = 'secret of the mover'");
    admin.run("CREATE ROLE clients WITH LOGIN = true AND PASSWORD = 'secret of clients'");
    admin.run(
        "CREATE KEYSPACE private WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    admin.run("CREATE TABLE private.t (k int PRIMARY KEY, v text)");
    let (password, clients) = (source.folder.path().join("password"), source.folder.path().join("clients"));
    fs::write(&password, "secret of the mover\n").expect("written");
    fs::write(&clients, "secret of clients\n").expect("written");

    // Not from the environment: the server needs it again after each start.
    let start = source.verb(&["start", "--to", target.address(), "--username", "mover"]);
    let output = Command::new(binary()).args(&start).env("HELENUS_PASSWORD", "secret of the mover").output();
    let output = output.expect("run helenus");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("--password-file"), "{said}");
    tool(&[&start[..], &["--password-file", text(&password)]].concat());
    wait_for_tail(&source.data);
    let state =
        fs::read_to_string(Path::new(&source.data).join("move/state.json")).expect("the state of the move");
    assert!(state.contains("mover") && !state.contains("secret"), "{state}");

    let said = refused(&source.verb(&["cutover", "--dry-run"]));
    assert!(said.contains("served as mover") && said.contains("--clients-role"), "{said}");
    admin.run("GRANT SELECT ON KEYSPACE app TO clients");
    admin.run("GRANT MODIFY ON KEYSPACE app TO clients");
    let role =
        ["cutover", "--pause", "5s", "--clients-role", "clients", "--clients-password-file", text(&clients)];
    until_done(&source.verb(&role));
    let state =
        fs::read_to_string(Path::new(&source.data).join("move/state.json")).expect("the state of the move");
    assert!(!state.contains("secret"), "{state}");
    let cql = Cql::connect(source.server.address());
    cql.run("INSERT INTO app.t (k, v) VALUES (2, 'y')");
    assert_eq!(cql.rows("SELECT v FROM app.t").len(), 2);
    let error = cql.try_run("SELECT * FROM private.t").expect_err("not their rights");
    assert!(error.contains("no SELECT permission"), "{error}");
}
