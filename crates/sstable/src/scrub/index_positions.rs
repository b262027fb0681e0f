//! Reads the positions of partitions from the index, along with the data.

use crate::block::ReadContext;
use crate::error::Result;
use crate::index_bti::{IndexPosition, PartitionIter, RowIndexEntry};
use crate::table::{Index, RowIndex, wide};

/// A partition in the index.
#[derive(Clone, Debug)]
pub(super) struct IndexedPartition {
    pub(super) start: u64,
    /// Its key, if the index contains all of it.
    pub(super) key: Option<Vec<u8>>,
    /// Its row index, if it has one.
    pub(super) index: Option<RowIndex>,
}

/// A forward read of the index. It ends at damage of the index, which `problem` describes.
pub(super) struct IndexPositions<'a> {
    index: Option<&'a Index>,
    at: At,
    ahead: Option<IndexedPartition>,
    pub(super) problem: Option<String>,
}

enum At {
    Nowhere,
    Bti(Box<PartitionIter>),
    /// A position in Index.db.
    Big(u64),
}

impl<'a> IndexPositions<'a> {
    /// Begins at the first partition.
    pub(super) fn new(index: Option<&'a Index>, cx: &mut ReadContext) -> IndexPositions<'a> {
        let mut problem = None;
        let at = match index {
            None => At::Nowhere,
            Some(Index::Big(_)) => At::Big(0),
            Some(Index::Bti { partitions, .. }) => match partitions.iter_from(None, cx) {
                Ok(iter) => At::Bti(Box::new(iter)),
                Err(error) => {
                    problem = Some(error.to_string());
                    At::Nowhere
                }
            },
        };
        let mut places = IndexPositions { index, at, ahead: None, problem };
        places.step(cx);
        places
    }

    /// Passes all partitions up to `position`, inclusively. Returns the one that begins there, if the index has one.
    pub(super) fn pass(&mut self, position: u64, cx: &mut ReadContext) -> Option<IndexedPartition> {
        let mut passed = None;
        while self.ahead.as_ref().is_some_and(|ahead| ahead.start <= position) {
            passed = self.step(cx);
        }
        passed.filter(|place| place.start == position)
    }

    /// The start of the next partition.
    pub(super) fn next_start(&self) -> Option<u64> {
        self.ahead.as_ref().map(|ahead| ahead.start)
    }

    /// Returns the next partition, and reads the one after it.
    fn step(&mut self, cx: &mut ReadContext) -> Option<IndexedPartition> {
        let passed = self.ahead.take();
        match self.read(cx) {
            Ok(Some(next)) if passed.as_ref().is_none_or(|passed| passed.start < next.start) => {
                self.ahead = Some(next);
            }
            Ok(Some(next)) => {
                self.stop(format!("the index has partitions out of order at byte {}", next.start))
            }
            Ok(None) => self.at = At::Nowhere,
            Err(error) => self.stop(error.to_string()),
        }
        passed
    }

    fn stop(&mut self, problem: String) {
        self.at = At::Nowhere;
        self.problem = Some(problem);
    }

    fn read(&mut self, cx: &mut ReadContext) -> Result<Option<IndexedPartition>> {
        match (&mut self.at, self.index) {
            (At::Bti(iter), Some(Index::Bti { rows, .. })) => match iter.next(cx)? {
                None => Ok(None),
                Some(IndexPosition::Data(start)) => {
                    Ok(Some(IndexedPartition { start, key: None, index: None }))
                }
                Some(IndexPosition::Rows(at)) => {
                    let (key, entry) = RowIndexEntry::read(rows, at, cx)?;
                    let position = wide(entry);
                    Ok(Some(IndexedPartition { start: position.data, key: Some(key), index: position.index }))
                }
            },
            (At::Big(at), Some(Index::Big(index))) => {
                let Some((key, found, next)) = index.entry_at(*at, cx)? else { return Ok(None) };
                *at = next;
                let own = found.promoted.map(RowIndex::Big);
                Ok(Some(IndexedPartition { start: found.data, key: Some(key), index: own }))
            }
            _ => Ok(None),
        }
    }
}
