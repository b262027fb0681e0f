//! Runs the scripts of `tests/conformance/scripts`, and generated statements, on Helenus and on the shared Cassandra,
//! and compares the answers.

use std::path::Path;

use conformance::role::Role;
use conformance::rounds::{self, Rounds};
use conformance::run::{Helenus, Place, Runner, judged};
use conformance::script::parse;
use conformance::states;
use end_to_end::{Oracle, Server};
use helenus_wire::native::Version;

fn runner() -> Runner {
    let cassandra = Oracle::shared().address().to_owned();
    let helenus = Helenus::Own(Box::new(Server::start()));
    let place = Place { cassandra, helenus, version: Version::V5, role: Role::Anonymous, is_gateway: false };
    Runner::connect(place).expect("both servers")
}

/// Both servers with logins and permissions, and a role's connections.
fn runner_as(role: Role) -> Runner {
    let cassandra = Oracle::with_logins().address().to_owned();
    let logins = ["--authenticator", "PasswordAuthenticator", "--authorizer", "CassandraAuthorizer"];
    let helenus = Helenus::Own(Box::new(Server::start_with(&logins)));
    Runner::connect(Place { cassandra, helenus, version: Version::V5, role, is_gateway: false })
        .expect("both servers")
}

/// Runs a script; what is wrong with it.
fn differences(runner: &mut Runner, path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a script");
    let name = path.file_stem().and_then(|name| name.to_str()).expect("a script's name");
    let keyspace = format!("cf_{name}");
    let mut wrong = Vec::new();
    runner.begin_keyspace(&keyspace).expect("a keyspace");
    for step in parse(&text, &keyspace).unwrap_or_else(|error| panic!("{}: {error:#}", path.display())) {
        let found = judged(runner, &step);
        let found = found.unwrap_or_else(|error| panic!("{}:{}: {error:#}", path.display(), step.line));
        wrong.extend(found.into_iter().map(|text| format!("{}:{}\n{text}", path.display(), step.line)));
    }
    runner.end_keyspace().expect("the end of a keyspace");
    wrong
}

#[test]
fn every_script_is_answered_as_cassandra_answers_it() {
    let mut runner = runner();
    let mut wrong = Vec::new();
    for path in conformance::scripts().expect("the scripts") {
        wrong.extend(differences(&mut runner, &path));
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// The scripts that run with rights in each check; `cargo xtask conformance --as ordinary` and `--as none` run all.
const WITH_RIGHTS: [&str; 3] = ["batches", "schema", "tables"];

#[test]
fn scripts_are_answered_to_a_role_with_rights_and_refused_to_one_without_as_by_cassandra() {
    for role in [Role::Ordinary, Role::Powerless] {
        let mut runner = runner_as(role);
        let mut wrong = Vec::new();
        let of_rights = conformance::scripts_of_rights().expect("the scripts of rights");
        let named = |name| conformance::root().join(format!("tests/conformance/scripts/{name}.cql"));
        for path in WITH_RIGHTS.into_iter().map(named).chain(of_rights) {
            wrong.extend(differences(&mut runner, &path));
        }
        assert!(wrong.is_empty(), "{role:?}: {} differences:\n{}", wrong.len(), wrong.join("\n"));
        assert!(runner.refused > 0, "{role:?}: nothing was refused");
    }
}

#[test]
fn paging_states_mean_what_they_mean_to_cassandra_whatever_statement_they_come_back_with() {
    let rounds = Rounds {
        seed: 6,
        first: 0,
        statements: 300,
        per_table: 30,
        failures_max: 3,
        shrinks: false,
        keyspace: "cf_states".to_owned(),
    };
    let found = states::run(&mut runner(), &rounds).expect("both servers");
    assert_eq!(found, 0, "differences, printed above");
}

#[test]
fn generated_statements_are_answered_as_cassandra_answers_them() {
    let rounds = Rounds {
        seed: 5,
        first: 0,
        statements: 3_000,
        per_table: 150,
        failures_max: 5,
        shrinks: true,
        keyspace: "cf_generated".to_owned(),
    };
    let found = rounds::run(&mut runner(), &rounds).expect("both servers");
    assert_eq!(found, 0, "kinds of differences, printed above as scripts");
}
