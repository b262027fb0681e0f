//! Pieces of an LZ4 chunk that can be decompressed without those before them.
//!
//! A chunk is one LZ4 block, and any reader of Cassandra's files takes it as that. What is written here is searched for matches
//! piece by piece, so that none of a piece's matches lies before it: whoever knows where a piece's first sequence stands begins
//! there. No file says where; who decompresses a chunk the first time finds it in the chunk, and keeps the pieces' checksums too,
//! for the chunk's own is of all its bytes.

use super::compressor::CodecError;
use super::lz4::PREFIX_BYTES;
use super::sequences::{Sequence, Sequences, write_literals_head};
use crate::checksum::crc32;
use std::ops::Range;

/// Most pieces of a chunk.
const PIECES_MAX: usize = 4;
/// Least bytes of a piece: shorter ones shrink too little.
const PIECE_BYTES_MIN: usize = 4 << 10;
/// Longest chunk in pieces: places in it are kept in two bytes.
pub(super) const CHUNK_BYTES_MAX: usize = 1 << 16;
/// Most bytes before the literals of a sequence in such a chunk.
const HEAD_BYTES_MAX: usize = 2 + CHUNK_BYTES_MAX / u8::MAX as usize;

/// Least bytes of a piece of a chunk of so many.
pub(super) fn piece_bytes(chunk_bytes: usize) -> usize {
    (chunk_bytes / PIECES_MAX).max(PIECE_BYTES_MIN)
}

/// Where the pieces of a chunk are. They begin a few bytes before the places where they were asked to: at a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    count: u8,
    /// Where they begin in the stored bytes, behind the prefix, and in the data.
    starts: [(u16, u16); PIECES_MAX],
    /// CRC32 of the stored bytes of each; the first one's with the prefix.
    crcs: [u32; PIECES_MAX],
}

/// What is read of a chunk for a part of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Of the pieces.
    pieces: Range<usize>,
    /// Of the stored bytes, the prefix not counted but with the first piece.
    pub(super) stored: Range<usize>,
    /// Where in the chunk's data it begins.
    pub(super) data_at: usize,
    /// Bytes before the first sequence.
    pub(super) prefix: usize,
}

impl Pieces {
    /// Finds the pieces of a chunk's stored bytes, prefix and all. One piece where there are no others, or the chunk is longer than
    /// places are kept for.
    pub(super) fn find(stored: &[u8], data_bytes: usize) -> Pieces {
        let starts = Self::starts(stored, data_bytes).unwrap_or_default();
        let mut pieces = Pieces { count: 1, starts: [(0, 0); PIECES_MAX], crcs: [0; PIECES_MAX] };
        for (place, start) in pieces.starts.iter_mut().skip(1).zip(&starts) {
            *place = *start;
            pieces.count += 1;
        }
        for number in 0..usize::from(pieces.count) {
            let range = pieces.stored(number..number + 1, stored.len());
            if let Some(crc) = pieces.crcs.get_mut(number) {
                *crc = crc32(stored.get(range).unwrap_or_default());
            }
        }
        pieces
    }

    /// Where pieces but the first begin: at sequences behind which no match lies before them.
    fn starts(stored: &[u8], data_bytes: usize) -> Option<Vec<(u16, u16)>> {
        if stored.len().max(data_bytes) > CHUNK_BYTES_MAX {
            return None;
        }
        let least = piece_bytes(data_bytes) / 4 * 3;
        let mut sequences = Sequences::of(stored.get(PREFIX_BYTES..)?);
        let mut all: Vec<(u16, u16, u16)> = Vec::with_capacity(data_bytes / 8);
        let mut end = 0;
        while let Some(Sequence { at, literals, data_at, source, .. }) = sequences.next().ok()? {
            end = data_at + literals;
            if end > data_bytes {
                return None;
            }
            all.push((at as u16, data_at as u16, source.map_or(u16::MAX, |source| source as u16)));
        }
        if end != data_bytes {
            return None;
        }
        let mut lowest = u16::MAX;
        let mut starts: Vec<(u16, u16)> = Vec::new();
        for (at, data_at, source) in all.iter().rev() {
            lowest = lowest.min(*source);
            if lowest >= *data_at {
                starts.push((*at, *data_at));
            }
        }
        let mut from = 0;
        starts.reverse();
        starts.retain(|(_, data_at)| {
            let is_one =
                usize::from(*data_at) >= from + least && data_bytes - usize::from(*data_at) >= least / 2;
            from = if is_one { usize::from(*data_at) } else { from };
            is_one
        });
        Some(starts)
    }

    /// Whether there is more than one.
    pub(super) fn are_several(&self) -> bool {
        self.count > 1
    }

