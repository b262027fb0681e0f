//! Enumerates all numbers below a bound once, in an order without a pattern that would favour caches or partitions.

/// A bijection of the numbers below a bound: multiplication by a number near the golden ratio of the bound, modulo the
/// bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permutation {
    count: u64,
    /// The factor, which is coprime to `count`.
    step: u64,
}

impl Permutation {
    /// A bijection of the numbers below `count`.
    pub fn new(count: u64) -> Permutation {
        let near = (u128::from(count) * 618_034 / 1_000_000) as u64;
        let step = (near.max(1)..).find(|step| divisor(*step, count) <= 1).unwrap_or(1);
        Permutation { count: count.max(1), step }
    }

    /// The image of a number.
    pub fn image(&self, number: u64) -> u64 {
        (u128::from(number) * u128::from(self.step) % u128::from(self.count)) as u64
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        for count in [1, 2, 3, 10, 100, 3_001, 5_003, 65_536] {
            let scatter = Permutation::new(count);
            let places: std::collections::BTreeSet<u64> =
                (0..count).map(|number| scatter.image(number)).collect();
            assert_eq!((places.len() as u64, places.last()), (count, Some(&(count - 1))));
        }
    }
}
