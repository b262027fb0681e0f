//! Bounds of clustering ranges and range-tombstone markers.
//!
//! A marker is a position between rows. It closes a range deletion, opens one, or does both (a boundary).

use crate::cell::Span;
use crate::deletion::DeletionTime;

/// Kind of a bound or boundary, with the numbers that Cassandra writes to files (`ClusteringPrefix.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BoundKind {
    /// `< x`, the end of a range.
    ExclEnd = 0,
    /// `>= x`, the start of a range.
    InclStart = 1,
    /// End of one range before x, start of the next at x.
    ExclEndInclStart = 2,
    /// End of one range at x, start of the next after x.
    InclEndExclStart = 5,
    /// `<= x`, the end of a range.
    InclEnd = 6,
    /// `> x`, the start of a range.
    ExclStart = 7,
}

impl BoundKind {
    /// From the number in a file.
    pub fn from_u8(number: u8) -> Option<BoundKind> {
        Some(match number {
            0 => BoundKind::ExclEnd,
            1 => BoundKind::InclStart,
            2 => BoundKind::ExclEndInclStart,
            5 => BoundKind::InclEndExclStart,
            6 => BoundKind::InclEnd,
            7 => BoundKind::ExclStart,
            _ => return None,
        })
    }

    /// Whether the position is before the rows with this prefix (otherwise after them).
    pub fn is_before(self) -> bool {
        matches!(self, BoundKind::ExclEnd | BoundKind::InclStart | BoundKind::ExclEndInclStart)
    }

    /// Whether this closes one range and opens another.
    pub fn is_boundary(self) -> bool {
        matches!(self, BoundKind::ExclEndInclStart | BoundKind::InclEndExclStart)
    }

    /// The kind of a marker that closes and opens these ranges, in clustering order; `None` if it does neither.
    pub fn of(before: bool, closes: bool, opens: bool) -> Option<BoundKind> {
        Some(match (before, closes, opens) {
            (true, true, true) => BoundKind::ExclEndInclStart,
            (true, true, false) => BoundKind::ExclEnd,
            (true, false, true) => BoundKind::InclStart,
            (false, true, true) => BoundKind::InclEndExclStart,
            (false, true, false) => BoundKind::InclEnd,
            (false, false, true) => BoundKind::ExclStart,
            (_, false, false) => return None,
        })
    }
}

/// A range-tombstone marker as a reusable buffer, like `RowBuf`.
///
/// `close` and `open` are in clustering order, whatever the direction of the read: `close` is the deletion that ends at
/// the marker, `open` the one that begins there.
#[derive(Clone, Debug)]
pub struct MarkerBuf {
    /// Ordered encoding of the bound's position: the prefix and a byte for before or after.
    pub key: Vec<u8>,
    /// The prefix's serialised values, possibly fewer than the clustering columns.
    pub clustering: Vec<Span>,
    /// Whether the position is before the rows with the prefix, or after them.
    pub before: bool,
    /// Deletion of the range that ends here; live if none does.
    pub close: DeletionTime,
    /// Deletion of the range that starts here; live if none does.
    pub open: DeletionTime,
    /// Bytes owned by this buffer; unused when the spans point elsewhere.
    pub data: Vec<u8>,
}

impl Default for MarkerBuf {
    fn default() -> MarkerBuf {
        MarkerBuf {
            key: Vec::new(),
            clustering: Vec::new(),
            before: true,
            close: DeletionTime::LIVE,
            open: DeletionTime::LIVE,
            data: Vec::new(),
        }
    }
}

impl MarkerBuf {
    /// The bound kind in clustering order, `None` for a marker that neither closes nor opens.
    pub fn kind(&self) -> Option<BoundKind> {
        BoundKind::of(self.before, !self.close.is_live(), !self.open.is_live())
    }

    /// The marker with its own bytes.
    pub fn view(&self) -> MarkerView<'_> {
        MarkerView { marker: self, data: &self.data }
    }

    /// Copies another marker and its bytes.
    pub fn copy_from(&mut self, other: MarkerView<'_>) {
        self.key.clear();
        self.key.extend_from_slice(&other.marker.key);
        self.clustering.clear();
        self.data.clear();
        for value in &other.marker.clustering {
            let start = self.data.len();
            let bytes = value.bytes(other.data);
            self.data.extend_from_slice(bytes);
            self.clustering.push(if value.is_null() {
                Span::NULL
            } else {
                crate::row::span(start, bytes.len())
            });
        }
        self.before = other.marker.before;
        self.close = other.marker.close;
        self.open = other.marker.open;
    }
}

/// A marker and the bytes that its spans refer to.
#[derive(Clone, Copy, Debug)]
pub struct MarkerView<'a> {
    /// The decoded marker.
    pub marker: &'a MarkerBuf,
    /// The bytes that its spans refer to.
    pub data: &'a [u8],
}

impl<'a> MarkerView<'a> {
    /// The serialised value of a prefix component; `None` if it is null or not in the prefix.
    pub fn clustering(&self, index: usize) -> Option<&'a [u8]> {
        self.marker.clustering.get(index).and_then(|span| span.get(self.data))
    }
}