    /// The pieces that hold a part of the data; `None` if all of them do.
    pub(super) fn part(&self, wanted: &Range<usize>, stored_bytes: usize) -> Option<Part> {
        let starts = self.starts.get(..usize::from(self.count))?;
        let before = |place: usize| starts.partition_point(|(_, data_at)| usize::from(*data_at) < place);
        let first = before(wanted.start + 1).saturating_sub(1);
        let pieces = first..before(wanted.end).max(first + 1);
        if pieces.len() == starts.len() {
            return None;
        }
        Some(Part {
            stored: self.stored(pieces.clone(), stored_bytes),
            data_at: usize::from(starts.get(first)?.1),
            prefix: if first == 0 { PREFIX_BYTES } else { 0 },
            pieces,
        })
    }

    /// Whether these are the stored bytes of a part's pieces.
    pub(super) fn are(&self, part: &Part, bytes: &[u8], stored_bytes: usize) -> bool {
        part.pieces.clone().zip(self.crcs.get(part.pieces.clone()).unwrap_or_default()).all(
            |(number, crc)| {
                let Range { start, end } = self.stored(number..number + 1, stored_bytes);
                let piece = start.checked_sub(part.stored.start).zip(end.checked_sub(part.stored.start));
                piece.and_then(|(from, to)| bytes.get(from..to)).is_some_and(|piece| crc32(piece) == *crc)
            },
        )
    }

    /// Where the stored bytes of pieces are in the chunk's.
    fn stored(&self, pieces: Range<usize>, stored_bytes: usize) -> Range<usize> {
        let start = |number: usize| match self
            .starts
            .get(..usize::from(self.count))
            .and_then(|starts| starts.get(number))
        {
            Some((at, _)) if number > 0 => PREFIX_BYTES + usize::from(*at),
            Some(_) => 0,
            None => stored_bytes,
        };
        start(pieces.start)..start(pieces.end)
    }
}

/// Joins LZ4 blocks of a chunk's pieces to one of the chunk.
pub(super) struct Joined<'a> {
    out: &'a mut [u8],
    len: usize,
    /// The last sequence, which has no match yet.
    last: Option<Sequence>,
}

impl<'a> Joined<'a> {
    /// Writes to the front of `out`.
    pub(super) fn to(out: &'a mut [u8]) -> Joined<'a> {
        Joined { out, len: 0, last: None }
    }

    /// Bytes written.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds the block of the next piece; `None` where it does not fit. Of the last piece nobody asks where its last sequence is.
    pub(super) fn add(&mut self, block: &[u8], is_last: bool) -> Option<()> {
        let mut sequences = Sequences::of(block);
        let Ok(Some(first)) = sequences.next() else { return None };
        // Where what stood at 0 of the block would come to stand.
        let (rest_at, to) = match self.last {
            None => (0, self.len),
            Some(last) => {
                let literals = last.literals + first.literals;
                let match_bits = block.first()? & 15;
                let mut head = [0; HEAD_BYTES_MAX];
                let head_len = write_literals_head(literals, match_bits, &mut head)?;
                let literals_at = last.at + head_len;
                let end = literals_at + last.literals;
                if end > self.out.len() {
                    return None;
                }
                self.out.copy_within(last.literals_at..self.len, literals_at);
                self.out.get_mut(last.at..literals_at)?.copy_from_slice(head.get(..head_len)?);
                self.last = Some(Sequence { literals_at, literals, ..last });
                (first.literals_at, end)
            }
        };
        let rest = block.get(rest_at..)?;
        self.len = to + rest.len();
        self.out.get_mut(to..self.len)?.copy_from_slice(rest);
        if is_last {
            return Some(());
        }
        let mut last = first;
        while let Ok(Some(sequence)) = sequences.next() {
            last = sequence;
        }
        if last != first || self.last.is_none() {
            let moved = |at: usize| to + at - rest_at;
            self.last = Some(Sequence { at: moved(last.at), literals_at: moved(last.literals_at), ..last });
        }
        Some(())
    }
}

/// Compresses a chunk in pieces that begin at `starts`, ascending, and returns the length written; `None` where that does not fit into
/// `out`. `memory` is used again.
pub(super) fn compress(
    input: &[u8],
    starts: &[usize],
    out: &mut [u8],
    memory: &mut Vec<u8>,
) -> Result<Option<usize>, CodecError> {
    let most = lzzzz::lz4::max_compressed_size(input.len());
    if memory.len() < most {
        memory.resize(most, 0);
    }
    let mut joined = Joined::to(out);
    let mut from = 0;
    for to in starts.iter().copied().chain([input.len()]) {
        let Some(piece) = input.get(from..to) else { return Ok(None) };
        let len = lzzzz::lz4::compress(piece, memory, lzzzz::lz4::ACC_LEVEL_DEFAULT);
        let len = len.map_err(|_| CodecError::OutputTooSmall)?;
        if joined.add(memory.get(..len).unwrap_or_default(), to == input.len()).is_none() {
            return Ok(None);
        }
        from = to;
    }
    Ok(Some(joined.len()))
}

#[cfg(test)]
mod tests;
