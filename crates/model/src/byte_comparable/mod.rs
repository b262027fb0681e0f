//! Cassandra's byte-comparable encoding (version OSS50): the unsigned order of the encoded bytes is the order of the
//! values.
//!
//! The memtable, the row index of SSTables and their partition index compare only encoded bytes, so the encoding must
//! match Cassandra's exactly. Source: `ByteComparable.md`, `ByteSource`, `ClusteringComparator` and each type's
//! `asComparableBytes`. One exception: all NaNs have one encoding, because they are equal values.
//!
//! - [`value`](self::encode_value): one value. No encoding is a prefix of another encoding of the same type, except for
//!   byte strings: their end is only recognised by the separator that always follows them.
//! - [`clustering`](self::clustering_key): values one after the other, each after a separator that also marks null and
//!   empty values. A final byte tells a row from a bound before or after all rows with the prefix.
//! - [`partition`](self::decorated_key): token and key, in the order of partitions.
//!
//! Decoding gives an equal value, but not always the same bytes: `decimal`, `varint` and `boolean` decode to their
//! shortest form, a NaN to Java's, an empty element of a collection decodes to null, and a component of a dynamic composite to its alias. A caller
//! that needs the original bytes stores them beside the encoding.

mod clustering;
mod composite;
mod decimal;
mod escape;
mod nested;
mod number;
mod partition;
mod source;
mod value;

#[cfg(test)]
mod composite_tests;
#[cfg(test)]
mod tests;

pub use clustering::{
    Component, DecodedClustering, Position, clustering_bound, clustering_key, component, decode_clustering,
    end_bound, end_row, static_key,
};
pub use partition::{decode_decorated_key, decorated_key, decorated_key_bound, token_bound};
pub use value::{Encoded, decode_value, encode_value};

/// Precedes a component that has bytes.
pub const NEXT_COMPONENT: u8 = 0x40;
/// Replaces a component whose value is empty and has no encoded bytes.
pub const NEXT_COMPONENT_EMPTY: u8 = 0x3F;
/// As `NEXT_COMPONENT_EMPTY`, for descending order: empty values sort last.
pub const NEXT_COMPONENT_EMPTY_REVERSED: u8 = 0x41;
/// Replaces a null component; sorts before all values in either order.
pub const NEXT_COMPONENT_NULL: u8 = 0x3E;
/// Ends a row's clustering, a partition key, a collection or a tuple.
pub const TERMINATOR: u8 = 0x38;
/// Ends a bound that sorts before everything with its prefix.
pub const LT_NEXT_COMPONENT: u8 = 0x20;
/// Ends a bound that sorts after everything with its prefix.
pub const GT_NEXT_COMPONENT: u8 = 0x60;
/// The static row: before every row and bound.
pub const EXCLUDED: u8 = 0x18;
