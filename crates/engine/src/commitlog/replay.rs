//! Replay: reads the log that the last run left.
//!
//! Replay yields a prefix of the logged records, without holes. Reading stops at a position that cannot be read, and
//! at the end of a segment that the next segment says was longer. If a later record proves that the position was once
//! synced (a `Synced` record of a greater offset, or one in a later segment), the log is damaged: replay fails with
//! segment and offset, or skips the rest of the segment when told to. Otherwise this is a torn end of records
//! that were not promised to survive a power cut, and it is removed with everything after it.
//!
//! Records that are read here may have been written but not synced by a process that died. They are synced before they
//! are used: a later power cut must not take back what a reader has seen or a flush has stored. Where no record proves that they were
//! synced, they are written once more before (`make_durable`), because a kernel reports a failed write only once.

use super::record::{HEADER_BYTES, Record, SYNCED_MAGIC, checksum, parse};
use super::recovered::{RecoveredLog, RecoveredSegment};
use super::segment::{HeaderState, SEGMENT_HEAD, check_head, segment_number, segment_path};
use crate::error::{Error, Result};
use crate::log_position::LogPosition;
use crate::open_progress::OpenProgress;
use helenus_host::{Disk, File};
use helenus_model::schema::TableId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// How to treat records that cannot be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions {
    /// Lose a damaged record and the rest of its segment instead of refusing to start.
    pub skip_damaged: bool,
}

/// Writes and syncs the end of the log again, from the last position that is proven to have been synced.
///
/// A write that failed in the last run, and whose bytes could not be cut off (`failure`), may be in the page cache alone. The kernel has
/// reported that error once, so that a sync succeeds without writing them. Only pages that are written again go to the disk.
fn make_durable(disk: &dyn Disk, segments: &[SoundSegment]) -> Result<()> {
    let mut memory = Vec::new();
    for segment in segments.iter().rev() {
        let path = &segment.path;
        let file = disk.open_write(path).map_err(Error::io("open", path))?;
        let bytes = fill(&*file, segment.end as u64, &mut memory).map_err(Error::io("read", path))?;
        let unproven = bytes.get(segment.synced as usize..).unwrap_or_default();
        let written = file.write_all_at(unproven, u64::from(segment.synced));
        written.and_then(|()| file.sync()).map_err(Error::io("write", path))?;
        if segment.synced > 0 {
            // A log that is synced up to here was synced before.
            break;
        }
    }
    Ok(())
}

/// Bytes that are enough for a segment's first record.
const FRONT_BYTES: u64 = 128;

/// The result of reading the log. The records are read again when they are applied, one segment at a time, because a
/// log may be larger than memory.
#[derive(Debug, Default)]
pub struct Replay {
    /// Segments in order.
    pub segments: Vec<SoundSegment>,
    /// Number of records in all of them.
    pub records: u64,
    /// Bytes of these records.
    pub bytes: u64,
    /// Damage that was skipped with the rest of its segment: segment and offset.
    pub skipped: Vec<(PathBuf, u64)>,
    /// Segments that are not there although an older one is, which has writes that are not flushed.
    pub missing: Vec<MissingSegment>,
}

/// A gap in the log. Segments go oldest first, so the older ones should have gone before this one; an earlier version
/// removed them in another order. That is no loss if nothing of the older ones is needed.
#[derive(Debug)]
pub struct MissingSegment {
    /// The file that should be there.
    pub path: PathBuf,
    /// Tables with writes in older segments that are not flushed. Those that were dropped since do not count.
    pub tables: Vec<TableId>,
}

/// The valid part of a segment of the last run.
#[derive(Debug)]
pub struct SoundSegment {
    number: u32,
    path: PathBuf,
    end: usize,
    /// The offset up to which a record in it says that it was synced; 0 if none does.
    synced: u32,
    /// Number of records in it.
    pub records: u64,
    /// The tables with writes in it, and the last position of each.
    pub tables: BTreeMap<TableId, LogPosition>,
}

