//! Segments that are kept for consumers of changes, beyond the log's own need of them.
//!
//! A segment with records of watched tables gets a second name in a folder of its own before the log removes its first
//! one, as long as a consumer has not acknowledged it (`keep_from`), within a limit of bytes and of time. When a limit is
//! reached, the oldest segments go, and the consumer learns it: `begin` is the position from which all changes are there,
//! and it is on disk before a segment goes. A kept segment's name has its number, the end of its records, and the time;
//! `begin` is the name of an empty file, so that it can be moved on a disk without space. The log's folder and the start do
//! not know this folder.
//!
//! The lock `removing` is held by every change of the folder.

use super::log::CommitLog;
use super::removal::{Removable, Removing};
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use crate::log_position::LogPosition;
use helenus_host::Disk;
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the file with the position from which all changes are there, as earlier versions wrote it.
const BEGIN_FILE: &str = "begin";
/// Prefix of the name of the empty file that tells this position.
const BEGIN_PREFIX: &str = "begin-";

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
    /// Bytes of all of them.
    bytes: u64,
    /// All changes from here on are in the log or in kept segments.
    begin: LogPosition,
    /// The oldest position that a consumer still needs; `None` without consumers. Everything is needed until the
    /// consumers are known.
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
        let begin = read_begin(disk, dir)?;
        let mut kept = Kept { segments: VecDeque::new(), bytes: 0, begin, wanted: Some(LogPosition::START) };
        for mut segment in kept_segments(disk, dir)? {
            let file = disk.open_own(&segment.path).map_err(Error::io("open", &segment.path))?;
            segment.bytes = file.size().map_err(Error::io("read", &segment.path))?;
            kept.push(segment);
        }
        Ok(kept)
    }

    fn push(&mut self, segment: KeptSegment) {
        self.bytes += segment.bytes;
        self.segments.push_back(segment);
    }

    fn pop_oldest(&mut self) {
        if let Some(segment) = self.segments.pop_front() {
            self.bytes -= segment.bytes;
        }
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
    let named =
        begin_names(disk, dir)?.into_iter().map(|(begin, _)| begin).max().unwrap_or(LogPosition::START);
    let path = dir.join(BEGIN_FILE);
    if !disk.exists(&path) {
        return Ok(named);
    }
    let file = disk.open_own(&path).map_err(Error::io("open", &path))?;
    let mut bytes = vec![0; file.size().map_err(Error::io("read", &path))?.min(64) as usize];
    file.read_exact_at(&mut bytes, 0).map_err(Error::io("read", &path))?;
    let position = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
    let written = position.map(LogPosition).ok_or(Error::LogDamaged {
        path,
        offset: 0,
        problem: "no position in it",
    })?;
    Ok(named.max(written))
}

