//! The serialization header: the columns with their types, and the bases from which rows store times as differences.
//!
//! Types are class names of Cassandra, for its `TypeParser`. Source: `SerializationHeader.Component`, `EncodingStats`,
//! `AbstractTypeSerializer`.

use super::input::{Input, write_vint_bytes, write_vint_texts};
use crate::deletion_time::SIGNED_LOCAL_S_MAX;
use crate::error::Result;
use crate::version::Version;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::vint;

/// 2015-09-22T00:00:00Z, from which the header's own numbers are differences.
const EPOCH_S: i64 = 1_442_880_000;
const EPOCH_US: i64 = EPOCH_S * 1_000_000;

/// The bases of the differences in rows. Any number that is not above the values in the rows is valid; a closer one
/// makes rows smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingStats {
    /// Base of timestamps, in microseconds.
    pub timestamp_us_min: i64,
    /// Base of local deletion times, in seconds.
    pub local_deletion_s_min: i64,
    /// Base of TTLs, in seconds.
    pub ttl_s_min: i32,
}

impl EncodingStats {
    /// The bases of content without timestamps, deletions and TTLs.
    pub const NONE: EncodingStats =
        EncodingStats { timestamp_us_min: EPOCH_US, local_deletion_s_min: EPOCH_S, ttl_s_min: 0 };

    /// The bases for these smallest values. `i64::MIN` (no timestamp) and `NO_EXPIRY` (no deletion time) become the
    /// epoch. A deletion time after 2038 gives a smaller base, because Cassandra reads a greater one wrongly (it adds
    /// two 32-bit numbers).
    pub fn new(timestamp_us_min: i64, local_deletion_s_min: i64, ttl_s_min: i32) -> EncodingStats {
        let none = EncodingStats::NONE;
        EncodingStats {
            timestamp_us_min: if timestamp_us_min == i64::MIN {
                none.timestamp_us_min
            } else {
                timestamp_us_min
            },
            local_deletion_s_min: match local_deletion_s_min {
                NO_EXPIRY => none.local_deletion_s_min,
                min => min.min(i64::from(i32::MAX)),
            },
            ttl_s_min,
        }
    }

    /// The bases as read in a version with signed times, where the base of deletion times is an int, and negative if
    /// times overflowed (`EncodingStats.Serializer`, `SerializationHeader.readLocalDeletionTime`).
    pub(super) fn signed(self) -> EncodingStats {
        EncodingStats { local_deletion_s_min: i64::from(self.local_deletion_s_min as i32), ..self }
    }

    /// The bases as written in a version. A version with signed times reads deletion times wrongly if their base is not
    /// a time that it can store.
    #[must_use]
    pub fn for_version(self, version: Version) -> EncodingStats {
        let is_right = version.has_unsigned_deletion_times()
            || (0..=SIGNED_LOCAL_S_MAX).contains(&self.local_deletion_s_min);
        let none = EncodingStats::NONE.local_deletion_s_min;
        let local_deletion_s_min = if is_right { self.local_deletion_s_min } else { none };
        EncodingStats { local_deletion_s_min, ..self }
    }

    fn write(self, out: &mut Vec<u8>) {
        vint::write_unsigned(self.timestamp_us_min.wrapping_sub(EPOCH_US) as u64, out);
        // Java's int, sign-extended.
        vint::write_unsigned(i64::from(self.local_deletion_s_min.wrapping_sub(EPOCH_S) as i32) as u64, out);
        vint::write_unsigned(i64::from(self.ttl_s_min) as u64, out);
    }

    fn read(input: &mut Input<'_>) -> Result<EncodingStats> {
        let timestamp_us_min = (input.vint()? as i64).wrapping_add(EPOCH_US);
        // Modulo 2^32, which undoes the sign of a base after 2038 in Cassandra's files.
        let local_deletion_s_min = i64::from((input.vint()? as u32).wrapping_add(EPOCH_S as u32));
        let ttl_s_min = input.vint()? as i32;
        Ok(EncodingStats { timestamp_us_min, local_deletion_s_min, ttl_s_min })
    }
}

/// A static or regular column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderColumn {
    /// Its name's bytes (UTF-8).
    pub name: Vec<u8>,
    /// Class name of its type.
    pub type_name: String,
}

/// How the rows of a file are encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The bases of the differences in rows.
    pub encoding: EncodingStats,
    /// Class name of the partition key's type: that of its column, or `CompositeType(..)` of several.
    pub key_type: String,
    /// Class names of the clustering columns' types, `ReversedType(..)` for descending ones.
    pub clustering_types: Vec<String>,
    /// Static columns, in the file's order, by which rows refer to them.
    pub statics: Vec<HeaderColumn>,
    /// Regular columns, in the file's order, by which rows refer to them.
    pub regulars: Vec<HeaderColumn>,
}

impl Header {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.encoding.write(out);
        write_vint_bytes(self.key_type.as_bytes(), out);
        write_vint_texts(&self.clustering_types, out);
        for columns in [&self.statics, &self.regulars] {
            vint::write_unsigned(columns.len() as u64, out);
            for column in columns {
                write_vint_bytes(&column.name, out);
                write_vint_bytes(column.type_name.as_bytes(), out);
            }
        }
    }

    pub(super) fn read(input: &mut Input<'_>) -> Result<Header> {
        fn columns(input: &mut Input<'_>) -> Result<Vec<HeaderColumn>> {
            let count = input.vint()?;
            let count = input.count(count, 2)?;
            (0..count)
                .map(|_| {
                    Ok(HeaderColumn { name: input.vint_bytes()?.to_vec(), type_name: input.vint_text()? })
                })
                .collect()
        }
        Ok(Header {
            encoding: EncodingStats::read(input)?,
            key_type: input.vint_text()?,
            clustering_types: input.vint_texts()?,
            statics: columns(input)?,
            regulars: columns(input)?,
        })
    }
}
