//! Imports an SSTable that another program wrote: under another name, in another folder, with page checksums.
//!
//! Only the components that are known here are imported. TOC.txt is written again, with PageChecksums.db in it. If both
//! folders are on one disk, the caller allows it, and nobody else can change them, files are linked. That is safe because
//! components are never written in place. The exceptions are copied: TOC.txt, to which Cassandra appends, and Statistics.db, which may be
//! changed by the import.

use crate::block::{BlockFile, PAGE_BYTES, ReadContext};
use crate::buffer::BufferPool;
use crate::component::Component;
use crate::error::{Error, Result};
use crate::index_big::summary_of;
use crate::names::Descriptor;
use crate::page_checksums::PageChecksumTable;
use crate::sequential_writer::SequentialWriter;
use crate::statistics::{Statistics, with_level};
use crate::table::read_whole;
use crate::toc::Toc;
use crate::version::Format;
use helenus_host::{Disk, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of bytes copied at once.
const PIECE_BYTES: usize = 256 * PAGE_BYTES;

/// An SSTable in a folder of a disk.
#[derive(Clone, Copy)]
pub struct SsTableFiles<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The folder.
    pub folder: &'a Path,
    /// The SSTable's names.
    pub descriptor: Descriptor,
}

impl SsTableFiles<'_> {
    fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(self.folder, component)
    }
}

/// How an SSTable is imported.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyOptions {
    /// Link files instead of copying them, if both folders are on one disk and this process's user alone can change the files.
    pub link: bool,
    /// Keep the level of levelled compaction instead of setting it to 0.
    pub keep_level: bool,
    /// Write no PageChecksums.db, for files that Cassandra will read.
    pub without_page_checksums: bool,
}

/// The components that TOC.txt lists, that are missing, and that cannot be done without or made again. The list is
/// empty if there is no TOC.txt.
pub fn missing_components(place: SsTableFiles<'_>) -> Result<Vec<String>> {
    let path = place.path(Component::Toc);
    if !place.disk.exists(&path) {
        return Ok(Vec::new());
    }
    let toc = Toc::parse(&read_whole(place.disk, &path)?, &path)?;
    let is_missing = |name: &String| {
        let path = place.folder.join(format!("{}-{name}", place.descriptor));
        Component::parse(name).is_some_and(Component::is_needed) && !place.disk.exists(&path)
    };
    Ok(toc.names.into_iter().filter(is_missing).collect())
}

/// Imports an SSTable. Everything is durable when this returns, including the names in the folder.
///
/// # Errors
/// Failures of reading and writing, and missing components. Files written so far stay.
pub fn import_sstable(
    from: SsTableFiles<'_>,
    to: SsTableFiles<'_>,
    how: CopyOptions,
) -> Result<Vec<Component>> {
    let missing = missing_components(from)?;
    if let Some(first) = missing.first() {
        let file = from.folder.join(format!("{}-{first}", from.descriptor));
        let problem = "TOC.txt lists this component, and it is not there".into();
        return Err(Error::Corrupt { file, offset: 0, problem });
    }
    let mut taken = Vec::new();
    let mut checksums = PageChecksumTable::default();
    for component in Component::ALL {
        let is_ours = matches!(component, Component::Toc | Component::PageChecksums);
        if is_ours || !from.disk.exists(&from.path(component)) {
            continue;
        }
        if component == Component::Statistics {
            let bytes = take_statistics(from, to, how)?;
            if component.is_page_checksummed(to.descriptor.version) {
                checksums.add_bytes(component, &bytes);
            }
        } else {
            take_file(from, to, (component, how), &mut checksums)?;
        }
        taken.push(component);
    }
    if to.descriptor.version.format() == Format::Big && !taken.contains(&Component::Summary) {
        // Without it Index.db would be read whole each time the table is opened.
        if let Some(bytes) = made_summary(to)? {
            write(to, Component::Summary, &bytes)?;
            checksums.add_bytes(Component::Summary, &bytes);
            taken.push(Component::Summary);
        }
    }
    finish(to, taken, (!how.without_page_checksums).then_some(checksums))
}

/// The Summary.db of an SSTable that has none; `None` if its Index.db does not allow one.
fn made_summary(place: SsTableFiles<'_>) -> Result<Option<Vec<u8>>> {
    let path = place.path(Component::Index);
    let file = place.disk.open(&path).map_err(|source| Error::Io { file: path.clone(), source })?;
    let index = BlockFile::new(file, &path, PAGE_BYTES, None, BufferPool::none())?;
    let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
    Ok(summary_of(&index, &mut cx))
}

/// Adds page checksums to an SSTable in place, if it has none. Returns whether it had none.
///
/// # Errors
/// Failures of reading and writing.
pub fn add_page_checksums(place: SsTableFiles<'_>) -> Result<bool> {
    if place.disk.exists(&place.path(Component::PageChecksums)) {
        return Ok(false);
    }
    let present = Component::ALL.into_iter().filter(|component| place.disk.exists(&place.path(*component)));
    let present: Vec<Component> = present.filter(|component| *component != Component::Toc).collect();
    let mut checksums = PageChecksumTable::default();
    for component in
        present.iter().filter(|component| component.is_page_checksummed(place.descriptor.version))
    {
        sum(place, *component, &mut checksums)?;
    }
    finish(place, present, Some(checksums))?;
    Ok(true)
}

