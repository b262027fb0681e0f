//! Reads through an index: first entries, then the rows that they point to.
//!
//! `entry_reader` returns the entries, a few at a time; a search stops when the answer is complete. The rows of a partition are
//! read together, by name. A row goes to the sink like any other row, and the sink's filter decides whether it matches.
//! So a superfluous entry costs only a read.

use super::entry_reader::{Entries, FirstEntries, IndexEntry, damaged};
use super::stale_entries::{CountingSink, StaleCheck};
use super::table_scan::read_piece;
use crate::database::{Database, ReadRequest};
use crate::error::{Error, Result};
use crate::read::{
    IndexChoice, PartitionKey, Partitions, Probe, ReadCommand, ReadEnd, Resume, RowSink, left_of,
};
use crate::table::AttachedIndex;
use helenus_model::byte_comparable::decode_decorated_key;
use helenus_model::filter::{ClusteringFilter, Limits};
use helenus_model::index::IndexSearch;
use helenus_model::schema::Table;
use std::sync::Arc;

/// Entries read at a time: few at first, so that a small answer costs little.
const ENTRIES_FIRST: u64 = 32;
const ENTRIES_MAX: u64 = 1024;
/// Entries read from each of several searches in turn, to find the one with the fewest.
const NARROWING: [u64; 4] = [16, 64, 256, 1024];
/// Entries of a range of terms that are read before the table itself is read beside them: twice the rows of the page,
/// within these limits.
const GATHERED_ALONE: std::ops::RangeInclusive<u64> = 64..=1024;
/// The most entries that are read between two turns of the table.
const GATHERED_PER_TURN: u64 = 16_384;
/// Entries after which a read leaves a thread that may not wait: some milliseconds of reading rows by name.
const ENTRIES_AT_ONCE: u64 = 1024;
/// Entries after which a page ends even with few rows, as for tombstones.
const PAGE_ENTRIES_MAX: u64 = 10_000;

/// Runs `command` through an index: reads those of its partitions and rows that the index has entries for. Rows
/// come in the order of the table. Each of several searches would give the answer; the one with the fewest entries
/// is taken.
///
/// # Errors
/// As `read`, and `IndexNotAvailable` if the index is not built yet or was dropped.
pub fn read_indexed(
    database: &Database,
    command: &ReadCommand,
    searches: &[IndexSearch],
    request: ReadRequest<'_>,
    sink: &mut dyn RowSink,
    mut probe: Option<&mut Probe>,
) -> Result<ReadEnd> {
    for search in searches {
        attached(database, &command.table, search)?;
    }
    let chosen = match searches {
        [] | [_] => 0,
        several => narrowest(database, command, several, request, probe.as_deref_mut())?,
    };
    let Some(search) = searches.get(chosen) else { return Ok(ReadEnd::Complete) };
    let index = attached(database, &command.table, search)?;
    if let Some(probe) = probe.as_deref_mut().filter(|probe| !probe.disk_alone) {
        let candidates = searches.iter().map(|search| {
            let index = attached(database, &command.table, search)?;
            Ok((Arc::from(&*search.shape.index.name), mean_rows(&index)))
        });
        let candidates = candidates.collect::<Result<_>>()?;
        probe.index_choice = Some(IndexChoice { candidates, chosen: Arc::from(&*search.shape.index.name) });
    }
    let rows_left = command.rows_left();
    let page_left = command.page_rows;
    let resume = command.resume.clone();
    let mut searching =
        IndexRead { database, command, search, index, request, probe, resume, rows_left, page_left };
    searching.run(sink)
}

/// The mean number of rows for one value in the SSTables of an index (`ColumnFamilyStore.getMeanRowCount`); `None` for a
/// storage-attached one (`StorageAttachedIndexQueryPlan.getEstimatedResultRows`).
fn mean_rows(index: &AttachedIndex) -> Option<i64> {
    if index.shape.index.is_sai() {
        return None;
    }
    let view = index.store.view();
    let sums = view.sstables.iter().fold((0_i64, 0_i64), |(rows, partitions), sstable| {
        let more = i64::try_from(sstable.partition_count()).unwrap_or(i64::MAX);
        (rows.saturating_add(sstable.stats().rows), partitions.saturating_add(more))
    });
    Some(sums.0.checked_div(sums.1).unwrap_or(0))
}

