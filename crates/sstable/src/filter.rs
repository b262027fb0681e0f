//! The Bloom filter of a table's partition keys: Filter.db, kept in memory.
//!
//! Layout of the file (Cassandra's `BloomFilterSerializer`): hash count and number of 64-bit words as big endian `i32`,
//! then the bits. Bit `i` is bit `i % 8` of byte `i / 8`; before `na` the eight bytes of each word are in reverse
//! order. Hash `n` of a key is `h2 + n * h1` of its Murmur3 halves, taken modulo the number of bits as signed numbers,
//! then made positive (`BloomFilter.setIndexes`).

use crate::error::{Error, Result};
use crate::sequential_writer::SequentialWriter;
use crate::version::Version;
use helenus_host::prefetch;
use std::path::Path;

/// Bits beyond those that the chance of a false positive requires (`FilterFactory.BITSET_EXCESS`).
const EXCESS_BITS: u64 = 20;

/// A greater hash count in a file is damage; `BloomCalculations` never chooses as many.
const HASH_COUNT_MAX: i32 = 64;

/// A Bloom filter. Cloning copies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// 0 if the filter rules out no key.
    hash_count: u32,
    bits: Box<[u8]>,
}

/// The byte of a key's hash that Partitions.db stores: the lowest byte of the second Murmur3 half
/// (`IFilter.FilterKey.filterHashLowerBits`).
pub fn hash_byte(h2: i64) -> u8 {
    h2 as u8
}

impl Filter {
    /// An empty filter for `keys` keys with a chance of false positives of at most `fp_chance`
    /// (`FilterFactory.getFilter`). A chance of 1 gives a filter that rules nothing out. A chance below that of 20 bits
    /// per key gives 20 bits per key (Cassandra refuses such a chance when the table is created).
    pub fn with_capacity(keys: u64, fp_chance: f64) -> Filter {
        if fp_chance >= 1.0 {
            return Filter::always_present();
        }
        let spec = Spec::for_chance(fp_chance);
        let bits = keys * u64::from(spec.bits_per_key) + EXCESS_BITS;
        let bytes = bits.div_ceil(64) as usize * 8;
        Filter { hash_count: spec.hash_count, bits: vec![0; bytes].into_boxed_slice() }
    }

    /// A filter that rules nothing out, for tables without Filter.db.
    pub fn always_present() -> Filter {
        Filter { hash_count: 0, bits: Box::default() }
    }

    /// Whether the filter can rule anything out. If not, Cassandra writes no Filter.db.
    pub fn is_informative(&self) -> bool {
        self.hash_count > 0
    }

    /// Size of the bits in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bits.len()
    }

    fn indexes(&self, (h1, h2): (i64, i64)) -> impl Iterator<Item = usize> + use<> {
        indexes(h1, h2, self.hash_count, self.bits.len())
    }

    fn set(&mut self, indexes: &[usize]) {
        for index in indexes {
            if let Some(byte) = self.bits.get_mut(index / 8) {
                *byte |= 1 << (index % 8);
            }
        }
    }

    /// Whether the key with these Murmur3 halves may have been added; false is certain.
    pub fn may_contain(&self, h1: i64, h2: i64) -> bool {
        self.indexes((h1, h2))
            .all(|index| self.bits.get(index / 8).is_some_and(|byte| byte & 1 << (index % 8) != 0))
    }

    /// Writes Filter.db in the layout of `version`.
    pub fn write(&self, version: Version, out: &mut SequentialWriter) -> Result<()> {
        out.write(&self.hash_count.to_be_bytes())?;
        out.write(&((self.bits.len() / 8) as u32).to_be_bytes())?;
        if !version.has_filter_words() {
            return out.write(&self.bits);
        }
        let (words, _) = self.bits.as_chunks::<8>();
        words.iter().try_for_each(|word| out.write(&u64::from_le_bytes(*word).to_be_bytes()))
    }

    /// Reads a whole Filter.db in the layout of `version`; `file` is for errors.
    pub fn read(bytes: &[u8], version: Version, file: &Path) -> Result<Filter> {
        let corrupt = |offset, problem: &str| Error::Corrupt {
            file: file.to_owned(),
            offset,
            problem: problem.to_owned(),
        };
        let (head, bits) =
            bytes.split_first_chunk::<8>().ok_or_else(|| corrupt(0, "the filter's head is cut"))?;
        let [a, b, c, d, e, f, g, h] = *head;
        let hash_count = i32::from_be_bytes([a, b, c, d]);
        let words = i32::from_be_bytes([e, f, g, h]);
        if !(1..=HASH_COUNT_MAX).contains(&hash_count) {
            return Err(corrupt(0, "the filter's number of hashes is impossible"));
        }
        if words <= 0 || words as usize * 8 != bits.len() {
            return Err(corrupt(4, "the filter's length is not the file's"));
        }
        let mut bits: Box<[u8]> = bits.into();
        if version.has_filter_words() {
            let (words, _) = bits.as_chunks_mut::<8>();
            words.iter_mut().for_each(|word| word.reverse());
        }
        Ok(Filter { hash_count: hash_count as u32, bits })
    }
}

