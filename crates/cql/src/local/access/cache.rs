//! A small cache whose entries are valid for a fixed time, as those of `AuthCache`.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The most entries (`roles_cache_max_entries` and its siblings). A full cache is emptied.
const ENTRIES_MAX: usize = 1000;

/// Values by role.
pub(super) struct Cache<V> {
    validity_ns: u64,
    entries: Mutex<HashMap<Box<str>, Entry<V>>>,
}

struct Entry<V> {
    expires_ns: u64,
    value: Arc<V>,
}

impl<V> Cache<V> {
    /// A cache whose entries are valid for this long.
    pub(super) fn new(validity: Duration) -> Cache<V> {
        let validity_ns = u64::try_from(validity.as_nanos()).unwrap_or(u64::MAX);
        Cache { validity_ns, entries: Mutex::default() }
    }

    /// A value that is still valid.
    pub(super) fn get(&self, role: &str, now_ns: u64) -> Option<Arc<V>> {
        if self.validity_ns == 0 {
            return None;
        }
        let entries = self.entries.lock();
        entries.get(role).filter(|entry| now_ns < entry.expires_ns).map(|entry| entry.value.clone())
    }

    /// Keeps a value that was read at this time.
    pub(super) fn keep(&self, role: &str, value: &Arc<V>, now_ns: u64) {
        if self.validity_ns == 0 {
            return;
        }
        let mut entries = self.entries.lock();
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        let expires_ns = now_ns.saturating_add(self.validity_ns);
        entries.insert(role.into(), Entry { expires_ns, value: value.clone() });
    }

    /// Forgets a value; returns whether there was one.
    pub(super) fn forget(&self, role: &str) -> bool {
        self.entries.lock().remove(role).is_some()
    }

    /// Forgets all values.
    pub(super) fn clear(&self) {
        self.entries.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_valid_for_the_time_of_its_cache_and_not_longer() {
        let cache = Cache::new(Duration::from_nanos(10));
        cache.keep("a", &Arc::new(1), 100);
        assert_eq!(cache.get("a", 109).as_deref(), Some(&1));
        assert_eq!(cache.get("a", 110), None);
        assert_eq!(cache.get("b", 100), None);
        cache.clear();
        assert_eq!(cache.get("a", 101), None);
        let off = Cache::new(Duration::ZERO);
        off.keep("a", &Arc::new(1), 100);
        assert_eq!(off.get("a", 100), None);
        for role in 0..3 * ENTRIES_MAX {
            cache.keep(&role.to_string(), &Arc::new(2), 0);
            assert!(cache.entries.lock().len() <= ENTRIES_MAX);
        }
    }
}
