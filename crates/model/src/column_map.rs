//! `ColumnMap`: a map from column names, or from the clusterings of rows, to values in the order of their bytes.
//!
//! There are two implementations, and code that builds a map works with either through a factory. The rows of a
//! memtable are a skip list, because others read them while one thread writes
//! (`engine/src/memtable/concurrent_map.rs`). A map of a single thread that mostly appends in order, such as the rows
//! of a virtual table, is an [`ArrayMap`]: sorted arrays without a node, a pointer or a lock for each entry. The
//! distinction is that of CASSANDRA-2843. Calls are dispatched statically.
//!
//! Reads and compaction use neither: rows stream through `merge` one at a time, and the cells of a row
//! (`RowBuf::cells`) are a sorted array, merged with that of another source in one pass (`reconcile::merge_rows`).

use std::ops::Range;

/// A map in the order of its keys, compared as bytes, with one entry for each key.
pub trait ColumnMap {
    /// Type of the values.
    type Value;

    /// Adds `input` under a key. For a new key the value is what `make` returns; otherwise `reconcile` combines the
    /// existing value with `input`. Returns whether the key is new.
    ///
    /// # Errors
    /// Those of `reconcile`; the map is then unchanged.
    fn add<I, E>(
        &mut self,
        key: &[u8],
        input: I,
        make: impl FnOnce(I) -> Self::Value,
        reconcile: impl FnOnce(&Self::Value, I) -> Result<Self::Value, E>,
    ) -> Result<bool, E>;

    /// Number of keys.
    fn len(&self) -> usize;

    /// Whether the map is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    fn get(&self, key: &[u8]) -> Option<&Self::Value>;

    /// The entries from `start` on, in order.
    fn at_or_after(&self, start: &[u8]) -> impl Iterator<Item = (&[u8], &Self::Value)>;

    /// The entries before `end`, in reverse order.
    fn before(&self, end: &[u8]) -> impl Iterator<Item = (&[u8], &Self::Value)>;
}

/// Makes column maps of one kind.
pub trait ColumnMapFactory<V> {
    /// Type of the maps.
    type Map<'f>: ColumnMap<Value = V>
    where
        Self: 'f;

    /// Makes an empty map.
    fn make(&self) -> Self::Map<'_>;
}

/// A column map for one thread: all keys in one byte array, and an array of entries in the order of the keys. Adding
/// after the last key is an append; adding elsewhere moves the entries after it.
#[derive(Clone, Debug)]
pub struct ArrayMap<V> {
    /// The keys one after the other, in the order in which they were added.
    bytes: Vec<u8>,
    entries: Vec<Entry<V>>,
}

#[derive(Clone, Debug)]
struct Entry<V> {
    start: usize,
    end: usize,
    value: V,
}

/// Makes [`ArrayMap`]s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrays;

impl<V> ColumnMapFactory<V> for Arrays {
    type Map<'f> = ArrayMap<V>;

    fn make(&self) -> ArrayMap<V> {
        ArrayMap::default()
    }
}

impl<V> Default for ArrayMap<V> {
    fn default() -> ArrayMap<V> {
        ArrayMap { bytes: Vec::new(), entries: Vec::new() }
    }
}

impl<V> ArrayMap<V> {
    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn key(&self, entry: &Entry<V>) -> &[u8] {
        &self.bytes[entry.start..entry.end]
    }

    /// The index of a key's entry, or the index at which it would be inserted.
    fn place(&self, key: &[u8]) -> Result<usize, usize> {
        match self.entries.last().map(|last| self.key(last).cmp(key)) {
            None | Some(std::cmp::Ordering::Less) => Err(self.entries.len()),
            Some(std::cmp::Ordering::Equal) => Ok(self.entries.len() - 1),
            Some(std::cmp::Ordering::Greater) => {
                self.entries.binary_search_by(|entry| self.key(entry).cmp(key))
            }
        }
    }

    fn within(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = (&[u8], &V)> {
        self.entries[range].iter().map(|entry| (self.key(entry), &entry.value))
    }
}

impl<V> ColumnMap for ArrayMap<V> {
    type Value = V;

    #[inline]
    fn add<I, E>(
        &mut self,
        key: &[u8],
        input: I,
        make: impl FnOnce(I) -> V,
        reconcile: impl FnOnce(&V, I) -> Result<V, E>,
    ) -> Result<bool, E> {
        match self.place(key) {
            Ok(place) => {
                let entry = &mut self.entries[place];
                entry.value = reconcile(&entry.value, input)?;
                Ok(false)
            }
            Err(place) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(key);
                self.entries.insert(place, Entry { start, end: self.bytes.len(), value: make(input) });
                Ok(true)
            }
        }
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn get(&self, key: &[u8]) -> Option<&V> {
        self.place(key).ok().map(|place| &self.entries[place].value)
    }

    fn at_or_after(&self, start: &[u8]) -> impl Iterator<Item = (&[u8], &V)> {
        let (Ok(first) | Err(first)) = self.place(start);
        self.within(first..self.entries.len())
    }

    fn before(&self, end: &[u8]) -> impl Iterator<Item = (&[u8], &V)> {
        let (Ok(end) | Err(end)) = self.place(end);
        self.within(0..end).rev()
    }
}

/// A test for every kind of column map: compares a map with a `BTreeMap`, adding keys in several orders.
///
/// # Panics
/// If a map of `factory` behaves differently.
#[doc(hidden)]
pub fn check_kind<F: ColumnMapFactory<u64>>(factory: &F) {
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    let orders: [fn(u64) -> u64; 4] =
        [|n| n, |n| 200 - n, |n| n.wrapping_mul(2_654_435_761) % 120, |n| n % 10];
    // Miri would take minutes for all of them.
    let (count, step) = if cfg!(miri) { (30, 60) } else { (200, 1) };
    for order in orders {
        let (mut map, mut model) = (factory.make(), BTreeMap::new());
        assert!(map.is_empty() && map.get(b"").is_none());
        for number in 0..count {
            let key = order(number).to_be_bytes();
            let sum = |present: &u64, number| Ok::<u64, Infallible>(present + number);
            let Ok(is_new) = map.add(&key, number, |number| number, sum);
            assert_eq!(is_new, !model.contains_key(&key));
            model.entry(key).and_modify(|present| *present += number).or_insert(number);
            assert_eq!(map.len(), model.len());
        }
        let failed = map.add(&order(0).to_be_bytes(), 0, |_| 0, |_, _| Err("damaged"));
        assert_eq!(failed, Err("damaged"));
        for probe in (0..=201_u64).step_by(step) {
            let key = probe.to_be_bytes();
            assert_eq!(map.get(&key), model.get(&key));
            let after = map.at_or_after(&key).map(|(key, value)| (key.to_vec(), *value));
            assert!(after.eq(model.range(key..).map(|(key, value)| (key.to_vec(), *value))));
            let before = map.before(&key).map(|(key, value)| (key.to_vec(), *value));
            assert!(before.eq(model.range(..key).rev().map(|(key, value)| (key.to_vec(), *value))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_array_backed_map_keeps_entries_as_a_tree_does() {
        check_kind(&Arrays);
    }
}
