//! Estimates the most requested partitions of a table, for `system_views.top_partitions` and `toppartitions`.
//!
//! One request in `metrics::SAMPLED` is counted, with that weight. A fixed number of keys is kept. A new key replaces
//! the key with the smallest count and continues from that count. So frequent keys stay, and no count is below the
//! number of the key's counted requests (the space-saving algorithm of Metwally, Agrawal and El Abbadi).

use parking_lot::Mutex;

/// The number of keys that are counted.
const KEYS: usize = 64;

/// The longest key that is counted: what is kept stays while the table is there.
const KEY_BYTES_MAX: usize = 256;

/// The counted keys; nothing is allocated before the first.
#[derive(Default)]
pub(crate) struct TopPartitions(Mutex<CountedKeys>);

/// Keys with their counts, in no order. A lookup compares hashes, and the bytes of keys only if the hashes are equal.
#[derive(Default)]
struct CountedKeys {
    /// The hash of each key.
    hashes: Vec<u32>,
    counts: Vec<u64>,
    keys: Vec<Vec<u8>>,
    /// A lower bound of all counts, which only grow.
    floor: u64,
    /// The index where the search for a smallest count continues: the counts before it are above the floor.
    next: usize,
}

/// A partition and the estimated number of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopPartition {
    /// Its serialised key.
    pub key: Vec<u8>,
    /// The estimated requests; never less than those that were counted for the key.
    pub count: u64,
}

impl TopPartitions {
    /// Counts `weight` requests for a key. Keys over `KEY_BYTES_MAX` are not counted.
    pub(crate) fn add(&self, key: &[u8], weight: u64) {
        if key.len() > KEY_BYTES_MAX {
            return;
        }
        let hash = hash_of(key);
        let mut locked = self.0.lock();
        let counted = &mut *locked;
        let at = match counted.find(key, hash) {
            Some(at) => at,
            None if counted.keys.len() < KEYS => {
                counted.hashes.push(hash);
                counted.counts.push(0);
                counted.keys.push(key.to_vec());
                counted.keys.len() - 1
            }
            None => {
                let at = counted.least();
                if let (Some(known), Some(bytes)) = (counted.hashes.get_mut(at), counted.keys.get_mut(at)) {
                    *known = hash;
                    bytes.clear();
                    bytes.extend_from_slice(key);
                }
                at
            }
        };
        if let Some(count) = counted.counts.get_mut(at) {
            *count += weight;
        }
    }

    /// The `most` most frequent keys, the most frequent first.
    pub(crate) fn list(&self, most: usize) -> Vec<TopPartition> {
        let counted = self.0.lock();
        let both = counted.keys.iter().zip(&counted.counts);
        let mut keys: Vec<_> =
            both.map(|(key, count)| TopPartition { key: key.clone(), count: *count }).collect();
        drop(counted);
        keys.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        keys.truncate(most);
        keys
    }
}

impl CountedKeys {
    fn find(&self, key: &[u8], hash: u32) -> Option<usize> {
        // Without an early exit this compiles to a few instructions for all hashes, and mostly there is no match.
        if !self.hashes.iter().fold(false, |found, known| found | (*known == hash)) {
            return None;
        }
        let mut from = 0;
        while let Some(at) = self.hashes.get(from..)?.iter().position(|known| *known == hash) {
            from += at;
            if self.keys.get(from).is_some_and(|known| known == key) {
                return Some(from);
            }
            from += 1;
        }
        None
    }

    /// The index of a key with the smallest count. Each search continues where the last one ended, so that every count
    /// is visited once before the floor rises.
    fn least(&mut self) -> usize {
        let floor = self.floor;
        let rest = self.counts.get(self.next..).unwrap_or_default();
        if let Some(at) = rest.iter().position(|count| *count <= floor) {
            self.next += at;
            return self.next;
        }
        self.floor = self.counts.iter().copied().min().unwrap_or(0);
        self.next = self.counts.iter().position(|count| *count == self.floor).unwrap_or(0);
        self.next
    }
}

/// A hash of a key: mixes eight bytes at a time with a multiplication.
fn hash_of(key: &[u8]) -> u32 {
    let hash = key.chunks(8).fold(key.len() as u64, |hash, piece| {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        (hash.rotate_left(5) ^ u64::from_le_bytes(bytes)).wrapping_mul(0x517C_C1B7_2722_0A95)
    });
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequent_key_stays_however_many_others_pass() {
        let top = TopPartitions::default();
        for number in 0..10_000_u32 {
            top.add(&number.to_be_bytes(), 1);
            if number % 10 == 0 {
                top.add(b"often", 1);
            }
        }
        let first = top.list(1);
        assert_eq!(first.first().map(|found| &found.key[..]), Some(&b"often"[..]));
        assert!(first.first().is_some_and(|found| found.count >= 1000), "{first:?}");
    }

    #[test]
    fn the_place_that_is_taken_is_always_one_of_the_least() {
        let top = TopPartitions::default();
        let mut judge: Vec<(Vec<u8>, u64)> = Vec::new();
        let mut number = 1_u64;
        for _ in 0..20_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // A few frequent keys, and many rare ones.
            let key = ((number >> 33) % (1 + (number >> 57))).to_be_bytes().to_vec();
            top.add(&key, 16);
            match judge.iter().position(|(known, _)| *known == key) {
                Some(at) => judge[at].1 += 16,
                None if judge.len() < KEYS => judge.push((key, 16)),
                None => {
                    let least = judge.iter().map(|(_, count)| *count).min().unwrap();
                    let left: Vec<_> = top.list(KEYS);
                    // The replaced key had the smallest count, and the new one continues from it.
                    let gone =
                        judge.iter().position(|(known, _)| left.iter().all(|one| one.key != *known)).unwrap();
                    assert_eq!(judge[gone].1, least);
                    judge[gone] = (key, least + 16);
                }
            }
        }
        judge.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let found: Vec<_> = top.list(KEYS).into_iter().map(|one| (one.key, one.count)).collect();
        assert_eq!(found, judge);
    }
}
