//! How large a batch may be, and what its client is warned of (`BatchStatement.verifyBatchSize`, `verifyBatchType`,
//! `getMutations`).

use super::size::data_bytes;
use crate::backend::BatchKind;
use crate::error::{CqlError, Result};
use crate::plan::modify::ModifyPlan;
use helenus_model::mutation::Mutation;
use helenus_model::schema::Table;
use std::collections::BTreeSet;

/// Sizes of batches that are warned of or refused. Only those over several partitions are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Bytes beyond which a batch is warned of (`batch_size_warn_threshold`), as Cassandra counts them.
    pub bytes_warn: u64,
    /// Bytes beyond which it is refused (`batch_size_fail_threshold`).
    pub bytes_fail: u64,
    /// Partitions beyond which an unlogged one is warned of (`unlogged_batch_across_partitions_warn_threshold`).
    pub unlogged_partitions_warn: u64,
}

impl Default for BatchLimits {
    /// Cassandra's: 5 KiB, 50 KiB, 10 partitions.
    fn default() -> BatchLimits {
        BatchLimits { bytes_warn: 5 << 10, bytes_fail: 50 << 10, unlogged_partitions_warn: 10 }
    }
}

impl BatchLimits {
    /// What to warn of, for the mutation that a batch of these statements makes.
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
        // A key counts once, whatever the tables and keyspaces it stands in.
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

/// Cassandra keeps a logged batch in its batchlog for as long as its tables keep tombstones. Here nothing is kept; who reads
/// the warning there reads it here.
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

/// How many tables these are, and their names as Java prints a set.
fn names<'t>(tables: impl Iterator<Item = &'t Table>) -> (usize, String) {
    let names: BTreeSet<String> = tables.map(|table| format!("{}.{}", table.keyspace, table.name)).collect();
    (names.len(), format!("[{}]", names.into_iter().collect::<Vec<_>>().join(", ")))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
