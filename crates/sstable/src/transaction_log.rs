//! Cassandra's transaction log: the single commit point of a flush, a compaction, an import or a drop.
//!
//! It is a file in the table's folder, with a line for each record: `ADD:[<prefix>,0,<files>][<crc>]` before a new
//! SSTable is written, `REMOVE:[<prefix>,<modified ms>,<files>][<crc>]` for an old SSTable, then
//! `COMMIT:[,0,0][<crc>]`, or Cassandra's `ABORT:[,0,0][<crc>]`. The prefix is the absolute path up to the component's
//! name. The CRC32 is decimal and covers one record. Each record is synced before the next is written, and the folder
//! with the first record. A caller with many transactions can write a record of each and then sync them together
//! (`add_unsynced`, `commit_unsynced`, `sync`). After COMMIT the files of REMOVE records are deleted, otherwise those
//! of ADD records, and then the log. Sources: `LogFile`, `LogRecord`, `LogReplica`, `LogTransaction`.
//!
//! A writer calls `begin`; `add` for each new SSTable, and then writes and syncs its files; `remove` for each old one;
//! `commit`; and, when no reader uses the old files any more, `finish`. After a crash `recover` does the rest.

use crate::checksum::Crc32;
use crate::error::{Error, Result};
use crate::names::{Descriptor, is_transaction_log, transaction_log};
use crate::version::Version;
use helenus_host::{Disk, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// What a transaction does. The log's name contains it; Cassandra refuses names that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writes a memtable as an SSTable.
    Flush,
    /// Replaces SSTables by others.
    Compaction,
    /// Adds SSTables from elsewhere: an import, a restore.
    Write,
    /// Deletes SSTables: a drop, a truncate.
    Remove,
    /// Rewrites a damaged SSTable.
    Scrub,
}

impl Operation {
    /// Its text in the log's name (`OperationType.fileName`).
    pub fn name(self) -> &'static str {
        match self {
            Operation::Flush => "flush",
            Operation::Compaction => "compaction",
            Operation::Write => "write",
            Operation::Remove => "unknowncompactiontype",
            Operation::Scrub => "scrub",
        }
    }
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A new SSTable. Its files are kept on commit and deleted otherwise.
    Add,
    /// An old SSTable. Its files are deleted on commit and kept otherwise.
    Remove,
    /// The transaction is committed.
    Commit,
    /// The transaction is undone.
    Abort,
}

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its kind.
    pub kind: RecordKind,
    /// Absolute path of the SSTable's files up to the component's name; empty for the last record.
    pub path: String,
    /// For `Remove`: the greatest modification time of the files except Statistics.db, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Number of the SSTable's files.
    pub files: i32,
}

impl Record {
    fn last(kind: RecordKind) -> Record {
        Record { kind, path: String::new(), modified_ms: 0, files: 0 }
    }

    fn word(&self) -> &'static str {
        match self.kind {
            RecordKind::Add => "ADD",
            RecordKind::Remove => "REMOVE",
            RecordKind::Commit => "COMMIT",
            RecordKind::Abort => "ABORT",
        }
    }

    fn is_last(&self) -> bool {
        matches!(self.kind, RecordKind::Commit | RecordKind::Abort)
    }

    fn checksum(&self) -> u32 {
        let mut crc = Crc32::default();
        crc.update(self.path.as_bytes());
        crc.update(self.word().as_bytes());
        crc.update(&(self.modified_ms as u32).to_be_bytes());
        crc.update(&((self.modified_ms >> 32) as u32).to_be_bytes());
        crc.update(&self.files.to_be_bytes());
        crc.value()
    }

    /// The record's line, without the line break.
    pub fn to_line(&self) -> String {
        let (word, crc) = (self.word(), self.checksum());
        format!("{word}:[{},{},{}][{crc}]", self.path, self.modified_ms, self.files)
    }

    /// Parses a line; `None` if it is malformed or its checksum does not match.
    pub fn parse(line: &str) -> Option<Record> {
        let (word, rest) = line.split_once(":[")?;
        let (fields, crc) = rest.strip_suffix(']')?.rsplit_once("][")?;
        let mut fields = fields.rsplitn(3, ',');
        let files = fields.next()?.parse().ok()?;
        let modified_ms = fields.next()?.parse().ok()?;
        let path = fields.next()?.to_owned();
        let kind = match word.to_ascii_uppercase().as_str() {
            "ADD" => RecordKind::Add,
            "REMOVE" => RecordKind::Remove,
            "COMMIT" => RecordKind::Commit,
            "ABORT" => RecordKind::Abort,
            _ => return None,
        };
        let record = Record { kind, path, modified_ms, files };
        let is_whole = if record.is_last() { record.path.is_empty() } else { record.names_an_sstable() };
        (is_whole && crc.parse() == Ok(record.checksum())).then_some(record)
    }

    /// Whether the prefix is that of an SSTable of any version (a compaction of Cassandra 3.0 removes those of 2.2).
    /// Files that begin with the prefix are deleted, so another prefix could delete any file.
    fn names_an_sstable(&self) -> bool {
        let prefix = self.prefix();
        prefix.ends_with('-') && prefix.split('-').filter(|part| !part.is_empty()).count() >= 3
    }

    /// The prefix of the SSTable's file names.
    fn prefix(&self) -> &str {
        self.path.rsplit_once('/').map_or(self.path.as_str(), |(_, name)| name)
    }
}

