//! Writes a partition deletion that the version has no form for as a deletion of all rows and of the static row.
//!
//! From `oa` on, the front of a partition holds no negative timestamp (`DeletionTime.Serializer`), and no local time
//! that has overflowed. Files of older versions have both, and statements of Cassandra 3 and 4 make them (`USING
//! TIMESTAMP -5`). The encoding of rows and markers takes any time. For reads the two are the same: in a table with
//! clustering columns a range deletion from the first to the last position, which is merged with the ranges that the
//! partition has; in one without, the deletion of the only row; beside them the deletion of the static row.

use super::SsTableWriter;
use crate::error::Result;
use helenus_model::byte_comparable::{end_bound, end_row};
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::unfiltered::Unfiltered;

/// The deletion of all of a partition, while its rows are written.
pub(super) struct Covering {
    deletion: DeletionTime,
    /// Whether the range is open, or the only row is written.
    has_begun: bool,
    /// Whether the range is closed.
    has_ended: bool,
    marker: MarkerBuf,
    row: RowBuf,
}

impl Covering {
    pub(super) fn new(deletion: DeletionTime) -> Covering {
        Covering {
            deletion,
            has_begun: false,
            has_ended: false,
            marker: MarkerBuf::default(),
            row: RowBuf::default(),
        }
    }

    /// The row under the deletion; the static row of the partition, or the only row of a table without clustering.
    pub(super) fn row(&mut self, row: Option<RowView<'_>>) -> RowView<'_> {
        self.row.clear();
        if let Some(row) = row {
            self.row.copy_from(row);
        }
        self.row.deletion = self.row.deletion.max(self.deletion);
        self.row.view()
    }

    /// The marker with the deletion beneath those that it closes and opens. It has no effect if both are the same.
    fn marker(&mut self, marker: &Edge<'_>) -> &MarkerBuf {
        match marker {
            Edge::First | Edge::Last => {
                self.marker = MarkerBuf { before: matches!(marker, Edge::First), ..MarkerBuf::default() };
                end_bound(self.marker.before, &mut self.marker.key);
            }
            Edge::Of(marker) => self.marker.copy_from(*marker),
        }
        let position = |before| {
            let mut key = Vec::new();
            end_bound(before, &mut key);
            key
        };
        let (is_first, is_last) = (self.marker.key == position(true), self.marker.key == position(false));
        self.has_ended |= is_last;
        let live = DeletionTime::LIVE;
        self.marker.close = if is_first { live } else { self.marker.close.max(self.deletion) };
        self.marker.open = if is_last { live } else { self.marker.open.max(self.deletion) };
        &self.marker
    }
}

/// A marker of a partition under such a deletion.
enum Edge<'a> {
    /// Before all rows.
    First,
    /// Behind all rows.
    Last,
    /// One of the partition's own.
    Of(helenus_model::range_tombstone::MarkerView<'a>),
}

impl SsTableWriter {
    /// Adds a row or marker of a partition under such a deletion.
    pub(super) fn add_covered(&mut self, covering: &mut Covering, element: Unfiltered<'_>) -> Result<()> {
        if self.options.table.clustering.is_empty() {
            return match element {
                Unfiltered::Row(row) => {
                    covering.has_begun = true;
                    self.add_element(Unfiltered::Row(covering.row(Some(row))))
                }
                marker @ Unfiltered::Marker(_) => self.add_element(marker),
            };
        }
        let mut first = Vec::new();
        end_bound(true, &mut first);
        if !std::mem::replace(&mut covering.has_begun, true) && element.key() != first {
            self.add_edge(covering, &Edge::First)?;
        }
        match element {
            Unfiltered::Row(_) => self.add_element(element),
            Unfiltered::Marker(marker) => self.add_edge(covering, &Edge::Of(marker)),
        }
    }

    /// Ends a partition under such a deletion.
    pub(super) fn end_covered(&mut self, mut covering: Covering) -> Result<()> {
        if self.options.table.clustering.is_empty() {
            if covering.has_begun {
                return Ok(());
            }
            let mut row = RowBuf::default();
            end_row(&mut row.key);
            return self.add_element(Unfiltered::Row(covering.row(Some(row.view()))));
        }
        if !covering.has_begun {
            self.add_edge(&mut covering, &Edge::First)?;
        }
        if covering.has_ended { Ok(()) } else { self.add_edge(&mut covering, &Edge::Last) }
    }

    fn add_edge(&mut self, covering: &mut Covering, edge: &Edge<'_>) -> Result<()> {
        let marker = covering.marker(edge);
        if marker.close == marker.open {
            return Ok(());
        }
        self.add_element(Unfiltered::Marker(marker.view()))
    }
}
