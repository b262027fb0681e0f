//! Runs a read: its statements page by page, whose rows go to the sink of the call.
//!
//! The first pages of several partitions are asked for at the same time, as far as there is room for them; the rest follows while the sink takes the rows. A read of a
//! range first asks for keys and then for each partition, because a partition without any of the wanted columns is part of its answer.

use crate::errors::Work;
use crate::families::Layout;
use crate::rows::{Cells, damaged};
use crate::statements::Sender;
use crate::texts::{self, Bound};
use helenus_cluster::OwnedAnswer;
use helenus_cql::CqlError;
use helenus_engine::read::{PartitionKey, Partitions, ReadCommand, RowOutcome, RowSink};
use helenus_model::partitions::KeyRange;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{key_values, quote_identifier};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Partitions that are asked for at the same time.
const PARTITIONS_AT_ONCE: usize = 16;
/// The most rows of a page.
const PAGE_ROWS: u64 = 1000;

/// A read that runs.
pub(crate) struct Reading<'a> {
    pub(crate) runtime: &'a Handle,
    pub(crate) sender: Sender,
    pub(crate) command: &'a ReadCommand,
    /// Only partitions whose column has this value, by an index.
    pub(crate) found_by: Option<(&'a Column, &'a [u8])>,
    pub(crate) cancelled: Option<&'a AtomicBool>,
}

/// The beginning of a partition.
struct Start {
    key: Vec<u8>,
    /// The declared columns, if they are wanted and there are any.
    statics: Option<RowBuf>,
    statements: Vec<Bound>,
    /// The first page of the first statement; `None`: it is not asked for yet.
    page: Option<OwnedAnswer>,
}

impl Start {
    /// Whether there was no room for the first page.
    fn lacks_room(&self) -> bool {
        self.page.is_none() && !self.statements.is_empty()
    }
}

/// Whether the read goes on with the next partition.
#[derive(PartialEq, Eq)]
enum Next {
    Partition,
    Nothing,
}

