//! Writes the SSTables of a compaction, split as its choice says: only between partitions.

use super::choose::{Output, ShardEnds, range_spanned};
use crate::env::Env;
use crate::error::Result;
use crate::table::TableStore;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::schema::{Column, Table};
use helenus_model::token::Token;
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use helenus_sstable::statistics::Cardinality;
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::table::SsTable;
use helenus_sstable::transaction_log::TransactionLog;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The destination of the output.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) env: &'a Env,
    pub(super) store: &'a TableStore,
    /// The definition with which it is written.
    pub(super) table: &'a Arc<Table>,
}

/// The finished output SSTables and the one being written.
pub(super) struct Outputs {
    plan: Output,
    /// Whether the compaction was requested.
    was_asked_for: bool,
    boundaries: ShardEnds,
    /// Level of the current SSTable.
    level: usize,
    /// Bytes on that level so far, for `Output::Levels`.
    level_bytes: u64,
    /// Estimated partitions of each SSTable.
    keys_each: u64,
    encoding: EncodingStats,
    /// Names of the columns, static and regular, that any input has.
    columns: BTreeSet<Vec<u8>>,
    /// The table's definition with only these columns; `None` before the first SSTable.
    definition: Option<Arc<Table>>,
    current: Option<SsTableWriter>,
    written: Vec<Arc<SsTable>>,
    /// Bytes of their files.
    written_bytes: u64,
}

impl Outputs {
    /// The outputs of a compaction of `inputs`, which are not empty.
    pub(super) fn new(plan: Output, was_asked_for: bool, inputs: &[Arc<SsTable>]) -> Outputs {
        let level = match plan {
            Output::Whole | Output::Shards(_) => 0,
            Output::Sized { level, .. } => level,
            Output::Levels { .. } => 1,
        };
        let shards = if let Output::Shards(count) = plan { count } else { 1 };
        Outputs {
            plan,
            was_asked_for,
            boundaries: ShardEnds::new(shards),
            level,
            level_bytes: 0,
            keys_each: keys(inputs).div_ceil(pieces(plan, inputs)),
            encoding: encoding_of(inputs),
            columns: columns_of(inputs),
            definition: None,
            current: None,
            written: Vec::new(),
            written_bytes: 0,
        }
    }

    /// The writer for the next partition, which has this token.
    pub(super) fn writer(
        &mut self,
        place: Place<'_>,
        transaction: &mut TransactionLog,
        token: Token,
    ) -> Result<&mut SsTableWriter> {
        if self.ends_before(token) {
            self.finish_current(place)?;
        }
        let writer = match self.current.take() {
            Some(writer) => writer,
            None => self.create(place, transaction)?,
        };
        Ok(self.current.insert(writer))
    }

    /// The writer of the current partition.
    pub(super) fn current(&mut self) -> Option<&mut SsTableWriter> {
        self.current.as_mut()
    }

    fn ends_before(&mut self, token: Token) -> bool {
        let bytes = self.current.as_ref().map(SsTableWriter::stored_bytes);
        match self.plan {
            Output::Whole => false,
            // The boundaries move on even if nothing has been written.
            Output::Shards(_) => self.boundaries.advance_to(token) && bytes.is_some(),
            Output::Sized { bytes: most, .. } => bytes.is_some_and(|bytes| bytes > most),
            Output::Levels { bytes: most, fanout } => {
                let Some(bytes) = bytes.filter(|bytes| *bytes > most) else { return false };
                self.level_bytes += bytes;
                let level_max = (fanout as f64).powi(self.level as i32) * most as f64;
                if self.level_bytes as f64 > level_max {
                    // The next SSTable begins the next level.
                    self.level_bytes = 0;
                }
                true
            }
        }
    }

    fn create(&mut self, place: Place<'_>, transaction: &mut TransactionLog) -> Result<SsTableWriter> {
        if matches!(self.plan, Output::Levels { .. }) && self.level_bytes == 0 && !self.written.is_empty() {
            self.level += 1;
        }
        let descriptor = Descriptor::new(place.env.next_sstable_id());
        place.store.compaction.add_output(transaction.path(), descriptor);
        transaction.add(&descriptor, Component::all_of(descriptor.version).count())?;
        let definition =
            self.definition.get_or_insert_with(|| with_columns(place.table, &self.columns)).clone();
        let mut options = WriterOptions::of_table(definition, self.keys_each, self.encoding);
        place.env.journal.note_options(place.table, &options);
        options.host_id = Some(place.env.host_id);
        options.level = self.level as i32;
        options.past_page_cache = !self.was_asked_for;
        options.partition_limits = place.env.journal.partition_limits();
        let disk = place.env.host.disk.clone();
        Ok(SsTableWriter::create(disk, place.store.folder(), descriptor, options)?)
    }

