//! Goes through the data of a scrub, and decides what is kept, what is put in order, and what is lost.

use super::late::{Late, LateParts, Part};
use super::output::Output;
use super::overflowed::{is_overflowed, reinsert};
use super::partition::{Damage, Sink};
use super::report::{Loss, Lost, Scrubbed};
use super::sorter::{Pieces, RowSorter};
use super::source::{Behind, DataSource, Extent, Front, decorated};
use crate::error::Result;
use crate::names::Descriptor;
use crate::table::{Parts, RowIndex, remove_files};
use crate::version::Version;
use crate::writer::{Beyond2038, WriterOptions};
use helenus_host::Disk;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowBuf;
use helenus_model::schema::Table;
use helenus_model::unfiltered::Unfiltered;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The greatest compression factor of data that does not consist of zeroes.
const COMPRESSION_MAX: u64 = 64;

/// Number of rows and markers between two progress reports.
const PROGRESS_ELEMENTS: u64 = 1024;

/// Bytes of rows that are out of order and are sorted at once, by default.
pub const SORTED_BYTES_DEFAULT: usize = 64 << 20;

/// How an SSTable is scrubbed.
pub struct Scrubbing<'a> {
    /// The folder of the new SSTables.
    pub folder: &'a Path,
    /// Keyspace and table, as far as they are known.
    pub names: (&'a str, &'a str),
    /// The table's own schema, if it is known: see `SsTable::open_by_header`.
    pub known: Option<&'a Table>,
    /// The version to write.
    pub version: Version,
    /// Leave out rows with values that are not valid for their columns' types.
    pub validate: bool,
    /// Continue after damage in counter tables too, where a loss makes counts wrong.
    pub skip_corrupted: bool,
    /// Repair rows whose expiry overflowed: they then expire in 2038 (CASSANDRA-14092).
    pub reinsert_overflowed: bool,
    /// Write our page checksums.
    pub page_checksums: bool,
    /// Bytes of memory for rows that are put in order. More rows are sorted in pieces on disk.
    pub sorted_bytes: usize,
    /// Makes the descriptor of each new SSTable. Called before anything of it is written.
    pub next: &'a mut dyn FnMut() -> Result<Descriptor>,
    /// Called with each loss.
    pub lost: &'a mut dyn FnMut(&Loss),
    /// Called with the position in the data, and the size of the data.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

/// Writes everything that can be read of an SSTable into one or several new ones. The old one is not changed.
///
/// # Errors
/// `Corrupt` if its header cannot be read, or, in a counter table without `skip_corrupted`, for any loss; failures of
/// the disk. The new SSTables are then removed.
pub fn scrub(
    disk: &Arc<dyn Disk>,
    (folder, descriptor): (&Path, Descriptor),
    how: Scrubbing<'_>,
) -> Result<Scrubbed> {
    let parts = Parts::open(&**disk, (folder, descriptor), (how.names, how.known))?;
    let compression = parts.data.compression_params();
    // A damaged CompressionInfo.db may state any size of the data.
    let bytes = parts.data.data_length().min(parts.data.file().size().saturating_mul(COMPRESSION_MAX));
    let options = WriterOptions::as_written(&parts.schema, &parts.statistics, (compression, bytes));
    let mut options = options.for_version(how.version);
    options.page_checksums = how.page_checksums;
    // In versions with signed times, times that overflowed are read as the latest time of all, which these versions
    // cannot store.
    options.beyond_2038 = Beyond2038::Cap;
    let mut run = Run {
        scrubbed: Scrubbed {
            notes: parts.notes.clone(),
            data_bytes: parts.data.data_length(),
            ..Scrubbed::default()
        },
        is_strict: parts.schema.is_counter() && !how.skip_corrupted,
        source: DataSource::new(&parts),
        how,
        disk,
        options,
        front: Front::default(),
        highest: Vec::new(),
        last: Vec::new(),
        late: LateParts::default(),
        damage: BTreeMap::new(),
        lost_fronts: BTreeMap::new(),
        begun: Vec::new(),
        reinserted: RowBuf::default(),
        unmatched: 0,
        elements: 0,
    };
    let done = run.all();
    let mut scrubbed = run.scrubbed;
    if let Err(error) = done {
        for begun in &run.begun {
            remove_files(&**disk, run.how.folder, begun)?;
        }
        return Err(error);
    }
    scrubbed.notes.extend(run.source.places.problem.take());
    Ok(scrubbed)
}

