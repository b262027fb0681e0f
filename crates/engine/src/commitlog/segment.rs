//! Segments: the files of the log.
//!
//! A segment is created in advance, as a file of zeroes or from a segment that is no longer needed. A reused file
//! already has its disk blocks and cached pages; its old records do not match the new segment number.
//!
//! Names are `helenus-<number>.log`; numbers are never reused. A segment begins with magic, format version, number and
//! CRC32.

use super::record::HEADER_BYTES;
use crate::error::{Error, Result};
use helenus_host::{Disk, File};
use helenus_sstable::checksum::crc32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first bytes of every segment.
const MAGIC: &[u8; 8] = b"HELENUSL";
/// Version of the format.
pub(super) const VERSION: u32 = 2;
/// Versions that are read. In version 1, zeroes follow the last record.
const VERSIONS_READ: [u32; 2] = [1, VERSION];
/// Names of files that become segments: created in advance, and created when none was ready.
pub(super) const SPARE_NAMES: [&str; 2] = ["spare.log", "next.log"];
/// Prefix of the names of segments that wait for reuse.
const USED_PREFIX: &str = "used-";
/// Bytes of a segment's header.
pub(crate) const SEGMENT_HEAD: u32 = 20;

/// A segment file.
pub(super) struct Segment {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    pub(super) size: u32,
}

/// A file that waits to become a segment.
pub(super) struct SpareFile {
    path: PathBuf,
    file: Arc<dyn File>,
    size: u32,
}

impl SpareFile {
    /// Creates a file of zeroes. A full disk is noticed here, and no file remains then.
    pub(super) fn create(disk: &dyn Disk, path: PathBuf, size: u32) -> Result<SpareFile> {
        let full = |source| Error::LogFull { path: path.clone(), source };
        if disk.exists(&path) {
            disk.remove(&path).map_err(full)?;
        }
        let file = disk.create(&path).map_err(full)?;
        match file.allocate(u64::from(size)) {
            Ok(()) => Ok(SpareFile { path, file, size }),
            Err(source) => {
                drop(file);
                // An unremoved file is removed before the next attempt.
                let _ = disk.remove(&path);
                Err(Error::LogFull { path, source })
            }
        }
    }

    /// Opens a segment that was set aside.
    pub(super) fn reuse(disk: &dyn Disk, used: UsedSegment) -> Result<SpareFile> {
        let file = disk.open_write(&used.path).map_err(Error::io("open", &used.path))?;
        Ok(SpareFile { path: used.path, file, size: used.size })
    }

    /// Turns the file into the segment of this number: writes its header and renames it, both durably.
    pub(super) fn into_segment(self, disk: &dyn Disk, dir: &Path, number: u32) -> Result<Segment> {
        let path = segment_path(dir, number);
        let full = |source| Error::LogFull { path: path.clone(), source };
        self.file.write_all_at(&head(number, VERSION), 0).and_then(|()| self.file.sync()).map_err(full)?;
        disk.rename(&self.path, &path).and_then(|()| disk.sync_dir(dir)).map_err(full)?;
        Ok(Segment { number, path, file: self.file, size: self.size })
    }
}

/// A segment that was set aside for reuse.
pub(super) struct UsedSegment {
    path: PathBuf,
    size: u32,
}

impl UsedSegment {
    /// Renames a segment to a name outside the log. It has left the log once the folder is synced.
    pub(super) fn set_aside(
        disk: &dyn Disk,
        from: &Path,
        (dir, number): (&Path, u32),
        size: u32,
    ) -> std::io::Result<UsedSegment> {
        let path = dir.join(format!("{USED_PREFIX}{number:010}.log"));
        disk.rename(from, &path)?;
        Ok(UsedSegment { path, size })
    }

    /// The segment of this number, if it was set aside.
    pub(super) fn found(disk: &dyn Disk, (dir, number): (&Path, u32), size: u32) -> Option<UsedSegment> {
        let path = dir.join(format!("{USED_PREFIX}{number:010}.log"));
        disk.exists(&path).then_some(UsedSegment { path, size })
    }

    /// Its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file in bytes.
    pub(super) fn size(&self) -> u32 {
        self.size
    }
}

/// Removes the files that wait to become segments.
pub(super) fn remove_spares(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let is_spare = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        SPARE_NAMES.contains(&name) || name.starts_with(USED_PREFIX)
    };
    for path in disk.list(dir).map_err(Error::io("list", dir))?.iter().filter(is_spare) {
        disk.remove(path).map_err(Error::io("remove", path))?;
    }
    Ok(())
}

/// The path of a segment.
pub(crate) fn segment_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("helenus-{number:010}.log"))
}

/// The number in a segment's file name.
pub(super) fn segment_number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix("helenus-")?.strip_suffix(".log")?.parse().ok()
}

/// The header of the segment of this number.
pub(super) fn head(number: u32, version: u32) -> Vec<u8> {
    let mut head = Vec::with_capacity(SEGMENT_HEAD as usize);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&version.to_le_bytes());
    head.extend_from_slice(&number.to_le_bytes());
    let crc = crc32(&head);
    head.extend_from_slice(&crc.to_le_bytes());
    head
}

/// The state of a segment's header.
pub(super) enum HeaderState {
    /// A header of this format and number.
    Good,
    /// All zeroes or too short: the machine stopped while the segment was being created, and it holds no records.
    Unfinished,
    /// Any other bytes.
    Bad,
}

/// Checks the header of a segment that was read.
pub(super) fn check_head(bytes: &[u8], number: u32) -> HeaderState {
    match bytes.get(..SEGMENT_HEAD as usize) {
        Some(found) if VERSIONS_READ.iter().any(|version| found == head(number, *version)) => {
            HeaderState::Good
        }
        Some(found) if found.iter().any(|byte| *byte != 0) => HeaderState::Bad,
        _ => HeaderState::Unfinished,
    }
}

/// The largest content of a record in a segment of this size.
pub(super) fn content_bytes_max(segment_bytes: u32) -> usize {
    segment_bytes as usize - SEGMENT_HEAD as usize - HEADER_BYTES
}
