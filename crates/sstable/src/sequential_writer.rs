//! Writes a component from start to end.
//!
//! All writers of this crate use it. It buffers, computes the CRC32 of the whole file (Digest.crc32 of Data.db) and of
//! each 4 KiB page (our page-checksum component), pads to pages for the tries, and syncs at the end.

use crate::block::PAGE_BYTES;
use crate::checksum::{Crc32, crc32};
use crate::error::{Error, Result};
use helenus_host::{Disk, File, PageBuffer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Size of the write buffer: a multiple of `PAGE_BYTES`, so that every flush but the last writes whole pages.
const BUFFER_BYTES: usize = 256 * 1024;

/// A component being written.
pub struct SequentialWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    buffer: PageBuffer,
    flushed: u64,
    crc: Crc32,
    page_crcs: Option<Vec<u32>>,
    /// Whether whole buffers are written past the system's page cache.
    is_direct: bool,
    /// Whether the caller syncs the file.
    is_synced_later: bool,
}

/// Size and checksums of a component that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Length in bytes.
    pub size: u64,
    /// CRC32 of all bytes.
    pub crc32: u32,
    /// CRC32 of each page of `PAGE_BYTES` (the last may be shorter); empty if not requested.
    pub page_crcs: Vec<u32>,
}

impl SequentialWriter {
    /// Creates the file, which must not exist.
    pub fn create(disk: &dyn Disk, path: &Path, with_page_checksums: bool) -> Result<SequentialWriter> {
        let file = disk.create(path).map_err(|source| Error::Io { file: path.to_owned(), source })?;
        Ok(SequentialWriter::on(file, path, with_page_checksums))
    }

    /// Writes into an open, empty file.
    pub fn on(file: Arc<dyn File>, path: &Path, with_page_checksums: bool) -> SequentialWriter {
        SequentialWriter {
            file,
            path: path.to_owned(),
            buffer: PageBuffer::new(BUFFER_BYTES),
            flushed: 0,
            crc: Crc32::default(),
            page_crcs: with_page_checksums.then(Vec::new),
            is_direct: false,
            is_synced_later: false,
        }
    }

    /// Leaves the final sync to the caller, and returns the file. To sync many files together costs about as much as
    /// one.
    pub fn sync_later(&mut self) -> Arc<dyn File> {
        self.is_synced_later = true;
        Arc::clone(&self.file)
    }

    /// From now on whole buffers are written past the system's page cache, because they will not be read soon.
    pub fn pass_page_cache(&mut self) {
        self.is_direct = true;
    }

    /// The component's path, for errors.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written so far, buffered ones included.
    pub fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Appends bytes.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            bytes = self.buffer.fill(bytes);
            if self.buffer.is_full() {
                self.flush()?;
            }
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Number of bytes up to the next page boundary; a whole page at a boundary.
    pub fn bytes_left_in_page(&self) -> usize {
        PAGE_BYTES - (self.position() % PAGE_BYTES as u64) as usize
    }

    /// Fills the rest of the page with zeros; does nothing at a boundary.
    pub fn pad_to_page(&mut self) -> Result<()> {
        match self.bytes_left_in_page() {
            PAGE_BYTES => Ok(()),
            left => self.write(&[0; PAGE_BYTES][..left]),
        }
    }

    /// Writes the buffer and syncs the file, unless `sync_later` was called. The folder is not synced.
    pub fn finish(mut self) -> Result<Finished> {
        self.flush()?;
        if !self.is_synced_later {
            self.file.sync().map_err(|source| Error::Io { file: self.path.clone(), source })?;
        }
        Ok(Finished {
            size: self.flushed,
            crc32: self.crc.value(),
            page_crcs: self.page_crcs.unwrap_or_default(),
        })
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = self.buffer.bytes();
        let written = match self.is_direct {
            true => self.file.write_direct_at(bytes, self.flushed),
            false => self.file.write_all_at(bytes, self.flushed),
        };
        written.map_err(|source| Error::Io { file: self.path.clone(), source })?;
        self.crc.update(bytes);
        if let Some(page_crcs) = &mut self.page_crcs {
            page_crcs.extend(bytes.chunks(PAGE_BYTES).map(crc32));
        }
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trie::test_file::MemoryFile;

    #[test]
    fn pieces_of_any_size_make_the_same_file_and_checksums() {
        let bytes: Vec<u8> = (0..400_000u32).map(|i| (i * 31 % 251) as u8).collect();
        for piece in [1, 1000, PAGE_BYTES, BUFFER_BYTES, BUFFER_BYTES + 1, bytes.len()] {
            let file = MemoryFile::empty();
            let mut writer = SequentialWriter::on(file.clone(), Path::new("f"), true);
            if piece % 2 == 0 {
                writer.pass_page_cache();
            }
            for part in bytes.chunks(piece) {
                writer.write(part).unwrap();
            }
            assert_eq!(writer.position(), bytes.len() as u64);
            let finished = writer.finish().unwrap();
            assert_eq!(file.bytes(), bytes);
            assert_eq!(finished.crc32, crc32(&bytes));
            assert_eq!(finished.page_crcs, bytes.chunks(PAGE_BYTES).map(crc32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn padding_reaches_the_next_page_and_stays_at_a_boundary() {
        let file = MemoryFile::empty();
        let mut writer = SequentialWriter::on(file.clone(), Path::new("f"), false);
        writer.pad_to_page().unwrap();
        assert_eq!(writer.position(), 0);
        writer.write(b"x").unwrap();
        writer.pad_to_page().unwrap();
        writer.pad_to_page().unwrap();
        assert_eq!(writer.position(), PAGE_BYTES as u64);
        assert_eq!(writer.finish().unwrap().page_crcs, []);
    }
}
