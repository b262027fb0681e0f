//! Reads of super column families: converts each stored row to rows of entries, which are filtered, counted and paged
//! here. The entries of a super column keep their order in a reversed read too: as in 3.11, it only reverses the super
//! columns.

use super::is_of_entries;
use helenus_engine::read::{Probe, ReadCommand, ReadEnd, Resume, RowOutcome, RowSink, left_of};
use helenus_engine::{Database, Error, ReadRequest, Result, Ticket};
use helenus_model::byte_comparable::{clustering_bound, clustering_key, decode_clustering};
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use std::sync::Arc;

/// Runs a read of a stored table; converts the rows of a super column family.
///
/// # Errors
/// As for a read.
pub(crate) fn read(
    database: &Database,
    command: &ReadCommand,
    request: ReadRequest<'_>,
    sink: &mut dyn RowSink,
    probe: Option<&mut Probe>,
) -> Result<ReadEnd> {
    let view = database.view(&command.table)?;
    if !is_of_entries(&command.table) {
        return database.read(command, &view, request, sink, probe);
    }
    let table = &*command.table;
    let stored = database.schema().table_by_id(table.id).cloned();
    let stored = stored.ok_or_else(|| Error::UnknownTable {
        keyspace: table.keyspace.to_string(),
        table: table.name.to_string(),
    })?;
    let map = table.compact_value().ok_or_else(|| damaged(table))?.id;
    let folded = ReadCommand {
        table: stored,
        filter: Arc::new(folded_filter(table, &command.filter)?),
        columns: None,
        limits: Limits::NONE,
        resume: command.resume.as_ref().map(|at| folded_resume(table, at, command.reversed)).transpose()?,
        page_rows: None,
        ..command.clone()
    };
    let mut unfolding = Unfolding {
        command,
        map,
        sink,
        key: Vec::new(),
        rows_left: command.rows_left(),
        left_in_partition: u64::MAX,
        is_begun: false,
        rows_in_page: 0,
        after: None,
        end: None,
        row: RowBuf::default(),
    };
    let end = database.read(&folded, &view, request, &mut unfolding, probe)?;
    // The stored rows are read without paging.
    Ok(unfolding.end.take().unwrap_or(end))
}

fn damaged(table: &Table) -> Error {
    Error::Unstorable {
        keyspace: table.keyspace.to_string(),
        table: table.name.to_string(),
        problem: "a super column's name has no ordered form",
    }
}

/// Converts a position among rows of entries to one among stored rows: before the stored row if `before`, otherwise
/// after it.
fn folded(table: &Table, position: &[u8], before: bool) -> Result<Vec<u8>> {
    let Some(values) = values(table, position) else { return Ok(position.to_vec()) };
    let [Some(first), _, ..] = &values[..] else { return Ok(position.to_vec()) };
    let mut out = Vec::new();
    clustering_bound([Some(&first[..])], &table.clustering, before, &mut out).map_err(|_| damaged(table))?;
    Ok(out)
}

/// The values of a position; `None` for the positions before and after all rows.
fn values(table: &Table, position: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    decode_clustering(position, &table.clustering).ok().map(|decoded| decoded.values)
}

fn folded_filter(table: &Table, filter: &ClusteringFilter) -> Result<ClusteringFilter> {
    Ok(match filter {
        ClusteringFilter::Names(names) => {
            let mut folded = Vec::with_capacity(names.len());
            for name in names {
                let values = values(table, name).ok_or_else(|| damaged(table))?;
                let first = values.first().map(Option::as_deref);
                let mut key = Vec::new();
                clustering_key(first, table.clustering.get(..1).unwrap_or_default(), &mut key)
                    .map_err(|_| damaged(table))?;
                folded.push(key);
            }
            folded.dedup();
            ClusteringFilter::Names(folded)
        }
        ClusteringFilter::Slices(slices) => {
            let mut folded_slices: Vec<Slice> = Vec::with_capacity(slices.len());
            for slice in slices {
                let start = folded(table, &slice.start, true)?;
                let end = folded(table, &slice.end, false)?;
                match folded_slices.last_mut() {
                    Some(last) if start <= last.end => last.end = end.max(std::mem::take(&mut last.end)),
                    _ => folded_slices.push(Slice { start, end }),
                }
            }
            ClusteringFilter::Slices(folded_slices)
        }
    })
}

/// Where a read continues among stored rows: at the row in which the page ended, which is converted once more.
fn folded_resume(table: &Table, at: &Resume, reversed: bool) -> Result<Resume> {
    let clustering =
        at.clustering.as_deref().map(|position| folded(table, position, !reversed)).transpose()?;
    let (rows_left, rows_left_in_partition) = (u64::MAX, u64::MAX);
    // Such a table has no static row, which alone would depend on it.
    let has_given = true;
    Ok(Resume { clustering, rows_left, rows_left_in_partition, key: at.key.clone(), has_given })
}