    /// Finishes the current SSTable and opens it.
    pub(super) fn finish_current(&mut self, place: Place<'_>) -> Result<()> {
        if let Some(writer) = self.current.take() {
            let written = writer.finish()?;
            place.env.journal.note_written(place.table, &written);
            let opened = place.store.open_written(place.env, place.table, written.descriptor)?;
            opened.note_hiding_us_max(written.hiding_us_max);
            self.written_bytes += opened.size_on_disk();
            self.written.push(opened);
        }
        Ok(())
    }

    /// The finished SSTables.
    pub(super) fn written(&self) -> &[Arc<SsTable>] {
        &self.written
    }

    /// Bytes of the files so far.
    pub(super) fn bytes(&self) -> u64 {
        self.written_bytes + self.current.as_ref().map_or(0, SsTableWriter::stored_bytes)
    }

    /// Closes the files. The transaction removes them.
    pub(super) fn abandon(&mut self) {
        self.current = None;
        self.written.clear();
    }
}

/// The base values of the encoding, from the inputs' statistics. These are exact; the headers of merged files are not
/// (`SerializationHeader.make`).
fn encoding_of(inputs: &[Arc<SsTable>]) -> EncodingStats {
    let stats = || inputs.iter().map(|input| &input.statistics().stats);
    // Files without timestamps are ignored.
    let timestamps =
        stats().map(|stats| stats.timestamp_us_min).filter(|timestamp_us| *timestamp_us != i64::MIN);
    EncodingStats::new(
        timestamps.min().unwrap_or(i64::MIN),
        stats().map(|stats| stats.local_deletion_s_min).min().unwrap_or(NO_EXPIRY),
        stats().map(|stats| stats.ttl_s_min).min().unwrap_or_default(),
    )
}

fn columns_of(inputs: &[Arc<SsTable>]) -> BTreeSet<Vec<u8>> {
    let headers = inputs.iter().map(|input| &input.statistics().header);
    let columns = headers.flat_map(|header| header.statics.iter().chain(&header.regulars));
    columns.map(|column| column.name.clone()).collect()
}

/// The definition without the columns that no input has. Rows encode which columns they lack, and this avoids encoding
/// those.
fn with_columns(table: &Arc<Table>, names: &BTreeSet<Vec<u8>>) -> Arc<Table> {
    let is_there = |column: &Column| names.contains(column.name.as_bytes());
    if table.statics.iter().chain(&table.regulars).all(is_there) {
        return table.clone();
    }
    let mut fewer = (**table).clone();
    fewer.statics.retain(is_there);
    if fewer.statics.is_empty() {
        // A table with static rows keeps one, for the deletion of a static row that lies in other SSTables.
        fewer.statics.extend(table.statics.first().cloned());
    }
    fewer.regulars.retain(is_there);
    Arc::new(fewer)
}

/// The estimated number of distinct partitions in the inputs.
fn keys(inputs: &[Arc<SsTable>]) -> u64 {
    if inputs.is_empty() {
        return 1;
    }
    let counted = Cardinality::of_all(inputs.iter().map(|input| input.statistics().partitions.as_ref()));
    let most: u64 = inputs.iter().map(|input| input.partition_count()).sum();
    let least = inputs.iter().map(|input| input.partition_count()).max().unwrap_or(1);
    counted.map_or(most, |counted| counted.estimate().clamp(least, most))
}

/// The estimated number of output SSTables.
fn pieces(plan: Output, inputs: &[Arc<SsTable>]) -> u64 {
    match plan {
        Output::Whole => 1,
        Output::Shards(count) => {
            let first = inputs.iter().map(|input| input.tokens().0).min().unwrap_or(Token::MIN);
            let last = inputs.iter().map(|input| input.tokens().1).max().unwrap_or(Token::MAX);
            ((f64::from(count) * range_spanned(first, last)).round() as u64).max(1)
        }
        Output::Sized { bytes, .. } | Output::Levels { bytes, .. } => {
            let total: u64 = inputs.iter().map(|input| input.data_bytes()).sum();
            (total / bytes.max(1)).max(1)
        }
    }
}