impl SoundSegment {
    /// Calls `each` for every record, with its position and its bytes. `memory` is a buffer for the segment.
    ///
    /// # Errors
    /// `LogDamaged` if the bytes have changed since the segment was first read.
    pub fn read(
        &self,
        disk: &dyn Disk,
        memory: &mut Vec<u8>,
        mut each: impl FnMut((Place, &[u8]), Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = disk.open_own(&self.path).map_err(Error::io("open", &self.path))?;
        let bytes = fill(&*file, self.end as u64, memory).map_err(Error::io("read", &self.path))?;
        let reader = SegmentReader { number: self.number, path: self.path.clone(), bytes };
        let mut at = SEGMENT_HEAD as usize;
        while at < self.end {
            let Found::Record(record, end) = reader.record_at(at) else {
                return Err(Error::LogDamaged {
                    path: self.path.clone(),
                    offset: at as u64,
                    problem: "another record than was read a moment ago",
                });
            };
            let end_position = LogPosition::new(self.number, end as u32);
            let found = bytes.get(at..end).unwrap_or_default();
            each((Place { offset: at as u64, end: end_position }, found), record)?;
            at = end;
        }
        Ok(())
    }
}

/// The position of a record.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Offset of the record in its segment, bytes.
    pub offset: u64,
    /// Position after the record.
    pub end: LogPosition,
}

/// Reads the first `len` bytes of a file into a reused buffer.
fn fill<'a>(file: &dyn File, len: u64, memory: &'a mut Vec<u8>) -> std::io::Result<&'a [u8]> {
    memory.resize(len as usize, 0);
    file.read_exact_at(memory, 0)?;
    Ok(memory)
}

/// Reads every segment of a folder. The caller must apply those mutations whose position is beyond the flushed
/// position of their table; the caller knows both.
pub(crate) fn read_log(
    disk: &dyn Disk,
    dir: &Path,
    options: ReplayOptions,
    progress: &OpenProgress,
) -> Result<(Replay, RecoveredLog)> {
    let (mut replay, mut left) = (Replay::default(), RecoveredLog::default());
    if !disk.exists(dir) {
        return Ok((replay, left));
    }
    let mut segments: Vec<(u32, PathBuf)> = disk
        .list(dir)
        .map_err(Error::io("list", dir))?
        .into_iter()
        .filter_map(|path| segment_number(&path).map(|number| (number, path)))
        .collect();
    segments.sort();
    if !segments.is_empty() {
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
    }
    let sizes = segments.iter().map(|(_, path)| size(disk, path)).collect::<Result<Vec<_>>>()?;
    OpenProgress::add(&progress.log_bytes, sizes.iter().sum());
    let log = Log { disk, dir, segments };
    let (mut memory, mut gaps) = (Vec::new(), Vec::new());
    for (index, (number, path)) in log.segments.iter().enumerate() {
        let reader = SegmentReader::open(disk, (*number, path), &mut memory)?;
        let is_last = index + 1 == log.segments.len();
        let mut bytes = sizes.get(index).copied().unwrap_or_default();
        let continued = log.continued_behind(index)?;
        if continued.is_some_and(|end| end.segment() < *number) {
            // Created in advance and never used: the next segment continues the one before this one.
            left.segments.push(RecoveredSegment { number: *number, bytes, ..RecoveredSegment::default() });
            OpenProgress::add(&progress.log_bytes_read, bytes);
            continue;
        }
        let (noted, mut stop) = reader.read(is_last);
        let missing = continued.filter(|end| !log.has(end.segment()));
        if continued == Some(LogPosition::new(*number, stop.at as u32)) || missing.is_some() {
            // The bytes after it belong to the file's earlier life as another segment.
            stop.problem = None;
        }
        if let Some(hole) = noted.hole_before(left.end) {
            // The missing records were at the end of the segment before this one.
            let (hole_index, problem) = (index.saturating_sub(1), "records are missing at the segment's end");
            if !log.is_proven(hole_index)? {
                log.remove_from(index)?;
                break;
            }
            log.damaged((hole_index, hole), problem, options, &mut replay)?;
        }
        left.end = Some(LogPosition::new(*number, stop.at as u32));
        if let Some(problem) = stop.problem {
            if reader.was_synced_beyond(stop.at) || log.is_proven(index)? {
                log.damaged((index, stop.at), problem, options, &mut replay)?;
                // The hole that the next segment will show is already reported.
                left.end = None;
            } else {
                log.remove_from(index + 1)?;
                reader.trim(disk, stop.at)?;
                // The file cannot be reused as a full-size segment, because its last blocks are gone.
                bytes = stop.at as u64;
                stop.ends_log = true;
            }
        }
        replay.bytes += (stop.at as u64).saturating_sub(u64::from(SEGMENT_HEAD));
        replay.records += noted.records;
        let (path, end) = (path.clone(), stop.at);
        let (records, tables) = (noted.records, noted.dirty.clone());
        let synced = noted.synced;
        replay.segments.push(SoundSegment { number: *number, path, end, synced, records, tables });
        let (end, is_watched) = (stop.at as u32, noted.is_watched);
        let dirty = noted.tell(&mut left);
        left.segments.push(RecoveredSegment { number: *number, bytes, end, dirty, is_watched });
        gaps.extend(missing.map(|end| (end.segment(), left.segments.len())));
        OpenProgress::add(&progress.log_bytes_read, bytes);
        if stop.ends_log {
            break;
        }
    }
    make_durable(disk, &replay.segments)?;
    let all = progress.log_bytes.load(Ordering::Relaxed);
    progress.log_bytes_read.store(all, Ordering::Relaxed);
    // All flushed positions are known now.
    replay.missing = gaps.into_iter().filter_map(|gap| missing_segment(dir, gap, &left)).collect();
    Ok((replay, left))
}

