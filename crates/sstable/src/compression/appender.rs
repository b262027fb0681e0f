//! The end of a data file: bytes gathered into large writes, with the CRC32 of the whole file for Digest.crc32.

use crate::checksum::Crc32;
use crate::error::{Error, Result};
use helenus_host::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes gathered before a write: large enough that the system call costs little beside the copy.
const GATHERED_BYTES: usize = 256 * 1024;

pub(super) struct Appender {
    file: Arc<dyn File>,
    path: PathBuf,
    pending: Vec<u8>,
    written: u64,
    digest: Crc32,
}

impl Appender {
    pub(super) fn new(file: Arc<dyn File>, path: &Path) -> Appender {
        Appender {
            file,
            path: path.to_owned(),
            pending: Vec::with_capacity(GATHERED_BYTES),
            written: 0,
            digest: Crc32::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file with all that was appended.
    pub(super) fn size(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Adds bytes; they stay in memory until `write_if_full`.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Adds zeros.
    pub(super) fn pad(&mut self, len: usize) {
        self.pending.resize(self.pending.len() + len, 0);
    }

    /// Lets `fill` write up to `room` bytes at the end in place; it answers how many of them count.
    pub(super) fn append_with<E>(
        &mut self,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> std::result::Result<usize, E>,
    ) -> std::result::Result<usize, E> {
        let start = self.pending.len();
        self.pending.resize(start + room, 0);
        let filled = self.pending.get_mut(start..).map_or(Ok(0), fill);
        self.pending.truncate(start + *filled.as_ref().unwrap_or(&0));
        filled
    }

    /// The last `len` bytes appended and not yet written.
    pub(super) fn tail(&self, len: usize) -> &[u8] {
        self.pending.len().checked_sub(len).and_then(|start| self.pending.get(start..)).unwrap_or(&[])
    }

    /// Takes back the last `len` bytes, not yet written.
    pub(super) fn take_back(&mut self, len: usize) {
        self.pending.truncate(self.pending.len().saturating_sub(len));
    }

    /// Writes what was gathered once it is enough.
    pub(super) fn write_if_full(&mut self) -> Result<()> {
        if self.pending.len() >= GATHERED_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.digest.update(&self.pending);
        self.file.write_all_at(&self.pending, self.written).map_err(|source| self.io(source))?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Writes the rest and makes the file durable; its size and the CRC32 of its bytes.
    pub(super) fn finish(&mut self) -> Result<(u64, u32)> {
        self.write()?;
        self.file.sync().map_err(|source| self.io(source))?;
        Ok((self.written, self.digest.value()))
    }

    /// An error of the system that names this file.
    pub(super) fn io(&self, source: std::io::Error) -> Error {
        Error::Io { file: self.path.clone(), source }
    }
}
