//! Where a page begins and ends: paging states made of positions of the read, and the other way round.
//!
//! What a state means, the statement says that it comes back with (`SinglePartitionPager`, `MultiPartitionPager`,
//! `PartitionRangeQueryPager`). A read of one partition goes on behind the state's row, whatever its key. One of several
//! keys goes on in the partition of the state's key, at its start if the state has no row, and finds nothing if that key is
//! none of its own. One of a range goes on behind the row in the partition of that key, or behind the partition. Limits are
//! those of the state.

use crate::error::{CqlError, Result};
use crate::plan::paging_state::{PagingState, RowMark};
use helenus_engine::read::{KeyRange, PartitionKey, Partitions, Resume};
use helenus_model::filter::Limits;
use helenus_model::schema::Table;

/// Rows of a partition that are counted though nothing limits them.
const COUNTED_MAX: u64 = i32::MAX as u64;

/// The part of a statement's answer that begins with a page.
#[derive(Debug)]
pub(super) struct Rest {
    /// The row behind which the first partition goes on, as an ordered position.
    behind: Option<Vec<u8>>,
    /// The key of the first partition, if an earlier page has ended in it or before it.
    key: Vec<u8>,
    /// Rows that are left of the limit. Of all limits `u64::MAX` is none.
    pub(super) rows_left: u64,
    /// Rows that this page may give of the first partition, and rows that the state has left of it.
    first: (u64, u64),
    /// The limit of every other partition.
    per_partition: u64,
    /// Whether the statement reads one partition by its key: its states do not name it.
    is_single: bool,
}

/// Where a page has ended: behind a row, or behind a partition.
#[derive(Debug)]
pub(super) struct PageEnd {
    /// The partition's key.
    pub(super) key: Vec<u8>,
    /// The row; `None`: the partition is finished.
    pub(super) row: Option<RowMark>,
    /// Rows that are left of the limit.
    pub(super) rows_left: u64,
    /// Rows that this page could still have given of the partition.
    pub(super) left_in_partition: u64,
}

impl Rest {
    /// The whole answer.
    pub(super) fn whole(partitions: Option<&Partitions>, (limit, per_partition): (u64, u64)) -> Rest {
        Rest {
            behind: None,
            key: Vec::new(),
            rows_left: limit,
            first: (per_partition, per_partition),
            per_partition,
            is_single: matches!(partitions, Some(Partitions::Keys(keys)) if keys.len() == 1),
        }
    }

    /// What is left behind a state, and the partitions of it; `None`: nothing is left.
    ///
    /// # Errors
    /// The state's row can be none of the table; a range is asked for and the state names no partition.
    pub(super) fn behind(
        state: PagingState,
        (partitions, is_virtual): (Partitions, bool),
        table: &Table,
        per_partition: u64,
    ) -> Result<(Option<Partitions>, Rest)> {
        let mut rest = Rest::whole(Some(&partitions), (state.rows_left, per_partition));
        if state.rows_left == 0 {
            return Ok((None, rest));
        }
        let (left, has_row) = (state.rows_left_in_partition, state.row.is_some());
        let partitions = match partitions {
            Partitions::Keys(keys) => {
                let keys = rest_of_keys(keys, state.key.as_deref(), left == 0);
                rest.key = keys.first().map(|key| key.bytes.clone()).unwrap_or_default();
                (!keys.is_empty()).then_some(Partitions::Keys(keys))
            }
            Partitions::Range(range) => {
                let key = state.key.ok_or_else(no_partition)?;
                let range = rest_of_range(range, (&key, has_row && left > 0), is_virtual);
                rest.key = key;
                range.map(Partitions::Range)
            }
        };
        if left == 0 || partitions.is_none() {
            // The first partition that is left is one that nothing was given of.
            return Ok((partitions, rest));
        }
        rest.behind = state.row.map(|row| row.position(table)).transpose()?;
        let most = if has_row { left.min(per_partition) } else { per_partition };
        // To know how many were given, they are counted.
        rest.first = (if left < u64::MAX { most.min(COUNTED_MAX) } else { most }, left);
        Ok((partitions, rest))
    }

    /// Rows that this page may give of a partition.
    pub(super) fn limit_of(&self, key: &[u8]) -> u64 {
        if self.key == key { self.first.0 } else { self.per_partition }
    }

    /// What the engine is to give at most, and where it begins, if not at the start.
    pub(super) fn limits(&self, partitions: &Partitions) -> (Limits, Option<Resume>) {
        // Of a range the key says where it begins; of keys those are read that are left.
        let is_begun = matches!(partitions, Partitions::Range(_)) && !self.key.is_empty();
        let resume = (self.behind.is_some() || is_begun).then(|| Resume {
            key: self.key.clone(),
            clustering: self.behind.clone(),
            rows_left: self.rows_left,
            rows_left_in_partition: self.first.0,
        });
        let per_partition = if resume.is_some() { self.per_partition } else { self.first.0 };
        (Limits { rows: self.rows_left, per_partition }, resume)
    }

    /// The state of a page that ended here; `None` if that was the last one.
    pub(super) fn state(&self, end: PageEnd, partitions: &Partitions) -> Option<PagingState> {
        let (most, left) =
            if self.key == end.key { self.first } else { (self.per_partition, self.per_partition) };
        let given = most.saturating_sub(end.left_in_partition);
        let left = if left == u64::MAX { left } else { left.saturating_sub(given) };
        let is_finished = end.row.is_none() || left == 0;
        let state = PagingState { rows_left: end.rows_left, ..PagingState::default() };
        if end.rows_left == 0 {
            return None;
        }
        match partitions {
            Partitions::Keys(keys) if is_finished => {
                let next = keys.iter().skip_while(|key| key.bytes != end.key).nth(1)?;
                let (key, rows_left_in_partition) = (Some(next.bytes.clone()), self.per_partition);
                Some(PagingState { key, rows_left_in_partition, ..state })
            }
            Partitions::Range(_) if is_finished => Some(PagingState { key: Some(end.key), ..state }),
            Partitions::Keys(_) | Partitions::Range(_) => {
                let key = (!self.is_single).then_some(end.key);
                Some(PagingState { key, row: end.row, rows_left_in_partition: left, ..state })
            }
        }
    }
}

/// The keys from that of a state on, without it if it is finished.
fn rest_of_keys(keys: Vec<PartitionKey>, at: Option<&[u8]>, is_finished: bool) -> Vec<PartitionKey> {
    let first = match (&keys[..], at) {
        ([_], _) => Some(0),
        (_, None) => None,
        (keys, Some(at)) => keys.iter().position(|key| key.bytes == at),
    };
    let first = first.map_or(keys.len(), |first| first + usize::from(is_finished));
    keys.into_iter().skip(first).collect()
}

/// What is left of a range at a key, or behind it; `None`: nothing. It may begin before the range, as in Cassandra.
fn rest_of_range(range: KeyRange, (key, is_begun): (&[u8], bool), is_virtual: bool) -> Option<KeyRange> {
    if is_virtual {
        // Partitions of virtual tables come in the order of their keys.
        return Some(range);
    }
    let mut start = PartitionKey::new(key.to_vec()).decorated;
    if !is_begun {
        start.push(0);
    }
    (start < range.end).then_some(KeyRange { start, end: range.end })
}

fn no_partition() -> CqlError {
    CqlError::Invalid(
        "Invalid value for the paging state: it is of one partition, and this statement reads many; ask without a paging state"
            .to_owned(),
    )
}
