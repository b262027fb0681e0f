//! Opens a table with the schema of its own files.

use super::opener::Opener;
use super::user_types::{stated_user_types, user_types_of_rows};
use super::{OpenOptions, Opening, SsTable};
use crate::buffer::BufferPool;
use crate::component::Component;
use crate::error::{Error, Result};
use crate::header_schema::table_of_header;
use crate::names::Descriptor;
use crate::statistics::Statistics;
use helenus_host::Disk;
use helenus_model::schema::Table;
use std::path::Path;
use std::sync::Arc;

impl SsTable {
    /// Opens a table with the columns of its header. `names` are those of keyspace and table, as far as they are known.
    /// It may have another partitioner: see [`SsTable::partitioner`]. It waits for the disk.
    pub fn open_without_schema(
        disk: &dyn Disk,
        place: (&Path, Descriptor),
        names: (&str, &str),
        buffers: BufferPool,
    ) -> Result<Arc<SsTable>> {
        SsTable::open_by_header(disk, place, (names, None), buffers)
    }

    /// The same, where the table's own schema may be known. It says what a header leaves open: whether user types are
    /// frozen.
    pub fn open_by_header(
        disk: &dyn Disk,
        place: (&Path, Descriptor),
        known: ((&str, &str), Option<&Table>),
        buffers: BufferPool,
    ) -> Result<Arc<SsTable>> {
        let options = options_of_files(disk, place, known, buffers)?;
        SsTable::open_in_order(disk, place, options, Opening::AnyOrder)
    }

    /// The same for scans alone, also if Index.db or Partitions.db is missing.
    pub fn open_for_scans(
        disk: &dyn Disk,
        place: (&Path, Descriptor),
        known: ((&str, &str), Option<&Table>),
        buffers: BufferPool,
    ) -> Result<Arc<SsTable>> {
        let options = options_of_files(disk, place, known, buffers)?;
        SsTable::open_in_order(disk, place, options, Opening::ForScans)
    }
}

fn options_of_files(
    disk: &dyn Disk,
    place: (&Path, Descriptor),
    known: ((&str, &str), Option<&Table>),
    buffers: BufferPool,
) -> Result<OpenOptions> {
    Ok(OpenOptions { schema: Arc::new(schema_of_files(disk, place, known)?), buffers })
}

/// The schema that the header of an SSTable describes. Where the header has two readings, `known`, the table's own
/// schema, decides, or else the rows do. It waits for the disk.
///
/// # Errors
/// Statistics.db, or the Data.db that must decide, missing or damaged.
pub fn schema_of_files(
    disk: &dyn Disk,
    (folder, descriptor): (&Path, Descriptor),
    (names, known): ((&str, &str), Option<&Table>),
) -> Result<Table> {
    let header = read_statistics(disk, folder, descriptor)?.header;
    let file = descriptor.path(folder, Component::Statistics);
    let user_types = match stated_user_types(&header, descriptor.version, known) {
        Some(stated) => stated,
        None => {
            let buffers = BufferPool::offline();
            let data = Opener::new(disk, folder, descriptor, &buffers)?.data()?;
            user_types_of_rows((&header, descriptor.version, &file), (&data, None))?
        }
    };
    table_of_header(&header, user_types, names, &file)
}

/// Reads Statistics.db. It waits for the disk.
pub fn read_statistics(disk: &dyn Disk, folder: &Path, descriptor: Descriptor) -> Result<Statistics> {
    let path = descriptor.path(folder, Component::Statistics);
    let bytes = read_whole(disk, &path)?;
    Statistics::read(&bytes, descriptor.version, &path)
}

/// Reads all of a file.
pub fn read_whole(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>> {
    let io = |source| Error::Io { file: path.to_owned(), source };
    let file = disk.open(path).map_err(io)?;
    let mut bytes = vec![0; file.size().map_err(io)? as usize];
    file.read_exact_at(&mut bytes, 0).map_err(io)?;
    Ok(bytes)
}

/// Removes all files of an SSTable.
pub fn remove_files(disk: &dyn Disk, folder: &Path, descriptor: &Descriptor) -> Result<()> {
    let prefix = descriptor.prefix();
    let io = |source| Error::Io { file: folder.to_owned(), source };
    for path in disk.list(folder).map_err(io)? {
        if path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&*prefix)) {
            disk.remove(&path).map_err(|source| Error::Io { file: path.clone(), source })?;
        }
    }
    Ok(())
}

/// How a Data.db is compressed, from the start of its CompressionInfo.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The class name of the compressor, as written in the file.
    pub class: String,
    /// Size of a chunk in bytes before compression.
    pub chunk_bytes: u32,
}

/// Reads how the data is compressed; `None` if it is not. It waits for the disk.
pub fn compression_of(disk: &dyn Disk, folder: &Path, descriptor: Descriptor) -> Result<Option<Compression>> {
    let path = descriptor.path(folder, Component::CompressionInfo);
    if !disk.exists(&path) {
        return Ok(None);
    }
    let io = |source| Error::Io { file: path.clone(), source };
    let file = disk.open(&path).map_err(io)?;
    // Class, options and chunk length are at the start of the file; the chunk offsets follow.
    let mut front = vec![0; file.size().map_err(io)?.min(4096) as usize];
    file.read_exact_at(&mut front, 0).map_err(io)?;
    let corrupt = || Error::Corrupt {
        file: path.clone(),
        offset: 0,
        problem: "no compressor and chunk length stand at its front".into(),
    };
    parse_front(&front).ok_or_else(corrupt).map(Some)
}

fn parse_front(mut rest: &[u8]) -> Option<Compression> {
    fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
        let length = u16::from_be_bytes(rest.split_off(..2)?.try_into().ok()?);
        std::str::from_utf8(rest.split_off(..usize::from(length))?).ok()
    }
    fn number(rest: &mut &[u8]) -> Option<u32> {
        Some(u32::from_be_bytes(rest.split_off(..4)?.try_into().ok()?))
    }
    let class = text(&mut rest)?.to_owned();
    for _ in 0..number(&mut rest)? {
        text(&mut rest)?;
        text(&mut rest)?;
    }
    Some(Compression { class, chunk_bytes: number(&mut rest)? })
}
