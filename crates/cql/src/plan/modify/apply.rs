//! Runs a plan with values: adds its changes to a collector.

use super::attributes::{check_timestamp, expires_s, timestamp_of};
use super::cells::{changes_nothing, complex_deletions, rounds, write};
use super::collector::Collector;
use super::keys::{COMBINATION_BYTES, Clustering, RowRange, null_text};
use super::list::DeletedElements;
use super::operation::{Action, Operation};
use super::prepare::{ModifyKind, ModifyPlan};
use super::read_before_write::{PriorRows, ReadSet};
use super::restriction::Restriction;
use crate::analysis::Bindings;
use crate::analysis::restrictions::check_product;
use crate::budget::room_in;
use crate::error::{CqlError, Result};
use crate::plan::conditional::CasRequest;
use crate::super_family::{is_of_entries, is_super};
use helenus_engine::account;
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::mutation::{Change, Changes};
use helenus_model::packed::unpack;
use helenus_model::reconcile::{merge_cells_into, merge_rows};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::borrow::Cow;

/// The timestamp and the clock time of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The timestamp of the request or batch, microseconds.
    pub(crate) timestamp_us: i64,
    /// The clock time, seconds.
    pub(crate) now_s: i64,
    /// Whether the write has conditions. Its deletions, except those of single cells, are then one microsecond older
    /// than its other changes (`PartitionUpdate.updateAllTimestamp`).
    pub(crate) is_conditional: bool,
    /// Whether the client gave the timestamp, with the request or the batch.
    pub(crate) is_clients: bool,
}

impl Moment {
    /// The timestamp, if the server gave it.
    pub(crate) fn stamped_us(&self) -> Option<i64> {
        (!self.is_clients).then_some(self.timestamp_us)
    }
}

/// The values that all cells of one execution share.
#[derive(Clone, Debug)]
pub(crate) struct WriteContext<'a> {
    /// Timestamp of the write.
    pub(crate) timestamp_us: i64,
    /// The timestamp of its deletions, except those of single cells.
    pub(crate) deletion_us: i64,
    /// The clock time of the write, seconds.
    pub(crate) now_s: i64,
    /// The TTL in seconds, 0 for none, and the time of expiry in seconds.
    pub(crate) ttl_s: i32,
    pub(crate) expires_s: i64,
    /// The values.
    pub(crate) bindings: Bindings<'a>,
    /// The rows that were read before, for statements that need them.
    pub(crate) prior: Option<&'a PriorRows>,
    /// The table.
    pub(crate) table: &'a Table,
}

