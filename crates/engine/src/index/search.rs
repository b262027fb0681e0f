//! Reads through an index: entries first, then the rows that they lead to.
//!
//! Entries of one term come in the order of rows, so a search by one term walks them a few at a time and stops where the
//! answer is whole. A range of terms is gathered and put into the order of rows. Rows of a partition are read together, by
//! name. What an entry leads to goes to the sink as any row does: whether it is what was asked for, the sink's filter
//! says, so an entry too many costs a look.

use super::attached::AttachedIndex;
use super::audit::{Audit, Group};
use crate::database::{Database, ReadRequest};
use crate::error::{Error, Result};
use crate::read::{KeyRange, PartitionKey, Partitions, Probe, ReadCommand, ReadEnd, Resume, RowSink, Taken};
use helenus_model::byte_comparable::{clustering_key, component, decode_decorated_key, end_bound};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::index::{IndexLookup, IndexSearch, IndexShape};
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::sync::Arc;

/// Entries read at a time: few at first, so that a small answer costs little.
const ENTRIES_FIRST: u64 = 32;
const ENTRIES_MAX: u64 = 1024;
/// Entries of each of several searches that are read in turn to find the one with the fewest.
const NARROWING: [u64; 4] = [16, 64, 256, 1024];
/// Entries after which a page ends however few rows they gave: as for tombstones.
const PAGE_ENTRIES_MAX: u64 = 10_000;

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    /// The partition's position in the ring.
    pub(super) position: Vec<u8>,
    /// Ordered clustering of the row; empty where the index is of partitions.
    pub(super) clustering: Vec<u8>,
    pub(super) term: Vec<u8>,
    pub(super) path: Option<Vec<u8>>,
    /// Serialised clustering values of the row.
    pub(super) values: Vec<Option<Vec<u8>>>,
    pub(super) timestamp_us: i64,
}

impl Database {
    /// Runs `command` through an index: of its partitions and rows those that the index has entries of. Rows come in the
    /// order of the table. Of several searches any would do; the one with the fewest entries is taken.
    ///
    /// # Errors
    /// As `read`, and `IndexNotAvailable` where the index is not built yet or gone.
    pub fn read_indexed(
        &self,
        command: &ReadCommand,
        searches: &[IndexSearch],
        request: ReadRequest<'_>,
        sink: &mut dyn RowSink,
        mut probe: Option<&mut Probe>,
    ) -> Result<ReadEnd> {
        for search in searches {
            self.attached(&command.table, search)?;
        }
        let chosen = match searches {
            [] | [_] => 0,
            several => self.narrowest(command, several, request, probe.as_deref_mut())?,
        };
        let Some(search) = searches.get(chosen) else { return Ok(ReadEnd::Complete) };
        let index = self.attached(&command.table, search)?;
        let mut searching = Searching { database: self, command, search, index, request, probe, rows: 0 };
        searching.run(sink)
    }

    /// Which of several searches has the fewest entries: each is read a little further in turn, until one ends. The rows
    /// of the answer are among those of each, so the shortest way to them is as right as any. Where none ends soon, the
    /// first is taken.
    fn narrowest(
        &self,
        command: &ReadCommand,
        searches: &[IndexSearch],
        request: ReadRequest<'_>,
        mut probe: Option<&mut Probe>,
    ) -> Result<usize> {
        let mut open: Vec<Entries<'_>> = searches
            .iter()
            .map(|search| Entries::new(self, command, search, request, &search.shape))
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

    fn attached(&self, table: &Table, search: &IndexSearch) -> Result<AttachedIndex> {
        let id = search.shape.index.id;
        let store = self.shared.table(table.id).ok_or_else(|| Error::UnknownTable {
            keyspace: table.keyspace.to_string(),
            table: table.name.to_string(),
        })?;
        let found = store.indexes().iter().find(|index| index.shape.index.id == id).cloned();
        found
            .filter(AttachedIndex::is_built)
            .ok_or_else(|| Error::IndexNotAvailable { index: search.shape.index.name.to_string() })
    }
}

struct Searching<'a> {
    database: &'a Database,
    command: &'a ReadCommand,
    search: &'a IndexSearch,
    index: AttachedIndex,
    request: ReadRequest<'a>,
    probe: Option<&'a mut Probe>,
    /// Rows counted in this page.
    rows: u64,
}

