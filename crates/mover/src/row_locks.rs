//! Locks of rows at the target, for whoever reads there before it writes: counters, lists, and what TRUNCATE takes away.
//!
//! The tail, the back-fill and `verify --repair` run at the same time. Two tasks that read a counter before either of them adds would both add
//! the difference, and two that read a list would both append. So each holds the row from its first read to the answer to its last write. A
//! deletion of a partition or of a range of counters holds the partition. TRUNCATE has no timestamp, and holds the table: a row that was read
//! here before it would be brought back by a write behind it.
//!
//! A task holds a table, then a partition, then a row, and asks for none while it holds another; a row includes its partition and its table,
//! shared. The lock comes before `Pace::turn`: a task that waited for a lock with a turn would keep the turn from the holder.
//!
//! A holder that is dropped before the answer to a write, because its task was or the answer is an error, leaves a request that may still be
//! run. What it holds is in doubt then, and the next holder learns until when.

use crate::source::RowName;
use helenus_model::schema::TableId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::Instant;

/// What can be locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Table(TableId),
    /// By its serialised key.
    Partition(TableId, Vec<u8>),
    Row(TableId, RowName),
}

impl Place {
    fn table(&self) -> TableId {
        match self {
            Place::Table(table) | Place::Partition(table, _) | Place::Row(table, _) => *table,
        }
    }

    fn key(&self) -> Option<&[u8]> {
        match self {
            Place::Table(_) => None,
            Place::Partition(_, key) => Some(key),
            Place::Row(_, name) => Some(&name.key),
        }
    }

    /// Whether `other` is this place, or lies within it.
    fn covers(&self, other: &Place) -> bool {
        match self {
            Place::Table(table) => *table == other.table(),
            Place::Partition(table, key) => *table == other.table() && other.key() == Some(key),
            Place::Row(..) => self == other,
        }
    }
}

/// The locks of a run.
#[derive(Clone, Default)]
pub(crate) struct RowLocks(Arc<Mutex<Places>>);

#[derive(Default)]
struct Places {
    /// Those that are held or waited for, with the number of tasks that do so.
    used: HashMap<Place, (Arc<RwLock<()>>, usize)>,
    /// Those whose last holder does not know what its request has done: until when it may be run.
    doubts: HashMap<Place, Instant>,
    /// Doubts that were looked at one by one, for tests.
    #[cfg(test)]
    looks: usize,
}

impl Places {
    /// Until when a request may be run that concerns a place: of what is within it, and of the partition around it, because a deletion of
    /// that concerns its rows. Those who share a table write what has timestamps.
    fn doubt(&mut self, place: &Place) -> Option<Instant> {
        let of_partition = match place {
            Place::Row(table, name) => self.doubts.get(&Place::Partition(*table, name.key.clone())).copied(),
            Place::Table(_) | Place::Partition(..) => None,
        };
        let within = match place {
            Place::Row(..) => self.doubts.get(place).copied(),
            Place::Table(_) | Place::Partition(..) => {
                #[cfg(test)]
                {
                    self.looks += self.doubts.len();
                }
                self.doubts.iter().filter(|(of, _)| place.covers(of)).map(|(_, until)| *until).max()
            }
        };
        within.max(of_partition)
    }

    /// Ends the doubts of a place and of what is within it.
    fn end_doubts(&mut self, place: &Place) {
        match place {
            Place::Row(..) => {
                self.doubts.remove(place);
            }
            Place::Table(_) | Place::Partition(..) => {
                #[cfg(test)]
                {
                    self.looks += self.doubts.len();
                }
                self.doubts.retain(|of, _| !place.covers(of));
            }
        }
    }
}

/// A lock, until it is dropped.
pub(crate) struct RowLock {
    locks: RowLocks,
    place: Place,
    /// Whether others may hold the place at the same time.
    is_shared: bool,
    /// Until when a request of an earlier holder may be run.
    doubt: Option<Instant>,
    /// How long a request of this holder may be run that has no answer.
    in_flight: Option<Duration>,
    _held: Vec<Held>,
}