impl WriteContext<'_> {
    fn deletion(&self) -> DeletionTime {
        DeletionTime { timestamp_us: self.deletion_us, local_s: self.now_s }
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
    /// Adds the changes of one execution to `collector`. USING overrides the timestamp of `moment`. `prior` holds the
    /// rows that `add_reads` asked for.
    ///
    /// # Errors
    /// Invalid values. The collector then holds a part of the changes and must be dropped.
    pub(crate) fn apply<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        moment: Moment,
        prior: Option<&PriorRows>,
        collector: &mut Collector,
    ) -> Result<()> {
        if prior.is_none()
            && !moment.is_conditional
            && let Some(straight) = &self.fast_path
            && straight.apply(self, bindings, moment, collector)
        {
            return Ok(());
        }
        let keys = self.filter.partition_keys(&self.table, bindings)?;
        let targets = match self.targets(bindings) {
            Err(error) if self.is_null_end(&error) => {
                return if keys.is_empty() { Ok(()) } else { Err(self.refused_range(error)) };
            }
            targets => targets?,
        };
        if targets.len() == 0 {
            return Ok(());
        }
        let Moment { now_s, is_conditional, .. } = moment;
        let timestamp_us = timestamp_of(self.attributes.timestamp.as_ref(), moment.timestamp_us, bindings)?;
        check_timestamp(timestamp_us)?;
        if let Some(name) = &self.missing_value {
            return Err(CqlError::Invalid(format!(
                "Column {name} is mandatory for this COMPACT STORAGE table"
            )));
        }
        let ttl_s = match self.kind {
            ModifyKind::Delete => 0,
            ModifyKind::Insert | ModifyKind::Update => self.attributes.ttl_s(&self.table, now_s, bindings)?,
        };
        let expires_s = expires_s(now_s, ttl_s);
        let prior = prior.filter(|_| self.reads_first());
        let context = WriteContext {
            timestamp_us,
            deletion_us: timestamp_us - i64::from(is_conditional),
            now_s,
            ttl_s,
            expires_s,
            bindings: bindings.clone(),
            prior,
            table: &self.table,
        };
        check_product((keys.len(), targets.len()), COMBINATION_BYTES, "the columns of the primary key")?;
        for key in keys {
            bindings.calls.work.step()?;
            account::settle()?;
            let present = context.prior.map(|prior| Present { prior, table: &self.table, key: key.clone() });
            let changes = collector.changes(&self.table, key);
            match &targets {
                Targets::Ranges(ranges) => self.delete_ranges(ranges, &context, changes)?,
                Targets::Rows(rows) => {
                    for row in rows {
                        bindings.calls.work.step()?;
                        self.change_row((row, present.as_ref()), &context, changes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks the partition keys alone. The keys of all statements of a batch are checked before anything else in any
    /// of them (`BatchStatement.getMutations`).
    ///
    /// # Errors
    /// Null, unset, empty or too long keys.
    pub(crate) fn check_partitions(&self, bindings: &Bindings<'_>) -> Result<()> {
        self.filter.partition_keys(&self.table, bindings).map(drop)
    }

    /// Adds the rows that an execution must read before it writes.
    pub(crate) fn add_reads(&self, bindings: &Bindings<'_>, wanted: &mut ReadSet) -> Result<()> {
        if !self.reads_first() || self.filter.is_range {
            return Ok(());
        }
        let keys = self.filter.partition_keys(&self.table, bindings)?;
        let mut rows = Vec::new();
        if self.reads.regulars && !keys.is_empty() {
            let named = self.filter.rows(&self.table, bindings)?;
            check_product((keys.len(), named.len()), COMBINATION_BYTES, "the columns of the primary key")?;
            for row in &named {
                bindings.calls.work.step()?;
                rows.push(row_key(&self.table, row)?);
            }
        }
        for key in keys {
            let partition = wanted.partition(&self.table, &key);
            partition.statics |= self.reads.statics;
            for row in &rows {
                bindings.calls.work.step()?;
                account::settle()?;
                partition.rows.insert(row.clone());
            }
        }
        Ok(())
    }

    /// Adds the partitions that an execution must lock, whether or not it reads them.
    pub(crate) fn add_locks(&self, bindings: &Bindings<'_>, wanted: &mut ReadSet) -> Result<()> {
        for key in self.filter.partition_keys(&self.table, bindings)? {
            wanted.partition(&self.table, &key);
        }
        Ok(())
    }

    /// The partition of a statement in a conditional request.
    ///
    /// # Errors
    /// The statement names several partitions.
    pub(crate) fn conditional_partition(&self, bindings: &Bindings<'_>, is_batch: bool) -> Result<Vec<u8>> {
        let keys = self.filter.partition_keys(&self.table, bindings)?;
        if self.filter.keys.iter().any(Restriction::is_in) {
            if is_batch {
                return Err(CqlError::Server(
                    "java.lang.IllegalArgumentException: Batch with conditions cannot span multiple partitions (you cannot \
                     use IN on the partition key)"
                        .into(),
                ));
            }
            return Err(CasRequest::refuse_in(self.kind, "partition key"));
        }
        let first = keys.into_iter().next();
        first.ok_or_else(|| CqlError::Invalid("Some partition key parts are missing".into()))
    }

    /// The row that the statement names, by its ordered clustering; `None`: the static row, or no single row.
    ///
    /// # Errors
    /// The statement names several rows.
    pub(crate) fn conditional_row(&self, bindings: &Bindings<'_>) -> Result<Option<Vec<u8>>> {
        if self.filter.clustering.iter().any(Restriction::is_in) {
            return Err(CasRequest::refuse_in(self.kind, "clustering key columns"));
        }
        if self.filter.is_range || self.is_about_statics() {
            return Ok(None);
        }
        let row = self.filter.rows(&self.table, bindings)?.into_iter().next().unwrap_or_default();
        match row.len() == self.table.clustering.len() {
            true => row_key(&self.table, &row).map(Some),
            // A DELETE of a whole partition, which has no conditions.
            false => Ok(None),
        }
    }

    fn targets<'a>(&'a self, bindings: &Bindings<'a>) -> Result<Targets<'a>> {
        Ok(if self.filter.is_range {
            Targets::Ranges(self.filter.ranges(&self.table, bindings)?)
        } else {
            Targets::Rows(self.filter.rows(&self.table, bindings)?)
        })
    }

    /// Whether an error is about a null end of a range. Cassandra checks such an end last
    /// (`SliceRestriction.appendBoundTo`): deleting columns over a range is rejected first, and if an IN leaves no
    /// partition the end is never checked.
    pub(crate) fn is_null_end(&self, error: &CqlError) -> bool {
        let end = self.filter.clustering.last().and_then(Restriction::single_slice);
        end.is_some_and(|name| matches!(error, CqlError::Invalid(text) if *text == null_text(name)))
    }

    /// The error for a null end of a range.
    fn refused_range(&self, error: CqlError) -> CqlError {
        let names_columns = !self.operations.regular.is_empty() || !self.operations.statics.is_empty();
        if names_columns { no_ranges_of_columns() } else { error }
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
            for (values, _) in [&range.start, &range.end] {
                room_for_head(values, 0, changes)?;
            }
            let start: Vec<Option<&[u8]>> = range.start.0.iter().map(|value| Some(&**value)).collect();
            let end: Vec<Option<&[u8]>> = range.end.0.iter().map(|value| Some(&**value)).collect();
            changes.delete_range((&start, range.start.1), (&end, range.end.1), context.deletion());
        }
        Ok(())
    }

    /// Deletes a row; in a compact table its one value, which has the same effect.
    fn delete_row(&self, row: &Clustering<'_>, context: &WriteContext<'_>, changes: &mut Changes) {
        let values = row.iter().map(|value| Some(&**value));
        let value = self.table.compact_value();
        let Some(value) = value.filter(|_| !is_super(&self.table) || is_of_entries(&self.table)) else {
            changes.row(values, (Liveness::NONE, context.deletion()), &[], |_| ());
            return;
        };
        let tombstone = Cell {
            column: value.id,
            ttl_s: 0,
            timestamp_us: context.timestamp_us,
            local_deletion_s: context.now_s,
            path: Span::NULL,
            value: Span::NULL,
        };
        changes.row(values, (Liveness::NONE, DeletionTime::LIVE), &[], |row| row.cell(&tombstone, None, &[]));
    }

    fn change_row(
        &self,
        (row, present): (&Clustering<'_>, Option<&Present<'_>>),
        context: &WriteContext<'_>,
        changes: &mut Changes,
    ) -> Result<()> {
        let operations = &self.operations;
        if self.is_compact {
            check_compact(&self.table, row)?;
        }
        let here = match present {
            Some(present) => present.row(row)?,
            None => None,
        };
        match self.kind {
            ModifyKind::Delete if operations.regular.is_empty() && operations.statics.is_empty() => {
                if row.is_empty() {
                    changes.delete_partition(context.deletion());
                } else {
                    room_for_head(row, 1, changes)?;
                    self.delete_row(row, context, changes);
                }
                return Ok(());
            }
            ModifyKind::Delete => {
                if !operations.regular.is_empty() {
                    if row.is_empty() && !self.table.clustering.is_empty() {
                        return Err(no_ranges_of_columns());
                    }
                    write_row((row, here), Liveness::NONE, &operations.regular, context, changes)?;
                }
            }
            ModifyKind::Insert | ModifyKind::Update => {
                if self.table.clustering.is_empty() || !row.is_empty() {
                    let liveness = match self.kind {
                        ModifyKind::Insert if !self.is_compact => context.liveness(),
                        ModifyKind::Insert => Liveness::NONE,
                        ModifyKind::Update | ModifyKind::Delete => Liveness::NONE,
                    };
                    write_row((row, here), liveness, &operations.regular, context, changes)?;
                }
            }
        }
        let statics = present.and_then(Present::statics);
        write_statics(&operations.statics, statics, context, changes)
    }
}

/// The rows of a partition that were read before.
struct Present<'a> {
    prior: &'a PriorRows,
    table: &'a Table,
    key: Vec<u8>,
}

impl Present<'_> {
    fn row(&self, row: &Clustering<'_>) -> Result<Option<RowView<'_>>> {
        if row.len() != self.table.clustering.len() {
            return Ok(None);
        }
        Ok(self.prior.row(self.table.id, &self.key, &row_key(self.table, row)?))
    }

    fn statics(&self) -> Option<RowView<'_>> {
        self.prior.statics(self.table.id, &self.key)
    }
}

/// The ordered form of a row's clustering.
fn row_key(table: &Table, row: &Clustering<'_>) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    clustering_key(row.iter().map(|value| Some(&**value)), &table.clustering, &mut key)
        .map_err(|error| CqlError::Invalid(error.to_string()))?;
    Ok(key)
}

/// Rejects an empty value of the only clustering column of a compact table (`UpdateParameters.newRow`).
fn check_compact(table: &Table, row: &Clustering<'_>) -> Result<()> {
    match (&row[..], &table.clustering[..]) {
        ([value], [column]) if value.is_empty() => {
            Err(CqlError::Invalid(format!("Invalid empty or null value for column {}", column.name)))
        }
        _ => Ok(()),
    }
}

/// The rows or ranges that a statement names in each of its partitions.
enum Targets<'a> {
    Rows(Vec<Clustering<'a>>),
    Ranges(Vec<RowRange<'a>>),
}

impl Targets<'_> {
    fn len(&self) -> usize {
        match self {
            Targets::Rows(rows) => rows.len(),
            Targets::Ranges(ranges) => ranges.len(),
        }
    }
}

fn no_ranges_of_columns() -> CqlError {
    CqlError::Invalid("Range deletions are not supported for specific columns".into())
}

/// The bytes of a row's head besides its clustering, and of a column's tombstone or deletion, at most.
const HEAD_BYTES: usize = 64;

/// Asks for the memory of a row's head and of cells without values.
fn room_for_head(clustering: &[Cow<'_, [u8]>], columns: usize, changes: &mut Changes) -> Result<()> {
    let bytes: usize = clustering.iter().map(|value| value.len() + 4).sum();
    room_in(changes.buffer(), 2 * bytes + HEAD_BYTES * (columns + 1))
}

/// Writes one row. A row of an UPDATE that changes nothing is not written.
fn write_row(
    (clustering, present): (&Clustering<'_>, Option<RowView<'_>>),
    mut liveness: Liveness,
    operations: &[Operation],
    context: &WriteContext<'_>,
    changes: &mut Changes,
) -> Result<()> {
    // A row of a compact table may have fewer values than there are clustering columns.
    let width = context.table.clustering.len();
    let values = || clustering.iter().map(|value| Some(&**value)).chain(std::iter::repeat(None)).take(width);
    if operations.is_empty() {
        if !liveness.is_none() {
            room_for_head(clustering, 0, changes)?;
            changes.row(values(), (liveness, DeletionTime::LIVE), &[], |_| ());
        }
        return Ok(());
    }
    let (mut present, mut deleted) = (Pending::of(present), DeletedElements::default());
    for round in rounds(operations) {
        if liveness.is_none() && changes_no_column(round, context)? {
            continue;
        }
        let complex = complex_deletions(round, context)?;
        let mut written = Ok(());
        let start = changes.as_bytes().len();
        room_for_head(clustering, operations.len(), changes)?;
        changes.row(values(), (liveness, DeletionTime::LIVE), &complex, |row| {
            written = round
                .iter()
                .try_for_each(|operation| write(operation, (present.view(), &mut deleted), context, row));
        });
        written?;
        liveness = Liveness::NONE;
        if context.prior.is_some()
            && round.len() < operations.len()
            && !has_lists_that_only_shrink(operations)
        {
            present.add(changes, start, context.table);
            // The row now has them as tombstones, and its cells have other numbers.
            deleted = DeletedElements::default();
        }
    }
    Ok(())
}

fn write_statics(
    operations: &[Operation],
    present: Option<RowView<'_>>,
    context: &WriteContext<'_>,
    changes: &mut Changes,
) -> Result<()> {
    let (mut present, mut deleted) = (Pending::of(present), DeletedElements::default());
    for round in rounds(operations) {
        if changes_no_column(round, context)? {
            continue;
        }
        let complex = complex_deletions(round, context)?;
        let mut written = Ok(());
        let start = changes.as_bytes().len();
        room_for_head(&[], operations.len(), changes)?;
        changes.static_row(&complex, |row| {
            written = round
                .iter()
                .try_for_each(|operation| write(operation, (present.view(), &mut deleted), context, row));
        });
        written?;
        if context.prior.is_some()
            && round.len() < operations.len()
            && !has_lists_that_only_shrink(operations)
        {
            present.add(changes, start, context.table);
            // The row now has them as tombstones, and its cells have other numbers.
            deleted = DeletedElements::default();
        }
    }
    Ok(())
}

/// Whether no operation on a list needs to see what an earlier one wrote: if all are by index, or all discard values, then a list
/// only loses elements, and those are noted in `DeletedElements`.
fn has_lists_that_only_shrink(operations: &[Operation]) -> bool {
    let by_index = |action: &Action| matches!(action, Action::SetIndex(..) | Action::DeleteIndex(_));
    let by_value = |action: &Action| matches!(action, Action::DiscardValues(_));
    let is_list = |operation: &&Operation| matches!(operation.ty, CqlType::List { .. });
    let lists = || operations.iter().filter(is_list);
    lists().all(|operation| by_index(&operation.action))
        || lists().all(|operation| by_value(&operation.action))
}

/// A row as an operation sees it: as it was read, merged with the changes of earlier operations of the statement
/// (`UpdateParameters.getPrefetchedRow`).
enum Pending<'a> {
    Read(Option<RowView<'a>>),
    Changed(Box<RowBuf>),
}

impl<'a> Pending<'a> {
    fn of(read: Option<RowView<'a>>) -> Pending<'a> {
        Pending::Read(read)
    }

    fn view(&self) -> Option<RowView<'_>> {
        match self {
            Pending::Read(row) => *row,
            Pending::Changed(row) => Some(row.view()),
        }
    }

    /// Merges the changes that begin at byte `start`.
    fn add(&mut self, changes: &Changes, start: usize, table: &Table) {
        let bytes = changes.as_bytes().get(start..).unwrap_or_default();
        // The server wrote these bytes itself a moment ago, so they can be decoded.
        let last = Changes::from_bytes(bytes.to_vec());
        let mut new = RowBuf::default();
        for change in last.iter().flatten() {
            let (packed, columns) = match change {
                Change::Row(packed) => (packed, table.clustering.len()),
                Change::StaticRow(packed) => (packed, 0),
                Change::PartitionDeletion(_) | Change::RangeDeletion { .. } => continue,
            };
            if unpack(packed, columns, &mut new).is_err() {
                continue;
            }
            self.add_row(RowView { row: &new, data: packed }, table);
        }
    }

    /// Merges a row. The row as it was read is copied once; later changes are merged where they belong, so that many
    /// operations on a long collection do not each copy it.
    fn add_row(&mut self, new: RowView<'_>, table: &Table) {
        let deletes = !new.row.deletion.is_live() || !new.row.complex_deletions.is_empty();
        match self {
            Pending::Changed(row) if !deletes && !table.is_counter() => merge_cells_into(table, row, new),
            _ => {
                let mut merged = Box::new(RowBuf::default());
                match self.view() {
                    Some(present) => merge_rows(table, present, new, DeletionTime::LIVE, &mut merged),
                    None => merged.copy_from(new),
                }
                *self = Pending::Changed(merged);
            }
        }
    }
}

fn changes_no_column(operations: &[Operation], context: &WriteContext<'_>) -> Result<bool> {
    for operation in operations {
        if !changes_nothing(operation, &context.bindings)? {
            return Ok(false);
        }
    }
    Ok(true)
}