/// The search with the fewest entries: reads a little more of each in turn, until one ends. Every search covers all
/// rows of the answer, so the shortest one is right too. If none ends soon, the first is taken.
fn narrowest(
    database: &Database,
    command: &ReadCommand,
    searches: &[IndexSearch],
    request: ReadRequest<'_>,
    mut probe: Option<&mut Probe>,
) -> Result<usize> {
    let mut open: Vec<Entries<'_>> = searches
        .iter()
        .map(|search| Entries::new(database, command, search, request, &search.shape))
        .collect();
    for count in NARROWING {
        for (at, entries) in open.iter_mut().enumerate() {
            let (_, is_last) = entries.next(count, probe.as_deref_mut())?;
            if is_last {
                return Ok(at);
            }
        }
    }
    Ok(0)
}

fn attached(database: &Database, table: &Table, search: &IndexSearch) -> Result<AttachedIndex> {
    let id = search.shape.index.id;
    let store = database.shared.table(table.id).ok_or_else(|| Error::UnknownTable {
        keyspace: table.keyspace.to_string(),
        table: table.name.to_string(),
    })?;
    let found = store.indexes().iter().find(|index| index.shape.index.id == id).cloned();
    found
        .filter(AttachedIndex::is_built)
        .ok_or_else(|| Error::IndexNotAvailable { index: search.shape.index.name.to_string() })
}

struct IndexRead<'a> {
    database: &'a Database,
    command: &'a ReadCommand,
    search: &'a IndexSearch,
    index: AttachedIndex,
    request: ReadRequest<'a>,
    probe: Option<&'a mut Probe>,
    /// Where the page before ended, or where the read has come.
    resume: Option<Resume>,
    /// Rows left of the limit.
    rows_left: u64,
    /// Rows left of the page; `None` without pages.
    page_left: Option<u64>,
}

/// The current partition. Its entries may come in several chunks, and on several pages.
#[derive(Clone)]
struct CurrentPartition {
    /// Its position in the ring.
    position: Vec<u8>,
    /// Rows left of its limit.
    left: u64,
    /// Whether rows of it were returned.
    is_begun: bool,
}

impl CurrentPartition {
    /// The partition in which a page ended, unless that ended with the partition.
    fn resumed(at: &Resume) -> Option<CurrentPartition> {
        at.clustering.is_some().then(|| CurrentPartition {
            position: PartitionKey::new(at.key.clone()).decorated,
            left: at.rows_left_in_partition,
            is_begun: at.has_given,
        })
    }
}

/// What gathering the entries of a range led to.
enum Gathered {
    /// Entries in the order of rows, and whether they are the last.
    Entries(Vec<IndexEntry>, bool),
    /// The table itself gave the rest of the page.
    Ended(ReadEnd),
}

/// How a group of entries ended.
enum GroupEnd {
    GoOn,
    /// The read is complete.
    Complete,
    Page(Resume),
}