struct Unfolding<'a> {
    command: &'a ReadCommand,
    map: ColumnId,
    sink: &'a mut dyn RowSink,
    /// The current partition.
    key: Vec<u8>,
    /// Rows left of the limit.
    rows_left: u64,
    /// Rows left of the partition's limit.
    left_in_partition: u64,
    /// Whether rows of the partition were returned.
    is_begun: bool,
    rows_in_page: u64,
    /// The position after which the current partition continues, and the super column that contains it.
    after: Option<(Option<Vec<u8>>, Vec<u8>)>,
    /// The end of the read, if it was decided here.
    end: Option<ReadEnd>,
    row: RowBuf,
}

impl Unfolding<'_> {
    /// Makes the row of an entry; `false` if the read does not select it.
    fn unfold(&mut self, stored: RowView<'_>, cell: &Cell) -> Result<bool> {
        let Unfolding { command, row, .. } = self;
        row.clear();
        let (name, path) = (stored.clustering(0), stored.path(cell));
        let mut position = std::mem::take(&mut row.key);
        let encoded = clustering_key([name, Some(path)], &command.table.clustering, &mut position);
        row.key = position;
        encoded.map_err(|_| damaged(&command.table))?;
        // Super columns other than that of the page's end are entirely after it, or are not read.
        let is_behind =
            self.after.as_ref().is_none_or(|(of, after)| of.as_deref() != name || row.key > *after);
        if !is_behind || !command.filter.selects(&row.key) {
            return Ok(false);
        }
        let name = name.map_or(Span::NULL, |name| row.push_bytes(name));
        let path = row.push_bytes(path);
        row.clustering.extend([name, path]);
        let value = row.push_bytes(stored.value(cell));
        row.cells.push(Cell { path: Span::NULL, value, ..*cell });
        Ok(true)
    }

    /// The end of a page within the current partition.
    fn page(&self, clustering: Option<Vec<u8>>) -> ReadEnd {
        let rows_left_in_partition = if clustering.is_some() { self.left_in_partition } else { 0 };
        let (key, rows_left) = (self.key.clone(), self.rows_left);
        ReadEnd::Page(Resume { key, clustering, rows_left, rows_left_in_partition, has_given: true })
    }

    /// Counts a row that the sink has taken. Returns how the read continues.
    fn counted(&mut self) -> RowOutcome {
        self.rows_left = left_of(self.rows_left, 1);
        self.left_in_partition = left_of(self.left_in_partition, 1);
        self.is_begun = true;
        self.rows_in_page += 1;
        if self.rows_left == 0 {
            RowOutcome::EndRead
        } else if self.left_in_partition == 0 {
            RowOutcome::EndPartition
        } else if self.page_is_full() {
            self.end = Some(self.page(Some(self.row.key.clone())));
            RowOutcome::EndRead
        } else {
            RowOutcome::Counted
        }
    }

    fn page_is_full(&self) -> bool {
        self.command.page_rows.is_some_and(|rows| self.rows_in_page >= rows || self.sink.is_full())
    }
}

impl RowSink for Unfolding<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(key);
        let resumed = self.command.resume.as_ref().filter(|at| at.key == key);
        let resumed = resumed.and_then(|at| Some((at.rows_left_in_partition, at.clustering.clone()?)));
        self.is_begun = resumed.is_some();
        self.left_in_partition = match &resumed {
            Some((left, _)) => *left,
            None => self.command.limits.per_partition,
        };
        self.after = resumed.and_then(|(_, position)| {
            let values = values(&self.command.table, &position)?;
            Some((values.into_iter().next().flatten(), position))
        });
        self.sink.partition(key, static_row)
    }

    fn dead(&mut self, newest_us: i64) {
        self.sink.dead(newest_us);
    }

    fn row(&mut self, stored: RowView<'_>) -> Result<RowOutcome> {
        let now_s = self.command.now_s;
        let mut taken = RowOutcome::Skipped;
        for cell in stored.cells_of(self.map).iter().filter(|cell| cell.is_live(now_s)) {
            if !self.unfold(stored, cell)? {
                continue;
            }
            let given = match self.sink.row(self.row.view())? {
                RowOutcome::Skipped => continue,
                RowOutcome::Counted => self.counted(),
                other => other,
            };
            taken = given;
            if taken != RowOutcome::Counted {
                break;
            }
        }
        Ok(taken)
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        let taken = self.sink.partition_end(u64::from(self.is_begun))?;
        if taken == RowOutcome::Counted {
            self.rows_left = left_of(self.rows_left, 1);
            self.rows_in_page += 1;
        }
        Ok(taken)
    }

    fn passed(&mut self, rows: u64, tombstones: u64) {
        self.sink.passed(rows, tombstones);
    }

    fn hold_until(&mut self, ticket: Ticket) -> Option<Ticket> {
        self.sink.hold_until(ticket)
    }
}