/// The state of a scrub. `partition` has the part that reads the rows of one partition.
pub(super) struct Run<'a, 'h> {
    pub(super) source: DataSource<'a>,
    pub(super) how: Scrubbing<'h>,
    pub(super) disk: &'a Arc<dyn Disk>,
    pub(super) options: WriterOptions,
    /// Whether a loss ends the scrub with an error.
    is_strict: bool,
    pub(super) front: Front,
    /// Ordered clustering position of the last row or marker of the partition that was in order.
    pub(super) highest: Vec<u8>,
    /// Decorated key of the last partition written.
    pub(super) last: Vec<u8>,
    pub(super) late: LateParts,
    /// The damage found so far, by its position. Parts of the data are read twice, and must be read alike.
    pub(super) damage: BTreeMap<u64, Damage>,
    /// The fronts of partitions of which a part is lost, and the position of the first row or marker behind it, by the
    /// partitions' positions.
    lost_fronts: BTreeMap<u64, (Front, Behind)>,
    /// Every SSTable of which something may have been written.
    pub(super) begun: Vec<Descriptor>,
    /// Buffer for a row whose expiry is repaired.
    pub(super) reinserted: RowBuf,
    /// Number of partitions that the index does not have at their positions.
    unmatched: usize,
    elements: u64,
    pub(super) scrubbed: Scrubbed,
}

impl Run<'_, '_> {
    fn all(&mut self) -> Result<()> {
        let mut output = self.output(0)?;
        let done = self.in_order(&mut output);
        self.finished(output, done)?;
        while !self.late.is_empty() {
            self.write_late()?;
        }
        Ok(())
    }

    /// A further SSTable. Only the first can keep the level of the old one, because the others overlap with it.
    pub(super) fn output(&mut self, number: u64) -> Result<Output> {
        let mut options = self.options.clone();
        if number > 0 {
            options.level = 0;
        }
        self.output_with(options)
    }

    /// An SSTable with one partition, which is merged with others.
    pub(super) fn piece(&mut self) -> Result<Output> {
        self.output_with(WriterOptions { level: 0, estimated_keys: 1, ..self.options.clone() })
    }

    fn output_with(&mut self, options: WriterOptions) -> Result<Output> {
        let descriptor = (self.how.next)()?;
        self.begun.push(descriptor);
        Ok(Output::new(self.disk.clone(), self.how.folder.to_owned(), descriptor, options))
    }

    pub(super) fn finished(&mut self, output: Output, done: Result<()>) -> Result<()> {
        if let Err(error) = done {
            // An error of `abort` is ignored, because the first error is more useful.
            let _ = output.abort();
            return Err(error);
        }
        if let Some(written) = output.finish(self.scrubbed.losses == 0)? {
            self.scrubbed.times_capped += written.times_capped;
            self.scrubbed.written.push(written.descriptor);
        }
        Ok(())
    }

    /// Writes all partitions except those that are out of order.
    fn in_order(&mut self, output: &mut Output) -> Result<()> {
        let length = self.source.parts.data.data_length();
        let mut start = 0;
        while start < length {
            start = self.next_partition(start, output)?;
            if self.late.is_full() {
                self.write_late()?;
            }
        }
        let beyond = self.source.places.from(length, &mut self.source.cx);
        // An entry beyond the end may be that of a partition that was found elsewhere.
        if let Some(first) = self.source.beyond.take().as_ref().or_else(|| beyond.get(self.unmatched)) {
            self.front.key = first.key.clone().unwrap_or_default();
            let what = (Lost::Partition, first.start, 0);
            self.lose(what, "the index has partitions behind the end of the data")?;
        }
        Ok(())
    }

