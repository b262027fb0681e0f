//! Decides how hard LZ4 searches a chunk for matches.
//!
//! Random values, hashes and compressed data do not shrink, and a full search of them costs as much as a search of
//! text. After a chunk that did not shrink, the next chunks get a fast search and the chunks after them none. Then one
//! chunk is searched in full again in case the data has changed. Data that shrinks is always searched in full. The
//! output is ordinary LZ4 in every case. Cassandra always searches in full.

/// LZ4's `acceleration` of a full search.
const FULL: i32 = lzzzz::lz4::ACC_LEVEL_DEFAULT;
/// LZ4's `acceleration` of a fast search.
const SKIMMING: i32 = 8;
/// LZ4's `acceleration` of no search: its first step leads beyond the chunk, so all of the chunk is written as
/// literals.
const PASSING: i32 = 1 << 16;
/// Number of chunks that get a fast search after one that was searched in full and did not shrink.
const SKIMMED: u8 = 3;
/// Number of chunks that get no search if those did not shrink either. It doubles each time, up to `PASSED_MAX`.
const PASSED_MIN: u8 = 12;
const PASSED_MAX: u8 = 60;
/// A chunk counts as shrunk if compression saves more than one byte in this number.
const SHRINKS_BY_ONE_IN: usize = 16;

/// How hard the next chunk of a file is searched.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    next: Search,
    /// Number of chunks that get no search if the next full search and the fast searches after it save nothing.
    passes: u8,
}

#[derive(Clone, Copy, Debug)]
enum Search {
    Full,
    /// A fast search, with the number of chunks left to be searched so, this one included.
    Skim(u8),
    /// No search, with the number of chunks left, this one included.
    Pass(u8),
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { next: Search::Full, passes: PASSED_MIN }
    }
}

impl Effort {
    /// LZ4's `acceleration` for the next chunk.
    pub(super) fn acceleration(self) -> i32 {
        match self.next {
            Search::Full => FULL,
            Search::Skim(_) => SKIMMING,
            Search::Pass(_) => PASSING,
        }
    }

    /// Learns that a chunk of `len` bytes was compressed to `written` bytes.
    pub(super) fn learn(&mut self, len: usize, written: usize) {
        if len.saturating_sub(written) > len / SHRINKS_BY_ONE_IN {
            *self = Effort::default();
            return;
        }
        self.next = match self.next {
            Search::Full => Search::Skim(SKIMMED),
            Search::Skim(1) => {
                let passed = self.passes;
                self.passes = passed.saturating_mul(2).min(PASSED_MAX);
                Search::Pass(passed)
            }
            Search::Pass(1) => Search::Full,
            Search::Skim(left) => Search::Skim(left - 1),
            Search::Pass(left) => Search::Pass(left - 1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_do_not_shrink_are_skimmed_and_then_passed_over_for_longer_and_longer() {
        let mut effort = Effort::default();
        let mut searched = Vec::new();
        for _ in 0..250 {
            searched.push(effort.acceleration());
            effort.learn(16_384, 16_300);
        }
        let full: Vec<usize> = (0..250).filter(|at| searched[*at] == FULL).collect();
        assert_eq!(full, [0, 16, 44, 96, 160, 224]);
        let skimmed = searched.iter().filter(|acceleration| **acceleration == SKIMMING).count();
        assert_eq!(skimmed, 3 * full.len());
    }

    #[test]
    fn data_that_shrinks_is_searched_in_full_from_the_next_chunk_on() {
        let mut effort = Effort::default();
        effort.learn(16_384, 16_384);
        assert_eq!(effort.acceleration(), SKIMMING);
        effort.learn(16_384, 15_000);
        assert_eq!(effort.acceleration(), FULL);
        effort.learn(16_384, 8_000);
        assert_eq!(effort.acceleration(), FULL);
    }

    #[test]
    fn a_chunk_that_is_passed_over_is_literals_and_reads_back() {
        let chunk: Vec<u8> = (0..16_384_u32).map(|i| (i % 7) as u8).collect();
        let mut out = vec![0; lzzzz::lz4::max_compressed_size(chunk.len())];
        let written = lzzzz::lz4::compress(&chunk, &mut out, PASSING).unwrap();
        assert!(written > chunk.len());
        let mut back = vec![0; chunk.len()];
        assert_eq!(lzzzz::lz4::decompress(&out[..written], &mut back).unwrap(), chunk.len());
        assert_eq!(back, chunk);
    }
}
