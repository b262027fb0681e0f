//! Reads the entries of a search from the index's hidden table.
//!
//! Entries of one term come in the order of rows, so a search for one term reads a few at a time. A range of terms is
//! read completely, and its first entries in the order of rows are collected. If there are more, the range is read
//! again for the next ones. So the memory of a search does not grow with its range. `table_scan` bounds the time.

use crate::commitlog::Ticket;
use crate::database::{Database, ReadRequest};
use crate::error::{Error, Result};
use crate::read::{
    KeyRange, PartitionKey, Partitions, Probe, ReadCommand, ReadEnd, Resume, RowOutcome, RowSink,
};
use helenus_model::byte_comparable::{clustering_key, component, end_bound};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::index::{IndexLayout, IndexLookup, IndexSearch};
use helenus_model::row::RowView;
use helenus_model::types::CqlType;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

/// The most entries of a range of terms that are collected at a time.
const GATHERED_MAX: usize = 1 << 16;

/// A found entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexEntry {
    /// The partition's position in the ring.
    pub(super) position: Vec<u8>,
    /// Byte-comparable clustering of the row; empty if the index is of partitions.
    pub(super) clustering: Vec<u8>,
    pub(super) term: Vec<u8>,
    pub(super) path: Option<Vec<u8>>,
    /// Serialised clustering values of the row.
    pub(super) values: Vec<Option<Vec<u8>>>,
    pub(super) timestamp_us: i64,
}

/// The entries of a search, from the beginning of its page.
pub(super) struct Entries<'a> {
    database: &'a Database,
    hidden: ReadCommand,
    request: ReadRequest<'a>,
    shape: &'a IndexLayout,
    search: &'a IndexSearch,
    partitions: &'a Partitions,
    /// The partitions of the command, if it names them.
    positions: Option<HashSet<&'a [u8]>>,
    skips: Option<LastSeen>,
}

/// The last row of the page before, for searches whose entries do not come in the order of rows.
struct LastSeen {
    position: Vec<u8>,
    clustering: Option<Vec<u8>>,
}

impl LastSeen {
    fn of(resume: &Resume) -> LastSeen {
        let position = PartitionKey::new(resume.key.clone()).decorated;
        LastSeen { position, clustering: resume.clustering.clone() }
    }

    /// Whether a row is not after this place.
    fn has(&self, shape: &IndexLayout, position: &[u8], clustering: &[u8]) -> bool {
        match (position.cmp(&self.position), &self.clustering) {
            (Ordering::Less, _) | (Ordering::Equal, None) => true,
            (Ordering::Equal, Some(last)) => !shape.is_of_partitions() && clustering <= &last[..],
            (Ordering::Greater, _) => false,
        }
    }
}

