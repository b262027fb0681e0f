//! Drawn rights against drawn statements: a statement runs if and only if its role has every right that it needs, itself, by a
//! role that was granted to it, or on a resource above.
//!
//! The needs of each statement stand here a second time, by hand, and what a role has is computed from the list of grants, so
//! that neither comes from the code under test. Statements are run as text, prepared, and as entries of a batch of the
//! protocol. Source of the needs: `authorize` of Cassandra's statements.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use helenus_cql::backend::{
    Backend, Batch, BatchEntry, BatchKind, Identity, NoRows, Outcome, Request, Values,
};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const TABLES: [(&str, &str); 4] = [("k1", "a"), ("k1", "b"), ("k2", "a"), ("k2", "c")];
const ROLES: [&str; 3] = ["r0", "r1", "r2"];
const PERMISSIONS: [&str; 3] = ["SELECT", "MODIFY", "ALTER"];
const ROUNDS: u64 = 30;
const STATEMENTS_PER_ROUND: usize = 60;

/// Numbers from a seed (splitmix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A right: a permission on a resource, in the words of GRANT.
type Right = (&'static str, String);

/// The resources on which a right to a table may have been granted, in the words of GRANT.
fn above((keyspace, table): (&str, &str)) -> [String; 4] {
    [
        "ALL KEYSPACES".to_owned(),
        format!("KEYSPACE {keyspace}"),
        format!("ALL TABLES IN KEYSPACE {keyspace}"),
        format!("TABLE {keyspace}.{table}"),
    ]
}

struct Node {
    _machine: Machine,
    backend: Arc<LocalBackend>,
    /// What each role was granted itself.
    rights: [BTreeSet<Right>; 3],
    /// Pairs of roles: the first was granted to the second.
    members: BTreeSet<(usize, usize)>,
}

impl Node {
    fn open(seed: u64) -> Node {
        let machine = Machine::new(seed);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let access = AccessOptions {
            authenticator: Authenticator::Password,
            authorizer: Authorizer::Cassandra,
            roles_validity: Duration::ZERO,
            permissions_validity: Duration::ZERO,
            ..AccessOptions::default()
        };
        let backend = LocalBackend::new(database, LocalOptions { access, ..LocalOptions::default() });
        backend.begin_logins(None).unwrap();
        let node =
            Node { _machine: machine, backend, rights: Default::default(), members: BTreeSet::default() };
        for keyspace in ["k1", "k2"] {
            node.own(&format!(
                "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
            ));
        }
        for (keyspace, table) in TABLES {
            node.own(&format!("CREATE TABLE {keyspace}.{table} (p int PRIMARY KEY, v text, l list<int>)"));
        }
        for role in ROLES {
            node.own(&format!("CREATE ROLE {role} WITH LOGIN = true"));
        }
        node
    }

    /// Runs a statement as the superuser.
    fn own(&self, statement: &str) {
        let identity = Identity::of_role("cassandra");
        let answer = self.backend.query(statement, &Request::plain(&identity, &[]), &mut NoRows);
        match answer.unwrap_or_else(|error| panic!("{statement}: {error}")).outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
            _ => {}
        }
    }

    /// Grants or revokes something drawn.
    fn change(&mut self, draw: &mut Draw) {
        let role = draw.below(ROLES.len());
        if draw.below(6) == 0 {
            let granted = draw.below(ROLES.len());
            if self.members.contains(&(granted, role)) {
                self.members.remove(&(granted, role));
                self.own(&format!("REVOKE {} FROM {}", ROLES[granted], ROLES[role]));
            } else if !self.closure(granted).contains(&role) && !self.closure(role).contains(&granted) {
                self.members.insert((granted, role));
                self.own(&format!("GRANT {} TO {}", ROLES[granted], ROLES[role]));
            }
            return;
        }
        let permission = draw.one(&PERMISSIONS);
        let resource = above(draw.one(&TABLES))[draw.below(4)].clone();
        let right = (permission, resource.clone());
        if self.rights[role].remove(&right) {
            self.own(&format!("REVOKE {permission} ON {resource} FROM {}", ROLES[role]));
        } else {
            self.own(&format!("GRANT {permission} ON {resource} TO {}", ROLES[role]));
            self.rights[role].insert(right);
        }
    }

    /// A role and all roles that were granted to it.
    fn closure(&self, role: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([role]);
        loop {
            let more: Vec<usize> = self
                .members
                .iter()
                .filter(|(granted, to)| found.contains(to) && !found.contains(granted))
                .map(|pair| pair.0)
                .collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }

    fn has(&self, role: usize, permission: &'static str, table: (&str, &str)) -> bool {
        let resources = above(table);
        self.closure(role).iter().any(|role| {
            resources.iter().any(|resource| self.rights[*role].contains(&(permission, resource.clone())))
        })
    }

    /// The refusal that a role must get; `None` if it has every right.
    fn refusal(&self, role: usize, needs: &[Need]) -> Option<String> {
        let missing = needs.iter().find(|(permission, table)| !self.has(role, permission, *table))?;
        let (permission, (keyspace, table)) = missing;
        let user = ROLES[role];
        Some(format!(
            "User {user} has no {permission} permission on <table {keyspace}.{table}> or any of its parents"
        ))
    }
}

/// A permission on a table that a statement needs.
type Need = (&'static str, (&'static str, &'static str));

/// A write of a table and its needs.
fn write(draw: &mut Draw) -> (String, Vec<Need>) {
    let table = draw.one(&TABLES);
    let name = format!("{}.{}", table.0, table.1);
    let (modify, select) = (("MODIFY", table), ("SELECT", table));
    let (text, reads) = match draw.below(10) {
        0 => (format!("INSERT INTO {name} (p, v) VALUES (1, 'x')"), false),
        1 => (format!("INSERT INTO {name} (p, v) VALUES (1, 'x') IF NOT EXISTS"), true),
        2 => (format!("INSERT INTO {name} JSON '{{\"p\": 1}}'"), false),
        3 => (format!("UPDATE {name} USING TTL 9 SET v = 'y' WHERE p = 1"), false),
        4 => (format!("UPDATE {name} SET v = 'y' WHERE p = 1 IF v = 'x'"), true),
        5 => (format!("UPDATE {name} SET v = 'y' WHERE p = 1 IF EXISTS"), true),
        // It reads the list, but tells the client nothing of it.
        6 => (format!("UPDATE {name} SET l = l - [1] WHERE p = 1"), false),
        7 => (format!("DELETE v FROM {name} WHERE p = 1"), false),
        8 => (format!("DELETE FROM {name} WHERE p = 1 IF v = 'x'"), true),
        _ => (format!("DELETE FROM {name} WHERE p = 1"), false),
    };
    (text, if reads { vec![modify, select] } else { vec![modify] })
}

/// A statement that stands alone, and its needs.
fn statement(draw: &mut Draw) -> (String, Vec<Need>) {
    let table = draw.one(&TABLES);
    let name = format!("{}.{}", table.0, table.1);
    let select = |text: String| (text, vec![("SELECT", table)]);
    match draw.below(14) {
        0 => select(format!("SELECT * FROM {name}")),
        1 => select(format!("SELECT count(*), max(v), writetime(v), ttl(v) FROM {name}")),
        2 => select(format!("SELECT JSON p, toJson(v), token(p), cast(p AS text), now() FROM {name}")),
        3 => select(format!("SELECT p FROM {name} WHERE token(p) > -5 AND v = 'x' LIMIT 3 ALLOW FILTERING")),
        4 => select(format!("SELECT DISTINCT p FROM {name}")),
        5 => select(format!("EXPLAIN SELECT v FROM {name} WHERE p = 1")),
        6 => (format!("EXPLAIN UPDATE {name} SET v = 'y' WHERE p = 1"), vec![("MODIFY", table)]),
        7 => (format!("TRUNCATE {name}"), vec![("MODIFY", table)]),
        8 => (format!("ALTER TABLE {name} WITH comment = 'c'"), vec![("ALTER", table)]),
        9 => (format!("CREATE INDEX IF NOT EXISTS i_{} ON {name} (v)", table.1), vec![("ALTER", table)]),
        // Everybody who has logged in may do these.
        10 => (format!("USE {}", table.0), vec![]),
        11 => (format!("DESCRIBE TABLE {name}"), vec![]),
        12 => ("SELECT key, toDate(now()) FROM system.local".to_owned(), vec![]),
        _ => write(draw),
    }
}

/// Writes of different tables in one BATCH. Conditions may only be of one partition, so none has any.
fn mixed_batch(draw: &mut Draw) -> (Vec<String>, Vec<Need>) {
    let (mut texts, mut needs) = (Vec::new(), Vec::new());
    while texts.len() < 2 + draw.below(3) {
        let (text, of_text) = write(draw);
        if of_text.len() == 1 {
            texts.push(text);
            needs.extend(of_text);
        }
    }
    (texts, needs)
}

#[derive(Default)]
struct Counts {
    allowed: usize,
    refused: usize,
}

impl Counts {
    fn check(&mut self, text: &str, found: Result<(), CqlError>, expected: Option<String>) {
        match (found, expected) {
            (Ok(()), None) => self.allowed += 1,
            (Err(CqlError::Unauthorized(found)), Some(expected)) => {
                assert_eq!(found, expected, "{text}");
                self.refused += 1;
            }
            (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
        }
    }
}

fn waited(answer: Result<helenus_cql::backend::Answer, CqlError>) -> Result<(), CqlError> {
    match answer?.outcome {
        Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
        _ => {}
    }
    Ok(())
}

#[test]
fn a_statement_runs_if_and_only_if_its_role_has_every_right_that_it_needs() {
    let (mut plain, mut prepared, mut batches) = (Counts::default(), Counts::default(), Counts::default());
    for seed in 0..ROUNDS {
        let mut draw = Draw(seed);
        let mut node = Node::open(seed);
        for _ in 0..STATEMENTS_PER_ROUND {
            for _ in 0..draw.below(4) {
                node.change(&mut draw);
            }
            let role = draw.below(ROLES.len());
            let identity = Identity::of_role(ROLES[role]);
            let request = Request::plain(&identity, &[]);
            let (text, needs) = statement(&mut draw);
            let expected = node.refusal(role, &needs);
            let answer = waited(node.backend.query(&text, &request, &mut NoRows));
            plain.check(&text, answer, expected.clone());
            // Preparing needs the rights too, as in Cassandra; then a statement that another role has prepared.
            let own = node.backend.prepare(&text, None, &identity);
            if !text.starts_with("EXPLAIN") && !text.starts_with("DESCRIBE") {
                let all = Identity::of_role("cassandra");
                let statement = own.or_else(|_| node.backend.prepare(&text, None, &all)).unwrap();
                let answer = waited(node.backend.execute(&statement, &request, &mut NoRows));
                prepared.check(&text, answer, expected);
            }

            let (texts, needs) = mixed_batch(&mut draw);
            let expected = node.refusal(role, &needs);
            let text = format!("BEGIN UNLOGGED BATCH {}; APPLY BATCH", texts.join("; "));
            let answer = waited(node.backend.query(&text, &request, &mut NoRows));
            batches.check(&text, answer, expected.clone());
            // The same as a batch of the protocol, of text and of what the superuser has prepared.
            let all = Identity::of_role("cassandra");
            let known: Vec<_> =
                texts.iter().map(|text| node.backend.prepare(text, None, &all).unwrap()).collect();
            let entries =
                texts.iter().zip(&known).enumerate().map(|(index, (text, known))| match index % 2 {
                    0 => BatchEntry::Prepared(known, Values::Positional(&[])),
                    _ => BatchEntry::Query(text, Values::Positional(&[])),
                });
            let batch = Batch { kind: BatchKind::Logged, entries: entries.collect() };
            let answer = waited(node.backend.batch(&batch, &request, &mut NoRows));
            batches.check(&text, answer, expected);
        }
    }
    for (name, counts) in [("plain", plain), ("prepared", prepared), ("batches", batches)] {
        println!("{name}: {} allowed, {} refused", counts.allowed, counts.refused);
        assert!(counts.allowed > 150 && counts.refused > 150, "{name}: too few of one kind to tell");
    }
}
