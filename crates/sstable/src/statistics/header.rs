//! The serialization header: bases of the deltas in which rows hold times, and the columns with their types.
//!
//! Types are Cassandra's class names, as its `TypeParser` reads them. Source: `SerializationHeader.Component`,
//! `EncodingStats`, `AbstractTypeSerializer`.

use super::input::{Input, write_vint_bytes, write_vint_texts};
use crate::deletion_time::SIGNED_LOCAL_S_MAX;
use crate::error::Result;
use crate::version::Version;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::vint;

/// 2015-09-22T00:00:00Z: what the header's own numbers are relative to.
const EPOCH_S: i64 = 1_442_880_000;
const EPOCH_US: i64 = EPOCH_S * 1_000_000;

/// Bases of the deltas in rows. Any number at or below all that the rows hold will do; nearer is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingStats {
    /// Base of timestamps, microseconds.
    pub timestamp_us_min: i64,
    /// Base of local deletion times, seconds.
    pub local_deletion_s_min: i64,
    /// Base of TTLs, seconds.
    pub ttl_s_min: i32,
}

impl EncodingStats {
    /// The bases of content without timestamps, deletions and TTLs.
    pub const NONE: EncodingStats =
        EncodingStats { timestamp_us_min: EPOCH_US, local_deletion_s_min: EPOCH_S, ttl_s_min: 0 };

    /// From the smallest values that occur; `i64::MIN` (no timestamp) and `NO_EXPIRY` (no deletion time) become the
    /// epoch. A deletion time after 2038 becomes a smaller base: Cassandra reads a greater one wrongly, for it adds
    /// two 32-bit numbers there.
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

    /// As read in a version whose times are signed: the base is an int there, negative where times overflowed
    /// (`EncodingStats.Serializer`, `SerializationHeader.readLocalDeletionTime`).
    pub(super) fn signed(self) -> EncodingStats {
        EncodingStats { local_deletion_s_min: i64::from(self.local_deletion_s_min as i32), ..self }
    }

    /// As written in a version: one whose times are signed reads them wrongly from a base that is none of its times.
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
        // As Java's int, widened with its sign.
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
    /// Bases of deltas.
    pub encoding: EncodingStats,
    /// Class name of the partition key's type: the column's, or `CompositeType(..)` of several.
    pub key_type: String,
    /// Class names of the clustering columns' types, `ReversedType(..)` for descending ones.
    pub clustering_types: Vec<String>,
    /// Static columns, in the order of their numbers in rows.
    pub statics: Vec<HeaderColumn>,
    /// Regular columns, in the order of their numbers in rows.
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
