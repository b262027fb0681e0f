//! Rewrites SSTables: in another version, or cut into smaller ones.

use anyhow::{Result, bail};
use helenus_host::Disk;
use helenus_model::filter::AFTER_ALL;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Source;
use helenus_sstable::block::ReadContext;
use helenus_sstable::data::KeyRange;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::{Scan, SsTable, compression_of};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::path::Path;
use std::sync::Arc;

/// Number of a partition's elements between two reports of progress.
const PROGRESS_ELEMENTS: u64 = 1024;

/// How to rewrite an SSTable.
pub struct Rewriting<'a> {
    /// The version of the new files.
    pub version: Version,
    /// Bytes of Data.db after which the next SSTable begins. `None`: one new SSTable for each old one.
    pub bytes_max: Option<u64>,
    /// Whether only Helenus will read the files, so that they get its page checksums.
    pub page_checksums: bool,
    /// The folder of the new files.
    pub folder: &'a Path,
    /// Makes the name of each new SSTable.
    pub next: &'a mut dyn FnMut() -> Descriptor,
}

/// Rewrites an SSTable and returns the new ones. Rows, tombstones and timestamps stay the same.
///
/// # Errors
/// Damage; content that the version cannot represent; failures of the disk. SSTables written before the error stay.
pub fn rewrite(
    disk: &Arc<dyn Disk>,
    (table, from): (&Arc<SsTable>, &Path),
    how: &mut Rewriting<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Descriptor>> {
    let compression = compression_of(&**disk, from, *table.descriptor())?;
    let options = WriterOptions::as_written(
        table.schema(),
        table.statistics(),
        (compression, table.uncompressed_bytes()),
    );
    let options = WriterOptions { page_checksums: how.page_checksums, ..options.for_version(how.version) };
    let mut cx = ReadContext { may_block: true, fill_cache: false, ..ReadContext::default() };
    let mut scan = table.scan(&KeyRange::all(), &mut cx)?;
    let (mut written, mut writer, mut last) = (Vec::new(), None::<SsTableWriter>, Vec::new());
    while scan.next_partition(&mut cx)? {
        if scan.decorated() <= last.as_slice() {
            bail!("{}: partitions are not in order", from.join(table.descriptor().to_string()).display());
        }
        last.clear();
        last.extend_from_slice(scan.decorated());
        let is_full =
            |writer: &SsTableWriter| how.bytes_max.is_some_and(|most| writer.stored_bytes() >= most);
        if let Some(full) = writer.take_if(|writer| is_full(writer)) {
            full.finish()?;
        }
        if writer.is_none() {
            let descriptor = (how.next)();
            written.push(descriptor);
            writer = Some(SsTableWriter::create(disk.clone(), how.folder, descriptor, options.clone())?);
        }
        if let Some(writer) = &mut writer {
            partition(&mut scan, writer, &mut cx, progress)?;
        }
        progress(scan.position());
    }
    if let Some(writer) = writer {
        writer.finish()?;
    }
    Ok(written)
}

fn partition(
    scan: &mut Scan,
    writer: &mut SsTableWriter,
    cx: &mut ReadContext,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let hash = KeyHash::of(scan.key());
    writer.begin_partition(scan.key(), &hash, scan.deletion(), scan.static_row())?;
    let mut last = Vec::new();
    let mut elements = 0_u64;
    while scan.advance(cx)? {
        elements += 1;
        if elements.is_multiple_of(PROGRESS_ELEMENTS) {
            progress(scan.position());
        }
        let key = scan.current().key();
        if key == AFTER_ALL || key <= last.as_slice() {
            bail!(
                "rows are not in order, or a range tombstone is not closed; helenus sstable verify says where"
            );
        }
        last.clear();
        last.extend_from_slice(key);
        writer.add(scan.current())?;
    }
    Ok(writer.end_partition()?)
}
