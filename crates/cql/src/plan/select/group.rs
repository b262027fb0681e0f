//! GROUP BY (`GroupMaker`, `DataLimits.CQLGroupByLimits`).
//!
//! Rows arrive in order, so a group ends where the next begins. LIMIT, PER PARTITION LIMIT and pages count groups. The
//! values that identify a group are kept as bytes: the partition key, the first clustering values, the value of a
//! function.

use super::fold::Folding;
use super::paging::{PageEnd, Remaining};
use super::row::{Computing, RowAt};
use super::sort::{Sort, SortBuffer};
use crate::analysis::selection::{GroupBy, Selection, Source};
use crate::answer::RowsOut;
use crate::budget::{RequestBudget, room_for};
use crate::error::Result;
use crate::plan::paging_state::{RowMark, write_mark};
use helenus_engine::read::left_of;
use helenus_model::types::CqlType;

/// The groups of one execution; the last one is open.
pub(super) struct Grouping<'a> {
    by: &'a GroupBy,
    folding: Folding,
    /// Where finished groups are kept if they are to be sorted.
    pub(super) kept: Option<(SortBuffer, &'a Sort)>,
    /// The number of clustering columns of the table.
    clustering_columns: usize,
    /// The most groups in all, in a partition, and in this page.
    limits: GroupLimits<'a>,
    /// Groups finished in this page.
    finished: u64,
    /// The current partition, and the number of groups it may still give.
    partition: Vec<u8>,
    left_in_partition: u64,
    /// The mark of the last row that was added, after which a page may end; empty after a static row without rows.
    last_row: Vec<u8>,
    last: Option<Common>,
}

/// The limits on the number of groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupLimits<'a> {
    /// In all and in each partition.
    pub(super) rest: &'a Remaining,
    /// In this page.
    pub(super) page: u64,
    /// The most groups of the page that are shown, by the statement's limit; the paging state may allow more.
    pub(super) shown: u64,
    /// Bytes of the answer after which a page ends.
    pub(super) page_bytes: usize,
}

/// The values that the rows of a group share, besides the partition.
struct Common {
    clustering: Vec<Option<Vec<u8>>>,
    function: Option<Vec<u8>>,
}

impl Common {
    /// Whether both are of one group. Equal values may have different bytes.
    ///
    /// # Errors
    /// The request has taken too long.
    fn is_of_group(&self, other: &Common, types: &[CqlType], work: &RequestBudget<'_>) -> Result<bool> {
        for ((one, other), ty) in self.clustering.iter().zip(&other.clustering).zip(types) {
            if one == other {
                continue;
            }
            let (Some(one), Some(other)) = (one, other) else { return Ok(false) };
            if work.order(ty, one, other)?.is_ne() {
                return Ok(false);
            }
        }
        Ok(self.function == other.function)
    }
}

/// The effect of adding a row.
pub(super) enum Grouped {
    /// The row is in the open group.
    Added,
    /// The partition has given all its groups.
    EndPartition,
    /// The row begins a group beyond this page.
    EndPage,
}

impl<'a> Grouping<'a> {
    /// Grouping within these limits.
    pub(super) fn new(
        by: &'a GroupBy,
        selection: &Selection,
        (limits, clustering_columns): (GroupLimits<'a>, usize),
    ) -> Grouping<'a> {
        Grouping {
            by,
            folding: Folding::new(selection),
            kept: None,
            clustering_columns,
            limits,
            finished: 0,
            partition: Vec::new(),
            left_in_partition: limits.rest.limit_of(&[]),
            last_row: Vec::new(),
            last: None,
        }
    }

    /// The bytes of the groups that are kept until they are sorted, and of the one that is open.
    pub(super) fn kept_bytes(&self) -> usize {
        self.folding.kept_bytes() + self.kept.as_ref().map_or(0, |(kept, _)| kept.bytes())
    }

