//! Appends many values to an answer with one bounds check for all: reserves space for the most bytes that they can
//! take, writes them, and gives the rest back.
//!
//! `RowsWriter::row_batch` calls it for the rows of a batch.

use helenus_model::cell::Span;

/// Bytes that are copied for a short value, whatever its length.
const COPIED: usize = 32;

/// Reserved space, written from its front.
pub struct ReservedSpace<'o>(&'o mut [u8]);

/// Reserves `most` bytes and appends what `write` writes there.
///
/// # Panics
/// If `write` writes more than `most` bytes.
#[inline]
pub fn append(out: &mut Vec<u8>, most: usize, write: impl FnOnce(&mut ReservedSpace<'_>)) {
    let start = out.len();
    out.resize(start + most + COPIED, 0);
    let mut room = ReservedSpace(out.get_mut(start..).unwrap_or_default());
    write(&mut room);
    let left = room.0.len();
    assert!(left >= COPIED, "more was put than there was room made for");
    out.truncate(out.len() - left);
}

impl ReservedSpace<'_> {
    /// Writes bytes.
    ///
    /// # Panics
    /// If there is not enough space.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) {
        let (place, rest) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        place.copy_from_slice(bytes);
        self.0 = rest;
    }

    /// Writes a value of `data`. Bytes of `data` after the value may be written too; the next value overwrites them.
    ///
    /// # Panics
    /// If there is not enough space.
    #[inline(always)]
    pub fn put_span(&mut self, data: &[u8], value: Span) {
        let (start, len) = (value.start as usize, value.len as usize);
        let whole = data.get(start..).and_then(|data| data.first_chunk::<COPIED>()).filter(|_| len <= COPIED);
        let (Some(whole), Some(place)) = (whole, self.0.first_chunk_mut::<COPIED>()) else {
            return self.put(value.bytes(data));
        };
        *place = *whole;
        let (_, rest) = std::mem::take(&mut self.0).split_at_mut(len);
        self.0 = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_one_another_wherever_they_lie_and_nothing_of_what_lies_behind_them_stays() {
        let data: Vec<u8> = (0..100).collect();
        let mut out = vec![7];
        let spans = [(0, 3), (98, 2), (10, 32), (20, 33), (5, 0), (100, 0), (60, 40)];
        let length: u32 = spans.iter().map(|(_, len)| len).sum();
        append(&mut out, length as usize + 2, |room| {
            for (start, len) in spans {
                room.put_span(&data, Span { start, len });
            }
            room.put(&[1, 2]);
        });
        let mut expected = vec![7];
        for (start, len) in spans {
            expected.extend_from_slice(&data[start as usize..][..len as usize]);
        }
        expected.extend_from_slice(&[1, 2]);
        assert_eq!(out, expected);
    }

    #[test]
    fn room_that_is_not_used_goes_back() {
        let mut out = vec![1];
        append(&mut out, 10, |room| room.put(b"ab"));
        assert_eq!(out, b"\x01ab");
    }

    #[test]
    #[should_panic(expected = "more was put than there was room made for")]
    fn more_than_there_is_room_for_is_a_bug_of_who_writes_it() {
        append(&mut Vec::new(), 1, |room| room.put(&[0; 2]));
    }
}
