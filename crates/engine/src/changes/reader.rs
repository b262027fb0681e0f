//! Decodes the changes of one table from the log.
//!
//! A reader follows a table by name: after a drop it goes on with the next table of that name. It begins with the first
//! record of its segment, where the watched tables are defined, and shows what lies behind its position.

use super::change::{Before, Change, ChangeKind, SchemaEvent};
use super::position::ChangePosition;
use crate::changes_error::ChangesError;
use crate::commitlog::{
    CommitLog, DefinitionKind, LogReader, LogRecord, LoggedUpdate, LoggedUpdates, Record,
};
use crate::error::Result;
use crate::log_position::LogPosition;
use helenus_host::account;
use helenus_model::deletion::DeletionTime;
use helenus_model::mutation::{Change as Logged, Changes};
use helenus_model::packed::unpack;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Table, TableId};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Receives changes; `Break` ends the read behind the change.
pub(crate) type Receive<'r> = dyn FnMut(&Change<'_>) -> Result<ControlFlow<()>> + 'r;

/// A reader of a table's changes.
pub(crate) struct ChangeReader {
    keyspace: String,
    table: String,
    log: LogReader,
    /// Changes before it were read.
    position: ChangePosition,
    /// Whether the reader has reached its first position.
    is_there: bool,
    decoder: Decoder,
}

/// What the records so far tell about the table.
#[derive(Default)]
struct Decoder {
    /// The tables of its name that are defined in the segment, mostly one.
    tables: HashMap<TableId, Arc<Table>>,
    /// The definitions that the next mutation, or the mutation at `announced_for`, puts into effect; `None` for those of
    /// other tables.
    announced: Vec<Option<(SchemaEvent, Arc<Table>)>>,
    announced_for: Option<LogPosition>,
    /// The rows before the next mutation.
    before: Vec<Image>,
    row: RowBuf,
}

/// The recorded rows of a partition.
struct Image {
    table: TableId,
    key: Vec<u8>,
    changes: Changes,
}

/// Numbers the changes of one record, those of other tables too: a number is part of a position.
struct Numbered<'n, 'r> {
    start: LogPosition,
    count: u32,
    /// So many were read before.
    skip: u32,
    receive: &'n mut Receive<'r>,
}

impl Numbered<'_, '_> {
    /// Counts a change that is not of the table.
    fn pass(&mut self) {
        self.count += 1;
    }

    fn give(&mut self, table: &Arc<Table>, kind: ChangeKind<'_>) -> Result<ControlFlow<()>> {
        self.give_with(table, kind, Before::NotRecorded)
    }

    fn give_with(
        &mut self,
        table: &Arc<Table>,
        kind: ChangeKind<'_>,
        before: Before<'_>,
    ) -> Result<ControlFlow<()>> {
        self.count += 1;
        if self.count <= self.skip {
            return Ok(ControlFlow::Continue(()));
        }
        let position = ChangePosition { record: self.start, changes: self.count };
        (self.receive)(&Change { position, table, kind, before })
    }
}

impl ChangeReader {
    /// A reader of the changes after a position.
    pub(crate) fn new((keyspace, table): (&str, &str), from: ChangePosition) -> ChangeReader {
        ChangeReader {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            log: LogReader::new(from.record),
            position: from,
            is_there: false,
            decoder: Decoder::default(),
        }
    }

    /// Whether it reads this table and stands at this position.
    pub(crate) fn is_at(&self, (keyspace, table): (&str, &str), from: ChangePosition) -> bool {
        self.position == from && self.keyspace == keyspace && self.table == table
    }

    /// The position up to which changes were read.
    pub(crate) fn position(&self) -> ChangePosition {
        self.position
    }

    /// Reads the changes up to `safe`, until `receive` ends it.
    ///
    /// # Errors
    /// `ChangesError::Gone`, `ChangesError::NotInLog`; a damaged log; failures of reading; those of `receive`.
    pub(crate) fn read(
        &mut self,
        log: &CommitLog,
        safe: LogPosition,
        receive: &mut Receive<'_>,
    ) -> Result<()> {
        let read = self.read_untrimmed(log, safe, receive);
        self.log.trim();
        read
    }

    fn read_untrimmed(
        &mut self,
        log: &CommitLog,
        safe: LogPosition,
        receive: &mut Receive<'_>,
    ) -> Result<()> {
        self.log.forget_buffer();
        let from = self.position.record;
        while let Some(LogRecord { start, is_first, record }) = self.log.next(log, safe)? {
            if is_first {
                self.decoder.begin_segment();
            }
            // A position may be before a definition or before recorded rows too.
            self.is_there |= start == from;
            let record = match record {
                Record::Definition(kind, table) => {
                    let is_own = *table.keyspace == *self.keyspace && *table.name == *self.table;
                    self.decoder.define((kind, Arc::new(*table)), is_own);
                    continue;
                }
                Record::Before(images) => {
                    self.decoder.keep_before(images);
                    continue;
                }
                record => record,
            };
            if let Record::Mutation(_) = record {
                self.decoder.take_announced(start);
            }
            if !self.is_there {
                if start < from {
                    self.decoder.before.clear();
                    continue;
                }
                if start > from && start.segment() == from.segment() && from.offset() > 0 && !is_first {
                    return Err(ChangesError::NotInLog { text: format!("{:016x}", from.0) }.into());
                }
                self.is_there = true;
            }
            let skip = if start == from { self.position.changes } else { 0 };
            let mut numbered = Numbered { start, count: 0, skip, receive };
            let flow = self.decoder.give(&record, &mut numbered)?;
            let count = numbered.count;
            if flow.is_break() {
                // The record may have more changes, so it is read again.
                self.position = ChangePosition { record: start, changes: count };
                self.log.back_to(start);
                return Ok(());
            }
            self.decoder.before.clear();
        }
        let reached = self.log.position();
        if self.is_there || reached >= from {
            self.is_there = true;
            self.position = self.position.max(ChangePosition { record: reached, changes: 0 });
        }
        Ok(())
    }
}