/// How a group of entries ended.
enum GroupEnd {
    /// Go on with the next; so many rows of its partition were given.
    GoOn(u64),
    Limit,
    Page(Resume),
}

impl Searching<'_> {
    fn run(&mut self, sink: &mut dyn RowSink) -> Result<ReadEnd> {
        let before = self.command.resume.as_ref().map_or(0, |resume| resume.rows);
        if before >= self.command.limits.rows {
            return Ok(ReadEnd::Complete);
        }
        let shape = self.index.shape.clone();
        let shape = &*shape;
        let gathered = matches!(self.search.lookup, IndexLookup::Between(..));
        let mut entries = Entries::new(self.database, self.command, self.search, self.request, shape);
        let mut chunk = if gathered { u64::MAX } else { ENTRIES_FIRST };
        let mut looked = 0;
        // The partition at hand, and the rows of it that were given: it may go on in the next chunk.
        let mut partition: Option<(Vec<u8>, u64)> = None;
        if let Some(resume) = self.command.resume.as_ref().filter(|resume| resume.clustering.is_some()) {
            let position = PartitionKey::new(resume.key.clone()).decorated;
            partition = Some((position, resume.rows_in_partition));
        }
        let mut audit = Audit::default();
        loop {
            let (mut hits, is_last) = entries.next(chunk, self.probe.as_deref_mut())?;
            chunk = (chunk.saturating_mul(4)).min(ENTRIES_MAX);
            if gathered {
                hits.sort_unstable();
            }
            looked += hits.len() as u64;
            let last = hits.last().map(|hit| (hit.position.clone(), hit.clustering.clone()));
            let mut rest = &hits[..];
            while let Some(first) = rest.first() {
                let count = rest.iter().take_while(|hit| hit.position == first.position).count();
                let (group, after) = rest.split_at(count);
                rest = after;
                let given = match &partition {
                    Some((position, given)) if *position == first.position => *given,
                    _ => 0,
                };
                match self.group(group, given, before, sink, &mut audit)? {
                    GroupEnd::GoOn(given) => partition = Some((first.position.clone(), given)),
                    GroupEnd::Limit => return self.end(audit, ReadEnd::Complete),
                    GroupEnd::Page(at) => return self.end(audit, ReadEnd::Page(at)),
                }
            }
            if is_last {
                return self.end(audit, ReadEnd::Complete);
            }
            if self.command.page_rows.is_some()
                && looked >= PAGE_ENTRIES_MAX
                && let Some((position, clustering)) = last
            {
                let mut key = Vec::new();
                decode_decorated_key(&position, &mut key).map_err(|error| damaged(shape, &error))?;
                let clustering = (!shape.is_of_partitions()).then_some(clustering);
                let rows_in_partition = partition.as_ref().map_or(0, |(_, given)| *given);
                let at = Resume { key, clustering, rows: before + self.rows, rows_in_partition };
                return self.end(audit, ReadEnd::Page(at));
            }
        }
    }

    fn end(&mut self, audit: Audit, end: ReadEnd) -> Result<ReadEnd> {
        let stale = audit.finish(self.database, &self.index, self.command, self.request)?;
        if let Some(probe) = self.probe.as_deref_mut() {
            probe.index_stale += stale;
        }
        Ok(end)
    }

    /// Reads the rows of one partition that entries lead to.
    fn group(
        &mut self,
        hits: &[Hit],
        given: u64,
        before: u64,
        sink: &mut dyn RowSink,
        audit: &mut Audit,
    ) -> Result<GroupEnd> {
        let (command, shape) = (self.command, &self.index.shape);
        let Some(first) = hits.first() else { return Ok(GroupEnd::GoOn(given)) };
        if given >= command.limits.per_partition {
            return Ok(GroupEnd::GoOn(given));
        }
        let mut key = Vec::new();
        decode_decorated_key(&first.position, &mut key).map_err(|error| damaged(shape, &error))?;
        let resumed = command.resume.as_ref().filter(|resume| resume.key == key);
        let filter = if shape.is_of_partitions() {
            command.filter.clone()
        } else {
            let mut names: Vec<Vec<u8>> = hits.iter().map(|hit| hit.clustering.clone()).collect();
            names.dedup();
            names.retain(|name| selects(&command.filter, name));
            if names.is_empty() {
                return Ok(GroupEnd::GoOn(given));
            }
            Arc::new(ClusteringFilter::Names(names))
        };
        let left = command.limits.rows.saturating_sub(before + self.rows);
        let resume = match resumed.and_then(|resume| resume.clustering.clone()) {
            Some(clustering) if shape.is_of_partitions() => Some(Resume {
                key: key.clone(),
                clustering: Some(clustering),
                rows: 0,
                rows_in_partition: given,
            }),
            // Names that were given are not among the entries any more.
            _ if given > 0 => Some(Resume {
                key: key.clone(),
                clustering: Some(Vec::new()),
                rows: 0,
                rows_in_partition: given,
            }),
            _ => None,
        };
        let base = ReadCommand {
            table: command.table.clone(),
            partitions: Partitions::Keys(vec![PartitionKey::new(key)]),
            filter,
            reversed: false,
            statics: command.statics,
            limits: Limits { rows: left, per_partition: command.limits.per_partition },
            now_s: command.now_s,
            resume,
            page_rows: command.page_rows.map(|rows| rows.saturating_sub(self.rows)),
        };
        // After the entries: what they lead to is in this view.
        let view = self.database.view(&command.table)?;
        let mut counting = Group::new(sink, shape, hits);
        let end = self.database.read(&base, &view, self.request, &mut counting, self.probe.as_deref_mut())?;
        let counted = counting.counted;
        self.rows += counted;
        match end {
            ReadEnd::Page(at) => Ok(GroupEnd::Page(Resume { rows: before + self.rows, ..at })),
            ReadEnd::Complete if counted >= left => Ok(GroupEnd::Limit),
            ReadEnd::Complete => {
                let given = given + counting.given;
                if given < command.limits.per_partition {
                    counting.tell(hits, audit);
                }
                Ok(GroupEnd::GoOn(given))
            }
        }
    }
}

