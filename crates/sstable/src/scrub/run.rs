//! Reads the data of a scrub, and decides what is kept, what is put in order, and what is lost.

use super::index_positions::{IndexPositions, IndexedPartition};
use super::order::Runs;
use super::output::Output;
use super::overflowed::{is_overflowed, reinsert};
use super::report::{Loss, Lost, Scrubbed};
use crate::block::ReadContext;
use crate::data::{ElementReader, Validity};
use crate::error::{Error, Result};
use crate::names::Descriptor;
use crate::table::{BlocksMemory, Parts, compression_of};
use crate::version::Version;
use crate::writer::{Beyond2038, WriterOptions};
use helenus_host::Disk;
use helenus_model::byte_comparable::decorated_key;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;
use helenus_model::row::RowBuf;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Unfiltered;
use std::path::Path;
use std::sync::Arc;

/// The greatest compression factor of data that does not consist of zeroes.
const COMPRESSION_MAX: u64 = 64;

/// Number of rows and markers between two progress reports.
const PROGRESS_ELEMENTS: u64 = 1024;

/// How an SSTable is scrubbed.
pub struct Scrubbing<'a> {
    /// The folder of the new SSTables.
    pub folder: &'a Path,
    /// Keyspace and table, as far as they are known.
    pub names: (&'a str, &'a str),
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
/// `Corrupt` if its header or its compression parameters cannot be read, or, in a counter table without
/// `skip_corrupted`, for any loss; failures of the disk. The new SSTables are then removed.
pub fn scrub(
    disk: &Arc<dyn Disk>,
    (folder, descriptor): (&Path, Descriptor),
    how: Scrubbing<'_>,
) -> Result<Scrubbed> {
    let parts = Parts::open(&**disk, (folder, descriptor), how.names)?;
    let compression = compression_of(&**disk, folder, descriptor)?;
    // A damaged CompressionInfo.db may state any size of the data.
    let bytes = parts.data.data_length().min(parts.data.file().size().saturating_mul(COMPRESSION_MAX));
    let options = WriterOptions::as_written(&parts.schema, &parts.statistics, (compression, bytes));
    let mut options = options.for_version(how.version);
    options.page_checksums = how.page_checksums;
    // In versions with signed times, times that overflowed are read as the latest time of all, which these versions
    // cannot store.
    options.beyond_2038 = Beyond2038::Cap;
    let mut cx = ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() };
    let places = IndexPositions::new(parts.index.as_ref(), &mut cx);
    let mut run = Run {
        scrubbed: Scrubbed { notes: parts.notes.clone(), ..Scrubbed::default() },
        is_strict: parts.schema.is_counter() && !how.skip_corrupted,
        validity: how.validate.then(|| Validity::of(&parts.schema)),
        parts: &parts,
        places,
        walk: ElementReader::default(),
        cx,
        how,
        front: Front::default(),
        runs: Runs::default(),
        last: Vec::new(),
        late: Vec::new(),
        reinserted: RowBuf::default(),
        elements: 0,
    };
    let done = run.all(disk, &options);
    let mut scrubbed = run.scrubbed;
    if let Err(error) = done {
        for written in &scrubbed.written {
            remove(&**disk, run.how.folder, written)?;
        }
        return Err(error);
    }
    scrubbed.notes.extend(run.places.problem.take());
    Ok(scrubbed)
}

/// The front of the current partition.
#[derive(Default)]
struct Front {
    key: Vec<u8>,
    decorated: Vec<u8>,
    deletion: Option<DeletionTime>,
    static_row: RowBuf,
    /// Whether the expiry of the static row was repaired.
    is_reinserted: bool,
}

/// A part of the data that goes into a further SSTable: a partition that is out of order, or a run of rows of one.
struct Late {
    decorated: Vec<u8>,
    start: u64,
    end: u64,
    place: Option<IndexedPartition>,
    run: usize,
}

/// The start of a partition, and the position at which it must end.
struct Extent {
    start: u64,
    end: u64,
    place: Option<IndexedPartition>,
}

struct Run<'a, 'h> {
    parts: &'a Parts,
    places: IndexPositions<'a>,
    walk: ElementReader,
    cx: ReadContext,
    how: Scrubbing<'h>,
    validity: Option<Validity>,
    /// Whether a loss ends the scrub with an error.
    is_strict: bool,
    front: Front,
    runs: Runs,
    /// Decorated key of the last partition written.
    last: Vec<u8>,
    late: Vec<Late>,
    /// Buffer for a row whose expiry is repaired.
    reinserted: RowBuf,
    elements: u64,
    scrubbed: Scrubbed,
}

