//! A segment of the commit log as bytes on the simulated disk: finds a record by text in it, and changes the record's content
//! on the medium with a valid checksum.

use helenus_host::sim::Machine;
use helenus_sstable::checksum::Crc32;
use std::path::{Path, PathBuf};

/// Bytes of a segment's header, and of a record's header: `docs/formats/commitlog.md`.
const SEGMENT_HEAD: usize = 20;
const RECORD_HEAD: usize = 8;
const MUTATION: u8 = 1;

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// A segment as it is on the disk.
pub struct Segment {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

impl Segment {
    /// The segment of the log that contains this text.
    pub fn with(machine: &Machine, text: &str) -> Segment {
        let disk = machine.host().disk;
        let paths: Vec<PathBuf> = disk.list(Path::new("/db/commitlog")).unwrap();
        let read = |path: PathBuf| {
            let file = disk.open(&path).unwrap();
            let mut bytes = vec![0; file.size().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            Segment { path, bytes }
        };
        let mut segments = paths.into_iter().map(read);
        segments.find(|segment| segment.has(0..segment.bytes.len(), text)).expect("the record is in the log")
    }

    fn has(&self, range: std::ops::Range<usize>, text: &str) -> bool {
        self.bytes[range].windows(text.len()).any(|found| found == text.as_bytes())
    }

    /// The begin and the end of the record that contains this text.
    pub fn record(&self, text: &str) -> (usize, usize) {
        let mut at = SEGMENT_HEAD;
        loop {
            let end = at + RECORD_HEAD + number(&self.bytes, at);
            if self.has(at..end, text) {
                return (at, end);
            }
            at = end;
        }
    }

    /// Changes the content of a record on the medium itself, with a valid checksum.
    pub fn rewrite(&self, machine: &Machine, (begin, end): (usize, usize), change: impl FnOnce(&mut [u8])) {
        let mut after = self.bytes[begin..end].to_vec();
        change(&mut after[RECORD_HEAD..]);
        let mut crc = Crc32::default();
        // The segment's number, then the record's length, then its content.
        crc.update(&self.bytes[12..16]);
        crc.update(&after[..4]);
        crc.update(&after[RECORD_HEAD..]);
        after[4..RECORD_HEAD].copy_from_slice(&crc.value().to_le_bytes());
        for (at, (before, after)) in self.bytes[begin..end].iter().zip(&after).enumerate() {
            for bit in (0..8).filter(|bit| (before ^ after) >> bit & 1 == 1) {
                machine.flip_bit(&self.path, (begin + at) as u64, bit).unwrap();
            }
        }
    }
}

/// The offset of the kind of a mutation's first change in its record: after the count, the table's id, and the key.
pub fn first_change(content: &[u8]) -> usize {
    assert_eq!(content[0], MUTATION);
    let key = 1 + 4 + 16;
    key + 4 + number(content, key) + 4
}
