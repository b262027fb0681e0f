//! The partitions of a table that are asked for most, about.
//!
//! Fed by the requests that `figures` measures, one in sixteen. A fixed number of keys is counted; one that is new takes the
//! place of the least and goes on from its count, so that what is truly frequent stays and no count is too small (the
//! space-saving algorithm of Metwally, Agrawal and El Abbadi).

use parking_lot::Mutex;

/// Keys that are counted.
const KEYS: usize = 64;

/// Counted keys; nothing is allocated before the first.
#[derive(Default)]
pub(crate) struct Top(Mutex<Vec<TopPartition>>);

/// A partition and how often it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopPartition {
    /// Its serialised key.
    pub key: Vec<u8>,
    /// Requests, about: never less than there were.
    pub count: u64,
}

impl Top {
    /// Counts `weight` requests for a key.
    pub(crate) fn add(&self, key: &[u8], weight: u64) {
        let mut keys = self.0.lock();
        if let Some(known) = keys.iter_mut().find(|known| known.key == key) {
            known.count += weight;
        } else if keys.len() < KEYS {
            keys.push(TopPartition { key: key.to_vec(), count: weight });
        } else if let Some(least) = keys.iter_mut().min_by_key(|known| known.count) {
            least.key.clear();
            least.key.extend_from_slice(key);
            least.count += weight;
        }
    }

    /// The keys, the most frequent first, `most` of them.
    pub(crate) fn list(&self, most: usize) -> Vec<TopPartition> {
        let mut keys = self.0.lock().clone();
        keys.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        keys.truncate(most);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequent_key_stays_however_many_others_pass() {
        let top = Top::default();
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
}
