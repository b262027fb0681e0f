//! Prepared statements by the numbers that clients get for them. All connections share one list, as in Cassandra.

use helenus_cql::backend::StatementId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of statements. If there are more, all are dropped, and clients must prepare again.
const STATEMENTS_MAX: usize = 10_000;

/// The statements by number.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    cql3: Mutex<HashMap<i32, StatementId>>,
    first: Mutex<HashMap<i32, Arc<str>>>,
}

impl PreparedStatements {
    /// A number for a CQL 3 statement; equal statements get the same number.
    pub(crate) fn keep(&self, id: StatementId) -> i32 {
        let [a, b, c, d, ..] = id;
        let number = i32::from_be_bytes([a, b, c, d]);
        put(&mut self.cql3.lock(), number, id);
        number
    }

    pub(crate) fn id_of(&self, number: i32) -> Option<StatementId> {
        self.cql3.lock().get(&number).copied()
    }

    /// A number for a CQL 2 statement: the `hashCode` of its text in Java.
    pub(crate) fn keep_cql2(&self, text: &str) -> i32 {
        let number =
            text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
        put(&mut self.first.lock(), number, text.into());
        number
    }

    pub(crate) fn text_of(&self, number: i32) -> Option<Arc<str>> {
        self.first.lock().get(&number).cloned()
    }
}

fn put<T>(kept: &mut HashMap<i32, T>, number: i32, statement: T) {
    if kept.len() >= STATEMENTS_MAX && !kept.contains_key(&number) {
        kept.clear();
    }
    kept.insert(number, statement);
}