/// Whether a filter takes a row by its ordered clustering.
fn selects(filter: &ClusteringFilter, name: &[u8]) -> bool {
    match filter {
        ClusteringFilter::Names(names) => names.binary_search_by(|known| known[..].cmp(name)).is_ok(),
        ClusteringFilter::Slices(slices) => {
            slices.iter().any(|slice| &slice.start[..] <= name && name < &slice.end[..])
        }
    }
}

pub(super) fn damaged(shape: &IndexShape, error: &helenus_model::types::TypeError) -> Error {
    Error::Unindexable {
        message: format!("index {} is damaged: {error}; drop it and make it again", shape.index.name),
    }
}

/// The entries of a search, from where its page begins.
struct Entries<'a> {
    database: &'a Database,
    hidden: ReadCommand,
    request: ReadRequest<'a>,
    shape: &'a IndexShape,
    search: &'a IndexSearch,
    partitions: &'a Partitions,
    skips: Option<Skip>,
}

/// What a page before has seen, for searches whose entries do not come in the order of rows.
struct Skip {
    position: Vec<u8>,
    clustering: Option<Vec<u8>>,
}

impl<'a> Entries<'a> {
    fn new(
        database: &'a Database,
        command: &'a ReadCommand,
        search: &'a IndexSearch,
        request: ReadRequest<'a>,
        shape: &'a IndexShape,
    ) -> Entries<'a> {
        let gathered = matches!(search.lookup, IndexLookup::Between(..));
        let skips = command.resume.as_ref().filter(|_| gathered).map(|resume| Skip {
            position: PartitionKey::new(resume.key.clone()).decorated,
            clustering: resume.clustering.clone(),
        });
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
            limits: Limits::NONE,
            now_s: command.now_s,
            resume: None,
            page_rows: None,
        };
        Entries { database, hidden, request, shape, search, partitions: &command.partitions, skips }
    }

    /// The next entries, at most about `count`, and whether there are no more.
    fn next(&mut self, count: u64, probe: Option<&mut Probe>) -> Result<(Vec<Hit>, bool)> {
        self.hidden.page_rows = (count != u64::MAX).then_some(count);
        let view = self.database.view(&self.shape.table)?;
        let mut sink = HitSink {
            shape: self.shape,
            search: self.search,
            partitions: self.partitions,
            skips: &self.skips,
            hits: Vec::new(),
        };
        let mut own = probe.is_some().then(Probe::default);
        let end = self.database.read(&self.hidden, &view, self.request, &mut sink, own.as_mut())?;
        let hits = sink.hits;
        if let (Some(probe), Some(own)) = (probe, own) {
            probe.add_index(&own, hits.len() as u64);
        }
        match end {
            ReadEnd::Complete => Ok((hits, true)),
            ReadEnd::Page(at) => {
                let is_last = at.clustering.is_none();
                self.hidden.resume = Some(at);
                Ok((hits, is_last))
            }
        }
    }
}