/// The gap before the segment of this number, if one of the older segments, which are the first `count`, is needed.
fn missing_segment(dir: &Path, (number, count): (u32, usize), left: &RecoveredLog) -> Option<MissingSegment> {
    let older = left.segments.iter().take(count);
    let needed = older
        .flat_map(|segment| &segment.dirty)
        .filter(|(table, last)| left.flushed.get(table).is_none_or(|position| position < *last));
    let tables: BTreeSet<TableId> = needed.map(|(table, _)| *table).collect();
    let tables: Vec<TableId> = tables.into_iter().collect();
    (!tables.is_empty()).then(|| MissingSegment { path: segment_path(dir, number), tables })
}

fn size(disk: &dyn Disk, path: &Path) -> Result<u64> {
    disk.open_own(path).and_then(|file| file.size()).map_err(Error::io("read", path))
}

/// The segments of a log, in order.
struct Log<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    segments: Vec<(u32, PathBuf)>,
}

impl Log<'_> {
    fn has(&self, number: u32) -> bool {
        self.segments.binary_search_by_key(&number, |(number, _)| *number).is_ok()
    }

    /// Whether a later segment proves that all of this one was synced. Reads those segments, so it is called only when
    /// in doubt.
    fn is_proven(&self, index: usize) -> Result<bool> {
        for (number, path) in self.segments.iter().skip(index + 1) {
            let mut memory = Vec::new();
            let reader = SegmentReader::open(self.disk, (*number, path), &mut memory)?;
            if reader.was_synced_beyond(SEGMENT_HEAD as usize) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The end of the log before the next segment that has records; `None` if there is none. Segments that were
    /// created in advance and never used may lie between.
    fn continued_behind(&self, index: usize) -> Result<Option<LogPosition>> {
        let mut behind = self.segments.iter().skip(index + 1);
        behind.find_map(|segment| self.continued_by(segment).transpose()).transpose()
    }

    /// The end of the previous segment according to this one; `None` if this one is empty.
    fn continued_by(&self, (number, path): &(u32, PathBuf)) -> Result<Option<LogPosition>> {
        let file = self.disk.open_own(path).map_err(Error::io("open", path))?;
        let size = file.size().map_err(Error::io("read", path))?.min(FRONT_BYTES);
        let mut memory = Vec::new();
        let bytes = fill(&*file, size, &mut memory).map_err(Error::io("read", path))?;
        let front = SegmentReader { number: *number, path: path.clone(), bytes };
        if !matches!(check_head(front.bytes, *number), HeaderState::Good) {
            return Ok(None);
        }
        Ok(match front.record_at(SEGMENT_HEAD as usize) {
            Found::Record(Record::Continues(end), _) => Some(end),
            _ => None,
        })
    }

    /// Removes the segments from `index` on, the last one first, so that a power cut in between leaves no hole.
    fn remove_from(&self, index: usize) -> Result<()> {
        for (_, path) in self.segments.iter().skip(index).rev() {
            self.disk.remove(path).map_err(Error::io("remove", path))?;
            self.disk.sync_dir(self.dir).map_err(Error::io("sync", self.dir))?;
        }
        Ok(())
    }

    fn damaged(
        &self,
        (index, at): (usize, usize),
        problem: &'static str,
        options: ReplayOptions,
        replay: &mut Replay,
    ) -> Result<()> {
        let path = self.segments.get(index).map(|(_, path)| path.clone()).unwrap_or_default();
        if options.skip_damaged {
            replay.skipped.push((path, at as u64));
            return Ok(());
        }
        Err(Error::LogDamaged { path, offset: at as u64, problem })
    }
}

/// The contents of a segment's records: flushes, timestamps, and tables with writes.
#[derive(Default)]
struct Noted {
    records: u64,
    dirty: BTreeMap<TableId, LogPosition>,
    flushed: Vec<(TableId, LogPosition)>,
    /// The last timestamp in it.
    timestamp_us: Option<i64>,
    /// End of the previous segment.
    continues: Option<LogPosition>,
    /// The last offset up to which it says that it was synced.
    synced: u32,
    /// Whether it has records of a watched table.
    is_watched: bool,
}

impl Noted {
    fn note(&mut self, position: LogPosition, record: Record<'_>) {
        self.records += 1;
        match record {
            Record::Mutation(updates) => {
                self.dirty.extend(updates.map(|update| (update.table, position)));
            }
            Record::Truncate(table) => {
                self.dirty.insert(table, position);
            }
            Record::Flushed(tables) => self.flushed.extend(tables),
            Record::Timestamp(timestamp_us) => self.timestamp_us = Some(timestamp_us),
            Record::Continues(end) => self.continues = self.continues.or(Some(end)),
            Record::Definition(..) => self.is_watched = true,
            Record::Synced(offset) => self.synced = self.synced.max(offset),
            Record::Layout(..) | Record::Imported(..) | Record::Before(_) => {}
        }
    }

    /// The offset in the previous segment at which records are missing, according to this segment's first record.
    fn hole_before(&self, before: Option<LogPosition>) -> Option<usize> {
        let (before, continues) = (before?, self.continues?);
        (continues.segment() == before.segment() && continues > before).then_some(before.offset() as usize)
    }

    /// Adds flushes and timestamp to `left`, and returns the tables with writes.
    fn tell(self, left: &mut RecoveredLog) -> BTreeMap<TableId, LogPosition> {
        for (table, flushed) in self.flushed {
            let known = left.flushed.entry(table).or_insert(LogPosition::START);
            *known = (*known).max(flushed);
        }
        left.timestamp_us = self.timestamp_us.unwrap_or(left.timestamp_us);
        self.dirty
    }
}

struct SegmentReader<'a> {
    number: u32,
    path: PathBuf,
    bytes: &'a [u8],
}

