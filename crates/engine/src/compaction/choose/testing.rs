//! Helpers that make sources and situations for the strategies' tests.

use super::strategy_input::{Sources, SsTableInfo, StrategyInput};
use crate::table::History;
use helenus_model::byte_comparable::decorated_key;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::token::Token;
use helenus_sstable::names::{Descriptor, SsTableId};
use std::cell::Cell;
use std::collections::BTreeSet;

pub(super) const MIB: u64 = 1 << 20;

thread_local! {
    /// How often the strategies have looked at an SSTable.
    pub(super) static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// How often the strategies look at an SSTable while `work` runs.
pub(super) fn looks(work: impl FnOnce()) -> u64 {
    let before = LOOKS.get();
    work();
    LOOKS.get() - before
}

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

/// Sources on a short ring, drawn from a seed: levels, sizes, times, ranges.
pub(super) fn drawn(seed: u64, count: usize) -> Vec<SsTableInfo> {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as i64
    };
    let one = |_| {
        let (a, b) = (draw(100), draw(100));
        let near = a + draw(12);
        let (first, last) = if draw(2) == 0 { (a, near) } else { (a.min(b), a.max(b)) };
        let (one_us, other_us) = (1 + draw(50), 1 + draw(50));
        SsTableInfo {
            bytes: MIB * (1 + draw(40) as u64),
            level: draw(4) as usize,
            timestamp_us_min: one_us.min(other_us),
            timestamp_us_max: one_us.max(other_us),
            local_deletion_s_max: if draw(3) == 0 { 10 } else { NO_EXPIRY },
            droppable: draw(10) as f64 / 10.0,
            ..source(first, last)
        }
    };
    (0..count).map(one).collect()
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
            sources: Sources::of(&self.sources),
            busy: &self.busy,
            elsewhere_us_min: i64::MAX,
            now_ms: self.now_ms,
            gc_before_s: self.now_ms / 1000,
            history: &self.history,
            seed: 1,
        }
    }
}
