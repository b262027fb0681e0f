//! Partial decompression: decides how much of a chunk is decompressed for a read that states its extent.
//!
//! A row looked up by name needs a few kilobytes of a chunk of 16 KiB, so decompression stops after them. If the read
//! goes further after all, the whole chunk is decompressed from its start. Where that happens often (a row index with
//! distant entries, reads that return to a chunk at other positions), chunks are decompressed whole at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts, for one file, the decompression that was saved and that was done twice.
#[derive(Default)]
pub(super) struct PartialDecompression {
    /// Bytes that were not decompressed.
    spared: AtomicU64,
    /// Bytes that were decompressed a second time.
    again: AtomicU64,
}

/// Bytes that may be decompressed twice, beyond those saved, before partial decompression ends for the file.
const TRIAL_BYTES: u64 = 1 << 20;

impl PartialDecompression {
    /// Number of bytes to decompress of a chunk of `whole` bytes if a read wants the first `wanted`.
    pub(super) fn bytes(&self, wanted: usize, whole: usize) -> usize {
        let spared = self.spared.load(Ordering::Relaxed);
        if wanted >= whole || self.again.load(Ordering::Relaxed) > spared + TRIAL_BYTES {
            return whole;
        }
        self.spared.fetch_add((whole - wanted) as u64, Ordering::Relaxed);
        wanted
    }

    /// Reports that the first `bytes` bytes of a chunk were not enough, so that they are decompressed again.
    pub(super) fn extent_too_short(&self, bytes: usize) {
        self.again.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_end_where_more_is_done_again_than_spared() {
        let fronts = PartialDecompression::default();
        assert_eq!(fronts.bytes(usize::MAX, 16384), 16384);
        for _ in 0..1000 {
            assert_eq!(fronts.bytes(8192, 16384), 8192);
            fronts.extent_too_short(4096);
        }
        for _ in 0..1000 {
            fronts.extent_too_short(8192);
        }
        assert_eq!(fronts.bytes(8192, 16384), 16384);
    }
}
