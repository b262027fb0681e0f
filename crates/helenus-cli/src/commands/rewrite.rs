//! Rewrites SSTables: in another version, or cut into smaller ones.

use anyhow::{Result, bail};
use helenus_host::Disk;
use helenus_model::filter::AFTER_ALL;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Source;
use helenus_sstable::block::ReadContext;
use helenus_sstable::data::KeyRange;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::{Scan, SsTable, remove_files};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{Beyond2038, SsTableWriter, WriterOptions};
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
    /// How to treat times after 2038 in a version that cannot store them.
    pub beyond_2038: Beyond2038,
    /// Whether only Helenus will read the files, so that they get its page checksums.
    pub page_checksums: bool,
    /// The folder of the new files.
    pub folder: &'a Path,
    /// Makes the name of each new SSTable. Called before anything of it is written.
    pub next: &'a mut dyn FnMut() -> Result<Descriptor>,
}

/// The SSTables that were written in the place of one.
#[derive(Default)]
pub struct Rewritten {
    /// Their names.
    pub written: Vec<Descriptor>,
    /// Number of times after 2038 that were replaced by the latest that the version can store.
    pub times_capped: u64,
}

/// Rewrites an SSTable and returns the new ones. Rows, tombstones and timestamps stay the same.
///
/// # Errors
/// Damage; content that the version cannot represent; failures of the disk. Nothing of the new SSTables is left then.
pub fn rewrite(
    disk: &Arc<dyn Disk>,
    (table, from): (&Arc<SsTable>, &Path),
    how: &mut Rewriting<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Rewritten> {
    let mut done = Rewritten::default();
    let rewritten = rewrite_into(disk, (table, from), how, (&mut done, progress));
    match rewritten {
        Ok(()) => Ok(done),
        Err(error) => {
            for descriptor in &done.written {
                // The first error is more useful than another of the removal.
                let _ = remove_files(&**disk, how.folder, descriptor);
            }
            Err(error)
        }
    }
}

fn rewrite_into(
    disk: &Arc<dyn Disk>,
    (table, from): (&Arc<SsTable>, &Path),
    how: &mut Rewriting<'_>,
    (done, progress): (&mut Rewritten, &mut dyn FnMut(u64)),
) -> Result<()> {
    let compression = (table.compression_params(), table.uncompressed_bytes());
    let options = WriterOptions::as_written(table.schema(), table.statistics(), compression);
    let mut options = options.for_version(how.version);
    (options.page_checksums, options.beyond_2038) = (how.page_checksums, how.beyond_2038);
    if how.bytes_max.is_some() {
        // As Cassandra's `SSTableSplitter` does.
        options.level = 0;
    }
    let mut cx = ReadContext { may_block: true, fill_cache: false, ..ReadContext::default() };
    let mut scan = table.scan(&KeyRange::all(), &mut cx)?;
    let (mut writer, mut last) = (None::<SsTableWriter>, Vec::new());
    while scan.next_partition(&mut cx)? {
        if scan.decorated() <= last.as_slice() {
            bail!("{}: partitions are not in order", from.join(table.descriptor().to_string()).display());
        }
        last.clear();
        last.extend_from_slice(scan.decorated());
        let is_full =
            |writer: &SsTableWriter| how.bytes_max.is_some_and(|most| writer.stored_bytes() >= most);
        if let Some(full) = writer.take_if(|writer| is_full(writer)) {
            done.times_capped += full.finish()?.times_capped;
        }
        if writer.is_none() {
            let descriptor = (how.next)()?;
            done.written.push(descriptor);
            writer = Some(SsTableWriter::create(disk.clone(), how.folder, descriptor, options.clone())?);
        }
        if let Some(writer) = &mut writer {
            partition(&mut scan, writer, &mut cx, progress)?;
        }
        progress(scan.position());
    }
    if let Some(writer) = writer {
        done.times_capped += writer.finish()?.times_capped;
    }
    Ok(())
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
