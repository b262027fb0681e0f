//! Creates the components of a new table, and collects their sizes and checksums.

use super::WriterOptions;
use crate::component::Component;
use crate::compression::WrittenData;
use crate::digest;
use crate::error::{Error, Result};
use crate::names::Descriptor;
use crate::page_checksums::PageChecksumTable;
use crate::sequential_writer::{Finished, SequentialWriter};
use crate::toc::Toc;
use helenus_host::{Disk, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct Files {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    descriptor: Descriptor,
    components: Vec<Component>,
    /// `None` if page checksums are not written.
    checksums: Option<PageChecksumTable>,
    size: u64,
    past_page_cache: bool,
    unsynced: Vec<(PathBuf, Arc<dyn File>)>,
}

/// The files of a table that is written but not yet durable. It must not be committed before `sync`.
#[must_use]
pub struct Unsynced {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    files: Vec<(PathBuf, Arc<dyn File>)>,
}

impl Unsynced {
    /// Makes bytes and names of the files durable.
    ///
    /// # Errors
    /// Failures of the disk, after which the state of the files is unknown.
    pub fn sync(self) -> Result<()> {
        for (path, file) in self.files {
            file.sync().map_err(|source| Error::Io { file: path, source })?;
        }
        let synced = self.disk.sync_dir(&self.folder);
        synced.map_err(|source| Error::Io { file: self.folder, source })
    }
}

impl Files {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        folder: &Path,
        descriptor: Descriptor,
        options: &WriterOptions,
    ) -> Files {
        Files {
            disk,
            folder: folder.to_owned(),
            descriptor,
            components: Vec::new(),
            checksums: options.page_checksums.then(PageChecksumTable::default),
            size: 0,
            past_page_cache: options.past_page_cache,
            unsynced: Vec::new(),
        }
    }

    pub(super) fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(&self.folder, component)
    }

    /// Creates a component's file.
    pub(super) fn create(&mut self, component: Component) -> Result<SequentialWriter> {
        let path = self.path(component);
        let mut out = SequentialWriter::create(&*self.disk, &path, self.is_checksummed(component))?;
        if self.past_page_cache {
            out.pass_page_cache();
        }
        self.unsynced.push((path, out.sync_later()));
        self.components.push(component);
        Ok(out)
    }

    fn is_checksummed(&self, component: Component) -> bool {
        self.checksums.is_some() && component.is_page_checksummed(self.descriptor.version)
    }

    /// Records size and checksums of a component that is written.
    pub(super) fn finished(&mut self, component: Component, finished: &Finished) {
        if self.is_checksummed(component)
            && let Some(checksums) = &mut self.checksums
        {
            checksums.add(component, finished);
        }
        self.size += finished.size;
    }

    /// Writes a component whole.
    pub(super) fn small(&mut self, component: Component, bytes: &[u8]) -> Result<()> {
        let mut out = self.create(component)?;
        out.write(bytes)?;
        self.finished(component, &out.finish()?);
        Ok(())
    }

    /// Writes the components for reading and checking Data.db.
    pub(super) fn data(&mut self, data: &WrittenData) -> Result<()> {
        self.size += data.stored_bytes();
        match data {
            WrittenData::Compressed(file) => {
                let mut out = self.create(Component::CompressionInfo)?;
                file.info.write(self.descriptor.version, &mut |bytes| out.write(bytes))?;
                self.finished(Component::CompressionInfo, &out.finish()?);
            }
            WrittenData::Plain(file) => self.small(Component::Crc, &file.crcs.to_bytes())?,
        }
        self.small(Component::Digest, &digest::to_bytes(data.digest()))
    }

    /// Writes page checksums and TOC.txt. Returns the components, their total size in bytes, and the files to sync.
    pub(super) fn finish(mut self) -> Result<(Vec<Component>, u64, Unsynced)> {
        if let Some(checksums) = self.checksums.take() {
            self.small(Component::PageChecksums, &checksums.to_bytes())?;
        }
        let toc = Toc::of(&self.components);
        self.small(Component::Toc, &toc.to_bytes())?;
        let unsynced = Unsynced { disk: self.disk, folder: self.folder, files: self.unsynced };
        Ok((self.components, self.size, unsynced))
    }

    /// Removes every component created so far.
    pub(super) fn remove(&self) -> Result<()> {
        for component in &self.components {
            let path = self.path(*component);
            self.disk.remove(&path).map_err(|source| Error::Io { file: path.clone(), source })?;
        }
        Ok(())
    }
}
