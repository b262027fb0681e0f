//! What every store does, and the bytes that it does it with.

use crate::content::{NAME, name};
use crate::reads::{Answer, Place, put};
use anyhow::{Context, Result};
use std::ops::Range;
use std::path::Path;

/// Rows of a batch, of a slice, of a request by names.
pub const HUNDRED: u64 = 100;
/// Number of the first partition. Partitions have eight digits: their keys are of one length.
pub const PARTITION: u64 = 10_000_000;
/// No row has a greater number: names have ten digits.
pub const LAST_ROW: u64 = 9_999_999_999;
/// Bytes of an ordered key: `row-`, the partition's number, the name.
pub const KEY: usize = 12 + NAME;

/// A store with partitions of rows.
pub trait Store {
    /// Its name in the table.
    fn name(&self) -> &'static str;
    /// Version and settings.
    fn about(&self) -> String;
    /// Writes a batch. It survives the death of the process, and that of the machine when the system has written it.
    fn load(&mut self, partition: u64, rows: Range<u64>) -> Result<()>;
    /// Brings everything to where it stays: on disk, in one sorted run.
    fn settle(&mut self) -> Result<()>;
    /// Reads so many rows from `place`.
    fn slice(&mut self, partition: u64, place: Place, limit: u64, answer: &mut Answer) -> Result<()>;
    /// Reads rows by ascending names.
    fn names(&mut self, partition: u64, rows: &[u64], answer: &mut Answer) -> Result<()>;
    /// Reads everything.
    fn scan(&mut self, answer: &mut Answer) -> Result<()>;
    /// Bytes on disk, without logs.
    fn disk_bytes(&self) -> Result<u64>;
}

/// The ordered key of a row: the same bytes as Helenus's partition key, and the name.
pub fn ordered_key(partition: u64, row: u64) -> [u8; KEY] {
    let mut ordered = [0; KEY];
    ordered[..4].copy_from_slice(b"row-");
    let mut number = partition;
    for digit in ordered[4..12].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    ordered[12..].copy_from_slice(&name(row));
    ordered
}

/// Copies a row into the answer, by its ordered key.
#[inline]
pub fn take(answer: &mut Answer, key: &[u8], value: &[u8]) -> Result<()> {
    if answer.piece != 0 && answer.bytes.len() > answer.piece {
        answer.bytes.clear();
    }
    put(&mut answer.bytes, key.get(KEY - NAME..).context("a short key")?);
    put(&mut answer.bytes, value);
    answer.rows += 1;
    Ok(())
}

/// Bytes of a file, or of the files of a folder and below.
pub fn bytes_of(path: &Path) -> Result<u64> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let mut sum = 0;
    for entry in std::fs::read_dir(path)? {
        sum += bytes_of(&entry?.path())?;
    }
    Ok(sum)
}
