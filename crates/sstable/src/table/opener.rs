//! Opens the components of one table.

use crate::block::{BlockFile, PAGE_BYTES, PageChecksums};
use crate::buffer::BufferPool;
use crate::component::Component;
use crate::compression::{BlockCrcs, CompressedBlocks, CompressionInfo, DataBlocks, PlainBlocks};
use crate::error::{Error, Result};
use crate::names::Descriptor;
use crate::page_checksums::PageChecksumTable;
use helenus_host::{Disk, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct Opener<'a> {
    disk: &'a dyn Disk,
    folder: &'a Path,
    descriptor: Descriptor,
    buffers: &'a BufferPool,
    checksums: PageChecksumTable,
    /// Size in bytes of the components opened so far.
    pub(super) size_on_disk: u64,
}

impl<'a> Opener<'a> {
    /// Reads the page checksums, if there are any.
    pub(super) fn new(
        disk: &'a dyn Disk,
        folder: &'a Path,
        descriptor: Descriptor,
        buffers: &'a BufferPool,
    ) -> Result<Opener<'a>> {
        let checksums = PageChecksumTable::default();
        let mut opener = Opener { disk, folder, descriptor, buffers, checksums, size_on_disk: 0 };
        if opener.exists(Component::PageChecksums) {
            let (path, bytes) = opener.whole(Component::PageChecksums)?;
            opener.checksums = PageChecksumTable::parse(&bytes, &path)?;
        }
        Ok(opener)
    }

    /// Ignores page checksums.
    pub(super) fn unchecked(
        disk: &'a dyn Disk,
        folder: &'a Path,
        descriptor: Descriptor,
        buffers: &'a BufferPool,
    ) -> Opener<'a> {
        let checksums = PageChecksumTable::default();
        Opener { disk, folder, descriptor, buffers, checksums, size_on_disk: 0 }
    }

    pub(super) fn exists(&self, component: Component) -> bool {
        self.disk.exists(&self.path(component))
    }

    fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(self.folder, component)
    }

    /// The path and all bytes of a component, with its pages checked.
    pub(super) fn whole(&mut self, component: Component) -> Result<(PathBuf, Vec<u8>)> {
        let (path, file, checksums) = self.file(component)?;
        let io = |source| Error::Io { file: path.clone(), source };
        let mut bytes = vec![0; file.size().map_err(io)? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(io)?;
        if let Some(checksums) = checksums {
            check_pages(&bytes, &checksums, &path)?;
        }
        Ok((path, bytes))
    }

    /// A component that is read in pages.
    pub(super) fn paged(&mut self, component: Component) -> Result<BlockFile> {
        let (path, file, checksums) = self.file(component)?;
        BlockFile::new(file, &path, PAGE_BYTES, checksums, self.buffers.clone())
    }

    /// Data.db, with the component that describes its blocks.
    pub(super) fn data(&mut self) -> Result<DataBlocks> {
        let data = self.paged(Component::Data)?;
        if self.exists(Component::CompressionInfo) {
            let info = self.paged(Component::CompressionInfo)?;
            let info = CompressionInfo::read(&info, data.size(), self.descriptor.version)?;
            return Ok(DataBlocks::Compressed(CompressedBlocks::new(data, info)));
        }
        let crcs = if self.exists(Component::Crc) {
            let (path, bytes) = self.whole(Component::Crc)?;
            Some(BlockCrcs::parse(&bytes, data.size(), &path)?)
        } else {
            None
        };
        Ok(DataBlocks::Plain(PlainBlocks::new(data, crcs)))
    }

    /// A Data.db of which a part may be missing, and without CRC.db. Missing blocks are errors when they are read.
    pub(super) fn data_as_it_is(&mut self) -> Result<DataBlocks> {
        let data = self.paged(Component::Data)?;
        if !self.exists(Component::CompressionInfo) {
            return Ok(DataBlocks::Plain(PlainBlocks::new(data, None)));
        }
        let info = self.paged(Component::CompressionInfo)?;
        let info = CompressionInfo::read(&info, u64::MAX, self.descriptor.version)?;
        Ok(DataBlocks::Compressed(CompressedBlocks::new(data, info)))
    }

    fn file(&mut self, component: Component) -> Result<(PathBuf, Arc<dyn File>, Option<PageChecksums>)> {
        let path = self.path(component);
        let io = |source| Error::Io { file: path.clone(), source };
        let file = self.disk.open(&path).map_err(io)?;
        let size = file.size().map_err(io)?;
        self.size_on_disk += size;
        let checksums = self.checksums.get(component, size, &path)?;
        Ok((path, file, checksums))
    }
}

fn check_pages(bytes: &[u8], checksums: &PageChecksums, path: &Path) -> Result<()> {
    for (number, page) in bytes.chunks(PAGE_BYTES).enumerate() {
        if checksums.get(number) != Some(&crate::checksum::crc32(page)) {
            return Err(Error::Corrupt {
                file: path.to_owned(),
                offset: (number * PAGE_BYTES) as u64,
                problem: "the page's checksum does not match".into(),
            });
        }
    }
    Ok(())
}
