//! Partial decompression: how much of a chunk is decompressed for a read that says how far it will go.
//!
//! A row looked up by name needs a few kilobytes of a chunk of 16 KiB, so decompression stops behind them. If the read goes
//! further after all, the whole chunk is decompressed from its start. Where that happens often (a row index with distant
//! entries, reads that return to a chunk at other positions) chunks are decompressed whole at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of the fronts of one file.
#[derive(Default)]
pub(super) struct Fronts {
    /// Bytes that were left out.
    spared: AtomicU64,
    /// Bytes that were decompressed again.
    again: AtomicU64,
}

/// Bytes that may be decompressed in vain before anything is concluded from it.
const TRIAL_BYTES: u64 = 1 << 20;

impl Fronts {
    /// Bytes to decompress of a chunk of `whole` bytes of which the first `wanted` are asked for.
    pub(super) fn bytes(&self, wanted: usize, whole: usize) -> usize {
        let spared = self.spared.load(Ordering::Relaxed);
        if wanted >= whole || self.again.load(Ordering::Relaxed) > spared + TRIAL_BYTES {
            return whole;
        }
        self.spared.fetch_add((whole - wanted) as u64, Ordering::Relaxed);
        wanted
    }

    /// A front of so many bytes did not do.
    pub(super) fn fell_short(&self, bytes: usize) {
        self.again.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_end_where_more_is_done_again_than_spared() {
        let fronts = Fronts::default();
        assert_eq!(fronts.bytes(usize::MAX, 16384), 16384);
        for _ in 0..1000 {
            assert_eq!(fronts.bytes(8192, 16384), 8192);
            fronts.fell_short(4096);
        }
        for _ in 0..1000 {
            fronts.fell_short(8192);
        }
        assert_eq!(fronts.bytes(8192, 16384), 16384);
    }
}
