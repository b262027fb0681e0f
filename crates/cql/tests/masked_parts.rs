//! A role without UNMASK reads of two rows with other values in their masked columns the same, whatever it selects of them.
//!
//! The rows are alike but for the values: as many elements, written at the same time. Selected are all parts of all kinds of columns
//! with all functions that take a part, alone and inside of others.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "support/collected.rs"]
mod collected;

use collected::Collected;
use helenus_cql::backend::{Backend, Identity, Outcome, Request};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use std::sync::Arc;

/// Each masked column: its type, its values in the two rows, and its parts.
const COLUMNS: [(&str, &str, [&str; 2], &[&str]); 10] = [
    ("t", "text", ["'a'", "'b'"], &["t"]),
    ("l", "list<text>", ["['a']", "['b']"], &["l"]),
    ("s", "set<text>", ["{'a'}", "{'b'}"], &["s['a']", "s['b']", "s['a'..'a']", "s['b'..]", "s[..'a']"]),
    (
        "m",
        "map<text, int>",
        ["{'a': 1}", "{'b': 1}"],
        &["m['a']", "m['b']", "m['a'..'a']", "m['b'..]", "m[..'a']"],
    ),
    ("u", "ut", ["{f: 'a'}", "{g: 'a'}"], &["u.f", "u.g"]),
    ("fs", "frozen<set<text>>", ["{'a'}", "{'b'}"], &["fs['a']", "fs['b'..'c']"]),
    ("fm", "frozen<map<text, int>>", ["{'a': 1}", "{'b': 1}"], &["fm['a']", "fm['b'..'c']"]),
    ("fu", "frozen<ut>", ["{f: 'a'}", "{g: 'a'}"], &["fu.f", "fu.g"]),
    (
        "mm",
        "map<text, frozen<map<text, int>>>",
        ["{'a': {'x': 1}}", "{'b': {'y': 1}}"],
        &["mm['a']", "mm['a']['x']", "mm['a']['x'..'z']", "mm['b']['y']"],
    ),
    (
        "mu",
        "map<text, frozen<ut>>",
        ["{'a': {f: 'a'}}", "{'b': {g: 'a'}}"],
        &["mu['a'].f", "mu['b'].g", "mu['a'..'a']"],
    ),
];

const FUNCTIONS: [&str; 4] = ["#", "writetime(#)", "maxwritetime(#)", "ttl(#)"];
const AROUND: [&str; 8] =
    ["#", "to_json(#)", "cast(# as text)", "count(#)", "max(#)", "[#]", "(#, 1)", "to_json(count(#))"];

fn open() -> (Machine, Arc<LocalBackend>) {
    let machine = Machine::new(7);
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
    let access = AccessOptions {
        authenticator: Authenticator::Password,
        authorizer: Authorizer::Cassandra,
        ..AccessOptions::default()
    };
    let options = LocalOptions { access, masks_columns: true, ..LocalOptions::default() };
    let backend = LocalBackend::new(database, options);
    backend.begin_logins(None).unwrap();
    (machine, backend)
}

fn ask(backend: &LocalBackend, role: &str, statement: &str) -> Result<Vec<Option<Vec<u8>>>, CqlError> {
    let (identity, mut cells) = (Identity::of_role(role), Collected::default());
    let answer = backend.query(statement, &Request::plain(&identity, &[]), &mut cells)?;
    if let Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) = answer.outcome {
        ticket.wait().unwrap();
    }
    Ok(cells.into_cells())
}

#[test]
fn nothing_that_is_selected_of_a_masked_column_depends_on_its_value() {
    let (_machine, backend) = open();
    let own = |statement: &str| {
        ask(&backend, "cassandra", statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
    };
    own("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    own("CREATE TYPE k.ut (f text, g text)");
    let columns = COLUMNS.map(|(name, ty, ..)| {
        let ty = if ty.contains("ut") && !ty.contains('<') {
            format!("k.{ty}")
        } else {
            ty.replace("<ut>", "<k.ut>")
        };
        format!("{name} {ty} MASKED WITH DEFAULT")
    });
    own(&format!("CREATE TABLE k.t (p int PRIMARY KEY, {})", columns.join(", ")));
    for row in [0, 1] {
        let names = COLUMNS.map(|(name, ..)| name).join(", ");
        let values = COLUMNS.map(|(_, _, values, _)| values[row]).join(", ");
        own(&format!(
            "INSERT INTO k.t (p, {names}) VALUES ({row}, {values}) USING TIMESTAMP 5 AND TTL 100000"
        ));
    }
    own("CREATE ROLE r WITH LOGIN = true");
    own("GRANT SELECT ON k.t TO r");
    let (mut wrong, mut asked, mut telling) = (Vec::new(), 0, 0);
    for (_, _, _, parts) in &COLUMNS {
        for (part, function) in parts.iter().flat_map(|part| FUNCTIONS.map(|function| (part, function))) {
            for around in AROUND {
                let selected = around.replace('#', &function.replace('#', part));
                let of = |role: &str| {
                    [0, 1].map(|row| {
                        ask(&backend, role, &format!("SELECT {selected} FROM k.t WHERE p = {row}"))
                    })
                };
                let ([Ok(one), Ok(other)], [Ok(plain), Ok(other_plain)]) = (of("r"), of("cassandra")) else {
                    continue;
                };
                asked += 1;
                telling += usize::from(plain != other_plain);
                if one != other {
                    wrong.push(format!("{selected}: {one:?} {other:?}"));
                }
            }
        }
    }
    println!("{asked} selected, {telling} of them tell a superuser of the value");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(asked > 300 && telling > 150);
}
