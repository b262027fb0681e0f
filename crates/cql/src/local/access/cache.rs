//! A small cache whose entries are valid for a fixed time, as those of `AuthCache`.
//!
//! A change of the tables is followed by `forget` or `clear`. A reading that began before it may have the old state, and is not kept
//! then: each of these raises the generation, and `keep` asks for the one that was when the reading began.

use crate::error::Result;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most entries (`roles_cache_max_entries` and its siblings). A full cache is emptied.
const ENTRIES_MAX: usize = 1000;

/// Values by role.
pub(super) struct Cache<V> {
    validity_ns: u64,
    entries: Mutex<Entries<V>>,
    /// How often something was to be forgotten. Changed while `entries` are locked.
    generation: AtomicU64,
}

struct Entries<V> {
    by_role: HashMap<Box<str>, Entry<V>>,
}

struct Entry<V> {
    expires_ns: u64,
    value: Arc<V>,
}

impl<V> Cache<V> {
    /// A cache whose entries are valid for this long.
    pub(super) fn new(validity: Duration) -> Cache<V> {
        let validity_ns = u64::try_from(validity.as_nanos()).unwrap_or(u64::MAX);
        let entries = Mutex::new(Entries { by_role: HashMap::new() });
        Cache { validity_ns, entries, generation: AtomicU64::new(0) }
    }

    /// How often something was to be forgotten.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A value that is still valid, or the one that `read` reads, which is kept.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) fn get_or_read(
        &self,
        role: &str,
        now_ns: u64,
        read: impl FnOnce() -> Result<V>,
    ) -> Result<Arc<V>> {
        let generation = match self.get(role, now_ns) {
            Ok(found) => return Ok(found),
            Err(generation) => generation,
        };
        let value = Arc::new(read()?);
        self.keep((role, now_ns), &value, generation);
        Ok(value)
    }

    /// The same for a value that may be missing; that it is missing is not kept.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) fn get_or_find(
        &self,
        role: &str,
        now_ns: u64,
        read: impl FnOnce() -> Result<Option<V>>,
    ) -> Result<Option<Arc<V>>> {
        let generation = match self.get(role, now_ns) {
            Ok(found) => return Ok(Some(found)),
            Err(generation) => generation,
        };
        let Some(value) = read()?.map(Arc::new) else { return Ok(None) };
        self.keep((role, now_ns), &value, generation);
        Ok(Some(value))
    }

    /// A value that is still valid, or the generation of a reading that begins now.
    fn get(&self, role: &str, now_ns: u64) -> std::result::Result<Arc<V>, u64> {
        let entries = self.entries.lock();
        let found = entries.by_role.get(role).filter(|entry| now_ns < entry.expires_ns);
        found.map(|entry| entry.value.clone()).ok_or(self.generation())
    }

    /// Keeps a value that was read from this time on, unless something was forgotten since.
    fn keep(&self, (role, now_ns): (&str, u64), value: &Arc<V>, generation: u64) {
        if self.validity_ns == 0 {
            return;
        }
        let mut entries = self.entries.lock();
        if self.generation() != generation {
            return;
        }
        if entries.by_role.len() >= ENTRIES_MAX {
            entries.by_role.clear();
        }
        let expires_ns = now_ns.saturating_add(self.validity_ns);
        entries.by_role.insert(role.into(), Entry { expires_ns, value: value.clone() });
    }

    /// Forgets a value; returns whether there was one.
    pub(super) fn forget(&self, role: &str) -> bool {
        let mut entries = self.entries.lock();
        self.generation.fetch_add(1, Ordering::AcqRel);
        entries.by_role.remove(role).is_some()
    }

    /// Forgets all values.
    pub(super) fn clear(&self) {
        let mut entries = self.entries.lock();
        self.generation.fetch_add(1, Ordering::AcqRel);
        entries.by_role.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cache: &Cache<i32>, role: &str, now_ns: u64) -> Option<i32> {
        cache.get(role, now_ns).ok().map(|found| *found)
    }

    #[test]
    fn a_value_is_valid_for_the_time_of_its_cache_and_not_longer() {
        let cache = Cache::new(Duration::from_nanos(10));
        assert_eq!(*cache.get_or_read("a", 100, || Ok(1)).unwrap(), 1);
        assert_eq!(at(&cache, "a", 109), Some(1));
        assert_eq!(at(&cache, "a", 110), None);
        assert_eq!(at(&cache, "b", 100), None);
        assert!(cache.get_or_find("b", 100, || Ok(None)).unwrap().is_none());
        assert_eq!(at(&cache, "b", 100), None);
        cache.clear();
        assert_eq!(at(&cache, "a", 101), None);
        let off = Cache::new(Duration::ZERO);
        off.get_or_read("a", 100, || Ok(1)).unwrap();
        assert_eq!(at(&off, "a", 100), None);
        for role in 0..3 * ENTRIES_MAX {
            cache.get_or_read(&role.to_string(), 0, || Ok(2)).unwrap();
            assert!(cache.entries.lock().by_role.len() <= ENTRIES_MAX);
        }
    }

    /// Each way to read, with each way to forget while it reads.
    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let forgets: [fn(&Cache<i32>); 3] =
            [Cache::clear, |cache| _ = cache.forget("a"), |cache| _ = cache.forget("b")];
        for forget in forgets {
            let cache = Cache::new(Duration::from_secs(1));
            let read = || {
                forget(&cache);
                Ok(1)
            };
            assert_eq!(*cache.get_or_read("a", 0, read).unwrap(), 1);
            assert_eq!(at(&cache, "a", 1), None);
            assert_eq!(cache.get_or_find("a", 0, || read().map(Some)).unwrap().as_deref(), Some(&1));
            assert_eq!(at(&cache, "a", 1), None);
            assert_eq!(*cache.get_or_read("a", 0, || Ok(2)).unwrap(), 2);
            assert_eq!(at(&cache, "a", 1), Some(2));
        }
    }
}