impl Reading<'_> {
    /// Runs it. Blocks.
    ///
    /// # Errors
    /// Those of the cluster and of the sink.
    pub(crate) fn run(&self, sink: &mut dyn RowSink) -> Result<(), CqlError> {
        let mut rows = 0;
        match &self.command.partitions {
            Partitions::Keys(keys) => {
                for keys in keys.chunks(PARTITIONS_AT_ONCE) {
                    let keys = keys.iter().map(|key| key.bytes.clone()).collect();
                    if self.partitions(keys, false, (&mut *sink, &mut rows))? == Next::Nothing {
                        break;
                    }
                }
                Ok(())
            }
            Partitions::Range(range)
                if Layout::of(&self.command.table) == Layout::Columns && self.found_by.is_none() =>
            {
                self.range_of_columns(range, (sink, &mut rows))
            }
            Partitions::Range(range) => self.range(range, (sink, &mut rows)),
        }
    }

    fn check_cancelled(&self) -> Result<(), CqlError> {
        match self.cancelled {
            Some(cancelled) if cancelled.load(Ordering::Relaxed) => Err(CqlError::Cancelled),
            _ => Ok(()),
        }
    }

    fn page_rows(&self) -> i32 {
        self.command.limits.per_partition.clamp(1, PAGE_ROWS) as i32
    }

    /// Reads partitions by key. `is_range`: those without a row are told to the sink, too.
    fn partitions(
        &self,
        keys: Vec<Vec<u8>>,
        is_range: bool,
        (sink, rows): (&mut dyn RowSink, &mut u64),
    ) -> Result<Next, CqlError> {
        self.check_cancelled()?;
        let plan = Arc::new(Plan::new(self.command, self.page_rows()));
        let tasks: Vec<_> = keys
            .into_iter()
            .map(|key| {
                let (sender, plan) = (self.sender.clone(), Arc::clone(&plan));
                self.runtime.spawn(async move { plan.begin(&sender, key).await })
            })
            .collect();
        let mut tasks = tasks.into_iter();
        let mut ready: VecDeque<Start> = VecDeque::new();
        while let Some(start) = match ready.pop_front() {
            Some(start) => Some(start),
            None => tasks.next().map(|task| self.begun(task)).transpose()?,
        } {
            if start.lacks_room() {
                // The pages of those behind it may have taken the room, and would keep it until this one is read.
                for task in tasks.by_ref() {
                    ready.push_back(Start { page: None, ..self.begun(task)? });
                }
            }
            if self.feed(start, is_range, (&mut *sink, &mut *rows))? == Next::Nothing {
                return Ok(Next::Nothing);
            }
        }
        Ok(Next::Partition)
    }

    fn begun(&self, task: JoinHandle<Result<Start, CqlError>>) -> Result<Start, CqlError> {
        let begun = self.runtime.block_on(task);
        begun.map_err(|_| CqlError::Server("the gateway is stopping".to_owned()))?
    }

    /// Gives a partition to the sink, with further pages as it takes them.
    fn feed(
        &self,
        start: Start,
        is_range: bool,
        (sink, rows): (&mut dyn RowSink, &mut u64),
    ) -> Result<Next, CqlError> {
        let table = &self.command.table;
        let mut is_open = is_range || start.statics.is_some();
        if is_open {
            sink.partition(&start.key, start.statics.as_ref().map(RowBuf::view))?;
        }
        let (mut counted, mut first, mut buffer) = (0, start.page, RowBuf::default());
        let mut ends_read = false;
        'partition: for statement in &start.statements {
            let mut state: Option<Vec<u8>> = None;
            loop {
                let page = match first.take() {
                    Some(page) => page,
                    None => {
                        self.check_cancelled()?;
                        self.runtime.block_on(self.sender.page(
                            statement,
                            state.as_deref(),
                            self.page_rows(),
                        ))?
                    }
                };
                let answer = page.rows().map_err(|error| self.sender.error(error, Work::Read))?;
                for row in answer.iter() {
                    let cells: Vec<_> = row.map_err(|_| damaged())?.cells().collect();
                    buffer.clear();
                    let mut cells = Cells::new(table, &cells, self.command.now_s);
                    cells.clustering(table, &mut buffer);
                    cells.columns(table.regulars.iter(), &mut buffer)?;
                    if buffer.cells.is_empty() {
                        continue;
                    }
                    if !std::mem::replace(&mut is_open, true) {
                        sink.partition(&start.key, None)?;
                    }
                    match sink.row(buffer.view())? {
                        RowOutcome::Counted => counted += 1,
                        RowOutcome::Skipped => {}
                        RowOutcome::EndPartition => break 'partition,
                        RowOutcome::EndRead => {
                            ends_read = true;
                            break 'partition;
                        }
                    }
                    if counted >= self.command.limits.per_partition {
                        break 'partition;
                    }
                }
                state = answer.metadata.paging_state.map(<[u8]>::to_vec);
                if state.is_none() {
                    break;
                }
            }
        }
        if is_open {
            let ended = sink.partition_end(counted)?;
            *rows += counted + u64::from(ended == RowOutcome::Counted);
            ends_read |= ended == RowOutcome::EndRead;
        }
        Ok(if ends_read || *rows >= self.command.limits.rows { Next::Nothing } else { Next::Partition })
    }

    /// Reads the keys of a range, and then each partition.
    fn range(&self, range: &KeyRange, (sink, rows): (&mut dyn RowSink, &mut u64)) -> Result<(), CqlError> {
        let table = &self.command.table;
        let (mut restriction, mut values) = restrict_tokens(table, range);
        if let Some((column, value)) = self.found_by {
            let and = if restriction.is_empty() { "" } else { " AND " };
            restriction = format!("{restriction}{and}{} = ?", quote_identifier(&column.name));
            values.push(value.to_vec());
        }
        let text = texts::select_keys(table, &with_where(&restriction));
        self.each_page(&Bound { text, values }, |answer| {
            let mut keys = Vec::new();
            for row in answer.rows().map_err(|error| self.sender.error(error, Work::Read))?.iter() {
                let cells: Vec<_> = row.map_err(|_| damaged())?.cells().collect();
                let key = PartitionKey::new(Cells::new(table, &cells, 0).key(table)?);
                if range.start <= key.decorated && key.decorated < range.end {
                    keys.push(key.bytes);
                }
            }
            while !keys.is_empty() {
                let left = usize::try_from(self.command.limits.rows.saturating_sub(*rows));
                let now = left.unwrap_or(usize::MAX).clamp(1, PARTITIONS_AT_ONCE).min(keys.len());
                let keys = keys.drain(..now).collect();
                if self.partitions(keys, true, (&mut *sink, &mut *rows))? == Next::Nothing {
                    return Ok(Next::Nothing);
                }
            }
            Ok(Next::Partition)
        })
    }

    /// Reads a range of a table without clustering: each row is a partition.
    fn range_of_columns(
        &self,
        range: &KeyRange,
        (sink, rows): (&mut dyn RowSink, &mut u64),
    ) -> Result<(), CqlError> {
        let table = &self.command.table;
        let (restriction, values) = restrict_tokens(table, range);
        let columns = wanted_statics(self.command);
        let text = texts::select_declared(table, &columns, "true");
        let text = text.replace(" WHERE true", &with_where(&restriction));
        self.each_page(&Bound { text, values }, |answer| {
            for row in answer.rows().map_err(|error| self.sender.error(error, Work::Read))?.iter() {
                let cells: Vec<_> = row.map_err(|_| damaged())?.cells().collect();
                let mut cells = Cells::new(table, &cells, self.command.now_s);
                let key = PartitionKey::new(cells.key(table)?);
                if key.decorated < range.start || key.decorated >= range.end {
                    continue;
                }
                let mut statics = RowBuf::default();
                cells.columns(columns.iter().copied(), &mut statics)?;
                let start = Start {
                    key: key.bytes,
                    statics: (!statics.cells.is_empty()).then_some(statics),
                    statements: Vec::new(),
                    page: None,
                };
                if self.feed(start, true, (&mut *sink, &mut *rows))? == Next::Nothing {
                    return Ok(Next::Nothing);
                }
            }
            Ok(Next::Partition)
        })
    }

    fn each_page(
        &self,
        bound: &Bound,
        mut take: impl FnMut(&OwnedAnswer) -> Result<Next, CqlError>,
    ) -> Result<(), CqlError> {
        let mut state: Option<Vec<u8>> = None;
        let page_rows = self.command.limits.rows.clamp(1, PAGE_ROWS) as i32;
        loop {
            self.check_cancelled()?;
            let page = self.runtime.block_on(self.sender.page(bound, state.as_deref(), page_rows))?;
            if take(&page)? == Next::Nothing {
                return Ok(());
            }
            let answer = page.rows().map_err(|error| self.sender.error(error, Work::Read))?;
            match answer.metadata.paging_state {
                Some(next) => state = Some(next.to_vec()),
                None => return Ok(()),
            }
        }
    }
}

