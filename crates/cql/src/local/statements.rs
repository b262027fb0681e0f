//! The cache of analysed statements: prepared ones by their id, others by their text. Each is limited by memory; the
//! least used statements are evicted first.

use crate::backend::{Prepared, StatementId};
use crate::error::{CqlError, Result};
use helenus_engine::account::Charge;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, Equivalent, OptionsBuilder, Weighter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Maximum length of a cached text; longer texts are bulk loads that are not repeated.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 10;

/// Approximate memory of an analysed statement besides its text: plans share their table with the schema.
const PLAN_BYTES: u64 = 1024;

/// Approximate memory of a marker or result column, with its name and its part of the plan.
const COLUMN_BYTES: usize = 256;

/// The least memory of a part of the cache, each with a lock of its own, and the most parts. No statement fits into the cache that does not
/// fit into a part, so there are few.
const PART_BYTES_MIN: u64 = 8 << 20;
const PARTS_MAX: u64 = 4;
/// The fewest items of a part that quick_cache does not join with another, and about the memory of one: of so many that were evicted it
/// knows that they were used before.
const ITEMS_OF_PART_MIN: u64 = 32;
const ITEM_BYTES: u64 = 2 << 10;

/// The cache.
pub(super) struct Statements {
    prepared: Cache<StatementId, Arc<Prepared>, ByMemory>,
    by_text: Cache<TextKey, Arc<Prepared>, ByMemory>,
}

/// A statement's text and the keyspace of its analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextKey {
    keyspace: Option<Arc<str>>,
    query: Arc<str>,
}

struct TextRef<'a> {
    keyspace: Option<&'a str>,
    query: &'a str,
}

impl Hash for TextKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        TextRef { keyspace: self.keyspace.as_deref(), query: &self.query }.hash(state);
    }
}

impl Hash for TextRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.keyspace.hash(state);
        self.query.hash(state);
    }
}

impl Equivalent<TextKey> for TextRef<'_> {
    fn equivalent(&self, key: &TextKey) -> bool {
        self.query == &*key.query && self.keyspace == key.keyspace.as_deref()
    }
}

#[derive(Clone)]
struct ByMemory;

impl<K> Weighter<K, Arc<Prepared>> for ByMemory {
    fn weight(&self, _key: &K, statement: &Arc<Prepared>) -> u64 {
        let described = statement.columns.as_ref().map_or(0, |columns| columns.columns.len());
        let columns = ((statement.markers.len() + described) * COLUMN_BYTES) as u64;
        // The text, and the same again for constants and names in the plan; or the measured memory if that is more.
        (PLAN_BYTES + 2 * statement.query.len() as u64 + columns)
            .max(statement.memory.as_ref().map_or(0, Charge::bytes))
    }
}

/// A cache of so many bytes in parts, each of which keeps statements of up to a half of it.
fn in_parts(bytes_max: u64) -> Cache<StatementId, Arc<Prepared>, ByMemory> {
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
    pub(super) fn new(prepared_bytes_max: u64, text_bytes_max: u64) -> Statements {
        let texts = (text_bytes_max / (2 * PLAN_BYTES)).max(16) as usize;
        Statements {
            prepared: in_parts(prepared_bytes_max),
            by_text: Cache::with_weighter(texts, text_bytes_max, ByMemory),
        }
    }

    /// A prepared statement by its id.
    pub(super) fn prepared(&self, id: &StatementId) -> Option<Arc<Prepared>> {
        self.prepared.get(id)
    }

    /// Refuses a prepared statement that cannot be kept: no EXECUTE would find it, however often its client prepares it.
    ///
    /// # Errors
    /// `Invalid`.
    pub(super) fn check_size(&self, statement: &Arc<Prepared>) -> Result<()> {
        let bytes = ByMemory.weight(&statement.id, statement);
        let most = self.prepared.shard_capacity() / 2;
        if bytes <= most {
            return Ok(());
        }
        Err(CqlError::Invalid(format!(
            "The statement needs {bytes} bytes of memory, and prepared statements of up to {most} are kept; name fewer columns, put a \
             marker in place of long values, execute it without preparing it, or raise prepared_statements_cache_size"
        )))
    }

    /// Caches a prepared statement, replacing an older analysis of it.
    pub(super) fn keep_prepared(&self, statement: Arc<Prepared>) {
        self.prepared.insert(statement.id, statement);
    }

    /// All prepared statements.
    pub(super) fn all_prepared(&self) -> Vec<Arc<Prepared>> {
        self.prepared.iter().map(|(_, statement)| statement).collect()
    }

    /// Removes a statement that is no longer valid.
    pub(super) fn forget(&self, id: &StatementId) {
        self.prepared.remove(id);
    }

    /// The analysis of a text under the schema of `epoch`.
    pub(super) fn by_text(&self, query: &str, keyspace: Option<&str>, epoch: u64) -> Option<Arc<Prepared>> {
        if query.len() > TEXT_BYTES_MAX {
            return None;
        }
        self.by_text.get(&TextRef { keyspace, query }).filter(|statement| statement.epoch == epoch)
    }

    /// Caches the analysis of a text.
    pub(super) fn keep_text(&self, statement: Arc<Prepared>) {
        if statement.query.len() <= TEXT_BYTES_MAX {
            let key = TextKey { keyspace: statement.keyspace.clone(), query: statement.query.clone() };
            self.by_text.insert(key, statement);
        }
    }
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
