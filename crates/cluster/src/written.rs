//! The partitions that clients write through this process, noted while somebody wants to know them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use helenus_model::token::Token;
use parking_lot::Mutex;

use crate::Statement;

/// The most partitions of a table that are noted. Beyond it, all of it counts as written.
const PARTITIONS_MAX: usize = 1 << 20;

/// Notes the partitions of writes, from `begin` to `end`. Whoever writes notes it once the write has its answer or has lost it, so
/// that a write which was noted is not under way any more.
#[derive(Debug, Default)]
pub struct WrittenPartitions {
    is_noting: AtomicBool,
    noted: Mutex<Written>,
}

/// What was written, or is to be read.
#[derive(Debug, Default)]
pub struct Written {
    /// By keyspace and table.
    tables: HashMap<(String, String), WrittenTable>,
    /// Whether a statement has written whose table is not known.
    is_anywhere: bool,
}

/// What was written of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenTable {
    /// The partitions of these tokens.
    Tokens(BTreeSet<i64>),
    /// Any partition.
    Any,
}

impl WrittenPartitions {
    /// Begins to note, and forgets what was noted before.
    pub fn begin(&self) {
        *self.noted.lock() = Written::default();
        self.is_noting.store(true, Ordering::SeqCst);
    }

    /// Notes no more.
    pub fn end(&self) {
        self.is_noting.store(false, Ordering::SeqCst);
        *self.noted.lock() = Written::default();
    }

    /// What was written since `begin` or the last call.
    pub fn take(&self) -> Written {
        std::mem::take(&mut *self.noted.lock())
    }

    /// Whether somebody wants to know.
    pub fn is_noting(&self) -> bool {
        self.is_noting.load(Ordering::SeqCst)
    }

    /// Notes a write of a prepared statement. `partition`: that of [`Statement::only_partition`].
    pub fn note(&self, statement: &Statement, partition: Option<Token>) {
        if !self.is_noting() {
            return;
        }
        match statement.table() {
            Some(table) => self.noted.lock().add(table, partition.map(|token| token.0)),
            None => self.note_unknown(),
        }
    }

    /// Notes a write of which neither table nor partition is known.
    pub fn note_unknown(&self) {
        if self.is_noting() {
            self.noted.lock().is_anywhere = true;
        }
    }
}

impl Written {
    /// Adds a partition of a table by its token; `None`: it is not known which.
    pub fn add(&mut self, (keyspace, table): (&str, &str), token: Option<i64>) {
        let of = self
            .tables
            .entry((keyspace.to_owned(), table.to_owned()))
            .or_insert_with(|| WrittenTable::Tokens(BTreeSet::new()));
        if let WrittenTable::Tokens(tokens) = of {
            token.map(|token| tokens.insert(token));
            if token.is_none() || tokens.len() > PARTITIONS_MAX {
                *of = WrittenTable::Any;
            }
        }
    }

    /// Adds all that another has.
    pub fn add_all(&mut self, other: Written) {
        self.is_anywhere |= other.is_anywhere;
        for ((keyspace, table), written) in other.tables {
            match written {
                WrittenTable::Any => self.add((&keyspace, &table), None),
                WrittenTable::Tokens(tokens) => {
                    tokens.into_iter().for_each(|token| self.add((&keyspace, &table), Some(token)));
                }
            }
        }
    }

    /// What was written of a table.
    pub fn of(&self, keyspace: &str, table: &str) -> WrittenTable {
        if self.is_anywhere {
            return WrittenTable::Any;
        }
        let found = self.tables.get(&(keyspace.to_owned(), table.to_owned()));
        found.cloned().unwrap_or(WrittenTable::Tokens(BTreeSet::new()))
    }

