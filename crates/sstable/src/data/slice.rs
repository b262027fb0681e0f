//! The current slice of a read, and the synthetic markers at its ends.
//!
//! Of a range tombstone that reaches into a slice from outside, the slice contains only one end, or none. Like
//! Cassandra's iterators, readers then make the missing markers: an opening marker at the slice's start, a closing one
//! at its end. So merging can rely on balanced markers. Synthetic markers have a key but no clustering values, because
//! only merging reads them.

use super::layout::RowLayout;
use super::skip::BoundValues;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::MarkerBuf;

/// The result of a step of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The cursor's row.
    Row,
    /// The cursor's marker.
    Marker,
    /// The synthetic marker that the reader made.
    Synthetic,
}

/// The current slice.
#[derive(Default)]
pub(crate) struct Range {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    pub(super) start_values: BoundValues,
    pub(super) end_values: BoundValues,
    /// Whether it is a name, which at most one row has.
    pub(crate) is_name: bool,
    /// Whether rows need their ordered keys.
    pub(crate) with_keys: bool,
    /// Whether rows that contain only cells of dropped columns are returned.
    pub(crate) with_hidden: bool,
}

/// The last byte of a bound before (or after) everything with its prefix (`ByteSource.LT_NEXT_COMPONENT`,
/// `GT_NEXT_COMPONENT`).
const BEFORE: u8 = 0x20;
const AFTER: u8 = 0x60;

impl Range {
    /// A range of rows that need their ordered keys.
    pub(crate) fn with_keys() -> Range {
        Range { with_keys: true, ..Range::default() }
    }

    /// Sets the ends of a slice.
    pub(crate) fn set(&mut self, (start, end): (&[u8], &[u8]), layout: &RowLayout) {
        self.start.clear();
        self.start.extend_from_slice(start);
        self.end.clear();
        self.end.extend_from_slice(end);
        self.is_name = false;
        self.set_values(layout);
    }

    /// Sets the bounds around one row, which are its key with other last bytes.
    pub(crate) fn set_name(&mut self, key: &[u8], layout: &RowLayout) {
        let prefix = key.split_last().map_or(key, |(_, prefix)| prefix);
        for (bound, last) in [(&mut self.start, BEFORE), (&mut self.end, AFTER)] {
            bound.clear();
            bound.extend_from_slice(prefix);
            bound.push(last);
        }
        self.is_name = true;
        self.set_values(layout);
    }

    fn set_values(&mut self, layout: &RowLayout) {
        self.start_values.set(layout, &self.start);
        self.end_values.set(layout, &self.end);
    }
}

/// Makes the marker that opens `deletion` at a slice's start.
pub(super) fn opening(at: &[u8], deletion: DeletionTime, made: &mut MarkerBuf) {
    make(at, made);
    made.open = deletion;
}

/// Makes the marker that closes `deletion` at a slice's end.
pub(crate) fn closing(at: &[u8], deletion: DeletionTime, made: &mut MarkerBuf) {
    make(at, made);
    made.close = deletion;
}

fn make(at: &[u8], made: &mut MarkerBuf) {
    made.key.clear();
    made.key.extend_from_slice(at);
    made.clustering.clear();
    made.data.clear();
    made.before = at.last().is_none_or(|last| *last == BEFORE);
    (made.close, made.open) = (DeletionTime::LIVE, DeletionTime::LIVE);
}
