//! Runs the scripts of `tests/conformance/scripts`, and generated statements, on Helenus and on the shared Cassandra,
//! and compares the answers.

use conformance::rounds::{self, Rounds};
use conformance::run::{Helenus, Place, Runner, judged};
use conformance::script::parse;
use conformance::states;
use end_to_end::{Oracle, Server};
use helenus_wire::native::Version;

fn runner() -> Runner {
    let cassandra = Oracle::shared().address().to_owned();
    let helenus = Helenus::Own(Box::new(Server::start()));
    Runner::connect(Place { cassandra, helenus, version: Version::V5 }).expect("both servers")
}

#[test]
fn every_script_is_answered_as_cassandra_answers_it() {
    let mut runner = runner();
    let mut wrong = Vec::new();
    for path in conformance::scripts().expect("the scripts") {
        let text = std::fs::read_to_string(&path).expect("a script");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a script's name");
        let keyspace = format!("cf_{name}");
        runner.begin_keyspace(&keyspace).expect("a keyspace");
        for step in parse(&text, &keyspace).unwrap_or_else(|error| panic!("{}: {error:#}", path.display())) {
            let found = judged(&mut runner, &step);
            let found = found.unwrap_or_else(|error| panic!("{}:{}: {error:#}", path.display(), step.line));
            wrong.extend(found.into_iter().map(|text| format!("{}:{}\n{text}", path.display(), step.line)));
        }
        runner.end_keyspace().expect("the end of a keyspace");
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
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
