//! How hard LZ4 searches a chunk for what it can say shorter.
//!
//! Random values, hashes and what was compressed before do not shrink, and a full search of them costs as much as one of text.
//! So chunks behind one that did not shrink are skimmed; data that shrinks is always searched in full. What is written is
//! read alike. Cassandra always searches in full.

/// LZ4's `acceleration` where a chunk is skimmed.
const SKIMMING: i32 = 8;
/// LZ4's `acceleration` of a full search.
const FULL: i32 = lzzzz::lz4::ACC_LEVEL_DEFAULT;
/// Of chunks that do not shrink, so many in turn are skimmed before one is searched in full, for the data may change.
const SKIMMED_MAX: u8 = 15;
/// A chunk shrinks if it saves one byte in so many.
const SHRINKS_BY_ONE_IN: usize = 16;

/// How hard the next chunk of a file is searched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    /// Chunks to skim before the next full search.
    skim: u8,
}

impl Effort {
    /// LZ4's `acceleration` for the next chunk.
    pub(super) fn acceleration(self) -> i32 {
        if self.skim > 0 { SKIMMING } else { FULL }
    }

    /// A chunk of `len` bytes was written as `written`.
    pub(super) fn learn(&mut self, len: usize, written: usize) {
        self.skim = match self.skim {
            _ if len.saturating_sub(written) > len / SHRINKS_BY_ONE_IN => 0,
            0 => SKIMMED_MAX,
            skim => skim - 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_do_not_shrink_are_skimmed_but_for_one_in_sixteen() {
        let mut effort = Effort::default();
        let mut full = 0;
        for _ in 0..160 {
            full += u32::from(effort.acceleration() == FULL);
            effort.learn(16_384, 16_300);
        }
        assert_eq!(full, 10);
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
}
