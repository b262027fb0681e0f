//! Opens the components of one table.

use crate::block::{BlockFile, PAGE_BYTES, PageChecksums, ReadContext};
use crate::buffer::BufferPool;
use crate::component::Component;
use crate::compression::{
    BlockCrcs, CompressedBlocks, CompressionInfo, DataBlocks, PlainBlocks, recovered, unreadable_chunks,
};
use crate::digest;
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

    /// A Data.db of which a part may be missing, and whose checksums may be damaged. Missing blocks are errors when they
    /// are read. An uncompressed file whose digest is right is sound, whatever CRC.db says. A compressed file contains
    /// the checksums of its chunks; if they do not lie where CompressionInfo.db says, they are looked for. Adds to
    /// `notes` what was found. Returns also whether each block that can be read is certainly as it was written.
    pub(super) fn damaged_data(&mut self, notes: &mut Vec<String>) -> Result<(DataBlocks, bool)> {
        if self.exists(Component::CompressionInfo) {
            return Ok((self.damaged_compressed(notes)?, true));
        }
        let data = self.paged(Component::Data)?;
        if self.digest_is_right(&data)? {
            return Ok((DataBlocks::Plain(PlainBlocks::new(data, None)), true));
        }
        match self.data() {
            Ok(DataBlocks::Plain(blocks)) => {
                let is_checksummed = blocks.is_checksummed();
                Ok((DataBlocks::Plain(blocks), is_checksummed))
            }
            Ok(other) => Ok((other, true)),
            Err(error) => {
                notes.push(error.to_string());
                Ok((DataBlocks::Plain(PlainBlocks::new(data, None)), false))
            }
        }
    }

    fn damaged_compressed(&mut self, notes: &mut Vec<String>) -> Result<DataBlocks> {
        let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
        let version = self.descriptor.version;
        let info = self.paged(Component::CompressionInfo)?;
        let stated = CompressionInfo::read(&info, u64::MAX, version);
        let bytes = self.whole(Component::CompressionInfo).map(|(_, bytes)| bytes).unwrap_or_default();
        let (mut bad, mut chunks, mut problem) = (u64::MAX, 0, None);
        let stated = match stated {
            Ok(mut stated) => {
                let data = self.paged(Component::Data)?;
                // A Data.db that was cut has no chunks behind its end.
                stated.stored_length = stated.stored_length.min(data.size());
                let blocks = CompressedBlocks::new(data, stated);
                (bad, chunks) = (unreadable_chunks(&blocks, &mut cx), blocks.info().chunk_count());
                if bad == 0 {
                    return Ok(DataBlocks::Compressed(blocks));
                }
                Some(blocks)
            }
            Err(error) => {
                problem = Some(error);
                None
            }
        };
        let found = recovered(&self.paged(Component::Data)?, &bytes, version, &mut cx)?;
        if let Some(found) = found {
            let found = CompressedBlocks::new(self.paged(Component::Data)?, found);
            // With fewer chunks Data.db was cut, and CompressionInfo.db says how much is missing.
            if found.info().chunk_count() >= chunks && unreadable_chunks(&found, &mut cx) < bad {
                let name = self.descriptor.file_name(Component::CompressionInfo);
                notes.push(format!("{name} is damaged: the chunks were found by their checksums"));
                return Ok(DataBlocks::Compressed(found));
            }
        }
        match (stated, problem) {
            (Some(stated), _) => Ok(DataBlocks::Compressed(stated)),
            (None, Some(problem)) => Err(problem),
            (None, None) => Err(info.corrupt(0, "it cannot be read")),
        }
    }

    /// Whether Digest.crc32 is there and is that of Data.db.
    fn digest_is_right(&mut self, data: &BlockFile) -> Result<bool> {
        let Ok((path, text)) = self.whole(Component::Digest) else { return Ok(false) };
        let Ok(expected) = digest::parse(&text, &path) else { return Ok(false) };
        let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
        Ok(digest::of(data, &mut cx, &mut |_| {})? == expected)
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
