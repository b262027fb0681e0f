//! The two encodings of deletion times of partitions and index blocks (`DeletionTime.Serializer`,
//! `DeletionTime.LegacySerializer`).
//!
//! From `oa` on: one byte 0x80 for `LIVE` (nothing is deleted), otherwise the timestamp in microseconds (big endian,
//! not negative) and the local time in seconds, unsigned 32 bits. Before: the local time in seconds, signed 32 bits,
//! then the timestamp; `LIVE` is the greatest local time and the least timestamp.

#![deny(clippy::indexing_slicing)]

use crate::version::Version;
use helenus_model::deletion::DeletionTime;

const LIVE: u8 = 0x80;

/// Replaces an invalid local deletion time: a negative one in a version with signed times
/// (`Cell.INVALID_DELETION_TIME`).
pub const INVALID_LOCAL_S: i64 = u32::MAX as i64 - 1;

/// The greatest local time of the signed encoding: 2038-01-19T03:14:06Z (`Cell.MAX_DELETION_TIME_2038_LEGACY_CAP`).
pub const SIGNED_LOCAL_S_MAX: i64 = i32::MAX as i64 - 1;

/// The encoding of deletion times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionTimeForm {
    /// Versions before `oa`.
    Signed,
    /// `oa` and later versions.
    Unsigned,
}

/// One encoded deletion time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionTimeBytes {
    bytes: [u8; 12],
    len: u8,
}

impl DeletionTimeForm {
    /// The encoding of a version.
    pub fn of(version: Version) -> DeletionTimeForm {
        if version.has_unsigned_deletion_times() {
            DeletionTimeForm::Unsigned
        } else {
            DeletionTimeForm::Signed
        }
    }

    /// Encodes a deletion time. `None` if the encoding cannot represent it. Unsigned: a negative timestamp, or a local
    /// time before 1970 or after 2106-02-07T06:28:13Z. Signed: a local time before 1970 or after 2038-01-19T03:14:06Z.
    pub fn encode(self, deletion: DeletionTime) -> Option<DeletionTimeBytes> {
        match self {
            DeletionTimeForm::Unsigned => DeletionTimeBytes::new(deletion),
            DeletionTimeForm::Signed => signed_bytes(deletion),
        }
    }

    /// Decodes a deletion time at the start of `bytes`. Returns it and its length in bytes; `None` if `bytes` ends too
    /// early or begins with an impossible flag.
    #[inline]
    pub fn read(self, bytes: &[u8]) -> Option<(DeletionTime, usize)> {
        match self {
            DeletionTimeForm::Unsigned => read_deletion_time(bytes),
            DeletionTimeForm::Signed => read_signed(bytes),
        }
    }
}

impl DeletionTimeBytes {
    /// The greatest length in bytes.
    pub const LENGTH_MAX: usize = 12;

    /// Encodes a deletion time as in `oa` and later versions; see [`DeletionTimeForm::encode`].
    pub fn new(deletion: DeletionTime) -> Option<DeletionTimeBytes> {
        let mut bytes = [0; 12];
        if deletion.is_live() {
            bytes = [LIVE; 12];
            return Some(DeletionTimeBytes { bytes, len: 1 });
        }
        let local_s = u32::try_from(deletion.local_s).ok().filter(|local_s| *local_s < u32::MAX - 1)?;
        let timestamp_us = u64::try_from(deletion.timestamp_us).ok()?;
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&timestamp_us.to_be_bytes());
        low.copy_from_slice(&local_s.to_be_bytes());
        Some(DeletionTimeBytes { bytes, len: 12 })
    }

    /// The bytes to store: 1 or 12.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Decodes a deletion time as in `oa` and later versions; see [`DeletionTimeForm::read`].
#[inline]
pub fn read_deletion_time(bytes: &[u8]) -> Option<(DeletionTime, usize)> {
    let first = *bytes.first()?;
    if first & LIVE != 0 {
        return (first == LIVE).then_some((DeletionTime::LIVE, 1));
    }
    let (timestamp, rest) = bytes.split_first_chunk::<8>()?;
    let (local, _) = rest.split_first_chunk::<4>()?;
    let deletion = DeletionTime {
        timestamp_us: i64::from_be_bytes(*timestamp),
        local_s: i64::from(u32::from_be_bytes(*local)),
    };
    Some((deletion, 12))
}

fn signed_bytes(deletion: DeletionTime) -> Option<DeletionTimeBytes> {
    let local_s = if deletion.is_live() {
        i32::MAX
    } else {
        let range = 0..=SIGNED_LOCAL_S_MAX;
        i32::try_from(deletion.local_s).ok().filter(|local_s| range.contains(&i64::from(*local_s)))?
    };
    let mut bytes = [0; 12];
    let (local, timestamp) = bytes.split_at_mut(4);
    local.copy_from_slice(&local_s.to_be_bytes());
    timestamp.copy_from_slice(&deletion.timestamp_us.to_be_bytes());
    Some(DeletionTimeBytes { bytes, len: 12 })
}

fn read_signed(bytes: &[u8]) -> Option<(DeletionTime, usize)> {
    let (local, rest) = bytes.split_first_chunk::<4>()?;
    let (timestamp, _) = rest.split_first_chunk::<8>()?;
    let local_s = i64::from(i32::from_be_bytes(*local));
    let timestamp_us = i64::from_be_bytes(*timestamp);
    if timestamp_us == i64::MIN {
        return Some((DeletionTime::LIVE, 12));
    }
    let local_s = if local_s < 0 { INVALID_LOCAL_S } else { local_s };
    Some((DeletionTime { timestamp_us, local_s }, 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deletion(timestamp_us: i64, local_s: i64) -> DeletionTime {
        DeletionTime { timestamp_us, local_s }
    }

    #[test]
    fn a_deletion_survives_the_way_back_and_what_has_no_place_is_refused() {
        for kept in [deletion(0, 0), deletion(1_700_000_000_000_000, 4_294_967_293), DeletionTime::LIVE] {
            let bytes = DeletionTimeBytes::new(kept).unwrap();
            let len = bytes.as_slice().len();
            assert_eq!(read_deletion_time(bytes.as_slice()), Some((kept, len)));
            assert_eq!(read_deletion_time(bytes.as_slice().split_last().unwrap().1), None);
        }
        for refused in [deletion(-1, 0), deletion(0, -1), deletion(0, 4_294_967_294), deletion(5, i64::MAX)] {
            assert_eq!(DeletionTimeBytes::new(refused), None);
        }
        assert_eq!(read_deletion_time(&[0x81; 12]), None);
    }

    #[test]
    fn the_signed_form_ends_in_2038_and_takes_any_timestamp() {
        let form = DeletionTimeForm::of(Version::Nb);
        for kept in [deletion(-5, 0), deletion(i64::MAX, 2_147_483_646), DeletionTime::LIVE] {
            let bytes = form.encode(kept).unwrap();
            assert_eq!(form.read(bytes.as_slice()), Some((kept, 12)));
            assert_eq!(form.read(bytes.as_slice().split_last().unwrap().1), None);
        }
        for refused in [deletion(0, -1), deletion(0, 2_147_483_647), deletion(5, i64::MAX)] {
            assert_eq!(form.encode(refused), None);
        }
        let overflown = [&[0x80, 0, 0, 1][..], &7_i64.to_be_bytes()].concat();
        assert_eq!(form.read(&overflown), Some((deletion(7, INVALID_LOCAL_S), 12)));
    }
}