impl<'a> Entries<'a> {
    pub(super) fn new(
        database: &'a Database,
        command: &'a ReadCommand,
        search: &'a IndexSearch,
        request: ReadRequest<'a>,
        shape: &'a IndexLayout,
    ) -> Entries<'a> {
        let gathered = matches!(search.lookup, IndexLookup::Between(..));
        let skips = command.resume.as_ref().filter(|_| gathered).map(LastSeen::of);
        let positions = match &command.partitions {
            Partitions::Keys(keys) => Some(keys.iter().map(|key| &key.decorated[..]).collect()),
            Partitions::Range(_) => None,
        };
        let (key, slices) = match &search.lookup {
            IndexLookup::Equal(term) => {
                let mut prefix = Vec::new();
                if shape.is_ordered() {
                    put(term, &mut prefix);
                }
                (shape.key_of(term), slices_within(&prefix, command, shape))
            }
            IndexLookup::Between(from, to) => {
                let mut slice = Slice::all();
                if let Some(from) = from {
                    slice.start.clear();
                    put(from, &mut slice.start);
                    end_bound(true, &mut slice.start);
                }
                if let Some(to) = to {
                    slice.end.clear();
                    put(to, &mut slice.end);
                    end_bound(false, &mut slice.end);
                }
                (shape.key_of(&[]), vec![slice])
            }
        };
        let hidden = ReadCommand {
            table: shape.table.clone(),
            partitions: Partitions::Keys(vec![PartitionKey::new(key)]),
            filter: Arc::new(ClusteringFilter::Slices(
                slices.into_iter().filter(|slice| !slice.is_empty()).collect(),
            )),
            reversed: false,
            statics: false,
            columns: None,
            limits: Limits::NONE,
            now_s: command.now_s,
            resume: None,
            page_rows: None,
        };
        let partitions = &command.partitions;
        Entries { database, hidden, request, shape, search, partitions, positions, skips }
    }

    /// Whether entries come in the order of terms, and not in the order of rows.
    pub(super) fn is_by_terms(&self) -> bool {
        matches!(self.search.lookup, IndexLookup::Between(..))
    }

    /// Leaves out the rows up to where a read has come by another way.
    pub(super) fn skip_to(&mut self, at: &Resume) {
        self.skips = Some(LastSeen::of(at));
    }

    /// Reads about `count` more entries of a search in the order of terms, and keeps the first ones in the order of rows.
    /// Returns whether these were the last of the range; the next call then begins with its first entry again.
    pub(super) fn gather(
        &mut self,
        count: u64,
        gathered: &mut FirstEntries,
        probe: Option<&mut Probe>,
    ) -> Result<bool> {
        self.hidden.page_rows = Some(count);
        let (more, end) = self.read(std::mem::take(gathered), probe)?;
        *gathered = more;
        self.hidden.resume = match end {
            ReadEnd::Page(at) if at.clustering.is_some() => Some(at),
            ReadEnd::Page(_) | ReadEnd::Complete => None,
        };
        Ok(self.hidden.resume.is_none())
    }

    /// The entries that were gathered, but for rows that are to be left out by now.
    pub(super) fn sorted(&self, mut gathered: FirstEntries) -> Vec<IndexEntry> {
        gathered.cut();
        if let Some(seen) = &self.skips {
            gathered.hits.retain(|hit| !seen.has(self.shape, &hit.position, &hit.clustering));
        }
        gathered.hits
    }

    /// The next entries in their stored order, about `count` at most, and whether they are the last.
    pub(super) fn next(&mut self, count: u64, probe: Option<&mut Probe>) -> Result<(Vec<IndexEntry>, bool)> {
        self.hidden.page_rows = Some(count);
        let (gathered, end) = self.read(FirstEntries::default(), probe)?;
        match end {
            ReadEnd::Complete => Ok((gathered.hits, true)),
            ReadEnd::Page(at) => {
                let is_last = at.clustering.is_none();
                self.hidden.resume = Some(at);
                Ok((gathered.hits, is_last))
            }
        }
    }

    fn read(&self, gathered: FirstEntries, probe: Option<&mut Probe>) -> Result<(FirstEntries, ReadEnd)> {
        let view = self.database.view(&self.shape.table)?;
        let mut sink = HitSink {
            shape: self.shape,
            search: self.search,
            partitions: self.partitions,
            positions: self.positions.as_ref(),
            skips: &self.skips,
            gathered,
        };
        let seen_before = sink.gathered.seen;
        let mut own = probe.is_some().then(Probe::default);
        let end = self.database.read(&self.hidden, &view, self.request, &mut sink, own.as_mut())?;
        let gathered = sink.gathered;
        if let (Some(probe), Some(own)) = (probe, own) {
            probe.add_index(&own, gathered.seen - seen_before);
        }
        Ok((gathered, end))
    }
}

/// Appends a byte string as a component of the hidden table's clustering.
fn put(bytes: &[u8], out: &mut Vec<u8>) {
    let put = component((&CqlType::Blob, false), Some(bytes), out);
    assert!(put.is_ok(), "any bytes are a blob");
}

/// The entries of one term that a command may need: those of its partitions, after the end of its last page.
fn slices_within(prefix: &[u8], command: &ReadCommand, shape: &IndexLayout) -> Vec<Slice> {
    let mut slices = Vec::new();
    let bound = |bytes: &[u8], before: bool| {
        let mut out = prefix.to_vec();
        put(bytes, &mut out);
        end_bound(before, &mut out);
        out
    };
    match &command.partitions {
        Partitions::Range(range) if *range == KeyRange::all() => {
            let (mut start, mut end) = (prefix.to_vec(), prefix.to_vec());
            end_bound(true, &mut start);
            end_bound(false, &mut end);
            slices.push(Slice { start, end });
        }
        Partitions::Range(range) => {
            slices.push(Slice { start: bound(&range.start, true), end: bound(&range.end, true) });
        }
        Partitions::Keys(keys) => {
            let mut keys: Vec<&PartitionKey> = keys.iter().collect();
            keys.sort_by(|a, b| a.decorated.cmp(&b.decorated));
            for key in keys {
                slices.extend(slices_of_partition((prefix, &key.decorated), command, shape));
            }
        }
    }
    if let Some(resume) = &command.resume {
        let position = PartitionKey::new(resume.key.clone()).decorated;
        let start = match &resume.clustering {
            None => bound(&position, false),
            Some(_) if shape.is_of_partitions() => bound(&position, true),
            Some(clustering) => {
                let mut start = prefix.to_vec();
                put(&position, &mut start);
                start.extend_from_slice(clustering);
                start.pop();
                end_bound(false, &mut start);
                start
            }
        };
        for slice in &mut slices {
            if slice.start < start {
                slice.start.clone_from(&start);
            }
        }
    }
    slices
}