/// The end of a segment's records, and the problem found there; no problem if only zeroes follow.
struct Stop {
    at: usize,
    problem: Option<&'static str>,
    ends_log: bool,
}

impl<'a> SegmentReader<'a> {
    fn open(
        disk: &dyn Disk,
        (number, path): (u32, &Path),
        memory: &'a mut Vec<u8>,
    ) -> Result<SegmentReader<'a>> {
        let file = disk.open_write(path).map_err(Error::io("open", path))?;
        file.sync().map_err(Error::io("sync", path))?;
        let size = file.size().map_err(Error::io("read", path))?;
        let bytes = fill(&*file, size, memory).map_err(Error::io("read", path))?;
        Ok(SegmentReader { number, path: path.to_owned(), bytes })
    }

    /// Reads the records up to the first position without one.
    fn read(&self, is_last: bool) -> (Noted, Stop) {
        let mut noted = Noted::default();
        match check_head(self.bytes, self.number) {
            HeaderState::Good => {}
            HeaderState::Unfinished if is_last && self.rest_is_zero(0) => {
                return (noted, Stop { at: 0, problem: None, ends_log: true });
            }
            HeaderState::Unfinished | HeaderState::Bad => {
                let problem = Some("the segment's head is not one");
                return (noted, Stop { at: 0, problem, ends_log: false });
            }
        }
        let mut at = SEGMENT_HEAD as usize;
        let problem = loop {
            match self.record_at(at) {
                Found::Record(record, end) => {
                    noted.note(LogPosition::new(self.number, end as u32), record);
                    at = end;
                }
                Found::End if self.rest_is_zero(at) => break None,
                Found::End => break Some("zeroes before the segment's last record"),
                Found::Bad(problem) => break Some(problem),
            }
        };
        (noted, Stop { at, problem, ends_log: false })
    }

    /// Cuts the torn end off the segment: later it would look like damage.
    fn trim(&self, disk: &dyn Disk, end: usize) -> Result<()> {
        let file = disk.open_write(&self.path).map_err(Error::io("open", &self.path))?;
        file.set_size(end as u64).and_then(|()| file.sync()).map_err(Error::io("cut", &self.path))
    }

    fn record_at(&self, at: usize) -> Found<'a> {
        let Some((head, rest)) =
            self.bytes.get(at..).and_then(|rest| rest.split_first_chunk::<HEADER_BYTES>())
        else {
            return Found::End;
        };
        let [a, b, c, d, e, f, g, h] = *head;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        if len == 0 {
            return Found::End;
        }
        let Some(content) = rest.get(..len) else {
            return Found::Bad("a record longer than its segment");
        };
        if checksum(self.number, content) != u32::from_le_bytes([e, f, g, h]) {
            return Found::Bad("the record's checksum does not match");
        }
        match parse(content) {
            Some(record) => Found::Record(record, at + HEADER_BYTES + len),
            None => Found::Bad("a record of unknown content"),
        }
    }

    /// Whether a record of this segment after `at` proves that `at` was synced.
    fn was_synced_beyond(&self, at: usize) -> bool {
        let mut from = at;
        while let Some(found) = find(self.bytes.get(from..).unwrap_or_default(), &SYNCED_MAGIC) {
            let start = from + found;
            if let Some(Found::Record(Record::Synced(offset), _)) =
                start.checked_sub(HEADER_BYTES).map(|head| self.record_at(head))
                && offset as usize > at
            {
                return true;
            }
            from = start + 1;
        }
        false
    }

    fn rest_is_zero(&self, at: usize) -> bool {
        self.bytes.get(at..).unwrap_or_default().iter().all(|byte| *byte == 0)
    }
}

enum Found<'a> {
    Record(Record<'a>, usize),
    End,
    Bad(&'static str),
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}
