//! Each kind of statement as a role with one permission on one resource, or all on it: it is refused if and only if something that
//! it needs is missing. `tests/conformance/access/enumerated.txt` has the statements with their needs, written by hand.
//!
//! `tests/tests/access_enumerated.rs` asks a server and Cassandra the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use helenus_cql::backend::{
    Answer, Backend, Batch, BatchEntry, BatchKind, Identity, NoRows, Outcome, Request, Values,
};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use std::sync::Arc;
use std::time::Duration;

const TEXT: &str = include_str!("../../../tests/conformance/access/enumerated.txt");
const ROLE: &str = "enu_r";

struct Line {
    statement: &'static str,
    needs: Vec<&'static str>,
    undo: &'static str,
}

fn lines() -> Vec<Line> {
    let line = |line: &'static str| {
        let fields: Vec<&str> = line.split(" |").map(str::trim).collect();
        let [_, statement, needs, undo] = fields[..] else { return None };
        let needs = needs.split(',').map(str::trim).filter(|need| !need.is_empty()).collect();
        Some(Line { statement, needs, undo })
    };
    TEXT.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

fn after(word: &'static str) -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter_map(move |line| line.strip_prefix(word))
}

/// The resource and those from which it inherits, in the words of GRANT.
fn chain(resource: &str) -> Vec<String> {
    let mut chain = vec![resource.to_owned()];
    if resource.starts_with("ROLE ") {
        chain.push("ALL ROLES".to_owned());
        return chain;
    }
    if let Some(table) = resource.strip_prefix("TABLE ") {
        chain.push(format!("ALL TABLES IN KEYSPACE {}", table.split('.').next().unwrap()));
    }
    let of = chain.last().unwrap().clone();
    if let Some(keyspace) = of.strip_prefix("ALL TABLES IN ") {
        chain.push(keyspace.to_owned());
    }
    if let Some(keyspace) = chain.last().unwrap().strip_prefix("KEYSPACE ")
        && !keyspace.starts_with("system")
    {
        chain.push("ALL KEYSPACES".to_owned());
    }
    chain
}

fn has(grant: &str, need: &str) -> bool {
    let (granted, on) = grant.split_once(" ON ").unwrap();
    let Some((permission, resource)) = need.split_once(' ') else { return false };
    (granted == permission || granted == "ALL") && chain(resource).iter().any(|part| part == on)
}

struct Node {
    _machine: Machine,
    backend: Arc<LocalBackend>,
}

impl Node {
    fn open(authorizer: Authorizer) -> Node {
        let machine = Machine::new(50);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let access = AccessOptions {
            authenticator: Authenticator::Password,
            authorizer,
            roles_validity: Duration::ZERO,
            permissions_validity: Duration::ZERO,
            ..AccessOptions::default()
        };
        let backend = LocalBackend::new(database, LocalOptions { access, ..LocalOptions::default() });
        backend.begin_logins(None).unwrap();
        Node { _machine: machine, backend }
    }

    fn set_up(&self) {
        for statement in after("setup ")
            .filter(|text| !text.starts_with("GRANT SELECT") || self.backend.checks_permissions())
        {
            self.own(statement);
        }
    }

