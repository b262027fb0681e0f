//! How a file's chunks come to be compressed in pieces: where they are asked to begin, and how many are worth it.
//!
//! What a piece holds is not searched for in the pieces before it, so that a chunk in pieces is longer. A chunk now and then is
//! compressed in each way; those up to the next look are in the most pieces that cost no more than a sixteenth.

use super::compressor::{CodecError, Compressor};
use super::effort::Effort;
use super::{lz4, pieces};

/// Chunks from one look at what pieces cost to the next.
const CHUNKS_BETWEEN_LOOKS: u32 = 64;
/// Most that pieces may cost of a chunk's length: one in so many.
const COST_ONE_IN: usize = 16;
/// Bytes from one mark to the next that is kept.
const MARKS_APART: usize = 512;

/// Compresses the chunks of a file.
pub(super) struct Piecework {
    chunk_bytes: usize,
    most: usize,
    /// Least bytes of a piece, from short ones to long ones; none where chunks are compressed whole.
    ways: Vec<usize>,
    /// The one of these that is worth it.
    way: Option<usize>,
    /// Where reads begin in the chunk under way.
    marks: Vec<usize>,
    starts: Vec<usize>,
    memory: Vec<u8>,
    /// Chunks until all ways are looked at again.
    until_look: u32,
}

impl Piecework {
    /// For chunks that are stored as they are if they do not come under `most` bytes.
    pub(super) fn new(compressor: Compressor, chunk_bytes: usize, most: usize) -> Piecework {
        let least = pieces::piece_bytes(chunk_bytes);
        let has_pieces = compressor.has_pieces() && chunk_bytes <= pieces::CHUNK_BYTES_MAX;
        let ways = [least, 2 * least].into_iter().filter(|least| has_pieces && 2 * least <= chunk_bytes);
        Piecework {
            chunk_bytes,
            most,
            ways: ways.collect(),
            way: None,
            marks: Vec::new(),
            starts: Vec::new(),
            memory: Vec::new(),
            until_look: 0,
        }
    }

    /// Reads begin at this place of the chunk under way.
    #[inline]
    pub(super) fn mark(&mut self, at: usize) {
        if at >= self.marks.last().copied().unwrap_or(0) + MARKS_APART && !self.ways.is_empty() {
            self.marks.push(at);
        }
    }

    /// Compresses the chunk under way as `Compressor::compress` does, in pieces if they are worth it: not where they decide whether it
    /// shrinks.
    pub(super) fn compress(
        &mut self,
        compressor: Compressor,
        chunk: &[u8],
        out: &mut [u8],
        effort: &mut Effort,
    ) -> Result<usize, CodecError> {
        if effort.is_full() && self.until_look == 0 && self.has_starts() {
            self.look(compressor, chunk, out)?;
        }
        self.until_look = self.until_look.saturating_sub(1);
        let in_pieces = match self.way.filter(|_| effort.is_full()) {
            Some(least) => self.compress_pieces(least, chunk, out)?,
            None => None,
        };
        self.marks.clear();
        let Some(len) = in_pieces.filter(|len| *len < self.most && Effort::shrinks(chunk.len(), *len)) else {
            return compressor.compress(chunk, out, effort);
        };
        effort.learn(chunk.len(), len);
        Ok(len)
    }

    /// Whether a chunk with these marks would have pieces at all.
    fn has_starts(&mut self) -> bool {
        self.ways.first().copied().is_some_and(|least| self.find_starts(least))
    }

    /// Finds the way that is worth it, by what a chunk takes in each.
    fn look(&mut self, compressor: Compressor, chunk: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
        self.until_look = CHUNKS_BETWEEN_LOOKS;
        let whole = compressor.compress(chunk, out, &mut Effort::default())?;
        self.way = None;
        for way in 0..self.ways.len() {
            let Some(least) = self.ways.get(way).copied() else { break };
            let len = self.compress_pieces(least, chunk, out)?;
            if len.is_some_and(|len| len <= whole + whole / COST_ONE_IN) {
                self.way = Some(least);
                break;
            }
        }
        Ok(())
    }

