//! Reads the log from a position on, while the log is written.
//!
//! Only synced records are read: what a reader has seen survives a power cut, and no other record ever gets its position.
//! Segments are found by number in the log's folder and among the kept ones. A segment that is in neither is passed over if
//! it had no records of watched tables; otherwise its changes are gone.
//!
//! The end of a segment before the active one stands in its successor (`Continues`), or in the name of a kept segment.

use super::kept::{KeptSegment, kept_segments};
use super::log::CommitLog;
use super::record::{HEADER_BYTES, Record, checksum, parse};
use super::segment::{HeaderState, SEGMENT_HEAD, check_head, segment_number};
use crate::changes_error::ChangesError;
use crate::error::{Error, Result};
use crate::log_position::LogPosition;
use helenus_host::File;
use helenus_host::account;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that are read from a segment at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes that are enough for a segment's head and first record.
const FRONT_BYTES: u64 = 128;

/// A place in the log: before the record there.
pub(crate) struct LogReader {
    number: u32,
    /// Offset of the next record.
    at: u32,
    open: Option<OpenSegment>,
    /// Bytes of the segment.
    buffer: Vec<u8>,
    /// Offset of the buffer in the segment.
    buffer_at: u32,
}

struct OpenSegment {
    path: PathBuf,
    file: Arc<dyn File>,
    /// Where its records end, and the next segment with records; known once it is not the active one any more.
    finished: Option<Finished>,
}

#[derive(Clone, Copy)]
struct Finished {
    end: u32,
    next: Option<u32>,
}

/// A segment file that a reader found.
struct FoundSegment {
    number: u32,
    path: PathBuf,
    /// The end of its records, if its name tells.
    end: Option<u32>,
}

/// A record and its place.
pub(crate) struct LogRecord<'r> {
    /// Before the record.
    pub(crate) start: LogPosition,
    /// Whether it is the first of its segment.
    pub(crate) is_first: bool,
    pub(crate) record: Record<'r>,
}

impl LogReader {
    /// A reader that begins with the first record of the segment of `from`: it defines the tables.
    pub(crate) fn new(from: LogPosition) -> LogReader {
        LogReader { number: from.segment(), at: SEGMENT_HEAD, open: None, buffer: Vec::new(), buffer_at: 0 }
    }

    /// The position before the next record.
    pub(crate) fn position(&self) -> LogPosition {
        LogPosition::new(self.number, self.at)
    }

    /// Moves back before a record that `next` has just returned.
    pub(crate) fn back_to(&mut self, start: LogPosition) {
        debug_assert_eq!(start.segment(), self.number);
        self.at = start.offset();
    }

