//! Records that cannot be applied, kept in files of their own: a start that goes on without them loses nothing for good.

use super::replay::Place;
use super::segment::segment_path;
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use helenus_host::Disk;
use std::path::{Path, PathBuf};

/// Folder of the files, in the log's.
const FOLDER: &str = "unappliable";

/// A record that was kept, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnappliableRecord {
    /// Keyspace and table that it cannot be applied to.
    pub table: String,
    /// The segment that it stands in.
    pub segment: PathBuf,
    /// Byte of the segment that it begins at.
    pub offset: u64,
    /// Why it cannot be applied.
    pub problem: &'static str,
    /// The file that holds it, with its head, as the segment does.
    pub kept: PathBuf,
}

/// Keeps a record of the log in `dir`, durably. A file of an earlier start is written anew.
pub(crate) fn keep(
    disk: &dyn Disk,
    dir: &Path,
    (place, bytes): (Place, &[u8]),
    (table, problem): (String, &'static str),
) -> Result<UnappliableRecord> {
    let folder = dir.join(FOLDER);
    make_folder_below(disk, dir, &folder)?;
    let segment = segment_path(dir, place.end.segment());
    let stem = segment.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let kept = folder.join(format!("{stem}-{}.record", place.offset));
    if disk.exists(&kept) {
        disk.remove(&kept).map_err(Error::io("remove", &kept))?;
    }
    let file = disk.create(&kept).map_err(Error::io("create", &kept))?;
    file.write_all_at(bytes, 0).and_then(|()| file.sync()).map_err(Error::io("write", &kept))?;
    disk.sync_dir(&folder).map_err(Error::io("sync", &folder))?;
    Ok(UnappliableRecord { table, segment, offset: place.offset, problem, kept })
}
