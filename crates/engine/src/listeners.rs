//! Callbacks that are called when something has happened, until whoever added them goes.

use std::sync::{Arc, Weak};

use parking_lot::RwLock;

/// Callbacks of one kind, such as `dyn Fn() + Send + Sync`.
pub struct Listeners<F: ?Sized>(Arc<RwLock<List<F>>>);

struct List<F: ?Sized> {
    next_number: u64,
    listeners: Vec<(u64, Box<F>)>,
}

impl<F: ?Sized> Default for Listeners<F> {
    fn default() -> Self {
        Listeners(Arc::new(RwLock::new(List { next_number: 0, listeners: Vec::new() })))
    }
}

impl<F: ?Sized + Send + Sync + 'static> Listeners<F> {
    /// Adds a callback for as long as the result lives.
    pub fn add(&self, listener: Box<F>) -> Listening {
        let mut list = self.0.write();
        let number = list.next_number;
        list.next_number += 1;
        list.listeners.push((number, listener));
        let list: Arc<RwLock<List<F>>> = Arc::clone(&self.0);
        let list: Arc<dyn Forgets> = list;
        Listening { list: Some(Arc::downgrade(&list)), number }
    }

    /// Calls each of them by `call`.
    pub fn each(&self, call: impl Fn(&F)) {
        self.0.read().listeners.iter().for_each(|(_, listener)| call(listener));
    }
}

trait Forgets: Send + Sync {
    fn forget(&self, number: u64);
}

impl<F: ?Sized + Send + Sync> Forgets for RwLock<List<F>> {
    fn forget(&self, number: u64) {
        let mut list = self.write();
        let at = list.listeners.iter().position(|(of, _)| *of == number);
        let gone = at.map(|at| list.listeners.swap_remove(at));
        drop(list);
        // Not under the lock: it may hold the last reference to much.
        drop(gone);
    }
}

/// A callback's place among the others. When this is dropped, it is not called any more, and it is dropped too. That waits for
/// callbacks that run, so none of them may drop this.
#[must_use = "the callback ends when this is dropped"]
#[derive(Default)]
pub struct Listening {
    /// `None`: it is never called.
    list: Option<Weak<dyn Forgets>>,
    number: u64,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(list) = self.list.take().and_then(|list| list.upgrade()) {
            list.forget(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_listener_is_called_until_its_place_is_dropped_and_goes_with_it() {
        let listeners = Listeners::<dyn Fn(u64) + Send + Sync>::default();
        let sums: Vec<Arc<AtomicU64>> = (0..3).map(|_| Arc::default()).collect();
        let mut places: Vec<Listening> = sums
            .iter()
            .map(|sum| {
                let sum = Arc::clone(sum);
                listeners.add(Box::new(move |more| _ = sum.fetch_add(more, Ordering::Relaxed)))
            })
            .collect();
        listeners.each(|listener| listener(1));
        drop(places.remove(1));
        listeners.each(|listener| listener(10));
        let sums_now = || sums.iter().map(|sum| sum.load(Ordering::Relaxed)).collect::<Vec<_>>();
        assert_eq!(sums_now(), [11, 1, 11]);
        assert_eq!(Arc::strong_count(&sums[1]), 1, "its callback is gone");
        places.clear();
        listeners.each(|listener| listener(100));
        assert_eq!(sums_now(), [11, 1, 11]);
        drop(listeners);
        drop(Listening::default());
    }
}