    /// Handles the partition at `start`. Returns the position at which the next one should begin.
    fn next_partition(&mut self, start: u64, output: &mut Output) -> Result<u64> {
        let read = self.source.front(start, &mut self.front, self.how.validate);
        let key = read.is_ok().then_some(&*self.front.key);
        let place = self.source.places.pass(start, key, &mut self.source.cx);
        self.unmatched += usize::from(place.is_none());
        let found = match read {
            Ok(found) => self.source.trust(&self.front, place.as_ref(), &self.last).map(|()| found),
            Err(problem) => Err(problem),
        };
        let extent = Extent { start, place };
        let cut = match found {
            Ok(None) => None,
            Ok(Some((at, problem))) => Some(self.without_static_row(&extent, (at, &problem))?),
            Err(problem) => return self.without_front(extent, &problem, output),
        };
        self.prepare_static_row();
        if self.front.decorated <= self.last {
            self.scrubbed.partitions_out_of_order += 1;
            self.late.push(Late::new(&self.front.key, start, Part::Whole));
            return self.content(&extent, cut, &mut Sink::Nowhere);
        }
        self.partition(&extent, cut, output)
    }

    /// Handles a partition whose key can be read, but not its static row. Returns where its rows begin.
    fn without_static_row(&mut self, extent: &Extent, (at, problem): (u64, &str)) -> Result<Behind> {
        let behind = self.source.behind_damage(extent, at, &self.front.decorated);
        self.lose((Lost::Front, at, self.source.end_of_loss(behind.position) - at), problem)?;
        self.lost_fronts.insert(extent.start, (self.front.clone(), behind));
        Ok(behind)
    }

    /// Handles a partition whose front cannot be read. The index may have its key and its deletion.
    fn without_front(&mut self, extent: Extent, problem: &str, output: &mut Output) -> Result<u64> {
        let start = extent.start;
        self.front = Front::default();
        let known = extent.place.as_ref().filter(|place| self.source.agrees(place, &self.last));
        if let Some((key, deletion)) = known.and_then(|place| {
            let deletion = place.index.as_ref().map_or(DeletionTime::LIVE, RowIndex::deletion);
            Some((place.key.clone()?, deletion))
        }) {
            self.front = Front { decorated: decorated(&key), key, deletion, ..Front::default() };
            let behind = self.source.behind_damage(&extent, start, &self.front.decorated);
            let has_content = !behind.is_end || !deletion.is_live();
            if has_content && self.front.decorated > self.last {
                self.lose((Lost::Front, start, self.source.end_of_loss(behind.position) - start), problem)?;
                self.lost_fronts.insert(start, (self.front.clone(), behind));
                return self.partition(&extent, Some(behind), output);
            }
        }
        let readable = self.source.readable_from(start);
        let next = self.source.next_partition((start, readable), &self.last).start;
        self.lose((Lost::Partition, start, self.source.end_of_loss(next) - start), problem)?;
        Ok(next)
    }

    /// Writes the parts in `late` into a further SSTable, in order; further copies of partitions in it are merged into
    /// another one.
    fn write_late(&mut self) -> Result<()> {
        let late = self.late.take_sorted();
        let mut output = self.output(1)?;
        let last = std::mem::take(&mut self.last);
        let mut copies = Vec::new();
        let done = self.latecomers(late, &mut output, &mut copies);
        self.last = last;
        self.finished(output, done)?;
        if copies.is_empty() { Ok(()) } else { self.write_copies(&copies) }
    }

    /// Reads the front of a part that is out of order. Returns where its rows begin if its front is lost; `None` if
    /// nothing of it can be read.
    pub(super) fn late_front(&mut self, late: &Late) -> Result<Option<Option<Behind>>> {
        let cut = match self.lost_fronts.get(&late.start) {
            Some((front, behind)) => {
                self.front.clone_from(front);
                Some(*behind)
            }
            None => match self.source.front(late.start, &mut self.front, self.how.validate) {
                Ok(_) => None,
                Err(problem) => {
                    self.lose((Lost::Partition, late.start, 0), &problem)?;
                    return Ok(None);
                }
            },
        };
        self.prepare_static_row();
        Ok(Some(cut))
    }

    /// `copies` gets the parts that do not ascend.
    fn latecomers(&mut self, late: Vec<Late>, output: &mut Output, copies: &mut Vec<Late>) -> Result<()> {
        for late in late {
            let extent = Extent { start: late.start, place: None };
            let Some(cut) = self.late_front(&late)? else { continue };
            if self.front.decorated <= self.last {
                copies.push(late);
                continue;
            }
            match late.part {
                Part::Whole => _ = self.partition(&extent, cut, output)?,
                Part::Rows => self.rows_in_order(&extent, cut, output)?,
            }
        }
        Ok(())
    }

