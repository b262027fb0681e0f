//! An unfiltered: a row or a range-tombstone marker, and the sources that yield them in order.

use crate::range_tombstone::MarkerView;
use crate::row::RowView;

/// One element of a partition's content.
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

/// A cursor over the unfiltereds of one partition, in clustering order or, read reversed, against it.
///
/// The element in hand stays valid until the next `advance`. `Cx` carries what reading needs (whether it may wait,
/// counters); a source that only reads memory ignores it.
pub trait Source<Cx> {
    /// What can go wrong.
    type Error;

    /// Moves to the next element; `Ok(false)` at the end, and from then on.
    fn advance(&mut self, cx: &mut Cx) -> Result<bool, Self::Error>;

    /// Lets go of the bytes of the element in hand, if they are many and can be read again; returns how many it let go of. Until
    /// `unpark` the element has its position and nothing else. So a merge of many sources has one large row in memory at a time.
    fn park(&mut self) -> usize {
        0
    }

    /// Reads the bytes again that `park` let go of. `expected` bytes are about to be allocated, these among them: all of them
    /// are charged to the account of memory first.
    ///
    /// # Errors
    /// As `advance`.
    fn unpark(&mut self, _expected: usize, _cx: &mut Cx) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The element in hand. Called only after `advance` returned `Ok(true)`.
    fn current(&self) -> Unfiltered<'_>;
}
