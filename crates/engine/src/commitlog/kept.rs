//! Segments that are kept for consumers of changes, beyond the log's own need of them.
//!
//! A segment with records of watched tables that the log does not need any more moves to a folder of its own, as long as a
//! consumer has not acknowledged it (`keep_from`), within a limit of bytes and of time. When a limit is reached, the oldest
//! segments go, and the consumer learns it: `begin` is the position from which all changes are there, and it is on disk
//! before a segment goes. A kept segment's name has its number, the end of its records, and the time: the log's folder and
//! the start do not know it.

use super::log::{Closed, CommitLog};
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use crate::log_position::LogPosition;
use helenus_host::Disk;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// The file with the position from which all changes are there.
const BEGIN: &str = "begin";

/// How much of the log is kept for consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLimits {
    /// Bytes of files.
    pub bytes: u64,
    /// Seconds since a segment was filled.
    pub age_s: u64,
}

impl Default for KeptLimits {
    /// 4 GiB, as Cassandra's `cdc_total_space` at most; seven days.
    fn default() -> KeptLimits {
        KeptLimits { bytes: 4 << 30, age_s: 7 * 86_400 }
    }
}

/// The state of the kept segments.
pub(super) struct Kept {
    /// Oldest first.
    segments: VecDeque<KeptSegment>,
    /// All changes from here on are in the log or in kept segments.
    begin: LogPosition,
    /// The oldest position that a consumer still needs; `None` without consumers.
    wanted: Option<LogPosition>,
}

/// A kept segment.
#[derive(Clone, Debug)]
pub(super) struct KeptSegment {
    pub(super) number: u32,
    /// End of its records.
    pub(super) end: u32,
    /// When it was filled, seconds since the epoch.
    since_s: u64,
    pub(super) path: PathBuf,
    /// Size of the file.
    bytes: u64,
}

impl Kept {
    /// Finds what the last run kept.
    pub(super) fn open(disk: &dyn Disk, dir: &Path) -> Result<Kept> {
        let mut segments = VecDeque::new();
        for mut segment in kept_segments(disk, dir)? {
            let file = disk.open_own(&segment.path).map_err(Error::io("open", &segment.path))?;
            segment.bytes = file.size().map_err(Error::io("read", &segment.path))?;
            segments.push_back(segment);
        }
        Ok(Kept { segments, begin: read_begin(disk, dir)?, wanted: None })
    }
}

/// The kept segments of a folder, oldest first. Their size is not looked up.
pub(super) fn kept_segments(disk: &dyn Disk, dir: &Path) -> Result<Vec<KeptSegment>> {
    if !disk.is_dir(dir) {
        return Ok(Vec::new());
    }
    let mut found: Vec<KeptSegment> =
        disk.list(dir).map_err(Error::io("list", dir))?.into_iter().filter_map(kept_segment).collect();
    found.sort_by_key(|segment| segment.number);
    Ok(found)
}

fn kept_segment(path: PathBuf) -> Option<KeptSegment> {
    let name = path.file_name()?.to_str()?.strip_prefix("kept-")?.strip_suffix(".log")?;
    let mut parts = name.split('-');
    let number = parts.next()?.parse().ok()?;
    let end = parts.next()?.parse().ok()?;
    let since_s = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some(KeptSegment { number, end, since_s, path, bytes: 0 })
}

fn read_begin(disk: &dyn Disk, dir: &Path) -> Result<LogPosition> {
    let path = dir.join(BEGIN);
    if !disk.exists(&path) {
        return Ok(LogPosition::START);
    }
    let file = disk.open_own(&path).map_err(Error::io("open", &path))?;
    let mut bytes = vec![0; file.size().map_err(Error::io("read", &path))?.min(64) as usize];
    file.read_exact_at(&mut bytes, 0).map_err(Error::io("read", &path))?;
    let position = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
    position.map(LogPosition).ok_or(Error::LogDamaged { path, offset: 0, problem: "no position in it" })
}

