//! Seeded random numbers: SplitMix64 (Steele, Lea, Flood 2014), whose only state is a counter.

use crate::Random;
use std::sync::atomic::{AtomicU64, Ordering};

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A sequence of random numbers. Shared by reference; each number is returned once.
pub(crate) struct Sequence(AtomicU64);

impl Sequence {
    pub(crate) fn new(seed: u64) -> Sequence {
        Sequence(AtomicU64::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }

    /// A number below `limit`, which is not 0. Slightly biased for a huge limit, which does not matter to tests.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn coin(&self) -> bool {
        self.next() >> 63 == 0
    }
}

impl Random for Sequence {
    fn fill(&self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes()[..part.len()]);
        }
    }
}

/// Derives a seed for one purpose, so that the draws for one purpose do not affect another.
pub(crate) fn derive(seed: u64, purpose: u64) -> u64 {
    mix(seed ^ mix(purpose.wrapping_add(STEP)))
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
