//! Rows made groups (`GroupMaker`, `DataLimits.CQLGroupByLimits`).
//!
//! Rows come in order, so that a group ends where the next begins; LIMIT, PER PARTITION LIMIT and pages count groups. What
//! a group has in common is kept as bytes: the partition's key, the first clustering values, a function's value.

use super::fold::Folding;
use super::paging::{PageEnd, Rest};
use super::row::{Computing, RowAt};
use super::sort::{Kept, Sort};
use crate::analysis::selection::{GroupBy, Selection, Source};
use crate::backend::RowsOut;
use crate::error::Result;
use crate::plan::paging_state::{RowMark, write_mark};
use helenus_engine::read::left_of;
use helenus_model::types::CqlType;

/// Groups of one execution, the last of them open.
pub(super) struct Grouping<'a> {
    by: &'a GroupBy,
    folding: Folding,
    /// Where finished groups go, if they wait to be sorted.
    pub(super) kept: Option<(Kept, &'a Sort)>,
    /// Clustering columns of the table.
    clustering_columns: usize,
    /// How many groups may be given in all, of a partition, and in this page.
    limits: GroupLimits<'a>,
    /// Groups finished in this page.
    finished: u64,
    /// The partition at hand, and groups that it may still have.
    partition: Vec<u8>,
    left_in_partition: u64,
    /// The mark of the last row that was added, where pages may end; empty after a static row alone.
    last_row: Vec<u8>,
    last: Option<Common>,
}

/// How many groups there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupLimits<'a> {
    /// In all and of each partition.
    pub(super) rest: &'a Rest,
    /// In this page.
    pub(super) page: u64,
    /// Groups of the page that are shown, which the statement's limit says: a state may leave more.
    pub(super) shown: u64,
    /// Bytes of the answer after which a page ends.
    pub(super) page_bytes: usize,
}

/// What the rows of a group have in common beside the partition.
struct Common {
    clustering: Vec<Option<Vec<u8>>>,
    function: Option<Vec<u8>>,
}

impl Common {
    /// Whether they are of one group: values that are equal may have other bytes.
    fn is_of_group(&self, other: &Common, types: &[CqlType]) -> bool {
        let mut values = self.clustering.iter().zip(&other.clustering).zip(types);
        let are_equal = values.all(|((one, other), ty)| match (one, other) {
            (Some(one), Some(other)) => one == other || ty.compare(one, other).is_eq(),
            (one, other) => one == other,
        });
        are_equal && self.function == other.function
    }
}

/// What is to be done with a row.
pub(super) enum Grouped {
    /// It is in the open group.
    Added,
    /// Its partition has all its groups.
    EndPartition,
    /// It begins a group that is not given now.
    EndPage,
}

impl<'a> Grouping<'a> {
    /// Groups within these limits.
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

    /// Whether all groups that were asked for have been given.
    fn is_done(&self) -> bool {
        self.finished >= self.limits.rest.rows_left
    }

    /// Where the page ends, if it is full. Whether anything follows is not known: a page may come that has no group.
    pub(super) fn page_end(&self, out: &dyn RowsOut) -> Option<PageEnd> {
        (self.finished > 0 && self.page_is_full(out)).then(|| PageEnd {
            key: self.partition.clone(),
            row: (!self.last_row.is_empty()).then(|| RowMark::Values(self.last_row.clone())),
            rows_left: left_of(self.limits.rest.rows_left, self.finished),
            left_in_partition: self.left_in_partition,
        })
    }

    fn page_is_full(&self, out: &dyn RowsOut) -> bool {
        self.finished >= self.limits.page || out.bytes() >= self.limits.page_bytes
    }

    /// Adds a row to its group.
    ///
    /// # Errors
    /// A function within refuses its arguments.
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
            (Some(common), Some(last)) => !common.is_of_group(last, &self.by.clustering),
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
                kept.begin_row(sort, row, scratch);
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

    /// What the row's group has in common; `None` for a static row alone, which is a group of its own.
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
                row.selected(function, computing, scratch)?.map(|value| value.into_owned())
            }
        };
        Ok(Some(Common { clustering, function }))
    }

    /// Ends the open group, if there is one.
    ///
    /// # Errors
    /// A function within refuses its arguments.
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
