//! An unfiltered: a row or a range-tombstone marker, and the sources that yield them in order.

use crate::range_tombstone::MarkerView;
use crate::row::RowView;

/// One element of a partition: a row or a marker.
#[derive(Clone, Copy, Debug)]
pub enum Unfiltered<'a> {
    /// A row.
    Row(RowView<'a>),
    /// A range-tombstone marker.
    Marker(MarkerView<'a>),
}

impl<'a> Unfiltered<'a> {
    /// The ordered position.
    pub fn key(&self) -> &'a [u8] {
        match self {
            Unfiltered::Row(row) => &row.row.key,
            Unfiltered::Marker(marker) => &marker.marker.key,
        }
    }
}

/// A cursor over the unfiltereds of one partition, in clustering order or, for a reversed read, in the opposite order.
///
/// The current element stays valid until the next `advance`. `Cx` carries what reading needs (whether it may wait,
/// counters); a source in memory ignores it.
pub trait Source<Cx> {
    /// Type of a read error.
    type Error;

    /// Moves to the next element. Returns `Ok(false)` at the end, and then always.
    fn advance(&mut self, cx: &mut Cx) -> Result<bool, Self::Error>;

    /// Releases the bytes of the current element if they are many and can be read again; returns their number. Until
    /// `reload` only the element's position is valid. So a merge of many sources has one large row in memory at a time.
    fn release_bytes(&mut self) -> usize {
        0
    }

    /// Reads the bytes again that `release_bytes` released. `expected` is the number of bytes about to be allocated, including
    /// these; all of them are charged to the memory account first.
    ///
    /// # Errors
    /// As `advance`.
    fn reload(&mut self, _expected: usize, _cx: &mut Cx) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The current element. To be called only after `advance` returned `Ok(true)`.
    fn current(&self) -> Unfiltered<'_>;
}