    /// The next record before `safe`, a position up to which the log is synced.
    ///
    /// # Errors
    /// `ChangesError::Gone` if the segment was removed; `LogDamaged`; failures of reading.
    pub(crate) fn next(&mut self, log: &CommitLog, safe: LogPosition) -> Result<Option<LogRecord<'_>>> {
        loop {
            if self.number > safe.segment() || !self.open(log)? {
                return Ok(None);
            }
            let Some(end) = self.end(log, safe)? else { return Ok(None) };
            if self.at < end {
                break;
            }
            let Some(open) = &mut self.open else { return Ok(None) };
            match open.finished.and_then(|finished| finished.next) {
                Some(next) => self.enter(next),
                None => {
                    // The next segment may come.
                    open.finished = None;
                    return Ok(None);
                }
            }
        }
        let (number, start) = (self.number, self.at);
        let len = match self.record_len() {
            Ok(len) => len,
            // The file may have been given to another segment, or removed, while it was read.
            Err(error) => {
                self.open = None;
                if find(log, number)?.is_some() {
                    return Err(error);
                }
                if log.changes_begin().segment() > number {
                    return Err(gone(log));
                }
                // It had no changes of watched tables.
                self.enter(number + 1);
                return self.next(log, safe);
            }
        };
        self.at = start + (HEADER_BYTES + len) as u32;
        let content_at = (start - self.buffer_at) as usize + HEADER_BYTES;
        let content = self.buffer.get(content_at..content_at + len).unwrap_or_default();
        let Some(record) = parse(content) else { return Err(self.damaged("a record of unknown content")) };
        let is_first = start == SEGMENT_HEAD;
        Ok(Some(LogRecord { start: LogPosition::new(number, start), is_first, record }))
    }

    /// Begins a segment.
    fn enter(&mut self, number: u32) {
        (self.number, self.at, self.open) = (number, SEGMENT_HEAD, None);
        self.buffer.clear();
        self.buffer_at = 0;
    }

    /// Opens the segment, or the next one that has records. Returns whether there is one.
    fn open(&mut self, log: &CommitLog) -> Result<bool> {
        while self.open.is_none() {
            let Some(found) = find_at_or_after(log, self.number)? else { return Ok(false) };
            if found.number > self.number {
                if self.number < log.changes_begin().segment() {
                    return Err(gone(log));
                }
                self.enter(found.number);
            }
            match log.host.disk.open_own(&found.path) {
                Ok(file) => self.open = Some(OpenSegment { path: found.path, file, finished: None }),
                // It was moved or removed meanwhile: look again.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("open", &found.path)(error)),
            }
        }
        Ok(true)
    }

    /// The end of what may be read of the segment; `None` if it is not known yet.
    fn end(&mut self, log: &CommitLog, safe: LogPosition) -> Result<Option<u32>> {
        if self.number == safe.segment() {
            return Ok(Some(safe.offset()));
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        if open.finished.is_none() {
            open.finished = finish(log, self.number)?;
        }
        Ok(open.finished.map(|finished| finished.end))
    }

    /// Brings the next record into the buffer, checks it, and returns the length of its content.
    fn record_len(&mut self) -> Result<usize> {
        let head: [u8; HEADER_BYTES] = match self.bytes(HEADER_BYTES)?.first_chunk() {
            Some(head) => *head,
            None => return Err(self.damaged("the segment ends within a record")),
        };
        let [a, b, c, d, e, f, g, h] = head;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        if len == 0 {
            return Err(self.damaged("zeroes before the segment's end"));
        }
        let number = self.number;
        let content = self.bytes(HEADER_BYTES + len)?.get(HEADER_BYTES..).unwrap_or_default();
        let is_right = content.len() == len && checksum(number, content) == u32::from_le_bytes([e, f, g, h]);
        if is_right { Ok(len) } else { Err(self.damaged("the record's checksum does not match")) }
    }

    /// The first `len` bytes from the next record on; fewer at the end of the file.
    fn bytes(&mut self, len: usize) -> Result<&[u8]> {
        let within = self.at.checked_sub(self.buffer_at).map_or(usize::MAX, |within| within as usize);
        if within.saturating_add(len) > self.buffer.len() {
            let Some(open) = &self.open else { return Ok(&[]) };
            let size = open.file.size().map_err(Error::io("read", &open.path))?;
            let left = size.saturating_sub(u64::from(self.at)) as usize;
            let wanted = len.max(BUFFER_BYTES).min(left);
            if wanted > self.buffer.capacity() {
                // The length was read from a file, and whoever reads the feed has not asked for so much yet.
                account::grow(wanted)?;
                self.buffer = Vec::new();
            }
            self.buffer.resize(wanted, 0);
            self.buffer_at = self.at;
            let read = open.file.read_exact_at(&mut self.buffer, u64::from(self.at));
            read.map_err(Error::io("read", &open.path))?;
        }
        let from = (self.at - self.buffer_at) as usize;
        let until = (from + len).min(self.buffer.len());
        Ok(self.buffer.get(from..until).unwrap_or_default())
    }

    /// Forgets what was read: records behind it may have been written since.
    pub(crate) fn forget_buffer(&mut self) {
        self.buffer.clear();
        self.buffer_at = self.at;
    }

    /// Frees a buffer that a long record has needed, for a reader that is kept.
    pub(crate) fn trim(&mut self) {
        if self.buffer.capacity() > BUFFER_BYTES {
            self.buffer = Vec::new();
            self.buffer_at = self.at;
        }
    }

    fn damaged(&self, problem: &'static str) -> Error {
        let path = self.open.as_ref().map(|open| open.path.clone()).unwrap_or_default();
        Error::LogDamaged { path, offset: u64::from(self.at), problem }
    }
}

fn gone(log: &CommitLog) -> Error {
    Error::Changes(ChangesError::Gone { oldest: log.changes_begin() })
}