impl Decoder {
    /// Column numbers and definitions are those of a segment.
    fn begin_segment(&mut self) {
        self.tables.clear();
        self.announced.clear();
        self.announced_for = None;
        self.before.clear();
    }

    fn keep_before(&mut self, images: LoggedUpdates<'_>) {
        self.before.clear();
        let kept = images.filter(|image| self.tables.contains_key(&image.table)).map(|image| Image {
            table: image.table,
            key: image.key.to_vec(),
            changes: Changes::from_bytes(image.changes.to_vec()),
        });
        self.before.extend(kept);
    }

    fn define(&mut self, (kind, table): (DefinitionKind, Arc<Table>), is_own: bool) {
        if self.announced_for.take().is_some() {
            self.announced.clear();
        }
        if is_own {
            match kind {
                DefinitionKind::Unwatched | DefinitionKind::Dropped => self.tables.remove(&table.id),
                _ => self.tables.insert(table.id, table.clone()),
            };
        }
        if let Some(event) = SchemaEvent::of(kind) {
            self.announced.push(is_own.then_some((event, table)));
        }
    }

    /// The mutation at `start` puts the announced definitions into effect, if another one has not.
    fn take_announced(&mut self, start: LogPosition) {
        if *self.announced_for.get_or_insert(start) != start {
            self.announced.clear();
        }
    }

    /// Gives the changes of a record.
    fn give(&mut self, record: &Record<'_>, numbered: &mut Numbered<'_, '_>) -> Result<ControlFlow<()>> {
        match record {
            Record::Mutation(updates) => {
                for announced in &self.announced {
                    let Some((event, table)) = announced else {
                        numbered.pass();
                        continue;
                    };
                    if numbered.give(table, ChangeKind::Schema(*event))?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                for update in *updates {
                    if self.give_update(&update, numbered)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Record::Truncate(table) => self.give_of(*table, ChangeKind::Truncated, numbered),
            Record::Imported(table, sstables) => {
                self.give_of(*table, ChangeKind::Imported { sstables: *sstables }, numbered)
            }
            Record::Layout(..)
            | Record::Synced(_)
            | Record::Flushed(_)
            | Record::Timestamp(_)
            | Record::Continues(_)
            | Record::Definition(..)
            | Record::Before(_) => Ok(ControlFlow::Continue(())),
        }
    }

    fn give_of(
        &self,
        table: TableId,
        kind: ChangeKind<'_>,
        numbered: &mut Numbered<'_, '_>,
    ) -> Result<ControlFlow<()>> {
        match self.tables.get(&table) {
            Some(table) => numbered.give(table, kind),
            None => {
                numbered.pass();
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    fn give_update(
        &mut self,
        update: &LoggedUpdate<'_>,
        numbered: &mut Numbered<'_, '_>,
    ) -> Result<ControlFlow<()>> {
        let Decoder { tables, row, before, .. } = self;
        let mut old = RowBuf::default();
        account::grow(update.changes.len())?;
        let changes = Changes::from_bytes(update.changes.to_vec());
        let table = tables.get(&update.table);
        for change in changes.iter() {
            let change = change?;
            let Some(table) = table else {
                numbered.pass();
                continue;
            };
            let key = update.key;
            let kind = match change {
                Logged::PartitionDeletion(deletion) => ChangeKind::PartitionDeletion { key, deletion },
                Logged::RangeDeletion { start, end, deletion } => {
                    ChangeKind::RangeDeletion { key, start, end, deletion }
                }
                Logged::StaticRow(bytes) => {
                    unpack(bytes, 0, row)?;
                    ChangeKind::StaticRow { key, row: RowView { row, data: bytes } }
                }
                Logged::Row(bytes) => {
                    unpack(bytes, table.clustering.len(), row)?;
                    ChangeKind::Row { key, row: RowView { row, data: bytes } }
                }
            };
            let images = before.iter().filter(|image| image.table == update.table && image.key == update.key);
            let before = row_before(images, table, &kind, &mut old)?;
            if numbered.give_with(table, kind, before)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The row before a change of it, from the recorded rows of its partition.
fn row_before<'o>(
    images: impl Iterator<Item = &'o Image>,
    table: &Table,
    kind: &ChangeKind<'_>,
    old: &'o mut RowBuf,
) -> Result<Before<'o>> {
    let (changed, is_static) = match kind {
        ChangeKind::Row { row, .. } => (row, false),
        ChangeKind::StaticRow { row, .. } => (row, true),
        _ => return Ok(Before::NotRecorded),
    };
    let width = if is_static { 0 } else { table.clustering.len() };
    let mut row = None;
    for image in images {
        let mut hidden = DeletionTime::LIVE;
        for change in image.changes.iter() {
            let packed = match change? {
                Logged::PartitionDeletion(deletion) => {
                    hidden = deletion;
                    continue;
                }
                Logged::StaticRow(packed) if is_static => packed,
                Logged::Row(packed) if !is_static => packed,
                _ => continue,
            };
            unpack(packed, width, old)?;
            let found = RowView { row: old, data: packed };
            if (0..width).all(|index| found.clustering(index) == changed.clustering(index)) {
                row = Some((packed, hidden));
                break;
            }
        }
        if row.is_some() {
            break;
        }
    }
    Ok(match row {
        Some((data, hidden)) => Before::Recorded { row: RowView { row: old, data }, hidden },
        None => Before::NotRecorded,
    })
}