    /// Repairs the expiry of the static row, if that is wanted.
    fn prepare_static_row(&mut self) {
        let Front { static_row, is_reinserted, .. } = &mut self.front;
        *is_reinserted = self.how.reinsert_overflowed && is_overflowed(static_row);
        if *is_reinserted {
            reinsert(static_row);
        }
    }

    /// Writes the current partition, except rows that are out of order, which become late. Returns the position at
    /// which the next partition should begin.
    pub(super) fn partition(
        &mut self,
        extent: &Extent,
        cut: Option<Behind>,
        output: &mut Output,
    ) -> Result<u64> {
        self.last.clone_from(&self.front.decorated);
        output.begin(&self.front.key, self.front.deletion, &self.front.static_row)?;
        if let Some(problem) = self.front.static_problem.take() {
            self.lose((Lost::Front, extent.start, 0), &problem)?;
        }
        let late_before = self.scrubbed.rows_out_of_order;
        let next = self.content(extent, cut, &mut Sink::Kept(output))?;
        let (is_there, was_open) = output.end()?;
        if was_open {
            self.lose((Lost::RangeTombstone, next, 0), "a range tombstone is not closed")?;
        }
        self.scrubbed.partitions += u64::from(is_there);
        self.scrubbed.rows_reinserted += u64::from(self.front.is_reinserted);
        self.scrubbed.empty_partitions += u64::from(!is_there);
        if self.scrubbed.rows_out_of_order > late_before {
            self.late.push(Late::new(&self.front.key, extent.start, Part::Rows));
        }
        Ok(next)
    }

    /// Writes the rows of the current partition that are out of order.
    pub(super) fn rows_in_order(
        &mut self,
        extent: &Extent,
        cut: Option<Behind>,
        output: &mut Output,
    ) -> Result<()> {
        self.last.clone_from(&self.front.decorated);
        let mut sorter = RowSorter::new(&self.front.key, self.how.sorted_bytes);
        self.content(extent, cut, &mut Sink::Sorted(&mut sorter))?;
        output.begin(&self.front.key, DeletionTime::LIVE, &RowBuf::default())?;
        let Run { how, begun, options, disk, scrubbed, .. } = self;
        let mut next = next_of(how.next, begun);
        let mut pieces = Pieces { disk, folder: how.folder, options, next: &mut next };
        sorter.finish(&mut pieces, &mut |row| {
            scrubbed.rows += 1;
            output.add(Unfiltered::Row(row)).map(|_| ())
        })?;
        scrubbed.times_capped += sorter.times_capped;
        output.end().map(|_| ())
    }

    pub(super) fn lose(&mut self, (lost, position, bytes): (Lost, u64, u64), problem: &str) -> Result<()> {
        let key = Some(self.front.key.clone()).filter(|key| !key.is_empty());
        let loss = Loss { key, lost, position, bytes, problem: problem.to_owned() };
        if self.is_strict {
            let problem = format!(
                "{problem}; what is lost here would make counters too small, so nothing was written: skip corrupted data \
                 to have the rest"
            );
            return Err(self.source.parts.data.file().corrupt(position, problem));
        }
        self.scrubbed.losses += 1;
        self.scrubbed.bytes_lost += bytes;
        (self.how.lost)(&loss);
        Ok(())
    }

    pub(super) fn tell_progress(&mut self) {
        self.elements += 1;
        if self.elements.is_multiple_of(PROGRESS_ELEMENTS) {
            (self.how.progress)(self.source.walk.position(), self.source.parts.data.data_length());
        }
    }
}

/// Makes the descriptors of new SSTables, and keeps them.
pub(super) fn next_of<'n>(
    next: &'n mut dyn FnMut() -> Result<Descriptor>,
    begun: &'n mut Vec<Descriptor>,
) -> impl FnMut() -> Result<Descriptor> {
    move || {
        let descriptor = next()?;
        begun.push(descriptor);
        Ok(descriptor)
    }
}