/// Appends a byte string as a part of the hidden table's clustering.
fn put(bytes: &[u8], out: &mut Vec<u8>) {
    let put = component((&CqlType::Blob, false), Some(bytes), out);
    assert!(put.is_ok(), "any bytes are a blob");
}

/// The entries of one term that a command may want: those of its partitions, behind the end of its last page.
fn slices_within(prefix: &[u8], command: &ReadCommand, shape: &IndexShape) -> Vec<Slice> {
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

/// The entries of one partition, narrowed to the rows that the command wants where they are in the order of rows.
fn slices_of_partition(
    (prefix, position): (&[u8], &[u8]),
    command: &ReadCommand,
    shape: &IndexShape,
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

/// Takes entries out of the hidden table.
struct HitSink<'a> {
    shape: &'a IndexShape,
    search: &'a IndexSearch,
    partitions: &'a Partitions,
    skips: &'a Option<Skip>,
    hits: Vec<Hit>,
}

impl HitSink<'_> {
    /// Whether a partition is among those asked for.
    fn wants(&self, position: &[u8]) -> bool {
        match self.partitions {
            Partitions::Keys(keys) => keys.iter().any(|key| key.decorated == position),
            Partitions::Range(range) => &range.start[..] <= position && position < &range.end[..],
        }
    }
}

impl RowSink for HitSink<'_> {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> Result<Taken> {
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
        let is_seen = self.skips.as_ref().is_some_and(|seen| {
            position < seen.position
                || position == seen.position
                    && match &seen.clustering {
                        None => true,
                        Some(_) if shape.is_of_partitions() => false,
                        Some(last) => clustering <= *last,
                    }
        });
        if is_seen || !self.wants(&position) {
            return Ok(Taken::Counted);
        }
        self.hits.push(Hit {
            position,
            clustering,
            term,
            path: shape.has_path().then(|| row.clustering(at + 1 + rows).unwrap_or_default().to_vec()),
            values: values().map(|value| value.map(<[u8]>::to_vec)).collect(),
            timestamp_us: row.row.liveness.timestamp_us,
        });
        Ok(Taken::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> Result<Taken> {
        Ok(Taken::Skipped)
    }
}
