//! Keeps records that cannot be applied in files of their own, so that a start that skips them loses nothing for good.

use super::replay::Place;
use super::segment::segment_path;
use crate::error::{Error, Result, UnappliableRecord};
use crate::folder::make_folder_below;
use helenus_host::Disk;
use std::path::Path;

/// The folder of these files, within the log's folder.
const FOLDER: &str = "unappliable";

/// Writes a record to a file in `dir`, durably. A file of an earlier start is replaced.
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