    /// Whether all groups that were asked for are complete.
    fn is_done(&self) -> bool {
        self.finished >= self.limits.rest.rows_left
    }

    /// Where the page ends, if it is full. Whether more follows is not known: the next page may have no group.
    pub(super) fn page_end(&self, out: &dyn RowsOut) -> Option<PageEnd> {
        (self.finished > 0 && self.page_is_full(out)).then(|| PageEnd {
            key: self.partition.clone(),
            row: (!self.last_row.is_empty()).then(|| RowMark::Values(self.last_row.clone())),
            rows_left: left_of(self.limits.rest.rows_left, self.finished),
            left_in_partition: self.left_in_partition,
            // Groups count, and an open one has rows.
            has_given: true,
        })
    }

    fn page_is_full(&self, out: &dyn RowsOut) -> bool {
        self.finished >= self.limits.page || out.bytes() >= self.limits.page_bytes
    }

    /// Adds a row to its group.
    ///
    /// # Errors
    /// A function inside refuses its arguments.
    pub(super) fn add(
        &mut self,
        selection: &Selection,
        row: &RowAt<'_>,
        computing: &Computing<'_>,
        (out, scratch): (&mut dyn RowsOut, &mut Vec<u8>),
    ) -> Result<Grouped> {
        let common = self.common(row, computing, scratch)?;
        let is_new_partition = self.partition != row.key;
        let is_next = match (&common, &self.last) {
            (Some(common), Some(last)) => {
                !common.is_of_group(last, &self.by.clustering, computing.calls.work)?
            }
            _ => true,
        };
        if is_new_partition || is_next {
            self.finish(selection, computing, out)?;
            if self.is_done() || self.page_is_full(out) {
                return Ok(Grouped::EndPage);
            }
            if is_new_partition {
                self.partition.clear();
                self.partition.extend_from_slice(row.key);
                self.left_in_partition = self.limits.rest.limit_of(row.key);
            }
            if self.left_in_partition == 0 {
                return Ok(Grouped::EndPartition);
            }
            self.left_in_partition = left_of(self.left_in_partition, 1);
            self.last = common;
            if let Some((kept, sort)) = &mut self.kept {
                kept.begin_row(sort, row, scratch)?;
            }
        }
        self.folding.add(selection, row, computing, scratch)?;
        if self.limits.page < u64::MAX {
            self.last_row.clear();
            if let Some(row) = row.row {
                write_mark(
                    (0..self.clustering_columns).map(|index| row.clustering(index)),
                    &mut self.last_row,
                );
            }
        }
        Ok(Grouped::Added)
    }

    /// The values that identify the row's group; `None` for a static row without rows, which is a group of its own.
    fn common(
        &self,
        row: &RowAt<'_>,
        computing: &Computing<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Common>> {
        if row.row.is_none() {
            return Ok(None);
        }
        let mut clustering = Vec::with_capacity(self.by.clustering.len());
        for index in 0..self.by.clustering.len() {
            clustering.push(row.value(&Source::Clustering(index), scratch).map(<[u8]>::to_vec));
        }
        let function = match &self.by.function {
            None => None,
            Some((function, _)) => {
                let value = row.selected(function, computing, scratch)?;
                room_for(value.as_deref().map_or(0, <[u8]>::len))?;
                value.map(|value| value.into_owned())
            }
        };
        Ok(Some(Common { clustering, function }))
    }

    /// Ends the open group, if there is one.
    ///
    /// # Errors
    /// A function inside refuses its arguments.
    pub(super) fn finish(
        &mut self,
        selection: &Selection,
        computing: &Computing<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<()> {
        if self.folding.is_empty() {
            return Ok(());
        }
        match &mut self.kept {
            _ if self.finished >= self.limits.shown => self.folding = Folding::new(selection),
            Some((kept, _)) => self.folding.write(selection, computing, kept)?,
            None => self.folding.write(selection, computing, out)?,
        }
        self.finished += 1;
        self.last = None;
        Ok(())
    }
}