    /// Compresses a chunk in pieces of so many bytes at least; `None` where there are none, or it does not fit.
    fn compress_pieces(
        &mut self,
        least: usize,
        chunk: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>, CodecError> {
        if !self.find_starts(least) {
            return Ok(None);
        }
        lz4::compress_pieces(chunk, &self.starts, out, &mut self.memory)
    }

    /// Where pieces of so many bytes at least begin; whether any does but the first.
    fn find_starts(&mut self, least: usize) -> bool {
        self.starts.clear();
        for at in &self.marks {
            let last = self.starts.last().copied().unwrap_or(0);
            if *at >= last + least && at + least / 2 <= self.chunk_bytes {
                self.starts.push(*at);
            }
        }
        !self.starts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(piecework: &mut Piecework, chunk: &[u8]) -> usize {
        let mut out = vec![0; Compressor::Lz4.bound(chunk.len())];
        (4_096..chunk.len()).step_by(4_096).for_each(|at| piecework.mark(at));
        let len = piecework.compress(Compressor::Lz4, chunk, &mut out, &mut Effort::default()).unwrap();
        let mut back = vec![0; chunk.len()];
        Compressor::Lz4.decompress(&out[..len], &mut back).unwrap();
        assert!(back == chunk);
        len
    }

    fn whole(chunk: &[u8]) -> usize {
        let mut out = vec![0; Compressor::Lz4.bound(chunk.len())];
        Compressor::Lz4.compress(chunk, &mut out, &mut Effort::default()).unwrap()
    }

    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    fn rows(bytes: usize) -> Vec<u8> {
        let row = |(number, value): (usize, &[u8; 2])| {
            format!("{number:010}{:025}", 7919 * u32::from(value[0]) + 65_537 * u32::from(value[1]))
                .into_bytes()
        };
        noise(2, bytes).as_chunks().0.iter().enumerate().flat_map(row).take(bytes).collect()
    }

    #[test]
    fn pieces_are_given_up_where_they_cost_much_and_looked_at_again() {
        let mut piecework = Piecework::new(Compressor::Lz4, 16_384, usize::MAX);
        // The same noise in each piece, which the pieces behind the first would have for nothing.
        let repeated = noise(1, 4_096).repeat(4);
        let rows = rows(16_384);
        assert_eq!(compressed(&mut piecework, &repeated), whole(&repeated));
        for number in 1..64 {
            assert_eq!(compressed(&mut piecework, &rows), whole(&rows), "chunk {number}");
        }
        let in_pieces = compressed(&mut piecework, &rows);
        assert_ne!(in_pieces, whole(&rows));
        assert!(in_pieces <= whole(&rows) / 16 * 17, "{in_pieces}");
        assert_eq!(piecework.way, Some(4_096));
        // Every second piece is of the one before it, but no chunk's half is of its other.
        let halves: Vec<u8> =
            [noise(3, 4_096), noise(4, 4_096)].iter().flat_map(|piece| piece.repeat(2)).collect();
        for _ in 0..64 {
            compressed(&mut piecework, &halves);
        }
        assert_eq!(piecework.way, Some(8_192));
    }

    #[test]
    fn marks_too_close_to_each_other_or_to_the_end_begin_no_piece() {
        let mut piecework = Piecework::new(Compressor::Lz4, 16_384, usize::MAX);
        for at in [0, 400, 4_000, 4_100, 4_600, 8_000, 8_700, 14_300, 16_383] {
            piecework.mark(at);
        }
        assert_eq!(piecework.marks, [4_000, 4_600, 8_000, 8_700, 14_300, 16_383]);
        let chunk = noise(1, 16_384);
        let mut out = vec![0; Compressor::Lz4.bound(chunk.len())];
        for (least, starts) in [(4_096, &[4_600, 8_700, 14_300][..]), (8_192, &[8_700])] {
            piecework.compress_pieces(least, &chunk, &mut out).unwrap();
            assert_eq!(piecework.starts, starts);
        }
        for (compressor, chunk_bytes) in
            [(Compressor::Snappy, 16_384), (Compressor::Lz4, 4_096), (Compressor::Lz4, 1 << 17)]
        {
            let mut none = Piecework::new(compressor, chunk_bytes, usize::MAX);
            none.mark(8_192);
            assert!(none.marks.is_empty(), "{compressor:?} {chunk_bytes}");
        }
    }

    #[test]
    fn a_chunk_that_hardly_shrinks_is_compressed_whole_and_so_is_one_that_must_come_under_a_length() {
        // A twelfth of it comes again, in another piece.
        let mut hardly = noise(5, 16_384);
        hardly.copy_within(1_000..2_365, 14_000);
        let mut piecework = Piecework::new(Compressor::Lz4, 16_384, usize::MAX);
        let rows = rows(16_384);
        let in_pieces = compressed(&mut piecework, &rows);
        assert_eq!(piecework.way, Some(4_096));
        let mut effort = Effort::default();
        let mut out = vec![0; Compressor::Lz4.bound(16_384)];
        for _ in 0..5 {
            (4_096..16_384).step_by(4_096).for_each(|at| piecework.mark(at));
            let len = piecework.compress(Compressor::Lz4, &hardly, &mut out, &mut effort).unwrap();
            assert_eq!(len, whole(&hardly));
            assert!(effort.is_full(), "it shrinks, whole");
        }
        let mut bounded = Piecework::new(Compressor::Lz4, 16_384, in_pieces);
        assert_eq!(compressed(&mut bounded, &rows), whole(&rows));
        let mut bounded = Piecework::new(Compressor::Lz4, 16_384, in_pieces + 1);
        assert_eq!(compressed(&mut bounded, &rows), in_pieces);
    }

    #[test]
    fn a_chunk_without_a_place_for_pieces_says_nothing_of_what_they_cost() {
        let mut piecework = Piecework::new(Compressor::Lz4, 16_384, usize::MAX);
        let repeated = noise(1, 4_096).repeat(4);
        let mut out = vec![0; Compressor::Lz4.bound(repeated.len())];
        piecework.mark(600);
        piecework.compress(Compressor::Lz4, &repeated, &mut out, &mut Effort::default()).unwrap();
        assert_eq!((piecework.way, piecework.until_look), (None, 0));
        assert_eq!(compressed(&mut piecework, &repeated), whole(&repeated));
        assert_eq!((piecework.way, piecework.until_look), (None, 63));
    }
}
