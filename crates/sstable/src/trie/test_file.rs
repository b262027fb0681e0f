//! A file in memory for this crate's unit tests.

use crate::block::{BlockFile, PAGE_BYTES, ReadContext};
use crate::buffer::BufferPool;
use helenus_host::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A file whose bytes are in memory. `try_read_exact_at` always returns false, as if a read had to wait.
#[derive(Default)]
pub(crate) struct MemoryFile(Mutex<Vec<u8>>);

impl MemoryFile {
    pub(crate) fn empty() -> Arc<MemoryFile> {
        Arc::new(MemoryFile::default())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl File for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.0.lock().unwrap();
        let from = bytes.get(offset as usize..offset as usize + buf.len());
        buf.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn try_read_exact_at(&self, _buf: &mut [u8], _offset: u64) -> io::Result<bool> {
        Ok(false)
    }
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let end = offset as usize + buf.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(buf);
        Ok(())
    }
    fn allocate(&self, _size: u64) -> io::Result<()> {
        Ok(())
    }
    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.lock().unwrap().resize(size as usize, 0);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A context that may wait for the disk.
pub(crate) fn blocking() -> ReadContext {
    ReadContext { may_block: true, ..ReadContext::default() }
}

/// A component with these bytes, which is read in pages.
pub(crate) fn block_file(bytes: Vec<u8>) -> BlockFile {
    block_file_with(bytes, BufferPool::none())
}

/// The same with a buffer pool.
pub(crate) fn block_file_with(bytes: Vec<u8>, buffers: BufferPool) -> BlockFile {
    let file = Arc::new(MemoryFile(Mutex::new(bytes)));
    BlockFile::new(file, Path::new("test.db"), PAGE_BYTES, None, buffers).unwrap()
}
