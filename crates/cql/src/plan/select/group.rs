//! Rows made groups (`GroupMaker`, `DataLimits.CQLGroupByLimits`).
//!
//! Rows come in order, so that a group ends where the next begins; LIMIT, PER PARTITION LIMIT and pages count groups. What
//! a group has in common is kept as bytes: the partition's key, the first clustering values, a function's value.

use super::fold::Folding;
use super::row::{Computing, RowAt};
use super::sort::{Kept, Sort};
use crate::analysis::selection::{GroupBy, Selection, Source};
use crate::backend::RowsOut;
use crate::error::Result;
use helenus_model::types::CqlType;

/// Groups of one execution, the last of them open.
pub(super) struct Grouping<'a> {
    by: &'a GroupBy,
    folding: Folding,
    /// Where finished groups go, if they wait to be sorted.
    pub(super) kept: Option<(Kept, &'a Sort)>,
    /// How many groups may be given in all, of a partition, and in this page.
    limits: GroupLimits,
    /// Groups finished, those of earlier pages included.
    pub(super) finished: u64,
    finished_in_page: u64,
    /// Groups of the partition at hand, the open one included.
    pub(super) in_partition: u64,
    pub(super) partition: Vec<u8>,
    last: Option<Common>,
}

/// How many groups there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupLimits {
    pub(super) all: u64,
    pub(super) per_partition: u64,
    pub(super) page: u64,
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
    /// `resumed` is the partition that an earlier page ended in, and its groups; `finished` counts all of them.
    pub(super) fn new(
        by: &'a GroupBy,
        selection: &Selection,
        limits: GroupLimits,
        (finished, resumed): (u64, Option<(&[u8], u64)>),
    ) -> Grouping<'a> {
        let (partition, in_partition) =
            resumed.map_or((Vec::new(), 0), |(key, groups)| (key.to_vec(), groups));
        Grouping {
            by,
            folding: Folding::new(selection),
            kept: None,
            limits,
            finished,
            finished_in_page: 0,
            in_partition,
            partition,
            last: None,
        }
    }

    /// Whether all groups that were asked for have been given.
    pub(super) fn is_done(&self) -> bool {
        self.finished >= self.limits.all
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
            let is_page = self.finished_in_page >= self.limits.page || out.bytes() >= self.limits.page_bytes;
            if self.is_done() || is_page {
                return Ok(Grouped::EndPage);
            }
            if is_new_partition {
                self.partition.clear();
                self.partition.extend_from_slice(row.key);
                self.in_partition = 0;
            }
            if self.in_partition >= self.limits.per_partition {
                return Ok(Grouped::EndPartition);
            }
            self.in_partition += 1;
            self.last = common;
            if let Some((kept, sort)) = &mut self.kept {
                kept.begin_row(sort, row, scratch);
            }
        }
        self.folding.add(selection, row, computing, scratch)?;
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
            Some((kept, _)) => self.folding.write(selection, computing, kept)?,
            None => self.folding.write(selection, computing, out)?,
        }
        self.finished += 1;
        self.finished_in_page += 1;
        self.last = None;
        Ok(())
    }
}
