//! What may be visible of one cell or row marker, if writes come with timestamps in any order while tombstones are
//! purged. Both judges use it: that of the engine's tests and that of `proof`.
//!
//! The rule, which is Cassandra's with another time of purging (`Cells.reconcile`, `DeletionPurger`):
//! - Of two versions, and of a version and a deletion, the one that comes later decides nothing: reconciliation does. At
//!   equal timestamps a deletion wins.
//! - A version that is there when something stronger arrives is dead for good. A deletion is purged only with all that it
//!   hides.
//! - A version that arrives after something stronger is hidden if that is still there. Live versions are there, and so
//!   are tombstones and expired versions that are not old enough to be purged, unless one that is old enough has taken
//!   them in: a stronger one of the same or of a wider scope.
//! - Otherwise it is either hidden or visible. A compaction that began before may still purge what hides it, so it may
//!   become visible later. Once visible it stays so, like any other version.

/// A version of a cell or row marker.
pub trait Dated: Clone + PartialEq {
    fn timestamp_us(&self) -> i64;
    /// When it expires, or when it was deleted; `NEVER` for neither.
    fn ends_s(&self) -> i64;
    fn is_tombstone(&self) -> bool;
}

pub const NEVER: i64 = i64::MAX;

/// What a deletion covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Cell,
    Column,
    Row,
    Range,
    Partition,
}

/// A deletion, or an expired version.
#[derive(Clone, Copy, Debug)]
pub struct Deletion {
    pub scope: Scope,
    pub timestamp_us: i64,
    /// From when on it may be old enough to be purged.
    pub local_s: i64,
}

/// The moment at which a version arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub now_s: i64,
    /// Compactions until now have purged at most what ended before this time.
    pub purged_before_s: i64,
}

/// The versions of one cell or row marker.
#[derive(Clone, Debug)]
pub struct Slot<V> {
    /// The strongest of those that nothing may hide. It may have expired.
    certain: Option<V>,
    /// Those that are stronger, and either hidden or visible.
    maybe: Vec<V>,
    /// Tombstones and expiring versions that ever arrived.
    ending: Vec<V>,
}

impl<V> Default for Slot<V> {
    fn default() -> Slot<V> {
        Slot { certain: None, maybe: Vec::new(), ending: Vec::new() }
    }
}

impl<V: Dated> Slot<V> {
    /// The version that a read shows, once `adopt` has been told what it showed.
    pub fn visible(&self, now_s: i64) -> Option<&V> {
        self.certain.as_ref().filter(|version| now_s < version.ends_s())
    }

    /// Whether a read may show one of several.
    pub fn is_open(&self) -> bool {
        !self.maybe.is_empty()
    }

    /// A deletion arrives that covers it.
    pub fn delete(&mut self, timestamp_us: i64) {
        self.certain = self.certain.take().filter(|version| version.timestamp_us() > timestamp_us);
        self.maybe.retain(|version| version.timestamp_us() > timestamp_us);
    }

    /// A version arrives. `remains(old, new)`: whether the old one of two remains. `deletions`: those that cover it and
    /// have arrived before, of any timestamp.
    pub fn put(
        &mut self,
        new: V,
        remains: fn(&V, &V) -> bool,
        deletions: impl Iterator<Item = Deletion>,
        at: Arrival,
    ) {
        let is_stronger = |old: &&V| remains(old, &new);
        let of_version = |old: &V| Deletion {
            scope: Scope::Cell,
            timestamp_us: old.timestamp_us(),
            local_s: old.ends_s(),
        };
        let covering = deletions.filter(|deletion| deletion.timestamp_us >= new.timestamp_us());
        let hiding: Vec<Deletion> =
            covering.chain(self.ending.iter().filter(is_stronger).map(of_version)).collect();
        let is_old = |deletion: &Deletion| deletion.local_s < at.purged_before_s;
        let is_taken_in = |by: &Deletion, deletion: &Deletion| {
            is_old(by) && by.scope >= deletion.scope && by.timestamp_us >= deletion.timestamp_us
        };
        let is_there = |deletion: &Deletion| !hiding.iter().any(|by| is_taken_in(by, deletion));
        let is_hidden = hiding.iter().any(|deletion| !is_old(deletion) && is_there(deletion))
            || self.visible(at.now_s).is_some_and(|old| remains(old, &new));
        let may_be_hidden = !hiding.is_empty() || self.maybe.iter().any(|old| remains(old, &new));
        if new.ends_s() != NEVER {
            self.ending.push(new.clone());
        }
        if new.is_tombstone() {
            self.certain = self.certain.take().filter(|old| remains(old, &new));
            self.maybe.retain(|old| remains(old, &new));
        } else if is_hidden {
        } else if may_be_hidden {
            self.maybe.push(new);
        } else {
            self.maybe.retain(|old| remains(old, &new));
            self.certain = Some(new);
        }
    }

    /// A version takes the place of all others.
    pub fn replace(&mut self, version: V) {
        *self = Slot { certain: Some(version), maybe: Vec::new(), ending: std::mem::take(&mut self.ending) };
    }

    /// Whether a read may show this version.
    pub fn may_show(&self, version: &V, now_s: i64) -> bool {
        self.visible(now_s) == Some(version) || self.maybe.contains(version)
    }

    /// Whether a read may show nothing: one of several that are stronger may have been visible, and have expired.
    pub fn may_show_nothing(&self, now_s: i64) -> bool {
        self.visible(now_s).is_none() || self.maybe.iter().any(|version| version.ends_s() <= now_s)
    }

    /// A read has shown this: if it is one of those that may be visible, it is. Where it shows nothing instead of a
    /// certain version, a stronger one was visible and has expired.
    pub fn adopt(&mut self, shown: Option<&V>, remains: fn(&V, &V) -> bool, now_s: i64) {
        let at = match shown {
            Some(shown) => self.maybe.iter().position(|version| version == shown),
            None if self.visible(now_s).is_none() => None,
            None => {
                let weaker = |a: usize, b: usize| if remains(&self.maybe[a], &self.maybe[b]) { b } else { a };
                let expired = |at: &usize| self.maybe[*at].ends_s() <= now_s;
                (0..self.maybe.len()).filter(expired).reduce(weaker)
            }
        };
        if let Some(at) = at {
            let shown = self.maybe.swap_remove(at);
            self.maybe.retain(|other| *other != shown && remains(other, &shown));
            self.certain = Some(shown);
        }
    }
}
