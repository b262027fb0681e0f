//! A plan run against values: its changes go into a collector.

use super::attributes::{check_timestamp, expires_s, timestamp_of};
use super::cells::{changes_nothing, complex_deletions, rounds, write};
use super::collector::Collector;
use super::operation::Operation;
use super::position::{Clustering, RowRange};
use super::prepare::{ModifyKind, ModifyPlan};
use crate::analysis::Bindings;
use crate::error::{CqlError, Result};
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::mutation::Changes;

/// What every cell of one execution shares.
#[derive(Clone, Debug)]
pub(crate) struct WriteContext<'a> {
    /// Timestamp of the write.
    pub(crate) timestamp_us: i64,
    /// The moment of the write.
    pub(crate) now_s: i64,
    /// TTL, 0 for none, and when what is written expires.
    pub(crate) ttl_s: i32,
    pub(crate) expires_s: i64,
    /// The values.
    pub(crate) bindings: Bindings<'a>,
}

impl WriteContext<'_> {
    fn deletion(&self) -> DeletionTime {
        DeletionTime { timestamp_us: self.timestamp_us, local_s: self.now_s }
    }

    fn liveness(&self) -> Liveness {
        let mut liveness = Liveness::at(self.timestamp_us);
        if self.ttl_s != 0 {
            liveness.ttl_s = self.ttl_s;
            liveness.expires_s = self.expires_s;
        }
        liveness
    }
}

impl ModifyPlan {
    /// Adds the changes of one execution to `collector`. `timestamp_us` is that of the request or batch, which USING
    /// overrides.
    ///
    /// # Errors
    /// What is wrong with the values. The collector then holds part of the changes and must be dropped.
    pub(crate) fn apply<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        (timestamp_us, now_s): (i64, i64),
        collector: &mut Collector,
    ) -> Result<()> {
        let keys = self.filter.partition_keys(&self.table, bindings)?;
        let targets = self.targets(bindings)?;
        if targets.are_none() {
            return Ok(());
        }
        let timestamp_us = timestamp_of(self.attributes.timestamp.as_ref(), timestamp_us, bindings)?;
        check_timestamp(timestamp_us)?;
        let ttl_s = match self.kind {
            ModifyKind::Delete => 0,
            ModifyKind::Insert | ModifyKind::Update => self.attributes.ttl_s(&self.table, now_s, bindings)?,
        };
        let expires_s = expires_s(now_s, ttl_s);
        let context = WriteContext { timestamp_us, now_s, ttl_s, expires_s, bindings: bindings.clone() };
        for key in keys {
            let changes = collector.changes(&self.table, key);
            match &targets {
                Targets::Ranges(ranges) => self.delete_ranges(ranges, &context, changes)?,
                Targets::Rows(rows) => {
                    for row in rows {
                        self.change_row(row, &context, changes)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn targets<'a>(&'a self, bindings: &Bindings<'a>) -> Result<Targets<'a>> {
        Ok(if self.filter.is_range {
            Targets::Ranges(self.filter.ranges(&self.table, bindings)?)
        } else {
            Targets::Rows(self.filter.rows(bindings)?)
        })
    }

    fn delete_ranges(
        &self,
        ranges: &[RowRange<'_>],
        context: &WriteContext<'_>,
        changes: &mut Changes,
    ) -> Result<()> {
        if !self.operations.regular.is_empty() || !self.operations.statics.is_empty() {
            return Err(no_ranges_of_columns());
        }
        for range in ranges {
            let start: Vec<Option<&[u8]>> = range.start.0.iter().map(|value| Some(&**value)).collect();
            let end: Vec<Option<&[u8]>> = range.end.0.iter().map(|value| Some(&**value)).collect();
            changes.delete_range((&start, range.start.1), (&end, range.end.1), context.deletion());
        }
        Ok(())
    }

    fn change_row(
        &self,
        row: &Clustering<'_>,
        context: &WriteContext<'_>,
        changes: &mut Changes,
    ) -> Result<()> {
        let operations = &self.operations;
        match self.kind {
            ModifyKind::Delete if operations.regular.is_empty() && operations.statics.is_empty() => {
                if row.is_empty() {
                    changes.delete_partition(context.deletion());
                } else {
                    let values = row.iter().map(|value| Some(&**value));
                    changes.row(values, (Liveness::NONE, context.deletion()), &[], |_| ());
                }
                return Ok(());
            }
            ModifyKind::Delete => {
                if !operations.regular.is_empty() {
                    if row.is_empty() && !self.table.clustering.is_empty() {
                        return Err(no_ranges_of_columns());
                    }
                    write_row(row, Liveness::NONE, &operations.regular, context, changes)?;
                }
            }
            ModifyKind::Insert | ModifyKind::Update => {
                if self.table.clustering.is_empty() || !row.is_empty() {
                    let liveness = match self.kind {
                        ModifyKind::Insert => context.liveness(),
                        ModifyKind::Update | ModifyKind::Delete => Liveness::NONE,
                    };
                    write_row(row, liveness, &operations.regular, context, changes)?;
                }
            }
        }
        write_statics(&operations.statics, context, changes)
    }
}

/// What a statement names in each of its partitions.
enum Targets<'a> {
    Rows(Vec<Clustering<'a>>),
    Ranges(Vec<RowRange<'a>>),
}

impl Targets<'_> {
    fn are_none(&self) -> bool {
        match self {
            Targets::Rows(rows) => rows.is_empty(),
            Targets::Ranges(ranges) => ranges.is_empty(),
        }
    }
}

fn no_ranges_of_columns() -> CqlError {
    CqlError::Invalid("Range deletions are not supported for specific columns".into())
}

/// Writes one row. A row of an UPDATE that changes nothing is left out.
fn write_row(
    clustering: &Clustering<'_>,
    mut liveness: Liveness,
    operations: &[Operation],
    context: &WriteContext<'_>,
    changes: &mut Changes,
) -> Result<()> {
    let values = || clustering.iter().map(|value| Some(&**value));
    if operations.is_empty() {
        if !liveness.is_none() {
            changes.row(values(), (liveness, DeletionTime::LIVE), &[], |_| ());
        }
        return Ok(());
    }
    for round in rounds(operations) {
        if liveness.is_none() && changes_no_column(round, context)? {
            continue;
        }
        let complex = complex_deletions(round, context)?;
        let mut written = Ok(());
        changes.row(values(), (liveness, DeletionTime::LIVE), &complex, |row| {
            written = round.iter().try_for_each(|operation| write(operation, context, row));
        });
        written?;
        liveness = Liveness::NONE;
    }
    Ok(())
}

fn write_statics(operations: &[Operation], context: &WriteContext<'_>, changes: &mut Changes) -> Result<()> {
    for round in rounds(operations) {
        if changes_no_column(round, context)? {
            continue;
        }
        let complex = complex_deletions(round, context)?;
        let mut written = Ok(());
        changes.static_row(&complex, |row| {
            written = round.iter().try_for_each(|operation| write(operation, context, row));
        });
        written?;
    }
    Ok(())
}

fn changes_no_column(operations: &[Operation], context: &WriteContext<'_>) -> Result<bool> {
    for operation in operations {
        if !changes_nothing(operation, &context.bindings)? {
            return Ok(false);
        }
    }
    Ok(true)
}