/// The files whose names tell the position. A power cut within a rename may leave two: the later position counts.
fn begin_names(disk: &dyn Disk, dir: &Path) -> Result<Vec<(LogPosition, PathBuf)>> {
    if !disk.is_dir(dir) {
        return Ok(Vec::new());
    }
    let named = |path: PathBuf| {
        let digits = path.file_name()?.to_str()?.strip_prefix(BEGIN_PREFIX)?;
        Some((LogPosition(digits.parse().ok()?), path))
    };
    Ok(disk.list(dir).map_err(Error::io("list", dir))?.into_iter().filter_map(named).collect())
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
    /// A removal that fails is tried again.
    pub(crate) fn keep_from(&self, wanted: Option<LogPosition>) {
        self.state.lock().kept.wanted = wanted;
        self.remove_unneeded();
    }

    /// Bytes of the kept segments.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.state.lock().kept.bytes
    }

    /// How much is kept.
    pub(crate) fn kept_limits(&self) -> KeptLimits {
        self.options.kept_limits
    }

    /// Gives a segment that a consumer may still need its second name among the kept ones. Otherwise notes that its changes
    /// are not there any more.
    pub(super) fn keep_or_pass(
        &self,
        removing: &MutexGuard<'_, Removing>,
        segment: &Removable,
    ) -> Result<()> {
        let (is_wanted, is_kept) = {
            let kept = &self.state.lock().kept;
            let end = LogPosition::new(segment.number, segment.end);
            // Segments are kept in their order. After a restart the log may still have one that is kept already.
            let is_kept = kept.segments.back().is_some_and(|last| last.number >= segment.number);
            (kept.wanted.is_some_and(|wanted| wanted <= end), is_kept)
        };
        match (is_kept, is_wanted) {
            // It goes by `release`.
            (true, _) => Ok(()),
            (false, true) => self.keep(segment),
            (false, false) => self.begin_at(removing, LogPosition::new(segment.number + 1, 0)),
        }
    }

    fn keep(&self, segment: &Removable) -> Result<()> {
        let (disk, dir) = (&*self.host.disk, &self.options.kept_dir);
        make_folder_below(disk, dir.parent().unwrap_or(dir), dir)?;
        let Removable { number, end, bytes, path: from, .. } = segment;
        // An earlier attempt may have failed at the sync.
        let found = kept_segments(disk, dir)?.into_iter().find(|kept| kept.number == *number);
        let kept = match found {
            Some(kept) => KeptSegment { bytes: *bytes, ..kept },
            None => {
                let since_s = self.trusted_s().unwrap_or_else(|| self.last_given_s());
                let path = dir.join(format!("kept-{number:010}-{end}-{since_s}.log"));
                disk.hard_link(from, &path).map_err(Error::io("link", from))?;
                KeptSegment { number: *number, end: *end, since_s, path, bytes: *bytes }
            }
        };
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
        self.state.lock().kept.push(kept);
        Ok(())
    }

    /// The time by which kept segments grow old, seconds since the epoch. A clock that is ahead for a while takes nothing
    /// away: a jump counts only once it is trusted, as for the purging of data.
    fn trusted_s(&self) -> Option<u64> {
        u64::try_from(self.options.trusted_clock.now_s()).ok().filter(|now_s| *now_s > 0)
    }

    fn last_given_s(&self) -> u64 {
        u64::try_from(self.options.last_given.get() / 1_000_000).unwrap_or_default()
    }

    /// Notes durably that changes before this position are not there any more.
    fn begin_at(&self, _removing: &MutexGuard<'_, Removing>, begin: LogPosition) -> Result<()> {
        let (disk, dir) = (&*self.host.disk, &self.options.kept_dir);
        if self.state.lock().kept.begin >= begin {
            return Ok(());
        }
        make_folder_below(disk, dir.parent().unwrap_or(dir), dir)?;
        let path = dir.join(format!("{BEGIN_PREFIX}{}", begin.0));
        let mut names = begin_names(disk, dir)?;
        names.sort();
        match names.pop() {
            // Left by an attempt that failed at the sync.
            Some((named, _)) if named == begin => {}
            Some((_, last)) => disk.rename(&last, &path).map_err(Error::io("rename", &last))?,
            None => drop(disk.create(&path).map_err(Error::io("create", &path))?),
        }
        disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
        self.state.lock().kept.begin = begin;
        let file = dir.join(BEGIN_FILE);
        let old_names = names.into_iter().map(|(_, path)| path);
        for old in old_names.chain(disk.exists(&file).then_some(file)) {
            disk.remove(&old).map_err(Error::io("remove", &old))?;
        }
        Ok(())
    }

    /// The oldest kept segment, if nobody needs it or a limit is passed.
    fn released(&self) -> Option<KeptSegment> {
        let KeptLimits { bytes: bytes_max, age_s: age_max } = self.options.kept_limits;
        let now_s = self.trusted_s();
        let kept = &self.state.lock().kept;
        let segment = kept.segments.front()?;
        let is_wanted =
            kept.wanted.is_some_and(|wanted| wanted <= LogPosition::new(segment.number, segment.end));
        let is_old = now_s.is_some_and(|now_s| now_s.saturating_sub(segment.since_s) > age_max);
        (!is_wanted || kept.bytes > bytes_max || is_old).then(|| segment.clone())
    }

    /// Whether a kept segment is to be removed.
    pub(super) fn is_release_due(&self) -> bool {
        self.released().is_some()
    }

    /// Removes the kept segments that nobody needs, and those beyond the limits, the oldest first.
    pub(super) fn release(&self, removing: &MutexGuard<'_, Removing>) -> Result<()> {
        let (disk, dir) = (&*self.host.disk, &self.options.kept_dir);
        while let Some(KeptSegment { number, path, .. }) = self.released() {
            self.begin_at(removing, LogPosition::new(number + 1, 0))?;
            match disk.remove(&path) {
                Err(gone) if gone.kind() == ErrorKind::NotFound => {}
                removed => removed.map_err(Error::io("remove", &path))?,
            }
            disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
            self.state.lock().kept.pop_oldest();
        }
        Ok(())
    }
}