    /// Runs a statement as the superuser.
    fn own(&self, statement: &str) {
        let done = self.run("cassandra", statement);
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    fn run(&self, role: &str, statement: &str) -> Result<(), CqlError> {
        let identity = Identity::of_role(role);
        waited(self.backend.query(statement, &Request::plain(&identity, &[]), &mut NoRows))
    }

    fn run_prepared(&self, role: &str, statement: &str) -> Result<(), CqlError> {
        let prepared = self.backend.prepare(statement, None, &Identity::of_role("cassandra"))?;
        let identity = Identity::of_role(role);
        waited(self.backend.execute(&prepared, &Request::plain(&identity, &[]), &mut NoRows))
    }

    fn run_batched(&self, role: &str, statement: &str) -> Result<(), CqlError> {
        let prepared = self.backend.prepare(statement, None, &Identity::of_role("cassandra"))?;
        let identity = Identity::of_role(role);
        let entries = match prepared.is_qualified {
            true => vec![BatchEntry::Prepared(&prepared, Values::Positional(&[]))],
            false => vec![BatchEntry::Query(statement, Values::Positional(&[]))],
        };
        let batch = Batch { kind: BatchKind::Logged, entries };
        waited(self.backend.batch(&batch, &Request::plain(&identity, &[]), &mut NoRows))
    }
}

fn waited(answer: Result<Answer, CqlError>) -> Result<(), CqlError> {
    match answer?.outcome {
        Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
        _ => {}
    }
    Ok(())
}

type Form = fn(&Node, &str, &str) -> Result<(), CqlError>;

/// The ways in which a statement is run.
fn forms(statement: &str) -> Vec<(&'static str, Form)> {
    let mut forms: Vec<(&str, Form)> = vec![("direct", Node::run)];
    if !statement.starts_with("EXPLAIN") && !statement.starts_with("DESCRIBE") {
        forms.push(("prepared", Node::run_prepared));
    }
    if ["INSERT", "UPDATE", "DELETE"].iter().any(|word| statement.starts_with(word)) {
        forms.push(("batched", Node::run_batched));
    }
    forms
}

#[test]
fn one_permission_on_one_resource_allows_the_statements_that_need_it_and_no_other() {
    let node = Node::open(Authorizer::Cassandra);
    node.set_up();
    let (lines, mut allowed, mut refused) = (lines(), 0, 0);
    let mut wrong = Vec::new();
    for grant in after("grant ") {
        node.own(&format!("GRANT {grant} TO {ROLE}"));
        for Line { statement, needs, undo } in &lines {
            let expected = needs.iter().all(|need| has(grant, need));
            for (form, run) in forms(statement) {
                let found = run(&node, ROLE, statement);
                let is_refused = matches!(found, Err(CqlError::Unauthorized(_)));
                if is_refused == expected {
                    wrong.push(format!("{grant}: {form}: {statement}: {found:?}"));
                }
                if !is_refused && !undo.is_empty() {
                    drop(node.run("cassandra", undo));
                }
                if is_refused { refused += 1 } else { allowed += 1 }
            }
        }
        node.own(&format!("REVOKE {grant} FROM {ROLE}"));
    }
    println!("{allowed} allowed, {refused} refused");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(allowed > 500 && refused > 5000);
}

/// Without permissions everybody may do everything but what asks for a superuser, and that does whatever the authorizer.
#[test]
fn where_no_permissions_are_checked_nobody_makes_himself_a_superuser() {
    let node = Node::open(Authorizer::AllowAll);
    node.set_up();
    let mut wrong = Vec::new();
    for Line { statement, needs, undo } in lines() {
        let is_of_access = |need: &&str| need.contains("system_auth") || *need == "superuser";
        // GRANT and REVOKE of permissions are not supported then.
        if statement.contains(" ON ") && (statement.starts_with("GRANT") || statement.starts_with("REVOKE")) {
            continue;
        }
        let expected = !needs.iter().any(is_of_access);
        for (form, run) in forms(statement) {
            let found = run(&node, ROLE, statement);
            if matches!(found, Err(CqlError::Unauthorized(_))) == expected {
                wrong.push(format!("{form}: {statement}: {found:?}"));
            }
            if found.is_ok() && !undo.is_empty() {
                drop(node.run("cassandra", undo));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_sessions_of_a_dropped_or_locked_role_end_at_their_next_request() {
    for authorizer in [Authorizer::Cassandra, Authorizer::AllowAll] {
        for end in ["DROP ROLE enu_r", "ALTER ROLE enu_r WITH LOGIN = false"] {
            let node = Node::open(authorizer);
            node.set_up();
            let statements =
                ["SELECT key FROM system.local", "USE enu", "DESCRIBE TABLE enu.t", "LIST ROLES"];
            for statement in statements {
                node.run(ROLE, statement).unwrap();
            }
            let identity = Identity::of_role(ROLE);
            node.own(end);
            for statement in statements {
                let found = node.run(ROLE, statement);
                assert!(matches!(found, Err(CqlError::SessionEnded(_))), "{end}: {statement}: {found:?}");
            }
            assert!(matches!(node.backend.check_session(&identity, true), Err(CqlError::SessionEnded(_))));
            node.own("CREATE ROLE IF NOT EXISTS enu_r");
            node.own("ALTER ROLE enu_r WITH LOGIN = true");
            node.run(ROLE, statements[0]).unwrap();
        }
    }
}
