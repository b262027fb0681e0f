//! Replay of handmade logs, with segments that a run leaves only if it ends at certain moments.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use super::record::{self, Record, checksum};
use super::replay::{Replay, ReplayOptions, read_log};
use super::segment::{SEGMENT_HEAD, VERSION, head, segment_path};
use crate::commitlog::recovered::RecoveredLog;
use crate::error::Error;
use crate::log_position::LogPosition;
use crate::open_progress::OpenProgress;
use helenus_host::Host;
use helenus_host::sim::Machine;
use helenus_model::schema::TableId;
use std::path::Path;
use uuid::Uuid;

const DIR: &str = "/db/commitlog";
const SEGMENT_BYTES: usize = 4096;
const TABLE: TableId = TableId(Uuid::from_u128(7));

/// The bytes of a segment before they are written to its file.
struct Made {
    number: u32,
    bytes: Vec<u8>,
}

impl Made {
    /// A segment that was created in advance: a header only.
    fn unused(number: u32) -> Made {
        Made { number, bytes: head(number, VERSION) }
    }

    /// A segment that continues another one.
    fn behind(number: u32, end: LogPosition) -> Made {
        let mut content = Vec::new();
        record::put_continues(end, &mut content);
        Made::unused(number).with(&content)
    }

    fn with(mut self, content: &[u8]) -> Made {
        self.bytes.extend((content.len() as u32).to_le_bytes());
        self.bytes.extend(checksum(self.number, content).to_le_bytes());
        self.bytes.extend(content);
        self
    }

    /// Adds a record that a replay has to keep.
    fn truncating(self) -> Made {
        let mut content = Vec::new();
        record::put_truncate(TABLE, &mut content);
        self.with(&content)
    }

    fn end(&self) -> LogPosition {
        LogPosition::new(self.number, self.bytes.len() as u32)
    }

    /// Pads the segment to full size and writes it to the folder. `before` is the byte that the file held as an
    /// earlier segment.
    fn put(mut self, host: &Host, before: u8) {
        self.bytes.resize(SEGMENT_BYTES, before);
        let file = host.disk.create(&segment_path(Path::new(DIR), self.number)).unwrap();
        file.write_all_at(&self.bytes, 0).unwrap();
        file.sync().unwrap();
    }
}

fn host() -> (Machine, Host) {
    let machine = Machine::new(1);
    let host = machine.host();
    host.disk.create_dir_all(Path::new(DIR)).unwrap();
    host.disk.sync_dir(Path::new(DIR)).unwrap();
    (machine, host)
}

fn read(host: &Host) -> Result<(Replay, RecoveredLog), Error> {
    read_log(&*host.disk, Path::new(DIR), ReplayOptions::default(), &OpenProgress::default())
}

/// The segments in which a replay finds truncations.
fn truncations(host: &Host, replay: &Replay) -> Vec<u32> {
    let (mut found, mut memory) = (Vec::new(), Vec::new());
    for segment in &replay.segments {
        let each = |(place, _): (super::Place, &[u8]), record: Record<'_>| {
            found.extend(matches!(record, Record::Truncate(TABLE)).then(|| place.end.segment()));
            Ok(())
        };
        segment.read(&*host.disk, &mut memory, each).unwrap();
    }
    found
}

#[test]
fn unused_segments_are_passed_over_wherever_they_stand() {
    for before in [0, 0xAB] {
        let (_machine, host) = host();
        let first = Made::behind(1, LogPosition::START).truncating();
        let fourth = Made::behind(4, first.end()).truncating();
        let last = Made::behind(6, fourth.end()).truncating();
        let end = last.end();
        for made in [first, Made::unused(2), Made::unused(3), fourth, Made::unused(5), last, Made::unused(7)]
        {
            made.put(&host, before);
        }
        let (replay, left) = read(&host).unwrap();
        assert_eq!(truncations(&host, &replay), [1, 4, 6], "filled with {before}");
        assert!(replay.skipped.is_empty());
        let kept: Vec<u32> = left.segments.iter().map(|segment| segment.number).collect();
        // Bytes of an earlier life look like a torn end, and everything after that is removed.
        let last = if before == 0 { 7 } else { 6 };
        assert_eq!(kept, Vec::from_iter(1..=last), "numbers of segments with records do not come back");
        assert!(left.end >= Some(end));
    }
}

#[test]
fn a_record_missing_before_unused_segments_is_damage_if_it_was_synced_and_else_the_end() {
    for synced in [false, true] {
        let (_machine, host) = host();
        let first = Made::behind(1, LogPosition::START);
        // The third segment states that the first one had another record at its end.
        let beyond = LogPosition::new(1, first.end().offset() + 40);
        let mut third = Made::behind(3, beyond).truncating();
        if synced {
            let mut content = Vec::new();
            record::put_synced(third.end().offset(), &mut content);
            third = third.with(&content);
        }
        for made in [first, Made::unused(2), third] {
            made.put(&host, 0);
        }
        match read(&host) {
            Ok((replay, _)) => {
                assert!(!synced);
                assert_eq!(truncations(&host, &replay), [0u32; 0]);
                assert!(
                    !host.disk.exists(&segment_path(Path::new(DIR), 3)),
                    "what follows a hole is removed"
                );
            }
            Err(error) => {
                assert!(synced && matches!(error, Error::LogDamaged { .. }), "{error}");
            }
        }
    }
}

#[test]
fn a_segment_cut_at_its_torn_end_is_not_taken_for_a_full_grown_one() {
    let (_machine, host) = host();
    let first = Made::behind(1, LogPosition::START).truncating();
    let end = u64::from(first.end().offset());
    first.put(&host, 0xAB);
    let (_, left) = read(&host).unwrap();
    let sizes: Vec<u64> = left.segments.iter().map(|segment| segment.bytes).collect();
    assert_eq!(sizes, [end]);
    assert!(end > u64::from(SEGMENT_HEAD));
    assert_eq!(host.disk.open(&segment_path(Path::new(DIR), 1)).unwrap().size().unwrap(), end);
}

#[test]
fn a_segment_missing_in_the_middle_is_told_if_an_older_one_is_needed() {
    let first = || Made::behind(1, LogPosition::START).truncating();
    let second = || Made::behind(2, first().end()).truncating();
    // The position up to which the table is flushed, as the last segment says.
    let before_first = LogPosition::new(1, first().end().offset() - 1);
    for (flushed, is_told) in [
        (None, true),
        (Some(before_first), true),
        (Some(first().end()), false),
        (Some(second().end()), false),
    ] {
        let (_machine, host) = host();
        let mut third = Made::behind(3, second().end());
        if let Some(position) = flushed {
            let mut content = Vec::new();
            record::put_flushed([(TABLE, position)].into_iter(), &mut content);
            third = third.with(&content);
        }
        for made in [first(), third.truncating(), Made::unused(4)] {
            made.put(&host, 0);
        }
        let (replay, _) = read(&host).unwrap();
        let told: Vec<_> =
            replay.missing.iter().map(|missing| (missing.path.clone(), missing.tables.clone())).collect();
        let wanted = [(segment_path(Path::new(DIR), 2), vec![TABLE])];
        assert_eq!(told, &wanted[..usize::from(is_told)], "flushed up to {flushed:?}");
        assert_eq!(truncations(&host, &replay), [1, 3], "what is there is read: {flushed:?}");
    }
}
