//! Cassandra's ordered encoding (version OSS50): values as bytes whose unsigned order, byte by byte, is the order of
//! the values.
//!
//! The memtable, the row index of SSTables and their partition index compare nothing else, so it must be Cassandra's
//! to the bit. Source: `ByteComparable.md`, `ByteSource`, `ClusteringComparator` and each type's `asComparableBytes`.
//!
//! - [`value`](self::encode_value): one value. No encoding is a prefix of another of its type, save that of
//!   byte strings, whose end only the byte after them tells; that byte is always a separator.
//! - [`clustering`](self::clustering_key): values one after the other, each behind a separator that also says null and
//!   empty, then a byte for what they stand for: a row, or a bound before or after all that begins so.
//! - [`partition`](self::decorated_key): token and key, in the order of partitions.
//!
//! The way back gives an equal value, not always the same bytes: `decimal`, `varint` and `boolean` come back in their
//! shortest form, an empty element of a collection as null. Whoever needs the bytes keeps them beside the encoding.

mod clustering;
mod decimal;
mod escape;
mod nested;
mod number;
mod partition;
mod source;
mod value;

#[cfg(test)]
mod tests;

pub use clustering::{
    Component, DecodedClustering, Position, clustering_bound, clustering_key, component, decode_clustering,
    end_bound, end_row, static_key,
};
pub use partition::{decode_decorated_key, decorated_key, decorated_key_bound, token_bound};
pub use value::{Encoded, decode_value, encode_value};

/// Before a component that has bytes.
pub const NEXT_COMPONENT: u8 = 0x40;
/// Instead of a component whose value is empty and encodes as nothing.
pub const NEXT_COMPONENT_EMPTY: u8 = 0x3F;
/// The same where the order is reversed: empty values come last.
pub const NEXT_COMPONENT_EMPTY_REVERSED: u8 = 0x41;
/// Instead of a null component; before all values in either order.
pub const NEXT_COMPONENT_NULL: u8 = 0x3E;
/// End of a row's clustering, a partition key, a collection or tuple.
pub const TERMINATOR: u8 = 0x38;
/// End of a bound before everything that begins so.
pub const LT_NEXT_COMPONENT: u8 = 0x20;
/// End of a bound after everything that begins so.
pub const GT_NEXT_COMPONENT: u8 = 0x60;
/// The static row: before every row and bound.
pub const EXCLUDED: u8 = 0x18;
