//! Reads the positions of partitions from the index, along with the data.
//!
//! Nothing protects the indexes of other programs' files, so an entry may be wrong. The data is right where its
//! checksums are. Each partition of the data is therefore matched with an entry near the last match, by its start or by
//! its key, and entries that no partition matches are passed over.

use super::index::{Index, RowIndex, wide};
use crate::block::ReadContext;
use crate::error::Result;
use crate::index_bti::{IndexPosition, PartitionIter, RowIndexEntry};
use std::collections::VecDeque;

/// The number of entries that are compared with a partition: more than one, because an entry may be wrong.
const AHEAD: usize = 8;

/// A partition in the index.
#[derive(Clone, Debug)]
pub(crate) struct IndexedPartition {
    pub(crate) start: u64,
    /// Its key, if the index contains all of it.
    pub(crate) key: Option<Vec<u8>>,
    /// Its row index, if it has one.
    pub(crate) index: Option<RowIndex>,
}

/// A forward read of the index. It ends at damage of the index, which `problem` describes.
pub(crate) struct IndexPositions<'a> {
    index: Option<&'a Index>,
    at: At,
    ahead: VecDeque<IndexedPartition>,
    pub(crate) problem: Option<String>,
}

enum At {
    Nowhere,
    Bti(Box<PartitionIter>),
    /// A position in Index.db.
    Big(u64),
}

impl<'a> IndexPositions<'a> {
    /// Begins at the first partition.
    pub(crate) fn new(index: Option<&'a Index>, cx: &mut ReadContext) -> IndexPositions<'a> {
        let mut problem = None;
        let at = match index {
            None | Some(Index::Absent { .. }) => At::Nowhere,
            Some(Index::Big(_)) => At::Big(0),
            Some(Index::Bti { partitions, .. }) => match partitions.iter_from(None, cx) {
                Ok(iter) => At::Bti(Box::new(iter)),
                Err(error) => {
                    problem = Some(error.to_string());
                    At::Nowhere
                }
            },
        };
        IndexPositions { index, at, ahead: VecDeque::new(), problem }
    }

    /// Finds the entry of the partition that begins at `start` in the data, and whose key is `key` if that is known.
    /// Passes all entries up to it.
    pub(crate) fn pass(
        &mut self,
        start: u64,
        key: Option<&[u8]>,
        cx: &mut ReadContext,
    ) -> Option<IndexedPartition> {
        self.fill(cx);
        let found = self
            .ahead
            .iter()
            .position(|place| place.start == start)
            .or_else(|| self.ahead.iter().position(|place| key.is_some() && place.key.as_deref() == key));
        let Some(found) = found else {
            // A partition that the index does not have, or whose entry is wrong.
            while self.ahead.front().is_some_and(|place| place.start <= start) {
                self.wrong(start);
                self.ahead.pop_front();
                self.fill(cx);
            }
            return None;
        };
        if found > 0 {
            self.wrong(start);
            self.ahead.drain(..found);
        }
        let place = self.ahead.pop_front()?;
        if place.start != start || place.key.as_deref().is_some_and(|own| key.is_some_and(|key| key != own)) {
            self.wrong(start);
        }
        Some(place)
    }

    /// The next entries whose partitions begin behind `position`, in the order of the index. They are not passed.
    pub(crate) fn behind(&mut self, position: u64, cx: &mut ReadContext) -> Vec<IndexedPartition> {
        self.from(position.saturating_add(1), cx)
    }

    /// The next entries whose partitions begin at `position` or behind it.
    pub(crate) fn from(&mut self, position: u64, cx: &mut ReadContext) -> Vec<IndexedPartition> {
        loop {
            self.fill(cx);
            let behind: Vec<_> = self.ahead.iter().filter(|place| place.start >= position).cloned().collect();
            if !behind.is_empty() || self.ahead.is_empty() {
                return behind;
            }
            self.ahead.clear();
        }
    }

    /// The key of the next entry behind `position` that contains one, of those that were read already.
    pub(crate) fn key_behind(&self, position: u64) -> Option<&[u8]> {
        self.ahead.iter().filter(|place| place.start > position).find_map(|place| place.key.as_deref())
    }

    /// Passes the entries that `behind` returns.
    pub(crate) fn pass_ahead(&mut self) {
        self.ahead.clear();
    }

    fn wrong(&mut self, start: u64) {
        let problem =
            || format!("the index is wrong about the partition at byte {start} of the data or one before it");
        self.problem.get_or_insert_with(problem);
    }

    fn fill(&mut self, cx: &mut ReadContext) {
        while self.ahead.len() < AHEAD {
            match self.read(cx) {
                Ok(Some(next)) => self.ahead.push_back(next),
                Ok(None) => return self.at = At::Nowhere,
                Err(error) => {
                    self.at = At::Nowhere;
                    self.problem = Some(error.to_string());
                    return;
                }
            }
        }
    }

    fn read(&mut self, cx: &mut ReadContext) -> Result<Option<IndexedPartition>> {
        loop {
            match (&mut self.at, self.index) {
                (At::Bti(iter), Some(Index::Bti { rows, .. })) => match iter.next(cx)? {
                    None => return Ok(None),
                    Some(IndexPosition::Data(start)) => {
                        return Ok(Some(IndexedPartition { start, key: None, index: None }));
                    }
                    Some(IndexPosition::Rows(at)) => match RowIndexEntry::read(rows, at, cx) {
                        Ok((key, entry)) => {
                            let position = wide(entry);
                            let (start, index) = (position.data, position.index);
                            return Ok(Some(IndexedPartition { start, key: Some(key), index }));
                        }
                        // The trie leads on to the partitions behind it.
                        Err(error) => _ = self.problem.get_or_insert_with(|| error.to_string()),
                    },
                },
                (At::Big(at), Some(Index::Big(index))) => {
                    let (key, found, next) = match index.entry_at(*at, cx) {
                        Ok(Some(entry)) => entry,
                        Ok(None) => return Ok(None),
                        Err(error) => {
                            let Some(next) = index.sample_behind(*at) else { return Err(error) };
                            self.problem.get_or_insert_with(|| error.to_string());
                            *at = next;
                            continue;
                        }
                    };
                    *at = next;
                    let own = found.promoted.map(RowIndex::Big);
                    return Ok(Some(IndexedPartition { start: found.data, key: Some(key), index: own }));
                }
                _ => return Ok(None),
            }
        }
    }
}
