//! The size limits of batches and the warnings about them (`BatchStatement.verifyBatchSize`, `verifyBatchType`,
//! `getMutations`).

use super::size::data_bytes;
use crate::error::{CqlError, Result};
use crate::plan::modify::ModifyPlan;
use crate::request::BatchKind;
use helenus_model::mutation::Mutation;
use helenus_model::schema::Table;
use std::collections::BTreeSet;

/// The thresholds for warnings and errors. Only batches over several partitions are checked for size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// The bytes above which a batch causes a warning (`batch_size_warn_threshold`), as Cassandra counts them.
    pub bytes_warn: u64,
    /// The bytes above which a batch fails (`batch_size_fail_threshold`).
    pub bytes_fail: u64,
    /// The partitions above which an unlogged batch causes a warning
    /// (`unlogged_batch_across_partitions_warn_threshold`).
    pub unlogged_partitions_warn: u64,
}

impl Default for BatchLimits {
    /// Cassandra's defaults: 5 KiB, 50 KiB, 10 partitions.
    fn default() -> BatchLimits {
        BatchLimits { bytes_warn: 5 << 10, bytes_fail: 50 << 10, unlogged_partitions_warn: 10 }
    }
}

impl BatchLimits {
    /// Checks the mutation of a batch of these statements; returns warnings.
    ///
    /// # Errors
    /// The batch is too large.
    pub(crate) fn check<'p>(
        &self,
        mutation: &Mutation,
        kind: BatchKind,
        statements: impl Iterator<Item = &'p ModifyPlan>,
    ) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        if kind == BatchKind::Logged {
            warnings.extend(short_grace(statements.map(|statement| &*statement.table)));
        }
        let updates = &mutation.updates;
        let of = |keys: &mut dyn Iterator<Item = (&str, &[u8])>| keys.collect::<BTreeSet<_>>().len() as u64;
        let partitions = of(&mut updates.iter().map(|update| (&*update.table.keyspace, &*update.key)));
        if partitions <= 1 {
            return Ok(warnings);
        }
        let (tables, names) = names(updates.iter().map(|update| &*update.table));
        let bytes = data_bytes(mutation);
        if bytes > self.bytes_warn {
            if bytes > self.bytes_fail {
                return Err(CqlError::Invalid("Batch too large".into()));
            }
            warnings.push(format!(
                "Batch for {names} is of size {bytes}, exceeding specified threshold of {} by {}.",
                self.bytes_warn,
                bytes - self.bytes_warn
            ));
        }
        // A key counts once, in however many tables and keyspaces it occurs.
        let keys = of(&mut updates.iter().map(|update| ("", &*update.key)));
        if kind != BatchKind::Logged && keys > self.unlogged_partitions_warn {
            warnings.push(format!(
                "Unlogged batch covering {keys} partitions detected against table{} {names}. You should use a logged \
                 batch for atomicity, or asynchronous writes for performance.",
                plural(tables)
            ));
        }
        Ok(warnings)
    }
}

/// Cassandra keeps a logged batch in its batchlog for no longer than the least `gc_grace_seconds` of its tables, and
/// warns if that is 0. There is no batchlog here, but clients get the same warning.
fn short_grace<'t>(tables: impl Iterator<Item = &'t Table>) -> Option<String> {
    let (count, names) = names(tables.filter(|table| table.options.gc_grace_seconds == 0));
    (count > 0).then(|| {
        format!(
            "Executing a LOGGED BATCH on table{} {names}, configured with a gc_grace_seconds of 0. The gc_grace_seconds is \
             used to TTL batchlog entries, so setting gc_grace_seconds too low on tables involved in an atomic batch \
             might cause batchlog entries to expire before being replayed.",
            plural(count)
        )
    })
}

/// The number of distinct tables, and their names as Java prints a set.
fn names<'t>(tables: impl Iterator<Item = &'t Table>) -> (usize, String) {
    let names: BTreeSet<String> = tables.map(|table| format!("{}.{}", table.keyspace, table.name)).collect();
    (names.len(), format!("[{}]", names.into_iter().collect::<Vec<_>>().join(", ")))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