/// All segments of the log and all kept ones, by number. The log's folder is listed first, because segments move from
/// there to the kept ones.
fn all(log: &CommitLog) -> Result<Vec<FoundSegment>> {
    let (disk, dir) = (&*log.host.disk, &log.options.dir);
    let listed = disk.list(dir).map_err(Error::io("list", dir))?;
    let mut found: Vec<FoundSegment> = listed
        .into_iter()
        .filter_map(|path| Some(FoundSegment { number: segment_number(&path)?, path, end: None }))
        .collect();
    let kept = kept_segments(disk, &log.options.kept_dir)?.into_iter();
    found.extend(kept.map(|KeptSegment { number, end, path, .. }| FoundSegment {
        number,
        path,
        end: Some(end),
    }));
    // A kept one before the same one that was listed before it moved.
    found.sort_by_key(|segment| (segment.number, segment.end.is_none()));
    found.dedup_by_key(|segment| segment.number);
    Ok(found)
}

fn find(log: &CommitLog, number: u32) -> Result<Option<FoundSegment>> {
    Ok(all(log)?.into_iter().find(|segment| segment.number == number))
}

/// The first segment with records from `number` on. Segments that were created in advance have none.
fn find_at_or_after(log: &CommitLog, number: u32) -> Result<Option<FoundSegment>> {
    'again: loop {
        for segment in all(log)?.into_iter().filter(|segment| segment.number >= number) {
            match front(log, &segment)? {
                Front::Moved => continue 'again,
                Front::Empty => {}
                Front::Continues(_) => return Ok(Some(segment)),
            }
        }
        return Ok(None);
    }
}

/// The end of a segment's records and the segment behind it, if it is not the active one any more.
fn finish(log: &CommitLog, number: u32) -> Result<Option<Finished>> {
    let closed_end = || log.closed_end(number);
    'again: loop {
        let mut end = None;
        for segment in all(log)? {
            if segment.number <= number {
                end = segment.end.filter(|_| segment.number == number);
                continue;
            }
            let before = match front(log, &segment)? {
                Front::Moved => continue 'again,
                Front::Empty => continue,
                Front::Continues(before) => before,
            };
            let missing = if end.is_some() { number + 1 } else { number };
            if before.segment() != number && log.changes_begin().segment() > missing {
                return Err(gone(log));
            }
            // A segment that was created in advance and got no record may stand between the two: the next segment then
            // continues that one.
            let end = match end.or_else(closed_end) {
                Some(end) => end,
                None if before.segment() == number => before.offset(),
                // The segment was removed meanwhile and had no changes, or the log was cut before it had records.
                None => SEGMENT_HEAD,
            };
            return Ok(Some(Finished { end, next: Some(segment.number) }));
        }
        let last = log.end_before_active();
        let end = end.or_else(closed_end).or_else(|| (last.segment() == number).then_some(last.offset()));
        return Ok(end.map(|end| Finished { end, next: None }));
    }
}

/// The beginning of a segment file.
enum Front {
    /// The file is not there any more.
    Moved,
    /// It has no records.
    Empty,
    /// It has records; the position is the end of the log before it.
    Continues(LogPosition),
}

fn front(log: &CommitLog, segment: &FoundSegment) -> Result<Front> {
    let read = |source| Error::io("read", &segment.path)(source);
    let file = match log.host.disk.open_own(&segment.path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Front::Moved),
        Err(error) => return Err(Error::io("open", &segment.path)(error)),
    };
    let size = file.size().map_err(read)?.min(FRONT_BYTES);
    let mut front = vec![0; size as usize];
    file.read_exact_at(&mut front, 0).map_err(read)?;
    if !matches!(check_head(&front, segment.number), HeaderState::Good) {
        return Ok(Front::Empty);
    }
    let head = front.get(SEGMENT_HEAD as usize..).and_then(|rest| rest.split_first_chunk::<HEADER_BYTES>());
    let Some(([a, b, c, d, e, f, g, h], rest)) = head else { return Ok(Front::Empty) };
    let content = rest.get(..u32::from_le_bytes([*a, *b, *c, *d]) as usize);
    let sum = u32::from_le_bytes([*e, *f, *g, *h]);
    match content.filter(|content| checksum(segment.number, content) == sum).and_then(parse) {
        Some(Record::Continues(end)) => Ok(Front::Continues(end)),
        _ => Ok(Front::Empty),
    }
}

impl CommitLog {
    /// Syncs the log, and returns the position up to which it is synced. After a failure of the log that is where it is cut.
    pub(crate) fn sync_for_readers(&self) -> LogPosition {
        // A failure is told to every writer; what was synced before it can be read.
        let _told = self.sync_up_to(self.position());
        LogPosition(self.synced.load(Ordering::Acquire))
    }
}
