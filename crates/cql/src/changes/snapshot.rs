//! The present rows of a table as events, page by page.
//!
//! A row may be written after the first row was read and before its own turn: then its event shows the newer write, and
//! the same write follows among the changes with the same timestamps. Applying it again changes nothing.

use super::cursor::Cursor;
use super::event::{EventText, Head, row_json};
use super::page::{ChangeEvent, ChangesPage, MayRead, PageLimits};
use helenus_engine::changes::ChangePosition;
use helenus_engine::read::{KeyRange, Partitions, ReadCommand, ReadEnd, Resume, RowOutcome, RowSink};
use helenus_engine::{ChangesError, Database, Error, ReadRequest, Result};
use helenus_model::byte_comparable::clustering_key;
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::packed::Damaged;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use std::sync::Arc;
use uuid::Uuid;

/// The last row read: its partition's key, and its clustering.
type After = Option<(Vec<u8>, Option<Vec<u8>>)>;

/// Reads a page of present rows; behind the last one the changes from `then` on follow.
pub(super) fn read(
    may_read: &MayRead<'_>,
    database: &Database,
    (keyspace, name): (&str, &str),
    ((then, after), limits): ((ChangePosition, After), PageLimits),
) -> Result<ChangesPage> {
    let schema = database.schema();
    let Some(table) = schema.table(keyspace, name).cloned() else {
        let (keyspace, table) = (keyspace.to_owned(), name.to_owned());
        return Err(ChangesError::UnknownTable { keyspace, table }.into());
    };
    may_read(&table)
        .map_err(|reason| ChangesError::Refused { position: then.text(database.host_id()), reason })?;
    let resume = after.as_ref().map(|(key, clustering)| Resume {
        key: key.clone(),
        clustering: clustering.clone(),
        rows_left: u64::MAX,
        rows_left_in_partition: u64::MAX,
        // The first page of a partition has given its static row (`Snapshot::partition`).
        has_given: true,
    });
    let command = ReadCommand {
        table: table.clone(),
        partitions: Partitions::Range(KeyRange::all()),
        filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
        reversed: false,
        statics: true,
        columns: None,
        limits: Limits::NONE,
        now_s: database.now_s(),
        resume,
        page_rows: Some(limits.events as u64),
    };
    let begun = after.filter(|(_, clustering)| clustering.is_some()).map(|(key, _)| key);
    let mut sink = Snapshot {
        table: &table,
        host_id: database.host_id(),
        then,
        bytes_max: limits.bytes,
        steps_max: limits.number_work_us,
        now_s: command.now_s,
        key: Vec::new(),
        begun,
        row: RowBuf::default(),
        events: Vec::new(),
        bytes: 0,
        steps: 0,
    };
    let view = database.view(&table)?;
    let request = ReadRequest { may_block: true, ..ReadRequest::default() };
    let end = database.read(&command, &view, request, &mut sink, None)?;
    let next = match end {
        ReadEnd::Complete => Cursor::Changes(then),
        ReadEnd::Page(Resume { key, clustering, .. }) => {
            Cursor::Snapshot { then, after: Some((key, clustering)) }
        }
    };
    // Changes follow, though there may be none.
    Ok(ChangesPage { events: sink.events, next, is_end: false })
}

/// Makes events of rows.
struct Snapshot<'s> {
    table: &'s Table,
    host_id: Uuid,
    then: ChangePosition,
    bytes_max: usize,
    steps_max: usize,
    now_s: i64,
    key: Vec<u8>,
    /// The partition that an earlier page began, with its static row.
    begun: Option<Vec<u8>>,
    row: RowBuf,
    events: Vec<ChangeEvent>,
    bytes: usize,
    steps: usize,
}

impl Snapshot<'_> {
    fn event(&mut self, row: RowView<'_>, is_static: bool) -> Result<()> {
        // Without what is dead.
        self.row.copy_from(row);
        let now_s = self.now_s;
        self.row.cells.retain(|cell| cell.is_live(now_s));
        self.row.complex_deletions.clear();
        if !self.row.liveness.is_live(now_s) {
            self.row.liveness = helenus_model::deletion::Liveness::NONE;
        }
        // Not every source keeps the ordered clustering with a row.
        let mut clustering = Vec::new();
        if !is_static {
            let values = (0..self.table.clustering.len()).map(|index| row.clustering(index));
            clustering_key(values, &self.table.clustering, &mut clustering)
                .map_err(|_| Error::from(Damaged { offset: 0 }))?;
        }
        let after = Some((self.key.clone(), Some(clustering)));
        let cursor = Cursor::Snapshot { then: self.then, after }.text(self.host_id);
        let cells = self.row.cells.iter().map(|cell| cell.timestamp_us);
        let newest = cells.chain([self.row.liveness.timestamp_us]).max().filter(|us| *us != i64::MIN);
        let head = Head { cursor: &cursor, operation: "r", timestamp_us: newest, is_snapshot: true };
        let EventText { json, steps } = row_json(self.table, &head, (&self.key, self.row.view()), is_static)?;
        self.steps += steps;
        self.bytes += json.len();
        self.events.push(ChangeEvent { cursor, operation: "r", timestamp_us: newest, json });
        Ok(())
    }
}

impl RowSink for Snapshot<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        self.key = key.to_vec();
        let is_begun = self.begun.take().is_some_and(|begun| begun == key);
        if let Some(row) = static_row.filter(|_| !is_begun) {
            self.event(row, true)?;
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        self.event(row, false)?;
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max || self.steps >= self.steps_max
    }
}