    /// Of everything, where nothing was noted.
    pub fn anywhere() -> Written {
        Written { is_anywhere: true, ..Written::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::types::CqlType;
    use helenus_wire::native::{ColumnSpec, Value};

    /// A statement of the table `ks.t` with markers of these names, of which some are the partition key's.
    fn statement(text: &str, names: &[&str], partition_key: &[u16]) -> Statement {
        let spec = |name: &&str| ColumnSpec {
            keyspace: "ks".into(),
            table: "t".into(),
            name: (*name).into(),
            ty: CqlType::Int,
        };
        Statement {
            text: text.to_owned(),
            keyspace: None,
            variables: names.iter().map(spec).collect(),
            partition_key: partition_key.to_vec(),
            result_columns: Vec::new(),
            nodes: Mutex::default(),
        }
    }

    fn written(statement: &Statement, values: &[&[u8]]) -> WrittenTable {
        let partitions = WrittenPartitions::default();
        partitions.begin();
        let value = |marker: usize| values.get(marker).map(|value| Value::Bytes(value));
        partitions.note(statement, statement.only_partition(value));
        let taken = partitions.take();
        assert_eq!(partitions.take().of("ks", "t"), WrittenTable::Tokens(BTreeSet::new()));
        taken.of("ks", "t")
    }

    #[test]
    fn a_partition_is_noted_where_the_markers_name_one_and_the_table_otherwise() {
        let token = |key: &[u8]| WrittenTable::Tokens(BTreeSet::from([Token::of_key(key).0]));
        let insert = statement("INSERT INTO t (k, v) VALUES (?, ?)", &["k", "v"], &[0]);
        assert_eq!(written(&insert, &[b"key", b"v"]), token(b"key"));
        let update = statement(" update t SET v = ? WHERE k = ?", &["v", "k"], &[1]);
        assert_eq!(written(&update, &[b"v", b"key"]), token(b"key"));
        // Nodes give the last of several markers of a column, and know nothing of literals beside it.
        let several = statement("DELETE FROM t WHERE k IN (?, ?)", &["k", "k"], &[1]);
        assert_eq!(written(&several, &[b"a", b"b"]), WrittenTable::Any);
        for text in ["DELETE FROM t WHERE k IN (5, ?)", "update t SET v = 1 WHERE k in(5,?)"] {
            assert_eq!(written(&statement(text, &["k"], &[0]), &[b"a"]), WrittenTable::Any, "{text}");
        }
        let not_in = statement("INSERT INTO inn (k, in_v) VALUES (?, ?)", &["k", "in_v"], &[0]);
        assert_eq!(written(&not_in, &[b"key", b"v"]), token(b"key"));
        let batch = "BEGIN BATCH INSERT INTO t (k) VALUES (?) DELETE FROM u WHERE k = ? APPLY BATCH";
        assert_eq!(written(&statement(batch, &["k", "l"], &[0]), &[b"a", b"b"]), WrittenTable::Any);
        let literal = statement("INSERT INTO t (k, v) VALUES (5, ?)", &["v"], &[]);
        assert_eq!(written(&literal, &[b"v"]), WrittenTable::Any);
        let no_markers = statement("INSERT INTO t (k) VALUES (5)", &[], &[]);
        assert_eq!(written(&no_markers, &[]), WrittenTable::Any);
        // A value that is missing.
        assert_eq!(written(&insert, &[]), WrittenTable::Any);
    }

    #[test]
    fn nothing_is_noted_before_the_beginning_and_after_the_end() {
        let partitions = WrittenPartitions::default();
        let none = WrittenTable::Tokens(BTreeSet::new());
        partitions.note_unknown();
        assert_eq!(partitions.take().of("ks", "t"), none);
        partitions.begin();
        partitions.note_unknown();
        assert_eq!(partitions.take().of("ks", "t"), WrittenTable::Any);
        partitions.note_unknown();
        partitions.end();
        partitions.note_unknown();
        assert_eq!(partitions.take().of("ks", "t"), none);
    }

    #[test]
    fn what_was_written_adds_up_and_too_many_partitions_are_the_table() {
        let mut all = Written::default();
        (0..PARTITIONS_MAX as i64).for_each(|token| all.add(("ks", "t"), Some(token)));
        assert!(matches!(all.of("ks", "t"), WrittenTable::Tokens(tokens) if tokens.len() == PARTITIONS_MAX));
        let mut other = Written::default();
        other.add(("ks", "u"), Some(7));
        other.add(("ks", "t"), Some(-1));
        all.add_all(other);
        assert_eq!(all.of("ks", "t"), WrittenTable::Any);
        assert_eq!(all.of("ks", "u"), WrittenTable::Tokens(BTreeSet::from([7])));
        all.add_all(Written::anywhere());
        assert_eq!(all.of("other", "table"), WrittenTable::Any);
    }
}
