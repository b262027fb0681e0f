//! The prepared statements of the gateway, by ids of its own.
//!
//! The id is the MD5 of keyspace and text, or of the text alone if it names its keyspaces, as Cassandra makes it, so that a client finds its statement at another gateway of the
//! same cluster. The cluster's own ids differ between its versions and stay inside.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helenus_cluster::Statement;
use helenus_wire::native::{ColumnSpec, SchemaChange, SchemaTarget};
use parking_lot::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use crate::statement_text::StatementText;

/// The least memory of a part of the cache, each with a lock of its own, and the most parts. No statement fits into the cache that does not
/// fit into a part, so there are few.
const PART_BYTES_MIN: u64 = 8 << 20;
const PARTS_MAX: u64 = 4;
/// The fewest items of a part that quick_cache does not join with another, and about the memory of one: of so many that were evicted it
/// knows that they were used before.
const ITEMS_OF_PART_MIN: u64 = 32;
const ITEM_BYTES: u64 = 2 << 10;
/// Statements that are being prepared, beyond which those are forgotten that are not.
const PREPARING_MAX: usize = 1_000;

pub(crate) type StatementId = [u8; 16];

/// A prepared statement.
pub(crate) struct GatewayStatement {
    pub id: StatementId,
    pub statement: Arc<Statement>,
    pub text: StatementText,
    /// The id of its result's columns that v5 clients get.
    pub metadata_id: Vec<u8>,
    /// Set when the schema has changed since: the statement is prepared again before it is used.
    is_doubtful: AtomicBool,
}

impl GatewayStatement {
    pub fn new(
        id: StatementId,
        statement: Arc<Statement>,
        text: StatementText,
        metadata_id: Vec<u8>,
    ) -> GatewayStatement {
        GatewayStatement { id, statement, text, metadata_id, is_doubtful: AtomicBool::new(false) }
    }

    /// Whether clients that have prepared one of these can use the other: they bind and read the same.
    pub fn is_like(&self, other: &Statement) -> bool {
        self.statement.variables == other.variables
            && self.statement.result_columns == other.result_columns
            && self.statement.partition_key == other.partition_key
    }

    fn concerns(&self, change: &SchemaChange<'_>) -> bool {
        let concerns = |column: &ColumnSpec| match &change.target {
            SchemaTarget::Table(table) => *column.keyspace == *change.keyspace && *column.table == **table,
            _ => *column.keyspace == *change.keyspace,
        };
        self.statement.variables.iter().chain(&self.statement.result_columns).any(concerns)
    }
}

#[derive(Clone)]
struct ByMemory;

impl Weighter<StatementId, Arc<GatewayStatement>> for ByMemory {
    fn weight(&self, _id: &StatementId, statement: &Arc<GatewayStatement>) -> u64 {
        statement.statement.estimated_bytes()
    }
}

/// All of them.
pub(crate) struct Statements {
    kept: Cache<StatementId, Arc<GatewayStatement>, ByMemory>,
    /// The statements that are being prepared, each with the time of the last failure.
    preparing: Mutex<HashMap<StatementId, Arc<LastFailure>>>,
}

type LastFailure = tokio::sync::Mutex<Option<Instant>>;

/// The turn to prepare a statement, until it is dropped.
pub(crate) struct PrepareTurn<'s> {
    statements: &'s Statements,
    id: StatementId,
    asked: Instant,
    failed: OwnedMutexGuard<Option<Instant>>,
}

impl PrepareTurn<'_> {
    /// Whether somebody has failed who tried it since this one has asked for the turn.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some_and(|at| at >= self.asked)
    }

    /// Says that it has failed.
    pub fn fail(&mut self) {
        *self.failed = Some(tokio::time::Instant::now());
    }
}

impl Drop for PrepareTurn<'_> {
    fn drop(&mut self) {
        let mut preparing = self.statements.preparing.lock();
        // Here, in the map, and with each who waits.
        if Arc::strong_count(OwnedMutexGuard::mutex(&self.failed)) <= 2 {
            preparing.remove(&self.id);
        }
    }
}