/// Writes PageChecksums.db and TOC.txt, which lists these components besides those that it listed before.
fn finish(
    to: SsTableFiles<'_>,
    mut taken: Vec<Component>,
    checksums: Option<PageChecksumTable>,
) -> Result<Vec<Component>> {
    if let Some(checksums) = checksums {
        write(to, Component::PageChecksums, &checksums.to_bytes())?;
        taken.push(Component::PageChecksums);
    }
    let path = to.path(Component::Toc);
    let mut toc = Toc::of(&taken);
    if to.disk.exists(&path) {
        toc.names.extend(Toc::parse(&read_whole(to.disk, &path)?, &path)?.names);
        let temporary = to.descriptor.temporary_path(to.folder, Component::Toc);
        let io = |source| Error::Io { file: path.clone(), source };
        if to.disk.exists(&temporary) {
            to.disk.remove(&temporary).map_err(io)?;
        }
        write_file(to.disk, &temporary, &toc.to_bytes())?;
        to.disk.rename(&temporary, &path).map_err(io)?;
    } else {
        write(to, Component::Toc, &toc.to_bytes())?;
    }
    to.disk.sync_dir(to.folder).map_err(|source| Error::Io { file: to.folder.to_owned(), source })?;
    taken.push(Component::Toc);
    Ok(taken)
}

fn write(to: SsTableFiles<'_>, component: Component, bytes: &[u8]) -> Result<()> {
    write_file(to.disk, &to.path(component), bytes)
}

fn write_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut out = SequentialWriter::create(disk, path, false)?;
    out.write(bytes)?;
    out.finish().map(|_| ())
}

/// Copies Statistics.db, with level 0 unless the level is kept. Returns the bytes written.
fn take_statistics(from: SsTableFiles<'_>, to: SsTableFiles<'_>, how: CopyOptions) -> Result<Vec<u8>> {
    let (path, version) = (from.path(Component::Statistics), from.descriptor.version);
    let mut bytes = read_whole(from.disk, &path)?;
    let statistics = Statistics::read(&bytes, version, &path)?;
    if !how.keep_level && statistics.stats.level != 0 {
        bytes = with_level(&bytes, version, &path, 0)?;
    }
    write(to, Component::Statistics, &bytes)?;
    Ok(bytes)
}

fn take_file(
    from: SsTableFiles<'_>,
    to: SsTableFiles<'_>,
    (component, how): (Component, CopyOptions),
    checksums: &mut PageChecksumTable,
) -> Result<()> {
    let (source, target) = (from.path(component), to.path(component));
    // Where a link is not possible, as between two file systems, the file is copied too.
    if how.link && from.disk.link_if_own(&source, &target).unwrap_or(false) {
        let io = |source| Error::Io { file: target.clone(), source };
        to.disk.open(&target).and_then(|file| file.sync()).map_err(io)?;
        return if component.is_page_checksummed(to.descriptor.version) {
            sum(to, component, checksums)
        } else {
            Ok(())
        };
    }
    let mut out =
        SequentialWriter::create(to.disk, &target, component.is_page_checksummed(to.descriptor.version))?;
    pieces(from, component, &mut |piece| out.write(piece))?;
    let finished = out.finish()?;
    if component.is_page_checksummed(to.descriptor.version) {
        checksums.add(component, &finished);
    }
    Ok(())
}

/// Reads a component and adds its page checksums.
fn sum(place: SsTableFiles<'_>, component: Component, checksums: &mut PageChecksumTable) -> Result<()> {
    let mut finished = crate::sequential_writer::Finished { size: 0, crc32: 0, page_crcs: Vec::new() };
    pieces(place, component, &mut |piece| {
        finished.size += piece.len() as u64;
        finished.page_crcs.extend(piece.chunks(PAGE_BYTES).map(crate::checksum::crc32));
        Ok(())
    })?;
    checksums.add(component, &finished);
    Ok(())
}

/// Reads a component in pieces of whole pages (but for the last), and calls `take` with each.
fn pieces(
    from: SsTableFiles<'_>,
    component: Component,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let path = from.path(component);
    let io = |source| Error::Io { file: path.clone(), source };
    let file: Arc<dyn File> = from.disk.open(&path).map_err(io)?;
    let size = file.size().map_err(io)?;
    let mut piece = vec![0; size.min(PIECE_BYTES as u64) as usize];
    let mut offset = 0;
    while offset < size {
        let len = (size - offset).min(PIECE_BYTES as u64) as usize;
        let bytes = piece.get_mut(..len).unwrap_or_default();
        file.read_exact_at(bytes, offset).map_err(io)?;
        take(bytes)?;
        offset += len as u64;
    }
    Ok(())
}
