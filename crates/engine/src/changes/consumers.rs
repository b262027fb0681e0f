//! Named consumers: the positions that they have acknowledged, in a small file beside the kept segments.
//!
//! A line for each: name, keyspace, table, record, changes, cursor, time of the last acknowledgement in seconds; separated by
//! tabs, with names of keyspaces and tables in hexadecimal digits, since they may hold anything. The file is replaced as a whole.

use super::position::ChangePosition;
use crate::changes_error::ChangesError;
use crate::commitlog::replace_file;
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use crate::log_position::LogPosition;
use helenus_host::Disk;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file.
const FILE: &str = "consumers";
/// The longest name.
const NAME_BYTES_MAX: usize = 64;

/// A consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name, unique among the consumers of the table.
    pub name: String,
    /// The keyspace of its table.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// It has acknowledged the changes before this.
    pub position: ChangePosition,
    /// Where it goes on, as its caller wrote it: among present rows that is more than a position.
    pub cursor: String,
    /// When it last did, seconds since the epoch.
    pub acknowledged_s: i64,
}

/// Whose: keyspace, table and name.
type Key = (String, String, String);

/// The consumers of a database.
pub(crate) struct Consumers {
    path: PathBuf,
    all: BTreeMap<Key, Consumer>,
}

impl Consumers {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// Failures of reading; a file that is none.
    pub(crate) fn open(disk: &dyn Disk, dir: &Path) -> Result<Consumers> {
        let path = dir.join(FILE);
        let mut consumers = Consumers { path: path.clone(), all: BTreeMap::new() };
        if !disk.exists(&path) {
            return Ok(consumers);
        }
        let file = disk.open_own(&path).map_err(Error::io("open", &path))?;
        let mut bytes = vec![0; file.size().map_err(Error::io("read", &path))? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(Error::io("read", &path))?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            let damaged = || Error::LogDamaged {
                path: path.clone(),
                offset: 0,
                problem: "a line that names no consumer; remove the file to forget all consumers",
            };
            let consumer = read_line(line).ok_or_else(damaged)?;
            consumers.all.insert(key(&consumer.keyspace, &consumer.table, &consumer.name), consumer);
        }
        Ok(consumers)
    }

    /// All, by keyspace, table and name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Consumer> {
        self.all.values()
    }

    /// One.
    pub(crate) fn get(&self, (keyspace, table): (&str, &str), name: &str) -> Option<&Consumer> {
        self.all.get(&key(keyspace, table, name))
    }

    /// The oldest position that one of them needs.
    pub(crate) fn wanted(&self) -> Option<LogPosition> {
        self.all.values().map(|consumer| consumer.position.record).min()
    }

    /// Adds or replaces one, durably.
    ///
    /// # Errors
    /// Failures of the disk; then nothing has changed.
    pub(crate) fn put(&mut self, disk: &dyn Disk, consumer: Consumer) -> Result<()> {
        let key = key(&consumer.keyspace, &consumer.table, &consumer.name);
        let before = self.all.insert(key.clone(), consumer);
        self.write(disk).inspect_err(|_| match before {
            Some(before) => drop(self.all.insert(key, before)),
            None => drop(self.all.remove(&key)),
        })
    }

    /// Removes one, durably. Returns whether it was there.
    ///
    /// # Errors
    /// Failures of the disk; then nothing has changed.
    pub(crate) fn remove(
        &mut self,
        disk: &dyn Disk,
        (keyspace, table): (&str, &str),
        name: &str,
    ) -> Result<bool> {
        let key = key(keyspace, table, name);
        let Some(before) = self.all.remove(&key) else { return Ok(false) };
        self.write(disk).inspect_err(|_| drop(self.all.insert(key, before)))?;
        Ok(true)
    }

    fn write(&self, disk: &dyn Disk) -> Result<()> {
        let dir = self.path.parent().unwrap_or(&self.path);
        make_folder_below(disk, dir.parent().unwrap_or(dir), dir)?;
        let mut text = String::new();
        for consumer in self.all.values() {
            let Consumer { name, keyspace, table, position, cursor, acknowledged_s } = consumer;
            let (keyspace, table) = (hex(keyspace), hex(table));
            let ChangePosition { record, changes } = position;
            let record = record.0;
            text.push_str(&format!(
                "{name}\t{keyspace}\t{table}\t{record}\t{changes}\t{cursor}\t{acknowledged_s}\n"
            ));
        }
        replace_file(disk, &self.path, text.as_bytes())
    }
}

/// Checks the name of a consumer.
///
/// # Errors
/// `BadName`.
pub fn check_name(name: &str) -> std::result::Result<(), ChangesError> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_good) {
        return Ok(());
    }
    Err(ChangesError::BadName { name: name.to_owned() })
}

fn key(keyspace: &str, table: &str, name: &str) -> Key {
    (keyspace.to_owned(), table.to_owned(), name.to_owned())
}

fn read_line(line: &str) -> Option<Consumer> {
    let mut parts = line.split('\t');
    let name = parts.next()?.to_owned();
    let (keyspace, table) = (unhex(parts.next()?)?, unhex(parts.next()?)?);
    let record = LogPosition(parts.next()?.parse().ok()?);
    let changes = parts.next()?.parse().ok()?;
    let cursor = parts.next()?.to_owned();
    let acknowledged_s = parts.next()?.parse().ok()?;
    let position = ChangePosition { record, changes };
    parts.next().is_none().then_some(Consumer { name, keyspace, table, position, cursor, acknowledged_s })
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<String> {
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    String::from_utf8((0..digits.len()).step_by(2).map(byte).collect::<Option<_>>()?).ok()
}
