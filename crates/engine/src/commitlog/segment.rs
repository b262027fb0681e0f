//! Segments: the files of the log, made of zeroes before they are written.
//!
//! Names are `helenus-<number>.log`, numbers never come back. Head: magic, format version, number, CRC32.

use super::record::HEAD;
use crate::error::{Error, Result};
use helenus_host::{Disk, File};
use helenus_sstable::checksum::crc32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Begins every segment.
const MAGIC: &[u8; 8] = b"HELENUSL";
/// Version of the format.
const VERSION: u32 = 1;
/// Bytes of a segment's head.
pub(super) const SEGMENT_HEAD: u32 = 20;

/// A segment file.
pub(super) struct Segment {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    pub(super) size: u32,
}

impl Segment {
    /// Makes a segment of zeroes and writes its head. A full disk shows here, and leaves nothing behind.
    pub(super) fn create(disk: &dyn Disk, dir: &Path, number: u32, size: u32) -> Result<Segment> {
        let path = segment_path(dir, number);
        let full = |source| Error::LogFull { path: path.clone(), source };
        let file = disk.create(&path).map_err(full)?;
        let made = file.allocate(u64::from(size)).and_then(|()| {
            file.write_all_at(&head(number), 0)?;
            file.sync()?;
            disk.sync_dir(dir)
        });
        if let Err(source) = made {
            // The file is of no use; if it cannot be removed either, the next start passes over its missing head.
            drop(file);
            let _ = disk.remove(&path);
            return Err(Error::LogFull { path, source });
        }
        Ok(Segment { number, path, file, size })
    }
}

/// The path of a segment.
pub(super) fn segment_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("helenus-{number:010}.log"))
}

/// The number in a segment's file name.
pub(super) fn segment_number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("helenus-")?.strip_suffix(".log")?.parse().ok()
}

fn head(number: u32) -> Vec<u8> {
    let mut head = Vec::with_capacity(SEGMENT_HEAD as usize);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&number.to_le_bytes());
    let crc = crc32(&head);
    head.extend_from_slice(&crc.to_le_bytes());
    head
}

/// What the head of a segment file says of it.
pub(super) enum HeadState {
    /// A head of this format and number.
    Good,
    /// All zeroes or cut: the segment was being made when the machine stopped, and holds nothing.
    Unfinished,
    /// Something else.
    Bad,
}

/// Judges the head of a segment that was read.
pub(super) fn check_head(bytes: &[u8], number: u32) -> HeadState {
    match bytes.get(..SEGMENT_HEAD as usize) {
        Some(found) if found == head(number) => HeadState::Good,
        Some(found) if found.iter().any(|byte| *byte != 0) => HeadState::Bad,
        _ => HeadState::Unfinished,
    }
}

/// The largest content of a record in a segment of this size.
pub(super) fn content_bytes_max(segment_bytes: u32) -> usize {
    segment_bytes as usize - SEGMENT_HEAD as usize - HEAD
}
