//! Removes stale entries that a search has found: of rows that were deleted with others, or whose value was replaced
//! after their first value had been flushed.
//!
//! During the search, rows are only counted. If entries gave fewer rows than expected, their rows are read again after
//! the search and compared with the entries. An entry without its row is deleted with the entry's own timestamp. Entries
//! of partition keys are never removed, because an empty partition may get rows at any time.
//!
//! **A removed entry's value is dead for good**, unless it is written again, and then it gets an entry that the removal
//! does not hide (`index::entry_time`):
//! - A write that does not know of the removal is in the table before the rows are read again: the removals are
//!   announced first, and then all writes that are within the gate are waited for.
//! - A value that a read does not show comes to light without a write only when a compaction takes effect that purged
//!   what hides it, and had decided so before the value was written. Such entries stay until it has ended
//!   (`may_come_back`).
//! - Imported rows come without entries, and are followed by a build that begins with an empty index. A removal is
//!   written only if no import has begun since the rows were read.

use super::entry_reader::{IndexEntry, damaged};
use crate::commitlog::Ticket;
use crate::database::{Database, ReadRequest};
use crate::error::Result;
use crate::index::{EntryPlace, EntryTerm, EntryWriter, entries_of};
use crate::read::{PartitionKey, Partitions, ReadCommand, RowOutcome, RowSink};
use crate::table::{AttachedIndex, View};
use helenus_model::byte_comparable::{clustering_key, decode_decorated_key};
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::filter::{ClusteringFilter, Limits};
use helenus_model::index::IndexLayout;
use helenus_model::mutation::Mutation;
use helenus_model::row::RowView;
use helenus_model::schema::ColumnKind;
use helenus_model::token::KeyHash;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The most entries that one search checks again; the next search finds the rest.
const SUSPECTS_MAX: usize = 2048;

/// Passes the rows of one partition to the sink and counts them.
pub(super) struct CountingSink<'a> {
    sink: &'a mut dyn RowSink,
    shape: &'a IndexLayout,
    /// The terms of the entries.
    terms: HashSet<&'a [u8]>,
    /// Rows that the sink counted, including one of a static row alone.
    pub(super) counted: u64,
    /// Rows that the sink counted, without one of a static row alone.
    pub(super) given: u64,
    /// Whether the sink wants nothing more.
    pub(super) is_over: bool,
    /// Rows that still have one of the terms.
    found: usize,
    key: Vec<u8>,
}

impl<'a> CountingSink<'a> {
    pub(super) fn new(
        sink: &'a mut dyn RowSink,
        shape: &'a IndexLayout,
        hits: &'a [IndexEntry],
    ) -> CountingSink<'a> {
        let terms = hits.iter().map(|hit| &hit.term[..]).collect();
        CountingSink { sink, shape, terms, counted: 0, given: 0, is_over: false, found: 0, key: Vec::new() }
    }

    /// Adds the entries to the audit if fewer rows were found than the entries have.
    pub(super) fn add_suspects(&self, hits: &[IndexEntry], audit: &mut StaleCheck) {
        let mut names: Vec<&[u8]> = hits.iter().map(|hit| &hit.clustering[..]).collect();
        names.dedup();
        let room = SUSPECTS_MAX.saturating_sub(audit.suspects.len());
        if self.found < names.len() && self.shape.column.kind != ColumnKind::PartitionKey {
            audit.suspects.extend(hits.iter().take(room).cloned());
        }
    }

    fn has_term(&self, row: RowView<'_>) -> Result<bool> {
        let mut has = false;
        entries_of(self.shape, (&self.key, row), &mut |entry| {
            has |= self.terms.contains(&entry.term[..]);
            Ok(())
        })?;
        Ok(has)
    }
}

