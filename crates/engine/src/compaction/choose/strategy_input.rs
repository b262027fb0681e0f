//! The input and output of the strategies.

use crate::table::History;
use helenus_model::token::Token;
use helenus_sstable::names::Descriptor;
use std::collections::BTreeSet;

/// The description of an SSTable for the strategies.
#[derive(Clone, Debug)]
pub struct SsTableInfo {
    /// Its name; descriptors are ordered by age.
    pub id: Descriptor,
    /// Bytes of Data.db (Cassandra's `onDiskLength`).
    pub bytes: u64,
    /// Byte-comparable position of its first partition.
    pub first: Vec<u8>,
    /// Byte-comparable position of its last partition.
    pub last: Vec<u8>,
    /// Tokens of its first and last partition.
    pub tokens: (Token, Token),
    /// The part of the ring that it spans, from Statistics.db; NaN or not above 0 if it is not recorded.
    pub coverage: f64,
    /// Smallest timestamp, microseconds.
    pub timestamp_us_min: i64,
    /// Greatest timestamp, microseconds.
    pub timestamp_us_max: i64,
    /// Greatest local deletion time, seconds; `NO_EXPIRY` if some data neither is deleted nor expires.
    pub local_deletion_s_max: i64,
    /// Its level in levelled compaction.
    pub level: usize,
    /// Its time of creation, milliseconds since 1970; 0 if the name does not contain it.
    pub created_ms: i64,
    /// Estimated part of its cells that are purgeable tombstones.
    pub droppable: f64,
}

impl SsTableInfo {
    /// Whether the ranges of the two SSTables overlap.
    pub fn overlaps(&self, other: &SsTableInfo) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The SSTables of a table. Tests count how often one is looked at.
#[derive(Clone, Copy)]
pub struct Sources<'a>(&'a [SsTableInfo]);

impl<'a> Sources<'a> {
    /// These SSTables.
    pub fn of(sources: &'a [SsTableInfo]) -> Sources<'a> {
        Sources(sources)
    }

    /// Their number.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// The SSTable with this number.
    pub fn at(self, index: usize) -> &'a SsTableInfo {
        #[cfg(test)]
        super::testing::LOOKS.with(|looks| looks.set(looks.get() + 1));
        &self.0[index]
    }
}

impl std::ops::Index<usize> for Sources<'_> {
    type Output = SsTableInfo;

    fn index(&self, index: usize) -> &SsTableInfo {
        self.at(index)
    }
}

/// A table's SSTables at one moment, with the strategies' history.
#[derive(Clone, Copy)]
pub struct StrategyInput<'a> {
    /// Every SSTable of the view.
    pub sources: Sources<'a>,
    /// SSTables that may not be chosen: they are being compacted, or were found damaged.
    pub busy: &'a BTreeSet<Descriptor>,
    /// Smallest timestamp of data outside `sources`: in memtables and unreadable SSTables; `i64::MAX` if there is none.
    pub elsewhere_us_min: i64,
    /// The wall clock, milliseconds.
    pub now_ms: i64,
    /// Tombstones with a local deletion time before this may be purged, seconds.
    pub gc_before_s: i64,
    /// The history of earlier rounds.
    pub history: &'a History,
    /// Random seed for choosing among equally good choices.
    pub seed: u64,
}

impl StrategyInput<'_> {
    /// Indexes of the sources that may be chosen.
    pub fn free(&self) -> Vec<usize> {
        let free = |index: &usize| !self.busy.contains(&self.sources[*index].id);
        (0..self.sources.len()).filter(free).collect()
    }

    /// For each source, whether it is one of `items`.
    pub(super) fn flags(&self, items: &[usize]) -> Vec<bool> {
        let mut flags = vec![false; self.sources.len()];
        for index in items {
            flags[*index] = true;
        }
        flags
    }
}

/// How the output is split into SSTables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// One SSTable.
    Whole,
    /// One SSTable for each of this number of equal parts of the ring.
    Shards(u32),
    /// SSTables of about equal size, all on one level.
    Sized {
        /// Bytes of Data.db after which the next SSTable begins.
        bytes: u64,
        /// The level.
        level: usize,
    },
    /// SSTables of about equal size, which fill one level after the other, from level 1.
    Levels {
        /// Bytes of Data.db after which the next SSTable begins.
        bytes: u64,
        /// The ratio of a level's size to that of the level before.
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
    /// It was requested.
    Major,
}

/// SSTables to compact.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionPlan {
    /// Indexes into the situation's sources.
    pub inputs: Vec<usize>,
    /// How the output is split.
    pub output: Output,
    /// The reason.
    pub reason: Reason,
}

/// The result of one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The compaction to run now, if any.
    pub choice: Option<CompactionPlan>,
    /// Estimated number of all compactions that are due.
    pub pending: u64,
    /// Whether fully expired SSTables were checked for; the history then records the time.
    pub expired_checked: bool,
    /// The output level of a levelled compaction, which the history counts.
    pub into_level: Option<usize>,
}