impl Run<'_, '_> {
    fn all(&mut self, disk: &Arc<dyn Disk>, options: &WriterOptions) -> Result<()> {
        let folder = self.how.folder;
        let mut output = Output::new(disk, folder, (self.how.next)()?, options.clone());
        let done = self.in_order(&mut output);
        self.finished(output, done)?;
        while !self.late.is_empty() {
            let mut output = Output::new(disk, folder, (self.how.next)()?, options.clone());
            let done = self.latecomers(&mut output);
            self.finished(output, done)?;
        }
        Ok(())
    }

    fn finished(&mut self, output: Output<'_>, done: Result<()>) -> Result<()> {
        if let Err(error) = done {
            // An error of `abort` is ignored, because the first error is more useful.
            let _ = output.abort();
            return Err(error);
        }
        if let Some(written) = output.finish()? {
            self.scrubbed.times_capped += written.times_capped;
            self.scrubbed.written.push(written.descriptor);
        }
        Ok(())
    }

    /// Writes all partitions except those that are out of order.
    fn in_order(&mut self, output: &mut Output<'_>) -> Result<()> {
        let length = self.parts.data.data_length();
        let mut start = 0;
        while start < length {
            let place = self.places.pass(start, &mut self.cx);
            let end = self.places.next_start().unwrap_or(length);
            let extent = Extent { start, end, place };
            let next = match self.open(&extent) {
                Ok(()) if self.front.decorated <= self.last => {
                    self.scrubbed.partitions_out_of_order += 1;
                    self.set_late(&extent, 0);
                    self.content(&extent, None)?
                }
                Ok(()) => self.partition(&extent, (0, output))?,
                Err(problem) => self.without_front(&extent, problem, output)?,
            };
            // A wrong end-of-partition byte is ignored if the index has another partition at which this one must end.
            start = match next < end && self.places.next_start() == Some(end) && self.is_front(end) {
                true => {
                    self.lose((Lost::RestOfPartition, next, end - next), "the partition ends too early")?;
                    end
                }
                false => next,
            };
        }
        if let Some(beyond) = self.places.next_start() {
            self.front.key.clear();
            self.lose((Lost::Partition, beyond, 0), "the index has partitions behind the end of the data")?;
        }
        Ok(())
    }

    /// Writes the parts in `late` in order; those that do not ascend stay for a further SSTable.
    fn latecomers(&mut self, output: &mut Output<'_>) -> Result<()> {
        let mut late = std::mem::take(&mut self.late);
        late.sort_by(|a, b| (&a.decorated, a.start, a.run).cmp(&(&b.decorated, b.start, b.run)));
        self.last.clear();
        for late in late {
            if late.decorated <= self.last {
                self.late.push(late);
                continue;
            }
            let extent = Extent { start: late.start, end: late.end, place: late.place };
            match self.open(&extent) {
                Ok(()) => _ = self.partition(&extent, (late.run, output))?,
                Err(problem) => {
                    self.lose((Lost::Partition, extent.start, extent.end - extent.start), &problem)?;
                }
            }
        }
        Ok(())
    }