impl RowSink for CountingSink<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(key);
        if self.shape.column.kind == ColumnKind::Static
            && let Some(row) = static_row
        {
            self.found += usize::from(self.has_term(row)?);
        }
        self.sink.partition(key, static_row)
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        let taken = self.sink.row(row)?;
        let is_counted = taken == RowOutcome::Counted;
        self.is_over |= taken == RowOutcome::EndRead;
        self.counted += u64::from(is_counted);
        self.given += u64::from(is_counted);
        if !self.shape.is_of_partitions() {
            // A row that the filter accepted has the value.
            self.found += usize::from(is_counted || self.has_term(row)?);
        }
        Ok(taken)
    }

    fn hold_until(&mut self, ticket: Ticket) -> Option<Ticket> {
        self.sink.hold_until(ticket)
    }

    fn partition_end(&mut self, rows: u64) -> Result<RowOutcome> {
        let taken = self.sink.partition_end(rows)?;
        self.counted += u64::from(taken == RowOutcome::Counted);
        self.is_over |= taken == RowOutcome::EndRead;
        Ok(taken)
    }

    fn is_full(&self) -> bool {
        self.sink.is_full()
    }
}

/// The entries of a search that may be stale.
#[derive(Default)]
pub(super) struct StaleCheck {
    suspects: Vec<IndexEntry>,
}

impl StaleCheck {
    /// Checks the suspects and removes the stale ones. Returns their number. Those that cannot be checked now stay.
    pub(super) fn finish(
        self,
        database: &Database,
        index: &AttachedIndex,
        command: &ReadCommand,
        request: ReadRequest<'_>,
    ) -> Result<u64> {
        // A read with a later time of its own, or a clock that has jumped, must not decide what has expired.
        if self.suspects.is_empty() || command.now_s > database.shared.timestamps.purge_now_s() {
            return Ok(0);
        }
        let Some(base) = database.shared.table(command.table.id) else { return Ok(0) };
        let (passes, revision) = (*base.passes.lock(), base.compaction.revision());
        // An entry with the greatest of all timestamps is never removed, and must not be announced: entries that are written
        // meanwhile would get it too.
        let removable = self.suspects.iter().map(|hit| hit.timestamp_us).filter(|at| *at < i64::MAX);
        let Some(greatest_us) = removable.max() else { return Ok(0) };
        let compactions = base.compaction.inputs();
        if !compactions.is_empty() {
            let view = base.view();
            let mut suspects = self.suspects.iter();
            if suspects
                .any(|hit| compactions.iter().any(|inputs| may_come_back(&view, inputs, &hit.position)))
            {
                return Ok(0);
            }
        }
        let _announced = index.state.removals.announce(greatest_us);
        if !database.shared.gate.has_passed_current() {
            // A write inside may wait for memory that this search holds. The next search tries again.
            return Ok(0);
        }
        let mut writer = EntryWriter::default();
        let mut stale = 0;
        let mut rest = &self.suspects[..];
        while let Some(first) = rest.first() {
            let count = rest.iter().take_while(|hit| hit.position == first.position).count();
            let (group, after) = rest.split_at(count);
            rest = after;
            stale += check_group(group, (database, index), command, request, &mut writer).unwrap_or(0);
        }
        // Asked after the rows were read: a compaction that has replaced SSTables meanwhile has changed the revision.
        let compactions = base.compaction.inputs();
        if writer.updates.is_empty() || base.compaction.revision() != revision {
            return Ok(0);
        }
        let view = base.view();
        let mut suspects = self.suspects.iter();
        if suspects.any(|hit| compactions.iter().any(|inputs| may_come_back(&view, inputs, &hit.position))) {
            return Ok(0);
        }
        let unchanged = base.passes.lock();
        if *unchanged == passes && passes.coming == 0 {
            // The answer does not depend on it: if the log is full, the next search removes the entries.
            let _ = database.shared.write(&Mutation { updates: writer.updates });
        }
        Ok(stale)
    }
}