struct Held {
    // Released before it is counted out.
    _guard: Guard,
    _used: Used,
}

#[expect(dead_code, reason = "held until they are dropped")]
enum Guard {
    Shared(OwnedRwLockReadGuard<()>),
    Alone(OwnedRwLockWriteGuard<()>),
}

/// Counts a task that holds a place or waits for it.
struct Used {
    locks: RowLocks,
    place: Place,
}

impl Drop for Used {
    fn drop(&mut self) {
        let used = &mut self.locks.0.lock().used;
        if let Some((_, tasks)) = used.get_mut(&self.place) {
            *tasks -= 1;
            if *tasks == 0 {
                used.remove(&self.place);
            }
        }
    }
}

impl RowLocks {
    /// Locks a row.
    pub(crate) async fn row(&self, table: TableId, name: &RowName) -> RowLock {
        let outer = [Place::Table(table), Place::Partition(table, name.key.clone())];
        self.lock(&outer, Place::Row(table, name.clone()), false).await
    }

    /// Locks a partition with all its rows.
    pub(crate) async fn partition(&self, table: TableId, key: &[u8]) -> RowLock {
        self.lock(&[Place::Table(table)], Place::Partition(table, key.to_vec()), false).await
    }

    /// Locks a table with all its rows.
    pub(crate) async fn table(&self, table: TableId) -> RowLock {
        self.lock(&[], Place::Table(table), false).await
    }

    /// Keeps others from locking a table alone. It locks no row.
    pub(crate) async fn rows_of(&self, table: TableId) -> RowLock {
        self.lock(&[], Place::Table(table), true).await
    }

    /// Until when a request may be run whose holder has gone; `None` if there is no such request.
    pub(crate) fn doubt(&self) -> Option<Instant> {
        let now = tokio::time::Instant::now();
        self.0.lock().doubts.values().copied().filter(|until| *until > now).max()
    }

    async fn lock(&self, outer: &[Place], place: Place, is_shared: bool) -> RowLock {
        let mut held = Vec::with_capacity(outer.len() + 1);
        for outer in outer {
            held.push(self.hold(outer, true).await);
        }
        held.push(self.hold(&place, is_shared).await);
        // The innermost is released first.
        held.reverse();
        let doubt = self.0.lock().doubt(&place);
        RowLock { locks: self.clone(), place, is_shared, doubt, in_flight: None, _held: held }
    }

    async fn hold(&self, place: &Place, is_shared: bool) -> Held {
        let lock = {
            let mut places = self.0.lock();
            let (lock, tasks) = places.used.entry(place.clone()).or_default();
            *tasks += 1;
            Arc::clone(lock)
        };
        let used = Used { locks: self.clone(), place: place.clone() };
        let guard = match is_shared {
            true => Guard::Shared(lock.read_owned().await),
            false => Guard::Alone(lock.write_owned().await),
        };
        Held { _guard: guard, _used: used }
    }
}

impl RowLock {
    /// Until when a request of an earlier holder may be run; `None` if there is no such request.
    pub(crate) fn doubt(&self) -> Option<Instant> {
        self.doubt
    }

    /// A request of the holder may be run there for this time, whatever becomes of the holder; `None`: no request is under way.
    pub(crate) fn in_flight(&mut self, settle: Option<Duration>) {
        self.in_flight = settle;
    }

    /// Ends it: the effect of all requests, of its holder and of earlier ones, is known.
    pub(crate) fn done(mut self) {
        self.in_flight = None;
        if !self.is_shared {
            self.locks.0.lock().end_doubts(&self.place);
        }
    }
}

impl Drop for RowLock {
    fn drop(&mut self) {
        if let Some(settle) = self.in_flight {
            let until = tokio::time::Instant::now() + settle;
            let mut places = self.locks.0.lock();
            let doubt = places.doubts.entry(self.place.clone()).or_insert(until);
            *doubt = until.max(*doubt);
        }
    }
}

#[cfg(test)]
mod tests;