/// Builds a filter. The bits of a key are spread over all of it: they are prefetched when the key is added, and set a
/// few keys later, when they have arrived.
pub struct FilterBuilder {
    filter: Filter,
    /// The bits of the last keys; a key's slot is its number modulo `KEYS_WAITING`.
    waiting: [Vec<usize>; KEYS_WAITING],
    keys: usize,
}

/// Number of keys whose bits are being prefetched.
const KEYS_WAITING: usize = 4;

impl FilterBuilder {
    /// A builder that begins with an empty filter.
    pub fn new(filter: Filter) -> FilterBuilder {
        FilterBuilder { filter, waiting: Default::default(), keys: 0 }
    }

    /// Adds a key by both halves of its Murmur3 hash.
    pub fn add(&mut self, h1: i64, h2: i64) {
        let Some(place) = self.waiting.get_mut(self.keys % KEYS_WAITING) else { return };
        self.filter.set(place);
        place.clear();
        place.extend(self.filter.indexes((h1, h2)));
        for index in place {
            prefetch(self.filter.bits.get(*index / 8..=*index / 8).unwrap_or_default());
        }
        self.keys += 1;
    }

    /// The filter of all keys.
    pub fn finish(mut self) -> Filter {
        for bits in &self.waiting {
            self.filter.set(bits);
        }
        self.filter
    }
}

