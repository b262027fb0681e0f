//! A deletion time as `oa` and `da` store it: one byte 0x80 for "nothing deleted", else the timestamp in microseconds
//! (big endian, not negative) and the local time in seconds, unsigned 32 bits (Cassandra's `DeletionTime.Serializer`).

#![deny(clippy::indexing_slicing)]

use helenus_model::deletion::DeletionTime;

const LIVE: u8 = 0x80;

/// The stored form of one deletion time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionTimeBytes {
    bytes: [u8; 12],
    live: bool,
}

impl DeletionTimeBytes {
    /// Bytes of the longest form.
    pub const LENGTH_MAX: usize = 12;

    /// Encodes. `None` if the format has no place for the value: a negative timestamp, or a local time before 1970 or
    /// after 2106-02-07T06:28:13Z.
    pub fn new(deletion: DeletionTime) -> Option<DeletionTimeBytes> {
        let mut bytes = [0; 12];
        if deletion.is_live() {
            bytes = [LIVE; 12];
            return Some(DeletionTimeBytes { bytes, live: true });
        }
        let local_s = u32::try_from(deletion.local_s).ok().filter(|local_s| *local_s < u32::MAX - 1)?;
        let timestamp_us = u64::try_from(deletion.timestamp_us).ok()?;
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&timestamp_us.to_be_bytes());
        low.copy_from_slice(&local_s.to_be_bytes());
        Some(DeletionTimeBytes { bytes, live: false })
    }

    /// The bytes to store: 1 or 12.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..if self.live { 1 } else { 12 }).unwrap_or_default()
    }
}

/// Reads a deletion time from the front of `bytes`. Returns it with the bytes it took; `None` if `bytes` ends first or
/// begins with an impossible flag.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_survives_the_way_back_and_what_has_no_place_is_refused() {
        let deletion = |timestamp_us, local_s| DeletionTime { timestamp_us, local_s };
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
}