/// A cache of so many bytes in parts, each of which keeps statements of up to a half of it.
fn in_parts(bytes_max: u64) -> Cache<StatementId, Arc<GatewayStatement>, ByMemory> {
    // A power of two, as quick_cache would make more parts of another number.
    let parts = 1 << (bytes_max / PART_BYTES_MIN).clamp(1, PARTS_MAX).ilog2();
    let items = (bytes_max / ITEM_BYTES).max(ITEMS_OF_PART_MIN * parts);
    let options = OptionsBuilder::new()
        .shards(parts as usize)
        .estimated_items_capacity(items as usize)
        .weight_capacity(bytes_max)
        .build();
    match options {
        Ok(options) => {
            Cache::with_options(options, ByMemory, DefaultHashBuilder::default(), DefaultLifecycle::default())
        }
        Err(_nothing_is_missing) => Cache::with_weighter(items as usize, bytes_max, ByMemory),
    }
}

impl Statements {
    /// `bytes_max`: the memory of all statements.
    pub fn new(bytes_max: u64) -> Statements {
        Statements { kept: in_parts(bytes_max), preparing: Mutex::default() }
    }

    /// Why a statement cannot be kept, for its client: it would have to be prepared for each execution.
    pub fn refusal(&self, statement: &Statement) -> Option<String> {
        let (bytes, most) = (statement.estimated_bytes(), self.kept.shard_capacity() / 2);
        (bytes > most).then(|| {
            format!(
                "the statement needs {bytes} bytes of memory with its columns and their types, and the gateway keeps prepared statements \
                 of up to {most}; name fewer columns, put a marker in place of long values, or raise prepared_statements_cache_size"
            )
        })
    }

    /// Waits until nobody else prepares this statement. Most who wait find it prepared then.
    pub async fn turn(&self, id: StatementId) -> PrepareTurn<'_> {
        let asked = tokio::time::Instant::now();
        let slot = {
            let mut preparing = self.preparing.lock();
            // Who gives up waiting leaves its slot behind.
            if preparing.len() >= PREPARING_MAX {
                preparing.retain(|_, slot| Arc::strong_count(slot) > 1);
            }
            Arc::clone(preparing.entry(id).or_default())
        };
        PrepareTurn { statements: self, id, asked, failed: slot.lock_owned().await }
    }

    /// The statement, unless it is doubtful.
    pub fn get(&self, id: &[u8]) -> Option<Arc<GatewayStatement>> {
        self.find(id).filter(|kept| !kept.is_doubtful.load(Ordering::Relaxed))
    }

    /// The statement, doubtful or not.
    pub fn find(&self, id: &[u8]) -> Option<Arc<GatewayStatement>> {
        self.kept.get(&StatementId::try_from(id).ok()?)
    }

    /// Keeps a statement under an id: its own, or another by which clients know it.
    pub fn add(&self, id: StatementId, statement: &Arc<GatewayStatement>) {
        self.kept.insert(id, Arc::clone(statement));
    }

    /// Forgets the statements that a client's change of the schema concerns; their clients are told to prepare them again, as by
    /// Cassandra. Called before that client has its answer.
    pub fn forget(&self, change: &SchemaChange<'_>) {
        self.kept.retain(|_, kept| !kept.concerns(change));
    }

    /// Forgets a statement.
    pub fn remove(&self, id: &StatementId) {
        self.kept.remove(id);
    }

    /// Doubts the statements that a change of the schema concerns, of which a node has told; without a change all. They may have been
    /// prepared before it or after it.
    pub fn doubt(&self, change: Option<&SchemaChange<'_>>) {
        self.kept.retain(|_, kept| {
            if change.is_none_or(|change| kept.concerns(change)) {
                kept.is_doubtful.store(true, Ordering::Relaxed);
            }
            true
        });
    }
}

/// The id of a statement.
pub(crate) fn statement_id(keyspace: Option<&str>, text: &str) -> StatementId {
    let mut context = md5::Context::new();
    context.consume(keyspace.unwrap_or_default());
    context.consume(text);
    *context.finalize()
}

/// The id of columns, for a cluster that has none (before v5).
pub(crate) fn metadata_id(columns: &[ColumnSpec]) -> Vec<u8> {
    let mut context = md5::Context::new();
    for column in columns {
        context.consume(format!("{}.{}.{} {:?}\n", column.keyspace, column.table, column.name, column.ty));
    }
    context.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_a_part_for_each_8_mib_up_to_four() {
        for (mib, parts) in [(0, 1), (1, 1), (8, 1), (15, 1), (16, 2), (31, 2), (32, 4), (64, 4), (4096, 4)] {
            let cache = in_parts(mib << 20);
            assert_eq!(cache.num_shards(), parts, "{mib} MiB");
            assert_eq!(cache.shard_capacity(), (mib << 20).div_ceil(parts as u64), "{mib} MiB");
        }
    }
}
