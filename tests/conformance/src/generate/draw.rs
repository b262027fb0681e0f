//! Random numbers: SplitMix64 (Steele, Lea, Flood 2014), whose whole state is one number that can be printed.

/// A stream of random choices.
#[derive(Clone, Debug)]
pub struct Draw {
    state: u64,
}

impl Draw {
    /// The stream of a seed and a number within it.
    pub fn new(seed: u64, number: u64) -> Draw {
        let mut draw = Draw { state: seed ^ number.wrapping_mul(0xD134_2543_DE82_EF95) };
        draw.next();
        draw
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Less than `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`.
    pub fn one<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len())]
    }

    /// One of these words.
    pub fn word(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }

    /// Each with `percent` chances, at least one if there is any.
    pub fn some<'c, T>(&mut self, choices: &'c [T], percent: usize) -> Vec<&'c T> {
        let mut taken: Vec<&T> = choices.iter().filter(|_| self.chance(percent)).collect();
        if taken.is_empty() && !choices.is_empty() {
            taken.push(self.one(choices));
        }
        taken
    }
}
