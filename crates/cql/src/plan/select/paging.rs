//! Converts the position where a read ended to a paging state, and a paging state to what is left to read.
//!
//! It decides neither the size nor the end of a page: `execute` takes the number of rows from the request, and
//! `engine/src/read/partition.rs` ends the page.
//!
//! The meaning of a state depends on the statement with which it comes (`SinglePartitionPager`, `MultiPartitionPager`,
//! `PartitionRangeQueryPager`). A read of one partition continues after the state's row and ignores its key. A read of
//! several keys continues in the partition of the state's key, at its start if the state has no row, and finds nothing
//! if it does not read that key. A read of a range continues after the row in the partition of that key, or after the
//! partition. The limits are those of the state.

use crate::error::{CqlError, Result};
use crate::plan::paging_state::{PagingState, RowMark};
use helenus_engine::read::{KeyRange, PartitionKey, Partitions, Resume};
use helenus_model::filter::Limits;
use helenus_model::schema::Table;

/// The number of rows of a partition that are counted although nothing limits them.
const COUNTED_MAX: u64 = i32::MAX as u64;

/// The part of a statement's result that begins with this page.
#[derive(Debug)]
pub(super) struct Remaining {
    /// The row, as an ordered position, after which the first partition continues.
    behind: Option<Vec<u8>>,
    /// The key of the first partition, if an earlier page ended in it or before it.
    key: Vec<u8>,
    /// Rows left of the limit. `u64::MAX` means no limit, in all fields.
    pub(super) rows_left: u64,
    /// The most rows of the first partition that this page may return, and the rows that the state leaves of it.
    first: (u64, u64),
    /// The limit of every other partition.
    per_partition: u64,
    /// Whether earlier pages returned rows of the first partition, if one of them ended in it.
    has_given: bool,
    /// Whether the statement reads one partition by its key: its states contain no key.
    is_single: bool,
}

/// Where a page ended: after a row, or after a partition.
#[derive(Debug)]
pub(super) struct PageEnd {
    /// The partition's key.
    pub(super) key: Vec<u8>,
    /// The row; `None`: the partition is finished.
    pub(super) row: Option<RowMark>,
    /// Rows left of the limit.
    pub(super) rows_left: u64,
    /// Rows of the partition that this page could still have returned.
    pub(super) left_in_partition: u64,
    /// Whether rows of the partition were returned, by this page or an earlier one.
    pub(super) has_given: bool,
}

impl Remaining {
    /// The whole result.
    pub(super) fn whole(partitions: Option<&Partitions>, (limit, per_partition): (u64, u64)) -> Remaining {
        Remaining {
            behind: None,
            key: Vec::new(),
            rows_left: limit,
            first: (per_partition, per_partition),
            per_partition,
            has_given: true,
            is_single: matches!(partitions, Some(Partitions::Keys(keys)) if keys.len() == 1),
        }
    }

    /// What a state leaves, and the partitions to read for it; `None`: nothing is left.
    ///
    /// # Errors
    /// No row of the table can have the state's mark; a range is read and the state has no key.
    pub(super) fn behind(
        state: PagingState,
        (partitions, is_virtual): (Partitions, bool),
        table: &Table,
        per_partition: u64,
    ) -> Result<(Option<Partitions>, Remaining)> {
        let mut rest = Remaining::whole(Some(&partitions), (state.rows_left, per_partition));
        if state.rows_left == 0 {
            return Ok((None, rest));
        }
        let (left, has_row) = (state.rows_left_in_partition, state.row.is_some());
        rest.has_given = !state.is_before_rows;
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
            // The first remaining partition has returned no rows yet.
            return Ok((partitions, rest));
        }
        rest.behind = state.row.map(|row| row.position(table)).transpose()?;
        let most = if has_row { left.min(per_partition) } else { per_partition };
        // The rows must be counted, so that the next state can contain the number left.
        rest.first = (if left < u64::MAX { most.min(COUNTED_MAX) } else { most }, left);
        Ok((partitions, rest))
    }

    /// The most rows of a partition that this page may return.
    pub(super) fn limit_of(&self, key: &[u8]) -> u64 {
        if self.key == key { self.first.0 } else { self.per_partition }
    }

    /// The limits for the engine, and where it begins if not at the start.
    pub(super) fn limits(&self, partitions: &Partitions) -> (Limits, Option<Resume>) {
        // In a range the key says where to begin; a list of keys has already been cut.
        let is_begun = matches!(partitions, Partitions::Range(_)) && !self.key.is_empty();
        let resume = (self.behind.is_some() || is_begun).then(|| Resume {
            key: self.key.clone(),
            clustering: self.behind.clone(),
            rows_left: self.rows_left,
            rows_left_in_partition: self.first.0,
            has_given: self.has_given,
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
                let is_before_rows = !end.has_given;
                Some(PagingState { key, row: end.row, rows_left_in_partition: left, is_before_rows, ..state })
            }
        }
    }
}

/// The keys from that of a state on, excluding it if it is finished.
fn rest_of_keys(keys: Vec<PartitionKey>, at: Option<&[u8]>, is_finished: bool) -> Vec<PartitionKey> {
    let first = match (&keys[..], at) {
        ([_], _) => Some(0),
        (_, None) => None,
        (keys, Some(at)) => keys.iter().position(|key| key.bytes == at),
    };
    let first = first.map_or(keys.len(), |first| first + usize::from(is_finished));
    keys.into_iter().skip(first).collect()
}

/// What is left of a range from a key on, or after it; `None`: nothing. It may begin before the range, as in Cassandra.
fn rest_of_range(range: KeyRange, (key, is_begun): (&[u8], bool), is_virtual: bool) -> Option<KeyRange> {
    if is_virtual {
        // Partitions of virtual tables are in the order of their keys, not of their tokens.
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