    /// Writes one run of the current partition. Returns the position at which the next partition should begin.
    fn partition(&mut self, extent: &Extent, (run, output): (usize, &mut Output<'_>)) -> Result<u64> {
        let Front { key, decorated, deletion, static_row, .. } = &self.front;
        self.last.clone_from(decorated);
        let deletion = deletion.unwrap_or(DeletionTime::LIVE);
        let nothing = RowBuf::default();
        match run {
            0 => output.begin(key, deletion, static_row)?,
            _ => output.begin(key, DeletionTime::LIVE, &nothing)?,
        }
        let next = self.content(extent, Some((run, output)))?;
        let (is_there, was_open) = output.end()?;
        if was_open {
            self.lose((Lost::RangeTombstone, next, 0), "a range tombstone is not closed")?;
        }
        if run == 0 {
            self.scrubbed.partitions += u64::from(is_there);
            self.scrubbed.rows_reinserted += u64::from(self.front.is_reinserted);
            self.scrubbed.empty_partitions += u64::from(!is_there);
            (1..self.runs.count()).for_each(|run| self.set_late(extent, run));
        }
        Ok(next)
    }

    fn set_late(&mut self, extent: &Extent, run: usize) {
        let Extent { start, end, place } = extent;
        let (decorated, place) = (self.front.decorated.clone(), place.clone());
        self.late.push(Late { decorated, start: *start, end: *end, place, run });
    }

    /// Reads the front of a partition. The error describes why there cannot be one.
    fn open(&mut self, extent: &Extent) -> std::result::Result<(), String> {
        let Front { key, static_row, .. } = &mut self.front;
        let read = self.walk.front(self.parts.rows(), extent.start, (key, static_row), &mut self.cx);
        let found = read.map_err(|error| problem_of(&error))?;
        if let Some(expected) = extent.place.as_ref().and_then(|place| place.key.as_ref())
            && expected != key
        {
            return Err("the index has another partition here".to_owned());
        }
        if let Some(validity) = &self.validity {
            validity.key(key)?;
            if let Err(problem) = validity.row(static_row.view()) {
                static_row.clear();
                let what = (Lost::Front, extent.start, 0);
                self.lose(what, &problem).map_err(|error| error.to_string())?;
            }
        }
        let Front { key, decorated: into, static_row, is_reinserted, .. } = &mut self.front;
        *is_reinserted = self.how.reinsert_overflowed && is_overflowed(static_row);
        if *is_reinserted {
            reinsert(static_row);
        }
        into.clear();
        decorated_key(KeyHash::of(key).token, key, into);
        self.front.deletion = Some(found);
        Ok(())
    }

    /// Handles a partition whose front cannot be read. If it is wide, the index may have its key, its deletion and
    /// positions of rows.
    fn without_front(&mut self, extent: &Extent, problem: String, output: &mut Output<'_>) -> Result<u64> {
        let Extent { start, end, place } = extent;
        let known = place.as_ref().and_then(|place| place.key.clone().zip(place.index));
        let Some((key, index)) = known else {
            self.front.key.clear();
            if let Some(key) = place.as_ref().and_then(|place| place.key.as_ref()) {
                self.front.key.clone_from(key);
            }
            self.lose((Lost::Partition, *start, end - start), &problem)?;
            return Ok(*end);
        };
        self.front = Front { deletion: Some(index.deletion()), ..Front::default() };
        decorated_key(KeyHash::of(&key).token, &key, &mut self.front.decorated);
        self.front.key = key;
        let found = self.block_behind(extent, *start);
        let Some((position, _)) = found.filter(|_| self.front.decorated > self.last) else {
            self.lose((Lost::Partition, *start, end - start), &problem)?;
            return Ok(*end);
        };
        self.lose((Lost::Front, *start, position - start), &problem)?;
        self.walk.go_to(position);
        self.partition(extent, (0, output))
    }

    /// Reads a partition's elements (rows and markers) from the current position on, and adds those of a run to the
    /// output, if there is one. Returns the position at which the next partition should begin.
    fn content(&mut self, extent: &Extent, mut to: Option<(usize, &mut Output<'_>)>) -> Result<u64> {
        self.runs.clear();
        loop {
            self.tell_progress();
            let at = self.walk.position();
            let problem = match self.walk.advance(self.parts.rows(), &mut self.cx) {
                Ok(true) if self.walk.position() > extent.end => {
                    "an element reaches into the next partition".to_owned()
                }
                Ok(true) => {
                    self.element(at, to.as_mut())?;
                    continue;
                }
                Ok(false) => return Ok(self.walk.position()),
                Err(error) => problem_of(&error),
            };
            // A loss is reported only in the first run, so that it is not reported twice.
            let is_told = to.as_ref().is_some_and(|(run, _)| *run == 0);
            if self.walk.pass_refused(self.parts.rows(), &mut self.cx) {
                let what = (Lost::Element, at, self.walk.position() - at);
                if is_told {
                    self.lose(what, &problem)?;
                }
                continue;
            }
            let block = self.block_behind(extent, at);
            let next = block.map_or(extent.end.max(at), |(position, _)| position);
            if is_told {
                let lost = if block.is_some() { Lost::Rows } else { Lost::RestOfPartition };
                self.lose((lost, at, next - at), &problem)?;
            }
            if let Some((_, output)) = &mut to {
                output.gap(block.and_then(|(_, open)| open))?;
            }
            if block.is_none() {
                return Ok(next);
            }
            self.walk.go_to(next);
        }
    }

    /// Handles the current element.
    fn element(&mut self, at: u64, to: Option<&mut (usize, &mut Output<'_>)>) -> Result<()> {
        let element = self.walk.current();
        let Some((wanted, output)) = to else { return Ok(()) };
        if let Some(validity) = &self.validity
            && let Err(problem) = validity.element(element)
        {
            let what = (Lost::Element, at, self.walk.position() - at);
            return if *wanted == 0 { self.lose(what, &problem) } else { Ok(()) };
        }
        let is_row = matches!(element, Unfiltered::Row(_));
        // A marker that is out of order is meaningless without the rows around it.
        if !is_row && *wanted > 0 {
            return Ok(());
        }
        let run = self.runs.assign(element.key());
        if run == *wanted {
            self.scrubbed.rows += u64::from(is_row);
            let element = match element {
                Unfiltered::Row(row) if self.how.reinsert_overflowed && is_overflowed(row.row) => {
                    self.scrubbed.rows_reinserted += 1;
                    self.reinserted.copy_from(row);
                    reinsert(&mut self.reinserted);
                    Unfiltered::Row(self.reinserted.view())
                }
                element => element,
            };
            if output.add(element)? && *wanted == 0 {
                self.lose((Lost::RangeTombstone, at, 0), "it closes a range tombstone that is not open")?;
            }
        } else if is_row && *wanted == 0 {
            self.scrubbed.rows_out_of_order += 1;
        } else if *wanted == 0 {
            self.lose((Lost::RangeTombstone, at, 0), "a range tombstone's bound is out of order")?;
        }
        Ok(())
    }

    /// The position of the first index block of a partition after `at`, and the range deletion that is open there.
    fn block_behind(&mut self, extent: &Extent, at: u64) -> Option<(u64, Option<DeletionTime>)> {
        let index = self.parts.index.as_ref()?;
        let entry = extent.place.as_ref()?.index.as_ref()?;
        let layout = &self.parts.layout;
        let mut blocks = index.blocks(entry, &mut BlocksMemory::default(), &mut self.cx).ok()?;
        let mut found = None;
        let mut block = blocks.floor_reversed((index, layout), AFTER_ALL, &mut self.cx).ok()?;
        while let Some(now) = block {
            let position = extent.start.checked_add(now.offset).filter(|position| *position > at)?;
            if position < extent.end {
                found = Some((position, now.open));
            }
            match blocks.previous((index, layout), &mut self.cx) {
                Ok(before) => block = before.filter(|before| extent.start.saturating_add(before.offset) > at),
                Err(_) => break,
            }
        }
        found
    }

    /// Whether a valid front of a partition is at a position.
    fn is_front(&mut self, position: u64) -> bool {
        let (mut key, mut static_row) = (Vec::new(), RowBuf::default());
        let front = self.walk.front(self.parts.rows(), position, (&mut key, &mut static_row), &mut self.cx);
        let is_valid = self.validity.as_ref().is_none_or(|validity| validity.key(&key).is_ok());
        front.is_ok() && is_valid
    }

    fn lose(&mut self, (lost, position, bytes): (Lost, u64, u64), problem: &str) -> Result<()> {
        let key = Some(self.front.key.clone()).filter(|key| !key.is_empty());
        let loss = Loss { key, lost, position, bytes, problem: problem.to_owned() };
        if self.is_strict {
            let problem = format!(
                "{problem}; what is lost here would make counters too small, so nothing was written: skip corrupted data \
                 to have the rest"
            );
            return Err(self.parts.data.file().corrupt(position, problem));
        }
        self.scrubbed.losses += 1;
        self.scrubbed.bytes_lost += bytes;
        (self.how.lost)(&loss);
        Ok(())
    }

    fn tell_progress(&mut self) {
        self.elements += 1;
        if self.elements.is_multiple_of(PROGRESS_ELEMENTS) {
            (self.how.progress)(self.walk.position(), self.parts.data.data_length());
        }
    }
}

/// The text of an error, without the file's name, which is known.
fn problem_of(error: &Error) -> String {
    match error {
        Error::Corrupt { offset, problem, .. } => format!("{problem} (at byte {offset})"),
        other => other.to_string(),
    }
}

fn remove(disk: &dyn Disk, folder: &Path, written: &Descriptor) -> Result<()> {
    let prefix = written.prefix();
    let io = |source| Error::Io { file: folder.to_owned(), source };
    for path in disk.list(folder).map_err(io)? {
        if path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&*prefix)) {
            disk.remove(&path).map_err(|source| Error::Io { file: path.clone(), source })?;
        }
    }
    Ok(())
}