/// A running transaction. If it is dropped without `commit`, the next `recover` undoes it.
pub struct TransactionLog {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    path: PathBuf,
    file: Option<Arc<dyn File>>,
    /// Whether the file may exist, with or without a record.
    may_exist: bool,
    size: u64,
    records: Vec<Record>,
    /// Bytes of the last record if it is not synced; otherwise 0.
    unsynced_bytes: u64,
    /// Whether the log's name may not be durable.
    is_new: bool,
}

impl TransactionLog {
    /// A log in a table's folder (an absolute path, for Cassandra). `id` is a time UUID. The first record creates the
    /// file.
    pub fn begin(disk: Arc<dyn Disk>, folder: &Path, operation: Operation, id: Uuid) -> TransactionLog {
        let path = folder.join(transaction_log(Version::CURRENT, operation.name(), id));
        TransactionLog {
            disk,
            folder: folder.to_owned(),
            path,
            file: None,
            may_exist: false,
            size: 0,
            records: Vec::new(),
            unsynced_bytes: 0,
            is_new: true,
        }
    }

    /// The log's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file may exist: a failed first record may have left it.
    pub fn has_begun(&self) -> bool {
        self.may_exist
    }

    /// Records a new SSTable, before the first of its files is created. `files` is the number of its files.
    pub fn add(&mut self, descriptor: &Descriptor, files: usize) -> Result<()> {
        self.add_unsynced(descriptor, files)?;
        self.sync()
    }

    /// The same without `sync`, after which the first file may be created.
    pub fn add_unsynced(&mut self, descriptor: &Descriptor, files: usize) -> Result<()> {
        let path = self.absolute(descriptor);
        self.append(Record { kind: RecordKind::Add, path, modified_ms: 0, files: files as i32 })
    }

    /// Records an SSTable that is deleted on commit, with its number of files and the greatest modification time of all
    /// but Statistics.db. If Cassandra finds the log before `finish`, it refuses to start unless that time is right to
    /// the second. Our `recover` ignores the time.
    pub fn remove(&mut self, descriptor: &Descriptor, files: usize, modified_ms: i64) -> Result<()> {
        let path = self.absolute(descriptor);
        self.append(Record { kind: RecordKind::Remove, path, modified_ms, files: files as i32 })?;
        self.sync()
    }

    /// Commits the transaction: syncs the folder, so that the names of new files are durable, then writes COMMIT. The
    /// bytes of the new files must have been synced. After an error only `recover` can tell whether the transaction is
    /// committed.
    pub fn commit(&mut self) -> Result<()> {
        sync_dir(&*self.disk, &self.folder)?;
        self.commit_unsynced()?;
        self.sync()
    }

    /// Writes COMMIT. The transaction may be committed from now on, and is after `sync`. Bytes and names of the new
    /// files must be durable already. After an error it is unknown whether the transaction is committed.
    pub fn commit_unsynced(&mut self) -> Result<()> {
        self.append(Record::last(RecordKind::Commit))
    }

    /// Makes the last record durable, and the log's name with the first record. After an error the record is forgotten
    /// here.
    pub fn sync(&mut self) -> Result<()> {
        self.sync_record()?;
        self.sync_name()
    }

