//! The files of the audit log: `audit.log`, which is written, and rolled ones, `audit-TIME.log`.
//!
//! A file is rolled when it is large or its period is over; the time in its name is that of the roll, in UTC, so names are
//! sorted by age. The oldest rolled files are removed so that all of them stay below a size. A line is in one file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helenus_host::{Disk, File, Host};

use super::options::{AuditOptions, FileParameters, RollCycle};
use crate::log::time_text;

const CURRENT: &str = "audit.log";
/// The lock that keeps two servers from writing one file.
const LOCK: &str = "audit.lock";
/// The most rolled files of one moment.
const NAMES_MAX: u32 = 1000;

/// Why the audit log cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AuditFileError {
    /// The folder or its file cannot be used.
    #[error("the audit log cannot be written in {}: {source}; give another audit_logs_dir, or mend its owner and mode", directory.display())]
    Unusable {
        /// The folder.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The files, written by one thread.
pub struct Files {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    cycle: RollCycle,
    parameters: FileParameters,
    log_bytes_max: u64,
    file: Arc<dyn File>,
    /// Its bytes.
    size: u64,
    /// The period of its first line here.
    period: i64,
    _lock: Box<dyn Send + Sync>,
}

impl Files {
    /// Opens the file in a folder, which is made if it is not there. Lines of an earlier start are kept.
    ///
    /// # Errors
    /// The folder cannot be written, or another server writes there.
    pub fn open(
        host: &Host,
        directory: &Path,
        options: &AuditOptions,
        parameters: &FileParameters,
    ) -> Result<Files, AuditFileError> {
        let unusable = |source| AuditFileError::Unusable { directory: directory.to_owned(), source };
        let disk = Arc::clone(&host.disk);
        disk.create_dir_all(directory).map_err(unusable)?;
        let lock = disk.lock(&directory.join(LOCK), &format!("process {}", std::process::id())).map_err(
            |error| match error.kind() {
                io::ErrorKind::WouldBlock => unusable(io::Error::other("another server writes there")),
                _ => unusable(error),
            },
        )?;
        let path = directory.join(CURRENT);
        let file = match disk.exists(&path) {
            true => disk.open_write(&path),
            false => disk.create(&path),
        };
        let file = file.map_err(unusable)?;
        let size = file.size().map_err(unusable)?;
        Ok(Files {
            disk,
            directory: directory.to_owned(),
            cycle: options.roll_cycle,
            parameters: parameters.clone(),
            log_bytes_max: options.log_bytes_max,
            file,
            size,
            period: options.roll_cycle.period(host.clock.wall_us()),
            _lock: lock,
        })
    }

    /// Appends whole lines, and rolls the file before them if that is due.
    ///
    /// # Errors
    /// The disk is full or fails. What the file had before is intact, and the next lines follow it.
    pub fn append(&mut self, lines: &[u8], now_us: i64) -> io::Result<()> {
        let period = self.cycle.period(now_us);
        if self.size > 0
            && (period != self.period || self.size + lines.len() as u64 > self.parameters.file_bytes_max)
        {
            self.roll(now_us)?;
        }
        self.period = period;
        if let Err(error) = self.file.write_all_at(lines, self.size) {
            // A part of a line may be there. If it cannot be cut, the next lines are written over it.
            let _cut = self.file.set_size(self.size);
            return Err(error);
        }
        self.size += lines.len() as u64;
        if self.parameters.sync { self.file.sync() } else { Ok(()) }
    }

    /// Syncs what was written.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn roll(&mut self, now_us: i64) -> io::Result<()> {
        // A write that failed in its middle may have left a part of a line.
        self.file.set_size(self.size)?;
        self.file.sync()?;
        let time = time_text(now_us).replace([':', '.'], "-");
        let name = |number: u32| match number {
            0 => self.directory.join(format!("audit-{time}.log")),
            number => self.directory.join(format!("audit-{time}-{number:03}.log")),
        };
        let free = (0..NAMES_MAX).map(name).find(|path| !self.disk.exists(path));
        let rolled = free.ok_or_else(|| io::Error::other("no name is left for a rolled file"))?;
        let current = self.directory.join(CURRENT);
        self.disk.rename(&current, &rolled)?;
        match self.disk.create(&current) {
            Ok(file) => self.file = file,
            Err(error) => {
                // The open file goes on under its old name.
                let _renamed_back = self.disk.rename(&rolled, &current);
                return Err(error);
            }
        }
        self.size = 0;
        self.disk.sync_dir(&self.directory)?;
        self.remove_oldest()
    }

    /// Removes the oldest rolled files until the others fit.
    fn remove_oldest(&self) -> io::Result<()> {
        let is_rolled =
            |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_rolled);
        let rolled: Vec<PathBuf> = self.disk.list(&self.directory)?.into_iter().filter(is_rolled).collect();
        let mut left = self.log_bytes_max;
        for path in rolled.iter().rev() {
            let size = self.disk.open(path)?.size()?;
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => {
                    left = 0;
                    self.disk.remove(path)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a file has a name that `Files::roll` gives: `audit-2026-11-29T01-02-03-004Z.log`, with a number before `.log` if
/// there were several in a millisecond. Only such files are removed, because the folder may be one of all logs of a machine.
fn is_rolled(name: &str) -> bool {
    let Some(time) = name.strip_prefix("audit-").and_then(|rest| rest.strip_suffix(".log")) else {
        return false;
    };
    let shape: String = time.chars().map(|char| if char.is_ascii_digit() { '0' } else { char }).collect();
    matches!(&*shape, "0000-00-00T00-00-00-000Z" | "0000-00-00T00-00-00-000Z-000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_host::sim::Machine;

    const HOUR_US: i64 = 3_600_000_000;

    fn files(host: &Host, file_bytes_max: u64, log_bytes_max: u64) -> Files {
        let parameters = FileParameters { file_bytes_max, ..FileParameters::default() };
        let options = AuditOptions { log_bytes_max, ..AuditOptions::default() };
        Files::open(host, Path::new("/audit"), &options, &parameters).unwrap()
    }

    fn texts(host: &Host) -> Vec<String> {
        let text = |path: PathBuf| {
            let file = host.disk.open(&path).unwrap();
            let mut bytes = vec![0; file.size().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
        host.disk.list(Path::new("/audit")).unwrap().into_iter().filter(is_log).map(text).collect()
    }

    #[test]
    fn a_file_is_rolled_by_size_and_by_period_and_the_oldest_go() {
        let host = Machine::new(1).host();
        let now_us = host.clock.wall_us();
        let mut log = files(&host, 10, 12);
        log.append(b"one---\n", now_us).unwrap();
        log.append(b"two\n", now_us).unwrap();
        // The rolled file comes first: `audit-` sorts before `audit.`.
        assert_eq!(texts(&host), ["one---\n", "two\n"]);
        log.append(b"3\n", now_us + HOUR_US).unwrap();
        assert_eq!(texts(&host), ["one---\n", "two\n", "3\n"]);
        log.append(b"4\n", now_us + 2 * HOUR_US).unwrap();
        // 7 + 4 + 2 bytes of rolled files are too many.
        assert_eq!(texts(&host), ["two\n", "3\n", "4\n"]);
    }

    #[test]
    fn lines_of_an_earlier_start_are_kept_and_two_servers_do_not_share_a_folder() {
        let host = Machine::new(1).host();
        let mut log = files(&host, 100, 100);
        log.append(b"one\n", host.clock.wall_us()).unwrap();
        let options = AuditOptions::default();
        let second = Files::open(&host, Path::new("/audit"), &options, &FileParameters::default());
        assert!(second.is_err_and(|error| error.to_string().contains("another server writes there")));
        drop(log);
        files(&host, 100, 100).append(b"two\n", host.clock.wall_us()).unwrap();
        assert_eq!(texts(&host), ["one\ntwo\n"]);
    }
}
