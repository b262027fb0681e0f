//! A view: the memtables and SSTables of a table at one moment.

use super::token_index::{Matches, TokenIndex};
use crate::error::{Error, Result};
use crate::log_position::LogPosition;
use crate::memtable::{MemoryAccount, Memtable};
use crate::metrics::TableMetrics;
use helenus_model::token::Token;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use std::collections::{BTreeSet, HashSet};
use std::ops::{Deref, Range};
use std::sync::{Arc, Weak};

/// The sources of a table at one moment. A change replaces the whole view; the holder of a view keeps its files open.
#[derive(Clone)]
pub struct View {
    /// Newest first. The first receives the writes; the others are being flushed.
    pub memtables: Vec<Arc<Memtable>>,
    /// Newest data first: by greatest timestamp.
    pub sstables: SsTables,
    /// SSTables that could not be opened. Their content is unknown, so reads fail, and nothing may be purged that one
    /// of them could still contain.
    pub unreadable: Vec<Unreadable>,
    /// An import failed half-way, and its SSTables will come. Nothing may be purged that one of them could contain.
    pub(crate) awaits_files: bool,
    /// The table's metrics of reads and writes.
    pub figures: Arc<TableMetrics>,
    /// The log position after the record that truncated the table; `LogPosition::START` if the table was not truncated
    /// since the start of the process.
    pub(crate) emptied_at: LogPosition,
}

/// An SSTable with a damaged component, or of an unsupported version.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Its name; `None` if the name itself is of an unknown version.
    pub descriptor: Option<Descriptor>,
    /// The file, the position in it, and the cause.
    pub error: Arc<helenus_sstable::Error>,
}

/// The SSTables of a view, newest data first. Cloning shares them.
#[derive(Clone)]
pub struct SsTables(Arc<Ordered>);

struct Ordered {
    list: Vec<Arc<SsTable>>,
    /// `None` for so few SSTables that looking at each costs less.
    index: Option<TokenIndex>,
}

/// The fewest SSTables of a table with an index by token.
const INDEXED_MIN: usize = 8;

/// The SSTables of a view without some of them, kept from one page of a read to the next, because choosing them sorts and
/// indexes all that stay. Holds no memtable: the memory of one is freed when it is flushed.
#[derive(Default)]
pub(crate) struct WithoutSome(Option<Chosen>);

struct Chosen {
    of: Weak<Ordered>,
    /// The number of the set that is left out.
    set: usize,
    stay: SsTables,
}

impl WithoutSome {
    /// The view without the SSTables of a set, whose number no other set has.
    pub(crate) fn of(&mut self, view: &View, (set, left_out): (usize, &BTreeSet<Descriptor>)) -> View {
        let of = Arc::downgrade(&view.sstables.0);
        let stay = match self.0.take() {
            Some(chosen) if chosen.set == set && chosen.of.ptr_eq(&of) => chosen.stay,
            _ => {
                let stays = |table: &&Arc<SsTable>| !left_out.contains(table.descriptor());
                SsTables::new(view.sstables.iter().filter(stays).cloned().collect())
            }
        };
        self.0 = Some(Chosen { of, set, stay: stay.clone() });
        View { sstables: stay, ..view.clone() }
    }
}

impl SsTables {
    fn new(mut list: Vec<Arc<SsTable>>) -> SsTables {
        list.sort_by_key(|table| std::cmp::Reverse(table.stats().timestamp_us_max));
        let index = (list.len() >= INDEXED_MIN).then(|| {
            let tokens: Vec<_> = list.iter().map(|table| table.tokens()).collect();
            TokenIndex::new(&tokens)
        });
        SsTables(Arc::new(Ordered { list, index }))
    }

    /// Positions of the SSTables that may have partitions with a token, ascending: newest data first. The ends of an
    /// SSTable's range are not compared by key.
    #[inline]
    pub fn at(&self, token: Token) -> Positions<'_> {
        match &self.0.index {
            None => Positions::All(0..self.0.list.len()),
            Some(index) => Positions::Found(Found(index.containing(token))),
        }
    }

    /// The same for partitions with a token from `first` to `last`, both included.
    pub fn between(&self, first: Token, last: Token) -> Vec<usize> {
        match &self.0.index {
            None => (0..self.0.list.len()).collect(),
            Some(index) => index.overlapping(first, last).into_iter().map(|number| number as usize).collect(),
        }
    }
}

impl Deref for SsTables {
    type Target = [Arc<SsTable>];

    fn deref(&self) -> &[Arc<SsTable>] {
        &self.0.list
    }
}

impl<'a> IntoIterator for &'a SsTables {
    type Item = &'a Arc<SsTable>;
    type IntoIter = std::slice::Iter<'a, Arc<SsTable>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.list.iter()
    }
}

