//! The forecast of a SELECT, for EXPLAIN: what it will do, computed without running it.

use super::prepare::SelectPlan;
use crate::analysis::restrictions::{PartitionSelection, WhereText};
use crate::error::Result;
use crate::plan::Execution;
use helenus_engine::read::{Partitions, ReadCommand};
use helenus_model::filter::ClusteringFilter;
use helenus_model::index::IndexSearch;
use helenus_model::schema::Table;

/// The kind of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadKind {
    /// No partition or row can match.
    Nothing,
    /// The table is virtual: nothing stored is read.
    Virtual,
    /// One row of one partition.
    Point,
    /// Rows named by their whole primary keys.
    Names,
    /// Ranges of rows in given partitions.
    Slice,
    /// Given partitions, each whole.
    Partition,
    /// The partitions of a range of tokens.
    TokenRange,
    /// Every partition.
    RangeScan,
    /// The rows for which an index has entries.
    Index,
}

/// What is known of a SELECT with the values of one execution.
pub(crate) struct Forecast<'p> {
    /// The table.
    pub(crate) table: &'p Table,
    /// Kind of the read.
    pub(crate) kind: ReadKind,
    /// Its WHERE clause, described in words.
    pub(crate) where_text: WhereText,
    /// The engine's command for the first page; `None` if the engine is not asked.
    pub(crate) command: Option<ReadCommand>,
    /// The indexes that may be searched, and the values searched for.
    pub(crate) indexes: Vec<IndexSearch>,
    /// LIMIT; `u64::MAX` without one.
    pub(crate) limit: u64,
    /// PER PARTITION LIMIT.
    pub(crate) per_partition: u64,
    /// Rows are folded into one.
    pub(crate) is_aggregate: bool,
    /// Rows are kept and sorted.
    pub(crate) is_sorted: bool,
    /// The column that ANN orders by.
    pub(crate) nearest: Option<&'p str>,
    /// SELECT DISTINCT.
    pub(crate) is_distinct: bool,
}

impl SelectPlan {
    /// Computes the forecast of the statement.
    ///
    /// # Errors
    /// Invalid values, as `execute`.
    pub(crate) fn forecast(&self, execution: &Execution<'_>) -> Result<Forecast<'_>> {
        let bindings = &execution.bindings;
        let limit = self.bound_limit(self.limit.as_ref(), execution)?;
        let per_partition = self.bound_limit(self.per_partition_limit.as_ref(), execution)?;
        let partitions = self.restrictions.partitions(bindings)?;
        partitions.check_keys()?;
        let rows = self.restrictions.rows(bindings)?;
        let is_virtual = self.is_virtual(execution);
        let command = match partitions {
            PartitionSelection::Read(partitions) if !rows.is_empty && !is_virtual => {
                Some(self.command(partitions, rows.filter, (limit, per_partition), execution.now_s()))
            }
            _ => None,
        };
        let indexes = self.restrictions.index_searches(bindings)?;
        let kind = match &command {
            None if is_virtual => ReadKind::Virtual,
            None => ReadKind::Nothing,
            Some(_) if !indexes.is_empty() => ReadKind::Index,
            Some(command) => self.kind(command),
        };
        Ok(Forecast {
            table: &self.table,
            kind,
            where_text: self.restrictions.where_text(bindings)?,
            command,
            indexes,
            limit,
            per_partition,
            is_aggregate: self.selection.is_aggregate(),
            is_sorted: self.sort.is_some(),
            nearest: self.nearest.as_ref().map(|nearest| &*nearest.column),
            is_distinct: self.distinct,
        })
    }

    fn kind(&self, command: &ReadCommand) -> ReadKind {
        match (&command.partitions, &*command.filter) {
            (Partitions::Range(_), _) if self.restrictions.is_on_token() => ReadKind::TokenRange,
            (Partitions::Range(_), _) => ReadKind::RangeScan,
            (Partitions::Keys(keys), ClusteringFilter::Names(names)) if !self.table.clustering.is_empty() => {
                if keys.len() == 1 && names.len() == 1 {
                    ReadKind::Point
                } else {
                    ReadKind::Names
                }
            }
            // Without clustering columns a partition has one row.
            (Partitions::Keys(keys), _) if self.table.clustering.is_empty() => {
                if keys.len() == 1 {
                    ReadKind::Point
                } else {
                    ReadKind::Names
                }
            }
            _ if self.restrictions.has_clustering_bounds() => ReadKind::Slice,
            _ => ReadKind::Partition,
        }
    }

    /// The page size when EXPLAIN runs the statement to its end; `None`, all rows, if it cannot be paged.
    pub(crate) fn page_rows(&self, asked: Option<u32>) -> Option<u32> {
        const PAGE_ROWS: u32 = 5000;
        let pages = self.sort.is_none() && self.nearest.is_none() && !self.selection.is_aggregate();
        pages.then(|| asked.filter(|rows| *rows > 0).unwrap_or(PAGE_ROWS))
    }
}
