//! What choosing is told, and what it answers.

use helenus_model::token::Token;
use helenus_sstable::names::Descriptor;
use std::collections::BTreeSet;

/// What choosing knows of an SSTable.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its names; orders by age.
    pub id: Descriptor,
    /// Bytes of Data.db (Cassandra's `onDiskLength`).
    pub bytes: u64,
    /// Ordered position of its first partition.
    pub first: Vec<u8>,
    /// Ordered position of its last partition.
    pub last: Vec<u8>,
    /// Tokens of its first and last partition.
    pub tokens: (Token, Token),
    /// The part of the ring that its Statistics.db says it spans; not above 0 (or NaN) when it says nothing.
    pub coverage: f64,
    /// Smallest timestamp, microseconds.
    pub timestamp_us_min: i64,
    /// Greatest timestamp, microseconds.
    pub timestamp_us_max: i64,
    /// Greatest local deletion time, seconds; `NO_EXPIRY` when something neither is deleted nor expires.
    pub local_deletion_s_max: i64,
    /// Level of levelled compaction.
    pub level: usize,
    /// When it was made, milliseconds since 1970; 0 when its name does not tell.
    pub created_ms: i64,
    /// Estimated part of its cells that are tombstones old enough to go.
    pub droppable: f64,
}

impl Source {
    /// Whether the two have partitions between the same positions.
    pub fn overlaps(&self, other: &Source) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A table's SSTables at one moment, and what came before.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// Every SSTable of the view.
    pub sources: &'a [Source],
    /// Those that may not be chosen: they are being compacted, or were found damaged.
    pub busy: &'a BTreeSet<Descriptor>,
    /// Smallest timestamp of what is not in `sources`: memtables, SSTables that cannot be read; `i64::MAX` when nothing is.
    pub elsewhere_us_min: i64,
    /// The wall clock, milliseconds.
    pub now_ms: i64,
    /// Tombstones with a local deletion time before this may go, seconds.
    pub gc_before_s: i64,
    /// What earlier rounds left.
    pub history: &'a History,
    /// Draws between choices that are as good as each other.
    pub seed: u64,
}

impl Situation<'_> {
    /// Indexes of the sources that may be chosen.
    pub fn free(&self) -> Vec<usize> {
        let free = |index: &usize| !self.busy.contains(&self.sources[*index].id);
        (0..self.sources.len()).filter(free).collect()
    }
}

/// Levels of levelled compaction (`LeveledGenerations.MAX_LEVEL_COUNT`).
pub const LEVELS: usize = 9;

/// What strategies remember from round to round. Kept in memory: after a restart it is as new, as in Cassandra.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Size of a flushed SSTable as observed, bytes; 0 before the first flush.
    pub flush_bytes: u64,
    /// When fully expired SSTables were last looked for, milliseconds.
    pub expired_checked_ms: i64,
    /// Rounds since a compaction into each level.
    pub rounds_without: [u32; LEVELS],
}

/// How the output is cut into SSTables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// One SSTable.
    Whole,
    /// One for each of so many equal parts of the ring.
    Shards(u32),
    /// Of about so many bytes each, all on one level.
    Sized {
        /// Bytes of Data.db after which the next begins.
        bytes: u64,
        /// The level.
        level: usize,
    },
    /// Of about so many bytes each, filling one level after the other from the first.
    Levels {
        /// Bytes of Data.db after which the next begins.
        bytes: u64,
        /// How many times larger a level is than the one before.
        fanout: u64,
    },
}

/// Why SSTables are compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The strategy's rule.
    Strategy,
    /// One SSTable alone, for its tombstones.
    Tombstones,
    /// Somebody asked for it.
    Major,
}

/// SSTables to compact.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Indexes into the situation's sources.
    pub inputs: Vec<usize>,
    /// What becomes of them.
    pub output: Output,
    /// Why.
    pub reason: Reason,
}

/// The answer of one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What to do now, if anything.
    pub choice: Option<Choice>,
    /// About how many compactions are due in all.
    pub pending: u64,
    /// Whether fully expired SSTables were looked for: the history takes the time.
    pub expired_checked: bool,
    /// The level that a levelled compaction goes into: the history counts it.
    pub into_level: Option<usize>,
}