/// Replaces a small file of a folder, durably.
pub(crate) fn replace_file(disk: &dyn Disk, path: &Path, content: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    if disk.exists(&new) {
        disk.remove(&new).map_err(Error::io("remove", &new))?;
    }
    let file = disk.create(&new).map_err(Error::io("create", &new))?;
    file.write_all_at(content, 0).and_then(|()| file.sync()).map_err(Error::io("write", &new))?;
    disk.rename(&new, path).map_err(Error::io("rename", &new))?;
    let dir = path.parent().unwrap_or(path);
    disk.sync_dir(dir).map_err(Error::io("sync", dir))
}

impl CommitLog {
    /// The position from which all changes of watched tables are there.
    pub(crate) fn changes_begin(&self) -> LogPosition {
        self.state.lock().kept.begin
    }

    /// Keeps segments from this position on, for consumers; `None` if there are none. Segments that nobody needs any more
    /// are removed.
    ///
    /// # Errors
    /// Failures of the disk.
    pub(crate) fn keep_from(&self, wanted: Option<LogPosition>) -> Result<()> {
        self.state.lock().kept.wanted = wanted;
        self.release()
    }

    /// Bytes of the kept segments.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.state.lock().kept.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Whether a consumer may still need a segment.
    pub(super) fn is_wanted(&self, segment: &Closed) -> bool {
        let wanted = self.state.lock().kept.wanted;
        wanted.is_some_and(|wanted| wanted < LogPosition::new(segment.number, segment.end))
    }

    /// Moves a segment to the kept ones.
    pub(super) fn keep(&self, segment: Closed) -> Result<()> {
        let (disk, dir) = (&*self.host.disk, &self.options.kept_dir);
        make_folder_below(disk, dir.parent().unwrap_or(dir), dir)?;
        let Closed { number, end, bytes, path: from, .. } = segment;
        let since_s = u64::try_from(self.host.clock.wall_us() / 1_000_000).unwrap_or_default();
        let path = dir.join(format!("kept-{number:010}-{end}-{since_s}.log"));
        disk.rename(&from, &path).map_err(Error::io("rename", &from))?;
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
        self.state.lock().kept.segments.push_back(KeptSegment { number, end, since_s, path, bytes });
        Ok(())
    }

    /// Notes that these segments go: changes before their end are not there any more.
    pub(super) fn pass(&self, removed: &[Closed]) -> Result<()> {
        match removed.iter().filter(|segment| segment.is_watched).map(|segment| segment.number).max() {
            Some(number) => self.begin_at(LogPosition::new(number + 1, 0)),
            None => Ok(()),
        }
    }

    fn begin_at(&self, begin: LogPosition) -> Result<()> {
        let (disk, dir) = (&*self.host.disk, &self.options.kept_dir);
        {
            let kept = &mut self.state.lock().kept;
            if kept.begin >= begin {
                return Ok(());
            }
            kept.begin = begin;
        }
        make_folder_below(disk, dir.parent().unwrap_or(dir), dir)?;
        replace_file(disk, &dir.join(BEGIN), begin.0.to_string().as_bytes())
    }

    /// How much is kept.
    pub(crate) fn kept_limits(&self) -> KeptLimits {
        self.options.kept_limits
    }

    /// Removes the kept segments that nobody needs, and those beyond the limits.
    pub(super) fn release(&self) -> Result<()> {
        let KeptLimits { bytes: bytes_max, age_s: age_max } = self.options.kept_limits;
        let now_s = u64::try_from(self.host.clock.wall_us() / 1_000_000).unwrap_or_default();
        let released: Vec<KeptSegment> = {
            let kept = &mut self.state.lock().kept;
            let mut bytes: u64 = kept.segments.iter().map(|segment| segment.bytes).sum();
            let mut released = Vec::new();
            while let Some(segment) = kept.segments.front() {
                let end = LogPosition::new(segment.number, segment.end);
                let is_wanted = kept.wanted.is_some_and(|wanted| wanted < end);
                if is_wanted && bytes <= bytes_max && now_s.saturating_sub(segment.since_s) <= age_max {
                    break;
                }
                bytes = bytes.saturating_sub(segment.bytes);
                released.extend(kept.segments.pop_front());
            }
            released
        };
        let Some(last) = released.last() else { return Ok(()) };
        self.begin_at(LogPosition::new(last.number + 1, 0))?;
        let files = released.iter().map(|segment| (segment.path.as_path(), segment.number, segment.bytes));
        self.reuse_or_remove(files.collect())
    }
}
