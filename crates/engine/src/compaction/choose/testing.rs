//! Helpers that make sources and situations for the strategies' tests.

use super::strategy_input::{SsTableInfo, StrategyInput};
use crate::table::History;
use helenus_model::byte_comparable::decorated_key;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::token::Token;
use helenus_sstable::names::{Descriptor, SsTableId};
use std::collections::BTreeSet;

pub(super) const MIB: u64 = 1 << 20;

fn place(token: i64) -> Vec<u8> {
    let mut out = Vec::new();
    decorated_key(Token(token), b"", &mut out);
    out
}

/// A source of 1 MiB, from one token to another.
pub(super) fn source(first: i64, last: i64) -> SsTableInfo {
    SsTableInfo {
        id: Descriptor::new(SsTableId::Sequence(0)),
        bytes: MIB,
        first: place(first),
        last: place(last),
        tokens: (Token(first), Token(last)),
        coverage: f64::NAN,
        timestamp_us_min: 0,
        timestamp_us_max: 0,
        local_deletion_s_max: NO_EXPIRY,
        level: 0,
        created_ms: 0,
        droppable: 0.0,
    }
}

/// A source of this size over the whole ring.
pub(super) fn whole(bytes: u64) -> SsTableInfo {
    SsTableInfo { bytes, ..source(i64::MIN, i64::MAX) }
}

/// Gives each source its own name and, if it has none, a timestamp. Later sources are newer.
pub(super) fn numbered(mut sources: Vec<SsTableInfo>) -> Vec<SsTableInfo> {
    for (index, source) in sources.iter_mut().enumerate() {
        source.id = Descriptor::new(SsTableId::Sequence(index as u32 + 1));
        if source.timestamp_us_max == 0 {
            source.timestamp_us_max = index as i64 + 1;
        }
    }
    sources
}

/// Makes situations. By default nothing is busy, memtables are empty, and there is no history.
pub(super) struct Setting {
    pub(super) sources: Vec<SsTableInfo>,
    pub(super) busy: BTreeSet<Descriptor>,
    pub(super) history: History,
    pub(super) now_ms: i64,
}

impl Setting {
    pub(super) fn new(sources: Vec<SsTableInfo>) -> Setting {
        Setting { sources: numbered(sources), busy: BTreeSet::new(), history: History::default(), now_ms: 0 }
    }

    pub(super) fn situation(&self) -> StrategyInput<'_> {
        StrategyInput {
            sources: &self.sources,
            busy: &self.busy,
            elsewhere_us_min: i64::MAX,
            now_ms: self.now_ms,
            gc_before_s: self.now_ms / 1000,
            history: &self.history,
            seed: 1,
        }
    }
}