fn with_where(restriction: &str) -> String {
    if restriction.is_empty() { String::new() } else { format!(" WHERE {restriction}") }
}

/// The statements of a partition, for any key.
struct Plan {
    table: Arc<Table>,
    command: ReadCommand,
    page_rows: i32,
}

impl Plan {
    fn new(command: &ReadCommand, page_rows: i32) -> Plan {
        let none = Partitions::Keys(Vec::new());
        let command = ReadCommand { partitions: none, ..command.clone() };
        Plan { table: Arc::clone(&command.table), command, page_rows }
    }

    /// Reads the declared columns and the first page of a partition.
    async fn begin(&self, sender: &Sender, key: Vec<u8>) -> Result<Start, CqlError> {
        let table = &self.table;
        let values: Vec<Vec<u8>> =
            key_values(table.partition_key.len(), &key).into_iter().map(<[u8]>::to_vec).collect();
        let rows = (&values[..], &*self.command.filter, self.command.reversed);
        let statements = texts::select_rows(table, rows)?;
        let statics = match self.command.statics {
            true => self.statics(sender, values).await?,
            false => None,
        };
        let page = match statements.first() {
            Some(first) => sender.page_ahead(first, self.page_rows).await?,
            None => None,
        };
        Ok(Start { key, statics, statements, page })
    }

    async fn statics(&self, sender: &Sender, values: Vec<Vec<u8>>) -> Result<Option<RowBuf>, CqlError> {
        let columns = wanted_statics(&self.command);
        let text = texts::select_declared(&self.table, &columns, &texts::of_key(&self.table));
        let answer = sender.page(&Bound { text, values }, None, 1).await?;
        let rows = answer.rows().map_err(|error| sender.error(error, Work::Read))?;
        let Some(row) = rows.iter().next() else { return Ok(None) };
        let cells: Vec<_> = row.map_err(|_| damaged())?.cells().collect();
        let mut cells = Cells::new(&self.table, &cells, self.command.now_s);
        cells.key(&self.table)?;
        let mut statics = RowBuf::default();
        cells.columns(columns.iter().copied(), &mut statics)?;
        Ok((!statics.cells.is_empty()).then_some(statics))
    }
}

/// The declared columns that a read wants.
fn wanted_statics(command: &ReadCommand) -> Vec<&Column> {
    let is_wanted =
        |column: &&Column| command.columns.as_ref().is_none_or(|wanted| wanted.contains(&column.id));
    command.table.statics.iter().filter(is_wanted).collect()
}

/// The restriction to the tokens of a range of positions, which may have more keys than the range.
fn restrict_tokens(table: &Table, range: &KeyRange) -> (String, Vec<Vec<u8>>) {
    let token = format!("token({})", texts::list(&table.partition_key));
    let (mut each, mut values) = (Vec::new(), Vec::new());
    for (position, sign) in [(&range.start, ">="), (&range.end, "<=")] {
        // A byte, and the token with its sign bit turned.
        let Some(bytes) = position.get(1..9).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) else {
            continue;
        };
        each.push(format!("{token} {sign} ?"));
        values.push((i64::from_be_bytes(bytes) ^ i64::MIN).to_be_bytes().to_vec());
    }
    (each.join(" AND "), values)
}

#[cfg(test)]
mod tests;