    /// The first half of `sync`, for the bytes. For many logs, all bytes are synced before the names.
    pub fn sync_record(&mut self) -> Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| self.unsynced_bytes > 0) else { return Ok(()) };
        let synced = file.sync().map_err(|source| Error::Io { file: self.path.clone(), source });
        if synced.is_err() {
            self.forget_record();
        }
        synced
    }

    /// The second half of `sync`, for the log's name after its first record.
    pub fn sync_name(&mut self) -> Result<()> {
        if self.unsynced_bytes > 0 && self.is_new {
            let synced = sync_dir(&*self.disk, &self.folder);
            if synced.is_err() {
                self.forget_record();
                return synced;
            }
            self.is_new = false;
        }
        self.unsynced_bytes = 0;
        Ok(())
    }

    fn forget_record(&mut self) {
        self.records.pop();
        self.size -= std::mem::take(&mut self.unsynced_bytes);
        self.file = self.file.take().filter(|_| !self.is_new);
    }

    /// Undoes the transaction: removes its new files and the log. It writes no ABORT, because the missing COMMIT is
    /// enough. An ABORT torn by a crash could not be distinguished from a damaged COMMIT if the old files are gone, for
    /// example because the table was truncated meanwhile. After an error `recover` does the rest.
    pub fn abort(self) -> Result<()> {
        assert!(!is_committed(&self.records), "what is committed counts");
        self.finish()
    }

    /// Removes the old files of a committed transaction, or otherwise the new ones, and the log. Nothing may still
    /// create files of those SSTables. After an error `recover` does the rest.
    pub fn finish(self) -> Result<()> {
        if !self.may_exist {
            return Ok(());
        }
        clean_up(&*self.disk, &self.folder, &self.path, &self.records).map(|_| ())
    }

    /// Removes the log of a committed transaction without REMOVE records. If the folder is not synced before a crash,
    /// the log may come back; then `recover` finds nothing to do for it.
    pub fn forget(self) -> Result<()> {
        let removes = self.records.iter().any(|record| record.kind == RecordKind::Remove);
        assert!(
            is_committed(&self.records) && !removes && self.unsynced_bytes == 0,
            "nothing is left to be done"
        );
        remove(&*self.disk, &self.path)
    }

    fn absolute(&self, descriptor: &Descriptor) -> String {
        self.folder.join(descriptor.prefix()).to_string_lossy().into_owned()
    }

    fn append(&mut self, record: Record) -> Result<()> {
        assert!(!self.records.last().is_some_and(Record::is_last), "a completed transaction takes no record");
        assert!(!self.records.contains(&record), "a record stands once");
        assert!(self.unsynced_bytes == 0, "each record is durable before the next");
        let line = record.to_line() + "\n";
        let io = |source| Error::Io { file: self.path.clone(), source };
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                self.may_exist = true;
                self.disk.create(&self.path).map_err(io)?
            }
        };
        file.write_all_at(line.as_bytes(), self.size).map_err(io)?;
        self.unsynced_bytes = line.len() as u64;
        self.file = Some(file);
        self.size += line.len() as u64;
        self.records.push(record);
        Ok(())
    }
}

/// The result of `recover` for one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The log.
    pub log: PathBuf,
    /// Whether its transaction was committed.
    pub committed: bool,
    /// The files that were removed.
    pub removed: Vec<PathBuf>,
}

/// Finishes the committed transactions of a table's folder and undoes the others, including Cassandra's. It must run
/// before anything in the folder is opened. It can be repeated, also after a crash within it, with the same result.
/// `Corrupt` for a log that cannot be trusted, because a record before the last is damaged, or because the last is
/// damaged and files of REMOVE records are missing; then none of its files was touched.
pub fn recover(disk: &dyn Disk, folder: &Path) -> Result<Vec<Recovered>> {
    recover_except(disk, folder, &|_| false)
}

/// The same for a folder in use: skips the logs of running transactions, for which `is_running` returns true.
pub fn recover_except(
    disk: &dyn Disk,
    folder: &Path,
    is_running: &dyn Fn(&Path) -> bool,
) -> Result<Vec<Recovered>> {
    let mut recovered = Vec::new();
    let is_left = |path: &PathBuf| is_transaction_log(name(path)) && !is_running(path);
    for log in list(disk, folder)?.into_iter().filter(is_left) {
        // A dead process may have written the log without syncing it, so that the next crash could lose it. A COMMIT
        // must be durable before the old files are deleted.
        let file = disk.open_write(&log).map_err(|source| Error::Io { file: log.clone(), source })?;
        file.sync().map_err(|source| Error::Io { file: log.clone(), source })?;
        sync_dir(disk, folder)?;
        let records = read(disk, &log)?;
        let committed = is_committed(&records);
        let removed = clean_up(disk, folder, &log, &records)?;
        recovered.push(Recovered { log, committed, removed });
    }
    Ok(recovered)
}

