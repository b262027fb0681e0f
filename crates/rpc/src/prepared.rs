//! Prepared statements by the numbers that clients get for them. All connections share one list, as in Cassandra.
//!
//! Cassandra's numbers are hashes of 32 bits, so that a client can make a statement with the number of another's and have it run in
//! its place. Here a number is given once: they are counted, beginning with a random one, so that a number from before a restart is
//! not known.

use helenus_cql::backend::StatementId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

/// Maximum number of statements. If there are more, all are dropped, and clients must prepare again.
const STATEMENTS_MAX: usize = 10_000;

/// A CQL 3 statement that the local database does not run: the keyspace of its unqualified names, and its text.
pub(crate) type Elsewhere = (Option<Arc<str>>, Arc<str>);

/// The statements by number.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    cql3: Mutex<Numbered<StatementId>>,
    cql2: Mutex<Numbered<Arc<str>>>,
    elsewhere: Mutex<Numbered<Elsewhere>>,
}

impl PreparedStatements {
    /// A number for a CQL 3 statement; equal statements get the same number.
    pub(crate) fn keep(&self, id: StatementId) -> i32 {
        self.cql3.lock().keep(id)
    }

    pub(crate) fn id_of(&self, number: i32) -> Option<StatementId> {
        self.cql3.lock().of.get(&number).copied()
    }

    /// A number for a CQL 3 statement that runs elsewhere; equal statements get the same number.
    pub(crate) fn keep_elsewhere(&self, statement: Elsewhere) -> i32 {
        self.elsewhere.lock().keep(statement)
    }

    pub(crate) fn elsewhere(&self, number: i32) -> Option<Elsewhere> {
        self.elsewhere.lock().of.get(&number).cloned()
    }

    /// A number for a CQL 2 statement; equal texts get the same number.
    pub(crate) fn keep_cql2(&self, text: &str) -> i32 {
        self.cql2.lock().keep(text.into())
    }

    pub(crate) fn text_of(&self, number: i32) -> Option<Arc<str>> {
        self.cql2.lock().of.get(&number).cloned()
    }
}

/// Statements, and the number of each.
struct Numbered<T> {
    next: i32,
    of: HashMap<i32, T>,
    numbers: HashMap<T, i32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        // Each `RandomState` has other keys.
        let next = RandomState::new().hash_one(0) as i32;
        Numbered { next, of: HashMap::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn keep(&mut self, statement: T) -> i32 {
        if let Some(number) = self.numbers.get(&statement) {
            return *number;
        }
        if self.of.len() >= STATEMENTS_MAX {
            self.of.clear();
            self.numbers.clear();
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.of.insert(number, statement.clone());
        self.numbers.insert(statement, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Aa` and `BB` have the same `hashCode`.
    #[test]
    fn a_number_stands_for_one_statement_for_ever() {
        let statements = PreparedStatements::default();
        let (first, second) = (statements.keep_cql2("SELECT Aa"), statements.keep_cql2("SELECT BB"));
        assert_ne!(first, second);
        assert_eq!(statements.keep_cql2("SELECT Aa"), first);
        assert_eq!(statements.text_of(first).as_deref(), Some("SELECT Aa"));
        // Statements with the same first four bytes, as many as are kept.
        let id = |number: u32| {
            let mut id = [7; 16];
            id[12..].copy_from_slice(&number.to_be_bytes());
            id
        };
        let of_first = statements.keep(id(0));
        for number in 1..2 * STATEMENTS_MAX as u32 {
            assert_ne!(statements.keep(id(number)), of_first);
            let found = statements.id_of(of_first);
            assert!(found.is_none_or(|found| found == id(0)), "{number}");
        }
        assert_eq!(statements.id_of(of_first), None);
    }
}
