//! Encodes clustering positions of rows and markers outside of Data.db: the ends of BIG's index blocks
//! (`ClusteringPrefix.Serializer`).

use super::input::{Fault, Input};
use super::layout::RowLayout;
use helenus_model::byte_comparable::{end_bound, end_row};
use helenus_model::cell::Span;
use helenus_model::range_tombstone::{BoundKind, MarkerBuf};
use helenus_model::row::RowBuf;
use helenus_model::unfiltered::Unfiltered;

/// The kind of a row (`ClusteringPrefix.Kind.CLUSTERING`). The other kinds are those of bounds.
const ROW: u8 = 4;

impl RowLayout {
    /// Decodes the clustering position at `at` and appends its ordered encoding to `key`. Returns the offset of its
    /// end; `None` if the bytes are damaged.
    pub(crate) fn read_position(&self, bytes: &[u8], at: usize, key: &mut Vec<u8>) -> Option<usize> {
        let mut input = Input::new(bytes, at);
        let (count, before) = self.position_front(&mut input).ok()?;
        let mut spans: Vec<Span> = Vec::new();
        self.clustering(&mut input, count, (key, &mut spans)).ok()?;
        match before {
            Some(before) => end_bound(before, key),
            None => end_row(key),
        }
        Some(input.at())
    }

    /// The offset of the end of the clustering position at `at`.
    pub(crate) fn pass_position(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let mut input = Input::new(bytes, at);
        let (count, _) = self.position_front(&mut input).ok()?;
        self.pass_clustering(&mut input, count).ok()?;
        Some(input.at())
    }

    /// The number of values of a clustering position and, for a bound, whether it is before everything with its prefix.
    fn position_front(&self, input: &mut Input<'_>) -> Result<(usize, Option<bool>), Fault> {
        let kind = input.byte()?;
        if kind == ROW {
            return Ok((self.clustering.len(), None));
        }
        let kind = BoundKind::from_u8(kind).ok_or_else(|| input.bad("unknown kind of a bound"))?;
        Ok((self.bound_length(input)?, Some(kind.is_before())))
    }

    /// Appends the encoding of an element's clustering position; `None` for a marker that opens and closes nothing.
    pub(crate) fn write_position(&self, element: Unfiltered<'_>, out: &mut Vec<u8>) -> Option<()> {
        match element {
            Unfiltered::Row(view) => {
                let row: &RowBuf = view.row;
                out.push(ROW);
                self.write_clustering(&row.clustering, view.data, out);
            }
            Unfiltered::Marker(view) => {
                let marker: &MarkerBuf = view.marker;
                out.push(marker.kind()? as u8);
                out.extend_from_slice(&(marker.clustering.len() as u16).to_be_bytes());
                self.write_clustering(&marker.clustering, view.data, out);
            }
        }
        Some(())
    }
}
