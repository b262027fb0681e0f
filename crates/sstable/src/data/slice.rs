//! One slice under way, and the markers that a reader makes at its ends.
//!
//! A range tombstone that reaches into a slice from outside would show only one of its ends, or none. As Cassandra's
//! iterators do, readers then make the missing ones: an opening marker at the slice's start, a closing one at its
//! end, whichever comes first in the direction of the read. Merging can so rely on balanced markers. Made markers have
//! a key but no clustering values: nothing but merging looks at them.

use super::layout::RowLayout;
use super::skip::BoundValues;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::MarkerBuf;

/// What a step yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The cursor's row.
    Row,
    /// The cursor's marker.
    Marker,
    /// The marker that the reader made.
    Made,
}

/// The slice under way.
#[derive(Default)]
pub(super) struct Range {
    pub(super) start: Vec<u8>,
    pub(super) end: Vec<u8>,
    pub(super) start_values: BoundValues,
    pub(super) end_values: BoundValues,
    /// It can hold one row only.
    pub(super) is_name: bool,
    /// Whether rows are to have their ordered keys.
    pub(super) with_keys: bool,
    /// Whether rows show of which reading keeps nothing: those with cells of dropped columns alone.
    pub(super) with_hidden: bool,
}

/// Last byte of a bound before, or after, everything with its prefix (`ByteSource.LT_NEXT_COMPONENT`,
/// `GT_NEXT_COMPONENT`).
const BEFORE: u8 = 0x20;
const AFTER: u8 = 0x60;

impl Range {
    /// Takes over a slice's ends.
    pub(super) fn set(&mut self, (start, end): (&[u8], &[u8]), layout: &RowLayout) {
        self.start.clear();
        self.start.extend_from_slice(start);
        self.end.clear();
        self.end.extend_from_slice(end);
        self.is_name = false;
        self.set_values(layout);
    }

    /// Takes over the bounds around one row: its key with another last byte.
    pub(super) fn set_name(&mut self, key: &[u8], layout: &RowLayout) {
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
pub(super) fn closing(at: &[u8], deletion: DeletionTime, made: &mut MarkerBuf) {
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