/// Whether a value of a partition that a read does not show may come to light when a running compaction of these SSTables
/// takes effect: one that was written since it began, and so is in none of them.
fn may_come_back(view: &View, inputs: &BTreeSet<Descriptor>, position: &[u8]) -> bool {
    let mut key = Vec::new();
    if decode_decorated_key(position, &mut key).is_err() {
        return true;
    }
    let hash = KeyHash::of(&key);
    let is_beside = |sstable: &&Arc<SsTable>| !inputs.contains(sstable.descriptor());
    let may_have = |sstable: &Arc<SsTable>| sstable.covers(position) && sstable.may_contain(&hash);
    let at_token = || view.sstables.at(hash.token).filter_map(|at| view.sstables.get(at));
    // Only what one of its SSTables hides can come to light.
    if !at_token().any(|sstable| inputs.contains(sstable.descriptor()) && may_have(sstable)) {
        return false;
    }
    view.memtables.iter().any(|memtable| memtable.partition_of_key(hash.token, &key).is_some())
        || at_token().filter(is_beside).any(may_have)
}

fn check_group(
    hits: &[IndexEntry],
    (database, index): (&Database, &AttachedIndex),
    command: &ReadCommand,
    request: ReadRequest<'_>,
    writer: &mut EntryWriter,
) -> Result<u64> {
    let shape = &index.shape;
    let Some(first) = hits.first() else { return Ok(0) };
    let mut key = Vec::new();
    decode_decorated_key(&first.position, &mut key).map_err(|error| damaged(shape, &error))?;
    let mut names: Vec<Vec<u8>> = hits.iter().map(|hit| hit.clustering.clone()).collect();
    names.dedup();
    if shape.is_of_partitions() {
        names.clear();
    }
    let base = ReadCommand {
        table: command.table.clone(),
        partitions: Partitions::Keys(vec![PartitionKey::new(key)]),
        filter: Arc::new(ClusteringFilter::Names(names)),
        reversed: false,
        statics: shape.is_of_partitions(),
        columns: None,
        limits: Limits::NONE,
        now_s: command.now_s,
        resume: None,
        page_rows: None,
    };
    let view = database.view(&command.table)?;
    let mut sink = CurrentEntries { shape, key: Vec::new(), entries: BTreeSet::new() };
    database.read(&base, &view, request, &mut sink, None)?;
    let local_s = database.now_s();
    let mut stale = 0;
    // An entry with the greatest of all timestamps stays: none could be written after its removal.
    for hit in hits.iter().filter(|hit| hit.timestamp_us < i64::MAX) {
        let entry = (hit.clustering.clone(), hit.term.clone(), hit.path.clone());
        if !sink.entries.contains(&entry) {
            let deletion = DeletionTime { timestamp_us: hit.timestamp_us, local_s };
            let values = hit.values.iter().map(Option::as_deref);
            let place = EntryPlace {
                term: EntryTerm { term: &hit.term, path: hit.path.as_deref() },
                position: &hit.position,
                clustering: values,
            };
            writer.put_at(shape, place, (Liveness::NONE, deletion));
            stale += 1;
        }
    }
    Ok(stale)
}

/// Byte-comparable clustering, term, path.
type EntryName = (Vec<u8>, Vec<u8>, Option<Vec<u8>>);

/// Collects the entries that the rows have now.
struct CurrentEntries<'a> {
    shape: &'a IndexLayout,
    key: Vec<u8>,
    entries: BTreeSet<EntryName>,
}

impl CurrentEntries<'_> {
    fn note(&mut self, row: RowView<'_>, is_static: bool) -> Result<()> {
        let mut name = Vec::new();
        if !is_static {
            let columns = &self.shape.base.clustering;
            let values = (0..columns.len()).map(|index| row.clustering(index));
            clustering_key(values, columns, &mut name).map_err(|error| damaged(self.shape, &error))?;
        }
        let entries = &mut self.entries;
        entries_of(self.shape, (&self.key, row), &mut |entry| {
            entries.insert((name.clone(), entry.term, entry.path.map(<[u8]>::to_vec)));
            Ok(())
        })
    }
}

impl RowSink for CurrentEntries<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(key);
        match static_row.filter(|_| self.shape.is_of_partitions()) {
            Some(row) => self.note(row, true),
            None => Ok(()),
        }
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        if !self.shape.is_of_partitions() {
            self.note(row, false)?;
        }
        Ok(RowOutcome::Counted)
    }

    fn hold_until(&mut self, _ticket: Ticket) -> Option<Ticket> {
        // The removals are logged after the writes that were read.
        None
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