impl IndexRead<'_> {
    fn run(&mut self, sink: &mut dyn RowSink) -> Result<ReadEnd> {
        let end = self.walk(sink)?;
        // If nothing was found because the table was truncated, no row determines how far the log must be durable: the
        // TRUNCATE record does.
        let emptied_at = self.database.view(&self.command.table)?.emptied_at;
        self.database.hold_until_safe(emptied_at, self.request.may_block, sink)?;
        Ok(end)
    }

    fn walk(&mut self, sink: &mut dyn RowSink) -> Result<ReadEnd> {
        if self.rows_left == 0 {
            return Ok(ReadEnd::Complete);
        }
        let shape = self.index.shape.clone();
        let shape = &*shape;
        let mut entries = Entries::new(self.database, self.command, self.search, self.request, shape);
        let mut chunk = ENTRIES_FIRST;
        let mut looked = 0;
        let mut place = self.resume.as_ref().and_then(CurrentPartition::resumed);
        let mut audit = StaleCheck::default();
        // The row of the last entry. A row may have several entries, and these may be in two chunks.
        let mut led_to: Option<(Vec<u8>, Vec<u8>)> = None;
        loop {
            let (hits, is_last) = match entries.is_by_terms() {
                true => match self.gather(&mut entries, &mut place, sink)? {
                    Gathered::Entries(hits, is_last) => (hits, is_last),
                    Gathered::Ended(end) => return self.end(audit, end),
                },
                false => entries.next(chunk, self.probe.as_deref_mut())?,
            };
            if !self.request.may_block && looked > ENTRIES_AT_ONCE {
                return Err(Error::WouldBlock);
            }
            chunk = (chunk * 4).min(ENTRIES_MAX);
            looked += hits.len() as u64;
            let last = hits.last().map(|hit| (hit.position.clone(), hit.clustering.clone()));
            let again = led_to.as_ref().map_or(0, |(position, clustering)| {
                let is_again = |hit: &&IndexEntry| {
                    hit.position == *position && (shape.is_of_partitions() || hit.clustering == *clustering)
                };
                hits.iter().take_while(is_again).count()
            });
            led_to = last.clone().or(led_to);
            let mut rest = hits.get(again..).unwrap_or_default();
            while let Some(first) = rest.first() {
                let count = rest.iter().take_while(|hit| hit.position == first.position).count();
                let (group, after) = rest.split_at(count);
                rest = after;
                let at_hand = match &mut place {
                    Some(known) if known.position == first.position => known,
                    other => other.insert(CurrentPartition {
                        position: first.position.clone(),
                        left: self.command.limits.per_partition,
                        is_begun: false,
                    }),
                };
                match self.group(group, at_hand, sink, &mut audit)? {
                    GroupEnd::GoOn => {}
                    GroupEnd::Complete => return self.end(audit, ReadEnd::Complete),
                    GroupEnd::Page(at) => return self.end(audit, ReadEnd::Page(at)),
                }
            }
            if is_last {
                return self.end(audit, ReadEnd::Complete);
            }
            let Some((position, clustering)) = last else { continue };
            let mut key = Vec::new();
            decode_decorated_key(&position, &mut key).map_err(|error| damaged(shape, &error))?;
            let clustering = (!shape.is_of_partitions()).then_some(clustering);
            let per_partition = self.command.limits.per_partition;
            let rows_left_in_partition = place.as_ref().map_or(per_partition, |place| place.left);
            let has_given = place.as_ref().is_some_and(|place| place.is_begun);
            let at = Resume { key, clustering, rows_left: self.rows_left, rows_left_in_partition, has_given };
            if self.command.page_rows.is_some() && looked >= PAGE_ENTRIES_MAX {
                return self.end(audit, ReadEnd::Page(at));
            }
            if entries.is_by_terms() {
                entries.skip_to(&at);
                self.resume = Some(at);
            }
        }
    }

    /// The next entries of a range of terms in the order of rows. If the range has many, the table itself is read beside
    /// it, as far as it comes.
    fn gather(
        &mut self,
        entries: &mut Entries<'_>,
        place: &mut Option<CurrentPartition>,
        sink: &mut dyn RowSink,
    ) -> Result<Gathered> {
        let mut gathered = FirstEntries::of_range();
        let page_rows = self.command.page_rows.unwrap_or(u64::MAX);
        let mut count = page_rows.saturating_mul(2).clamp(*GATHERED_ALONE.start(), *GATHERED_ALONE.end());
        while !entries.gather(count, &mut gathered, self.probe.as_deref_mut())? {
            if !self.request.may_block && count >= ENTRIES_AT_ONCE {
                return Err(Error::WouldBlock);
            }
            if !self.command.reversed
                && let Some(end) = self.read_table(count, entries, place, sink)?
            {
                return Ok(Gathered::Ended(end));
            }
            count = (count * 2).min(GATHERED_PER_TURN);
        }
        let is_last = !gathered.is_cut;
        Ok(Gathered::Entries(entries.sorted(gathered), is_last))
    }

    /// Reads rows of the table from where the read has come. Returns how the read ended, if it did.
    fn read_table(
        &mut self,
        rows: u64,
        entries: &mut Entries<'_>,
        place: &mut Option<CurrentPartition>,
        sink: &mut dyn RowSink,
    ) -> Result<Option<ReadEnd>> {
        let command = ReadCommand {
            columns: None,
            resume: self.resume.clone(),
            page_rows: self.page_left,
            ..self.command.clone()
        };
        let probe = self.probe.as_deref_mut();
        let piece = read_piece(self.database, command, rows, self.request, (sink, probe))?;
        self.page_left = self.page_left.map(|rows| rows.saturating_sub(piece.counted));
        let ReadEnd::Page(at) = piece.end else { return Ok(Some(ReadEnd::Complete)) };
        if self.page_left.is_some_and(|rows| rows == 0 || sink.is_full()) {
            return Ok(Some(ReadEnd::Page(at)));
        }
        self.rows_left = at.rows_left;
        *place = CurrentPartition::resumed(&at);
        entries.skip_to(&at);
        self.resume = Some(at);
        Ok(None)
    }

    fn end(&mut self, audit: StaleCheck, end: ReadEnd) -> Result<ReadEnd> {
        let stale = audit.finish(self.database, &self.index, self.command, self.request)?;
        if let Some(probe) = self.probe.as_deref_mut() {
            probe.index_stale += stale;
        }
        Ok(end)
    }

    /// Reads the rows of one partition that its entries point to.
    fn group(
        &mut self,
        hits: &[IndexEntry],
        place: &mut CurrentPartition,
        sink: &mut dyn RowSink,
        audit: &mut StaleCheck,
    ) -> Result<GroupEnd> {
        let (command, shape) = (self.command, &self.index.shape);
        if place.left == 0 {
            return Ok(GroupEnd::GoOn);
        }
        let mut key = Vec::new();
        decode_decorated_key(&place.position, &mut key).map_err(|error| damaged(shape, &error))?;
        let resumed = self.resume.as_ref().filter(|resume| resume.key == key);
        let filter = if shape.is_of_partitions() {
            command.filter.clone()
        } else {
            let mut names: Vec<Vec<u8>> = hits.iter().map(|hit| hit.clustering.clone()).collect();
            names.dedup();
            names.retain(|name| command.filter.selects(name));
            if names.is_empty() {
                return Ok(GroupEnd::GoOn);
            }
            Arc::new(ClusteringFilter::Names(names))
        };
        let behind = match resumed.and_then(|resume| resume.clustering.clone()) {
            Some(clustering) if shape.is_of_partitions() => Some(clustering),
            // The entries no longer include names that were returned.
            _ => place.is_begun.then(Vec::new),
        };
        let resume = behind.map(|clustering| Resume {
            key: key.clone(),
            clustering: Some(clustering),
            rows_left: self.rows_left,
            rows_left_in_partition: place.left,
            has_given: place.is_begun,
        });
        let base = ReadCommand {
            table: command.table.clone(),
            partitions: Partitions::Keys(vec![PartitionKey::new(key)]),
            filter,
            reversed: false,
            statics: command.statics,
            columns: None,
            limits: Limits { rows: self.rows_left, per_partition: place.left },
            now_s: command.now_s,
            resume,
            page_rows: self.page_left,
        };
        // Taken after the entries were read, so that their rows are in this view.
        let view = self.database.view(&command.table)?;
        let mut counting = CountingSink::new(sink, shape, hits);
        let end = self.database.read(&base, &view, self.request, &mut counting, self.probe.as_deref_mut())?;
        self.rows_left = left_of(self.rows_left, counting.counted);
        self.page_left = self.page_left.map(|rows| rows.saturating_sub(counting.counted));
        place.left = left_of(place.left, counting.given);
        place.is_begun |= counting.given > 0;
        match end {
            ReadEnd::Page(at) => Ok(GroupEnd::Page(at)),
            ReadEnd::Complete if self.rows_left == 0 || counting.is_over => Ok(GroupEnd::Complete),
            ReadEnd::Complete => {
                if place.left > 0 {
                    counting.add_suspects(hits, audit);
                }
                Ok(GroupEnd::GoOn)
            }
        }
    }
}
