//! Random inputs from a seed, which the test prints. `HELENUS_SEED` sets another seed, `HELENUS_ROUNDS` the number of
//! rounds.

/// A random number generator (SplitMix64).
pub struct Draw(u64);

impl Draw {
    /// A generator with the seed of the environment, or with `seed`.
    pub fn new(test: &str, seed: u64) -> Self {
        let seed = number("HELENUS_SEED").unwrap_or(seed);
        println!("{test}: HELENUS_SEED={seed}");
        Self(seed)
    }

    /// A generator with this seed, whatever the environment says.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }

    /// A random element of a slice.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// The number of rounds of a test: `few`, or that of the environment.
pub fn rounds(few: usize) -> usize {
    number("HELENUS_ROUNDS").map_or(few, |rounds| rounds as usize)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