/// The entries of one partition. If they are in the order of rows, only those of rows that the command selects.
fn slices_of_partition(
    (prefix, position): (&[u8], &[u8]),
    command: &ReadCommand,
    shape: &IndexLayout,
) -> Vec<Slice> {
    let mut of_partition = prefix.to_vec();
    put(position, &mut of_partition);
    let within = |bytes: &[u8]| [&of_partition[..], bytes].concat();
    let whole = || {
        let (mut start, mut end) = (of_partition.clone(), of_partition.clone());
        end_bound(true, &mut start);
        end_bound(false, &mut end);
        Slice { start, end }
    };
    match &*command.filter {
        _ if shape.is_of_partitions() => vec![whole()],
        ClusteringFilter::Slices(slices) => {
            let cut = |slice: &Slice| {
                let all = whole();
                Slice { start: within(&slice.start).max(all.start), end: within(&slice.end).min(all.end) }
            };
            slices.iter().map(cut).collect()
        }
        ClusteringFilter::Names(names) => {
            let around = |name: &Vec<u8>| {
                let (mut start, mut end) = (within(name), within(name));
                start.pop();
                end.pop();
                end_bound(true, &mut start);
                end_bound(false, &mut end);
                Slice { start, end }
            };
            names.iter().map(around).collect()
        }
    }
}

/// Found entries: all, or the first ones in the order of rows.
#[derive(Default)]
pub(super) struct FirstEntries {
    hits: Vec<IndexEntry>,
    /// The number of entries to keep; `None` for all.
    most: Option<usize>,
    /// Whether entries were dropped, all of them after those kept.
    pub(super) is_cut: bool,
    /// The number of entries found.
    seen: u64,
}

impl FirstEntries {
    /// None yet, and room for as many as are gathered at a time.
    pub(super) fn of_range() -> FirstEntries {
        FirstEntries { most: Some(GATHERED_MAX), ..FirstEntries::default() }
    }

    fn add(&mut self, hit: IndexEntry) {
        self.seen += 1;
        self.hits.push(hit);
        if self.most.is_some_and(|most| self.hits.len() >= 2 * most) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.hits.sort_unstable();
        if let Some(most) = self.most.filter(|most| self.hits.len() > *most) {
            self.hits.truncate(most);
            self.is_cut = true;
        }
    }
}

/// Collects entries from the hidden table.
struct HitSink<'a> {
    shape: &'a IndexLayout,
    search: &'a IndexSearch,
    partitions: &'a Partitions,
    positions: Option<&'a HashSet<&'a [u8]>>,
    skips: &'a Option<LastSeen>,
    gathered: FirstEntries,
}

impl HitSink<'_> {
    /// Whether the command selects a partition.
    fn wants(&self, position: &[u8]) -> bool {
        match (self.partitions, self.positions) {
            (Partitions::Keys(_), positions) => positions.is_some_and(|known| known.contains(position)),
            (Partitions::Range(range), _) => &range.start[..] <= position && position < &range.end[..],
        }
    }
}

impl RowSink for HitSink<'_> {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        let shape = self.shape;
        let at = usize::from(shape.is_ordered());
        let term = match &self.search.lookup {
            IndexLookup::Equal(term) => term.clone(),
            IndexLookup::Between(..) => row.clustering(0).unwrap_or_default().to_vec(),
        };
        let rows = if shape.is_of_partitions() { 0 } else { shape.base.clustering.len() };
        let values = || (at + 1..at + 1 + rows).map(|index| row.clustering(index));
        let mut clustering = Vec::new();
        if !shape.is_of_partitions() {
            clustering_key(values(), &shape.base.clustering, &mut clustering)
                .map_err(|error| damaged(shape, &error))?;
        }
        let position = row.clustering(at).unwrap_or_default().to_vec();
        let is_seen = self.skips.as_ref().is_some_and(|seen| seen.has(shape, &position, &clustering));
        if is_seen || !self.wants(&position) {
            return Ok(RowOutcome::Counted);
        }
        self.gathered.add(IndexEntry {
            position,
            clustering,
            term,
            path: shape.has_path().then(|| row.clustering(at + 1 + rows).unwrap_or_default().to_vec()),
            values: values().map(|value| value.map(<[u8]>::to_vec)).collect(),
            timestamp_us: row.row.liveness.timestamp_us,
        });
        Ok(RowOutcome::Counted)
    }

    fn hold_until(&mut self, _ticket: Ticket) -> Option<Ticket> {
        // Only the rows of the entries are returned, and they are read later.
        None
    }

    fn partition_end(&mut self, _rows: u64) -> Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}

pub(super) fn damaged(shape: &IndexLayout, error: &helenus_model::types::TypeError) -> Error {
    Error::Unindexable {
        message: format!("index {} is damaged: {error}; drop it and make it again", shape.index.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_in_the_order_of_rows_is_kept_within_bounds() {
        let mut gathered = FirstEntries { most: Some(4), ..FirstEntries::default() };
        for number in 0..100_u16 {
            // All numbers below a hundred, each once.
            let position = vec![(number * 37 % 100) as u8];
            let (clustering, term) = (Vec::new(), Vec::new());
            gathered.add(IndexEntry {
                position,
                clustering,
                term,
                path: None,
                values: Vec::new(),
                timestamp_us: 0,
            });
            assert!(gathered.hits.len() <= 8);
        }
        gathered.cut();
        let kept: Vec<u8> = gathered.hits.iter().map(|hit| hit.position[0]).collect();
        assert_eq!((kept, gathered.is_cut, gathered.seen), (vec![0, 1, 2, 3], true, 100));
    }
}