/// The SSTables of a folder that its transaction logs make invalid: those that committed transactions remove and those
/// that others add. Returns prefixes of file names, as in `Descriptor::prefix`. It changes nothing, so it can be used
/// for folders of other programs.
///
/// # Errors
/// `Corrupt` for a log that cannot be trusted, as `recover`.
pub fn invalid_prefixes(disk: &dyn Disk, folder: &Path) -> Result<Vec<String>> {
    let mut prefixes = Vec::new();
    for log in list(disk, folder)?.into_iter().filter(|path| is_transaction_log(name(path))) {
        let records = read(disk, &log)?;
        prefixes.extend(useless(&records).map(str::to_owned));
    }
    Ok(prefixes)
}

/// The prefixes of the SSTables whose files the outcome of a transaction deletes.
fn useless(records: &[Record]) -> impl Iterator<Item = &str> {
    let useless = if is_committed(records) { RecordKind::Remove } else { RecordKind::Add };
    records.iter().filter(move |record| record.kind == useless).map(Record::prefix)
}

/// Reads the records of a log. A last record that is cut off is left out.
pub fn read(disk: &dyn Disk, log: &Path) -> Result<Vec<Record>> {
    let corrupt = |offset: usize, problem: &str| Error::Corrupt {
        file: log.to_owned(),
        offset: offset as u64,
        problem: problem.to_owned(),
    };
    let bytes = read_file(disk, log)?;
    let mut records: Vec<Record> = Vec::new();
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let offset = at;
        at += line.len();
        let text = std::str::from_utf8(line).ok().map(str::trim_end);
        match text.and_then(Record::parse) {
            Some(record) if records.last().is_some_and(Record::is_last) || records.contains(&record) => {
                return Err(corrupt(offset, "a record after the last or for the second time"));
            }
            Some(record) => records.push(record),
            None if at < bytes.len() => return Err(corrupt(offset, "damaged record")),
            None => check_complete(disk, log, &records)?,
        }
    }
    Ok(records)
}

/// Checks a log whose last record is damaged. It is trusted only if every file of its REMOVE records still exists,
/// because then it was never committed.
fn check_complete(disk: &dyn Disk, log: &Path, records: &[Record]) -> Result<()> {
    let folder = log.parent().unwrap_or(Path::new(""));
    let files = list(disk, folder)?;
    for record in records.iter().filter(|record| record.kind == RecordKind::Remove) {
        let found = files.iter().filter(|file| name(file).starts_with(record.prefix())).count();
        if (found as i64) < i64::from(record.files) {
            let problem = format!(
                "the last record is damaged and {} has {found} of {} files",
                record.prefix(),
                record.files
            );
            return Err(Error::Corrupt { file: log.to_owned(), offset: 0, problem });
        }
    }
    Ok(())
}

fn is_committed(records: &[Record]) -> bool {
    records.last().is_some_and(|record| record.kind == RecordKind::Commit)
}

/// Removes the files that the outcome deletes, durably, and only then the log. Another transaction may remove the same
/// files at the same time, as TRUNCATE does beside the end of a compaction: what is gone needs no removal.
fn clean_up(disk: &dyn Disk, folder: &Path, log: &Path, records: &[Record]) -> Result<Vec<PathBuf>> {
    let mut prefixes: Vec<&str> = useless(records).collect();
    prefixes.sort_unstable();
    // No prefix begins with another one, so only the greatest that is not above a name can be the name's.
    let is_useless = |name: &str| {
        let above = prefixes.partition_point(|prefix| *prefix <= name);
        above
            .checked_sub(1)
            .and_then(|place| prefixes.get(place))
            .is_some_and(|prefix| name.starts_with(prefix))
    };
    let mut removed = Vec::new();
    for file in list(disk, folder)? {
        if !is_useless(name(&file)) || disk.is_dir(&file) {
            continue;
        }
        match disk.remove(&file) {
            Err(gone) if gone.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Io { file, source }),
            Ok(()) => removed.push(file),
        }
    }
    sync_dir(disk, folder)?;
    if disk.exists(log) {
        remove(disk, log)?;
        sync_dir(disk, folder)?;
    }
    Ok(removed)
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or("")
}

fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let file = disk.open_own(path)?;
        let mut bytes = vec![0; file.size()? as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|source| Error::Io { file: path.to_owned(), source })
}

fn list(disk: &dyn Disk, folder: &Path) -> Result<Vec<PathBuf>> {
    disk.list(folder).map_err(|source| Error::Io { file: folder.to_owned(), source })
}

fn remove(disk: &dyn Disk, path: &Path) -> Result<()> {
    disk.remove(path).map_err(|source| Error::Io { file: path.to_owned(), source })
}

fn sync_dir(disk: &dyn Disk, folder: &Path) -> Result<()> {
    disk.sync_dir(folder).map_err(|source| Error::Io { file: folder.to_owned(), source })
}

#[cfg(test)]
mod tests;