/// Positions of SSTables in a view.
pub enum Positions<'a> {
    /// All of them.
    All(Range<usize>),
    /// Those that the index by token has found.
    Found(Found<'a>),
}

/// Positions that the index by token has found.
pub struct Found<'a>(Matches<'a>);

impl Iterator for Positions<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        match self {
            Positions::All(range) => range.next(),
            Positions::Found(found) => found.0.next().map(|number| number as usize),
        }
    }
}

impl View {
    /// A view of files only, with an empty memtable.
    pub fn new(account: &MemoryAccount, sstables: Vec<Arc<SsTable>>) -> View {
        let sstables = SsTables::new(sstables);
        let memtables = vec![Arc::new(Memtable::new(account))];
        let (figures, emptied_at) = (Arc::default(), LogPosition::START);
        View { memtables, sstables, unreadable: Vec::new(), awaits_files: false, figures, emptied_at }
    }

    /// The view with a new empty memtable before the existing ones.
    ///
    /// `last_us` is the last server timestamp that was assigned.
    pub(super) fn with_new_memtable(&self, account: &MemoryAccount, last_us: i64) -> View {
        let mut memtables = vec![Arc::new(Memtable::behind(account, last_us))];
        memtables.extend(self.memtables.iter().cloned());
        View { memtables, ..self.clone() }
    }

    /// The memtable that takes the writes.
    pub fn current(&self) -> &Arc<Memtable> {
        &self.memtables[0]
    }

    /// Whether no memtable has anything: all writes so far are in SSTables.
    pub(crate) fn is_flushed(&self) -> bool {
        self.memtables.len() == 1 && self.current().is_empty()
    }

    /// The view after a flush: without the memtable, with its SSTable.
    pub(super) fn with_flushed(&self, memtable: &Arc<Memtable>, written: Option<Arc<SsTable>>) -> View {
        let memtables: Vec<_> =
            self.memtables.iter().filter(|m| !Arc::ptr_eq(m, memtable)).cloned().collect();
        assert!(memtables.len() + 1 == self.memtables.len(), "a memtable is flushed once");
        let sstables = match written {
            None => self.sstables.clone(),
            written => SsTables::new(self.sstables.iter().cloned().chain(written).collect()),
        };
        View { memtables, sstables, ..self.clone() }
    }

    /// Fails if an SSTable could not be opened.
    ///
    /// # Errors
    /// `Unreadable`, for the first such SSTable.
    pub fn check_whole(&self) -> Result<()> {
        match self.unreadable.first() {
            None => Ok(()),
            Some(unreadable) => Err(Error::Unreadable(unreadable.error.clone())),
        }
    }

    /// Whether the table has data of unknown content: an unreadable SSTable, or one that an import has still to add.
    pub(crate) fn has_unknown(&self) -> bool {
        self.awaits_files || !self.unreadable.is_empty()
    }

    /// The smallest timestamp of data outside the readable SSTables: the smallest of the memtables, or `i64::MIN` if
    /// there is data of unknown content. `i64::MAX` if there is no such data.
    pub(crate) fn timestamp_us_min_elsewhere(&self) -> i64 {
        if self.has_unknown() {
            return i64::MIN;
        }
        let memtables = self.memtables.iter().map(|memtable| memtable.stats().timestamp_us_min);
        memtables.min().unwrap_or(i64::MAX)
    }

    /// The view after a compaction: without the old SSTables, with the new ones.
    pub(super) fn with_replaced(&self, old: &[Arc<SsTable>], new: &[Arc<SsTable>]) -> View {
        let old: HashSet<*const SsTable> = old.iter().map(Arc::as_ptr).collect();
        let kept = self.sstables.iter().filter(|table| !old.contains(&Arc::as_ptr(table))).cloned();
        let mut sstables: Vec<_> = kept.collect();
        assert!(sstables.len() + old.len() == self.sstables.len(), "only what is in the view is replaced");
        sstables.extend(new.iter().cloned());
        View { sstables: SsTables::new(sstables), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_without_some_sstables_is_chosen_once_for_all_pages_until_the_set_or_the_files_change() {
        let account = MemoryAccount::default();
        let mut chosen = WithoutSome::default();
        let view = View::new(&account, Vec::new());
        let mut stay = |view: &View, set| chosen.of(view, (set, &BTreeSet::new())).sstables;
        let first = stay(&view, 0);
        // A write, or a new memtable, changes no SSTable.
        let sealed = View { memtables: vec![Arc::new(Memtable::new(&account))], ..view.clone() };
        assert!(Arc::ptr_eq(&first.0, &stay(&sealed, 0).0));
        assert!(!Arc::ptr_eq(&first.0, &stay(&view, 1).0), "another set");
        let second = stay(&view, 0);
        let flushed = View { sstables: SsTables::new(Vec::new()), ..view.clone() };
        assert!(!Arc::ptr_eq(&second.0, &stay(&flushed, 0).0), "other files");
    }
}
