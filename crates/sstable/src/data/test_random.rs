//! Random numbers from a seed, for this crate's unit tests.

/// A generator; equal seeds give equal numbers.
pub(crate) struct Random(pub u64);

impl Random {
    /// A number from 0 to below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// True once in `count` times.
    pub(crate) fn one_of(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}
