//! The parts of the data that come after something that they must precede: partitions, and rows within a partition. They
//! are read again, in order, and written into further SSTables.

use helenus_model::token::KeyHash;

/// The number of parts that are kept in memory; then they are written. Each takes 24 bytes.
const LATE_MAX: usize = 2 << 20;

/// The part of a partition that comes too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The partition itself.
    Whole,
    /// Some of its rows.
    Rows,
}

/// A part of the data that is out of order. The order is that in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Late {
    pub(super) token: i64,
    /// The partition's position in the data.
    pub(super) start: u64,
    pub(super) part: Part,
}

impl Late {
    pub(super) fn new(key: &[u8], start: u64, part: Part) -> Late {
        Late { token: KeyHash::of(key).token.0, start, part }
    }
}

/// The parts that are out of order so far.
#[derive(Default)]
pub(super) struct LateParts {
    parts: Vec<Late>,
}

impl LateParts {
    pub(super) fn push(&mut self, late: Late) {
        self.parts.push(late);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether there are so many that they must be written now.
    pub(super) fn is_full(&self) -> bool {
        self.parts.len() >= LATE_MAX
    }

    /// Takes all parts, in the order of their partitions' tokens.
    pub(super) fn take_sorted(&mut self) -> Vec<Late> {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_unstable();
        parts
    }
}
