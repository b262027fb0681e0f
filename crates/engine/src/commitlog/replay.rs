//! Replay: reading the log that the last run left.
//!
//! A record that cannot be read is judged by what stands behind it. If a later record proves that this place was once
//! synced (a `Synced` record of a greater offset, or another segment after this one), it is damage: refused with
//! segment and offset, or skipped when told to. Otherwise it is the torn end of what no one was promised.

use super::append::LeftOver;
use super::record::{HEAD, LogPosition, Record, SYNCED_MAGIC, checksum, parse};
use super::segment::{HeadState, SEGMENT_HEAD, check_head, segment_number};
use crate::error::{Error, Result};
use helenus_host::Disk;
use helenus_model::schema::TableId;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How to treat what cannot be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions {
    /// Lose a damaged record and the rest of its segment instead of refusing to start.
    pub skip_damaged: bool,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Replay {
    /// Records in order, with the position behind each.
    pub records: Vec<(LogPosition, Record)>,
    /// Bytes of log read.
    pub bytes: u64,
    /// Damage that was skipped: segment and offset.
    pub skipped: Vec<(PathBuf, u64)>,
}

/// Reads every segment of a folder. The records that must be applied are those of mutations beyond what their table
/// has flushed; the caller knows both.
pub(crate) fn read_log(disk: &dyn Disk, dir: &Path, options: ReplayOptions) -> Result<(Replay, LeftOver)> {
    let (mut replay, mut left) = (Replay::default(), LeftOver::default());
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
    let count = segments.len();
    for (index, (number, path)) in segments.into_iter().enumerate() {
        let last = index + 1 == count;
        let mut reader = SegmentReader::open(disk, number, path)?;
        let from = replay.records.len();
        let end = reader.read(last, options, &mut replay)?;
        if last && !reader.rest_is_zero(end) {
            reader.trim(disk, end)?;
        }
        let dirty = note_records(&replay.records[from..], &mut left);
        left.segments.push((number, dirty));
    }
    Ok((replay, left))
}

/// Collects what the records say of flushes and timestamps, and the tables with writes.
fn note_records(records: &[(LogPosition, Record)], left: &mut LeftOver) -> HashMap<TableId, LogPosition> {
    let mut dirty = HashMap::new();
    for (position, record) in records {
        match record {
            Record::Mutation(updates) => dirty.extend(updates.iter().map(|update| (update.table, *position))),
            Record::Truncate(table) => {
                dirty.insert(*table, *position);
            }
            Record::Flushed(tables) => {
                for (table, flushed) in tables {
                    let known = left.flushed.entry(*table).or_insert(LogPosition::START);
                    *known = (*known).max(*flushed);
                }
            }
            Record::TimestampReserve(reserve) => {
                left.timestamp_reserve_us = left.timestamp_reserve_us.max(*reserve);
            }
            Record::Layout(..) | Record::Synced(_) => {}
        }
    }
    dirty
}

struct SegmentReader {
    number: u32,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl SegmentReader {
    fn open(disk: &dyn Disk, number: u32, path: PathBuf) -> Result<SegmentReader> {
        let file = disk.open(&path).map_err(Error::io("open", &path))?;
        let size = file.size().map_err(Error::io("read", &path))?;
        let mut bytes = vec![0; size as usize];
        file.read_exact_at(&mut bytes, 0).map_err(Error::io("read", &path))?;
        Ok(SegmentReader { number, path, bytes })
    }

    /// Reads the records; returns where they end.
    fn read(&mut self, last: bool, options: ReplayOptions, replay: &mut Replay) -> Result<usize> {
        match check_head(&self.bytes, self.number) {
            HeadState::Good => {}
            HeadState::Unfinished if last => return Ok(0),
            HeadState::Unfinished | HeadState::Bad => {
                return self.damaged(0, "the segment's head is not one", options, replay);
            }
        }
        let mut at = SEGMENT_HEAD as usize;
        loop {
            match self.record_at(at) {
                Found::Record(record, end) => {
                    replay.records.push((LogPosition::new(self.number, end as u32), record));
                    replay.bytes += (end - at) as u64;
                    at = end;
                }
                Found::End if !self.was_synced_beyond(at, last) => return Ok(at),
                Found::End if !last && self.rest_is_zero(at) => return Ok(at),
                Found::End => return self.damaged(at, "zeroes where a record was synced", options, replay),
                Found::Bad(_) if !self.was_synced_beyond(at, last) => return Ok(at),
                Found::Bad(problem) => return self.damaged(at, problem, options, replay),
            }
        }
    }

    /// Cuts what no one was promised off the segment: with another one after it, it would look like damage.
    fn trim(&self, disk: &dyn Disk, end: usize) -> Result<()> {
        let file = disk.open_write(&self.path).map_err(Error::io("open", &self.path))?;
        file.set_size(end as u64).and_then(|()| file.sync()).map_err(Error::io("cut", &self.path))
    }

    fn damaged(
        &self,
        at: usize,
        problem: &'static str,
        options: ReplayOptions,
        replay: &mut Replay,
    ) -> Result<usize> {
        if options.skip_damaged {
            replay.skipped.push((self.path.clone(), at as u64));
            return Ok(at);
        }
        Err(Error::LogDamaged { path: self.path.clone(), offset: at as u64, problem })
    }

    fn record_at(&self, at: usize) -> Found {
        let Some((head, rest)) = self.bytes.get(at..).and_then(|rest| rest.split_first_chunk::<HEAD>())
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
            Some(record) => Found::Record(record, at + HEAD + len),
            None => Found::Bad("a record of unknown content"),
        }
    }

    /// Whether something behind `at` proves that this place was synced.
    fn was_synced_beyond(&self, at: usize, last: bool) -> bool {
        if !last {
            return true;
        }
        let mut from = at;
        while let Some(found) = find(self.bytes.get(from..).unwrap_or_default(), &SYNCED_MAGIC) {
            let start = from + found;
            if let Some(Found::Record(Record::Synced(offset), _)) =
                start.checked_sub(HEAD).map(|head| self.record_at(head))
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

enum Found {
    Record(Record, usize),
    End,
    Bad(&'static str),
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