fn indexes(h1: i64, h2: i64, count: u32, bytes: usize) -> impl Iterator<Item = usize> {
    let bits = (bytes * 8).max(1) as i64;
    let mut base = h2;
    (0..count).map(move |_| {
        let index = (base % bits).unsigned_abs();
        base = base.wrapping_add(h1);
        index as usize
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spec {
    hash_count: u32,
    bits_per_key: u32,
}

impl Spec {
    /// The fewest bits per key, and then the fewest hashes, with at most this chance
    /// (`BloomCalculations.computeBloomSpec`).
    fn for_chance(fp_chance: f64) -> Spec {
        // Cassandra's trivial case: two hashes, and as number of bits the best hash count for two bits, which is 1.
        if fp_chance >= 0.393 {
            return Spec { hash_count: 2, bits_per_key: 1 };
        }
        for (bits_per_key, chances) in (2u32..).zip(CHANCES) {
            let best = best_hash_count(chances);
            if chances.get(best - 1).is_some_and(|chance| *chance <= fp_chance) {
                let fewest =
                    chances.iter().take(best).rev().take_while(|chance| **chance <= fp_chance).count();
                return Spec { hash_count: (best - fewest + 1) as u32, bits_per_key };
            }
        }
        let best = CHANCES.last().map_or(1, |chances| best_hash_count(chances));
        Spec { hash_count: best as u32, bits_per_key: CHANCES.len() as u32 + 1 }
    }
}

/// The number of hashes, from 1, with the least chance; the first on a tie.
fn best_hash_count(chances: &[f64]) -> usize {
    let mut best = (1, 1.0);
    for (hashes, chance) in (1..).zip(chances) {
        if *chance < best.1 {
            best = (hashes, *chance);
        }
    }
    best.0
}

/// Chance of a false positive: rows are for 2 bits per key and more, columns for 1 hash and more
/// (`BloomCalculations.probs`).
#[rustfmt::skip]
const CHANCES: [&[f64]; 19] = [
    &[0.393, 0.400],
    &[0.283, 0.237, 0.253],
    &[0.221, 0.155, 0.147, 0.160],
    &[0.181, 0.109, 0.092, 0.092, 0.101],
    &[0.154, 0.0804, 0.0609, 0.0561, 0.0578, 0.0638],
    &[0.133, 0.0618, 0.0423, 0.0359, 0.0347, 0.0364],
    &[0.118, 0.0489, 0.0306, 0.024, 0.0217, 0.0216, 0.0229],
    &[0.105, 0.0397, 0.0228, 0.0166, 0.0141, 0.0133, 0.0135, 0.0145],
    &[0.0952, 0.0329, 0.0174, 0.0118, 0.00943, 0.00844, 0.00819, 0.00846],
    &[0.0869, 0.0276, 0.0136, 0.00864, 0.0065, 0.00552, 0.00513, 0.00509],
    &[0.08, 0.0236, 0.0108, 0.00646, 0.00459, 0.00371, 0.00329, 0.00314],
    &[0.074, 0.0203, 0.00875, 0.00492, 0.00332, 0.00255, 0.00217, 0.00199, 0.00194],
    &[0.0689, 0.0177, 0.00718, 0.00381, 0.00244, 0.00179, 0.00146, 0.00129, 0.00121, 0.0012],
    &[0.0645, 0.0156, 0.00596, 0.003, 0.00183, 0.00128, 0.001, 0.000852, 0.000775, 0.000744],
    &[0.0606, 0.0138, 0.005, 0.00239, 0.00139, 0.000935, 0.000702, 0.000574, 0.000505, 0.00047, 0.000459],
    &[0.0571, 0.0123, 0.00423, 0.00193, 0.00107, 0.000692, 0.000499, 0.000394, 0.000335, 0.000302, 0.000287, 0.000284],
    &[0.054, 0.0111, 0.00362, 0.00158, 0.000839, 0.000519, 0.00036, 0.000275, 0.000226, 0.000198, 0.000183, 0.000176],
    &[0.0513, 0.00998, 0.00312, 0.0013, 0.000663, 0.000394, 0.000264, 0.000194, 0.000155, 0.000132, 0.000118, 0.000111, 0.000109],
    &[0.0488, 0.00906, 0.0027, 0.00108, 0.00053, 0.000303, 0.000196, 0.00014, 0.000108, 8.89e-05, 7.77e-05, 7.12e-05, 6.79e-05, 6.71e-05],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_hashes_follow_the_chance_as_in_cassandra() {
        // Printed by BloomCalculations.computeBloomSpec(20, chance) of Cassandra 5.0.6.
        let specs = [
            (0.9, 2, 1),
            (0.393, 2, 1),
            (0.39, 1, 3),
            (0.3, 1, 3),
            (0.25, 2, 3),
            (0.2, 2, 4),
            (0.1, 3, 5),
            (0.05, 3, 7),
            (0.02, 4, 9),
            (0.01, 5, 10),
            (0.005, 5, 12),
            (0.001, 7, 15),
            (0.0005, 10, 16),
            (0.0001, 10, 20),
            (0.00007, 13, 20),
            (0.0000671, 14, 20),
            (0.0, 14, 20),
        ];
        for (chance, hash_count, bits_per_key) in specs {
            assert_eq!(Spec::for_chance(chance), Spec { hash_count, bits_per_key }, "{chance}");
        }
    }

    #[test]
    fn a_filter_that_rules_nothing_out_is_told_from_one_that_does() {
        let (open, closed) = (Filter::with_capacity(10, 1.0), Filter::with_capacity(10, 0.1));
        assert!(!open.is_informative() && open.may_contain(1, 2));
        assert!(closed.is_informative() && !closed.may_contain(1, 2));
        assert_eq!(closed.memory_bytes(), 16);
    }

    #[test]
    fn every_key_that_was_added_is_contained_however_many_they_are() {
        let hash = |key: i64| (key.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed()), !key << 40);
        for keys in 0..20 {
            let mut builder = FilterBuilder::new(Filter::with_capacity(20, 0.01));
            (0..keys).map(hash).for_each(|(h1, h2)| builder.add(h1, h2));
            let filter = builder.finish();
            assert!((0..keys).map(hash).all(|(h1, h2)| filter.may_contain(h1, h2)), "{keys}");
            assert_eq!(filter.bits.iter().all(|byte| *byte == 0), keys == 0);
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = [&[0, 0, 0, 3, 0, 0, 0, 2][..], &[0xFF; 16]].concat();
        assert!(Filter::read(&good, Version::Da, Path::new("f")).is_ok());
        for len in 0..good.len() {
            assert!(Filter::read(&good[..len], Version::Me, Path::new("f")).is_err());
        }
        for (at, value) in [(0, 0x80), (3, 0), (3, 65), (4, 0x80), (4, 1), (7, 3), (7, 0)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(Filter::read(&bad, Version::Da, Path::new("f")).is_err());
        }
    }
}
