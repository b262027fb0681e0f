//! Checks a whole table: checksums, the order of partitions and rows, and that the indexes lead to every partition.
//!
//! It checks what `sstableverify -e` checks and, in addition, the balance of range tombstones, the filter, the types of
//! values, that the summary leads to the right entries, and that the row indexes of wide partitions lead to their rows.

use super::verify_blocks::BlockCheck;
use super::{Index, PartitionPosition, SsTable};
use crate::block::{BlockFile, ReadContext};
use crate::component::Component;
use crate::compression::WHOLE;
use crate::data::{KeyRange, Validity};
use crate::digest;
use crate::error::{Error, Result};
use crate::index_big::Summary;
use crate::partitioner::Partitioner;
use crate::table::{Scan, read_whole};
use helenus_host::Disk;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::path::Path;
use std::sync::Arc;

/// Number of rows and markers between two progress reports within a partition.
const PROGRESS_ELEMENTS: u64 = 1024;

/// Counts of a verified table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Partitions.
    pub partitions: u64,
    /// Rows, without static rows and without rows that contain only cells of dropped columns.
    pub rows: u64,
    /// Range-tombstone markers.
    pub markers: u64,
}

impl SsTable {
    /// Reads and checks everything: Digest.crc32, the checksums of blocks and pages, the order of partitions and rows,
    /// the balance of range tombstones, values against the types of the schema, and that filter, summary and indexes
    /// find every partition and every index block. The error is the first problem. `folder` is the table's folder. It
    /// waits for the disk.
    pub fn verify(self: &Arc<SsTable>, disk: &dyn Disk, folder: &Path) -> Result<Verified> {
        self.verify_telling(disk, folder, &mut |_, _| {})
    }

    /// The same, and calls `progress` with the bytes done and the total.
    pub fn verify_telling(
        self: &Arc<SsTable>,
        disk: &dyn Disk,
        folder: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Verified> {
        let mut cx = ReadContext { may_block: true, fill_cache: false, ..ReadContext::default() };
        // The data is read up to three times: for its digest, for the entries of a BIG index, and for its rows.
        let (stored, plain) = (self.data.file().size(), self.uncompressed_bytes());
        let entries = if matches!(self.index, Index::Big(_)) { plain } else { 0 };
        let total = stored + entries + plain;
        self.verify_digest(disk, folder, (&mut cx, &mut |done| progress(done, total)))?;
        for file in self.index.files() {
            for number in 0..file.size().div_ceil(file.block_bytes() as u64) {
                file.block(number, &mut cx)?;
            }
        }
        self.verify_summary(disk, folder)?;
        self.verify_entries(&mut cx, &mut |done| progress(stored + done, total))?;
        self.verify_content(&mut cx, &mut |done| progress(stored + entries + done, total))
    }

    fn verify_digest(
        &self,
        disk: &dyn Disk,
        folder: &Path,
        (cx, progress): (&mut ReadContext, &mut dyn FnMut(u64)),
    ) -> Result<()> {
        let path = self.descriptor.path(folder, Component::Digest);
        if !disk.exists(&path) {
            return Ok(());
        }
        let io = |source| Error::Io { file: path.clone(), source };
        let file = disk.open(&path).map_err(io)?;
        // The file contains a decimal number of 32 bits.
        let mut text = vec![0; file.size().map_err(io)?.min(16) as usize];
        file.read_exact_at(&mut text, 0).map_err(io)?;
        let expected = digest::parse(&text, &path)?;
        let data: &BlockFile = self.data.file();
        if digest::of(data, cx, progress)? == expected {
            return Ok(());
        }
        // The checksum of a block tells where the damage is.
        for number in 0..self.data.data_length().div_ceil(self.data.block_bytes() as u64) {
            self.data.block(number, WHOLE, cx)?;
        }
        Err(data.corrupt(0, "the file's digest is not that of Digest.crc32"))
    }

    /// Checks Summary.db. Opening a table silently replaces a summary that does not belong to Index.db.
    fn verify_summary(&self, disk: &dyn Disk, folder: &Path) -> Result<()> {
        let path = self.descriptor.path(folder, Component::Summary);
        let Index::Big(index) = &self.index else { return Ok(()) };
        if !disk.exists(&path) || self.partitioner != Partitioner::Murmur3 {
            return Ok(());
        }
        let bytes = read_whole(disk, &path)?;
        if Summary::parse(&bytes, index.file().size()).is_some() {
            return Ok(());
        }
        let problem = "it is not the summary of Index.db: remove it, and it is made anew".into();
        Err(Error::Corrupt { file: path, offset: 0, problem })
    }

    /// Compares the keys, the positions and the order of Index.db with the data. Tries are not checked here, because
    /// every partition of the data is looked up in them.
    fn verify_entries(
        self: &Arc<SsTable>,
        cx: &mut ReadContext,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let Index::Big(index) = &self.index else { return Ok(()) };
        let mut scan = self.scan(&KeyRange::all(), cx)?;
        let mut walk = ReadContext { may_block: true, ..ReadContext::default() };
        index.for_each(&mut walk, |key, data| {
            let is_there = scan.next_partition(cx)?;
            progress(data);
            if is_there && scan.key() == key && scan.start() == data {
                return Ok(());
            }
            Err(index.file().corrupt(0, format!("the data has another partition at byte {data}")))
        })?;
        if scan.next_partition(cx)? {
            return Err(index.file().corrupt(0, "the data has partitions that the index does not have"));
        }
        Ok(())
    }

    fn verify_content(
        self: &Arc<SsTable>,
        cx: &mut ReadContext,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Verified> {
        let mut verified = Verified::default();
        let mut scan = self.scan(&KeyRange::all(), cx)?;
        // Order and indexes also cover rows of which only cells of dropped columns are left.
        scan.set_hidden(true);
        let validity = Validity::of(&self.schema);
        // The pages of the index are read repeatedly, those of the data once.
        let mut index_cx = ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() };
        let mut last = Vec::new();
        while scan.next_partition(cx)? {
            let checks = PartitionChecks { validity: &validity, number: verified.partitions };
            let found = self.verify_front(&scan, &last, &checks, &mut index_cx)?;
            let start = scan.start();
            let blocks = match &found.index {
                Some(entry) => {
                    let of = (&self.index, &self.layout);
                    Some(BlockCheck::new(of, (start, entry), &mut index_cx)?)
                }
                None => None,
            };
            last = self.partitioner.position(scan.key()).unwrap_or_default();
            let mut contexts = Contexts { data: cx, index: &mut index_cx, progress };
            self.verify_rows(&mut scan, &checks, blocks, &mut verified, &mut contexts)?;
            verified.partitions += 1;
            progress(scan.position());
        }
        // In format BIG the number is an estimate; the entries have been compared instead.
        let is_counted = matches!(self.index, Index::Bti { .. });
        if is_counted && verified.partitions != self.partition_count() {
            let problem =
                format!("{} partitions where the index has {}", verified.partitions, self.partition_count());
            return Err(self.data.file().corrupt(0, problem));
        }
        Ok(verified)
    }

    /// Checks the order, the key and the static row of the scan's current partition, and that filter and index lead to
    /// it.
    fn verify_front(
        &self,
        scan: &Scan,
        last: &[u8],
        checks: &PartitionChecks<'_>,
        cx: &mut ReadContext,
    ) -> Result<PartitionPosition> {
        let PartitionChecks { validity, number } = *checks;
        let corrupt = |problem: &str| {
            self.data.file().corrupt(scan.start(), format!("partition {number} of the file: {problem}"))
        };
        let hash = KeyHash::of(scan.key());
        if self.partitioner.position(scan.key()).is_some_and(|position| *position <= *last) {
            return Err(corrupt(
                "it comes before the partition that it follows (helenus sstable scrub puts them in order)",
            ));
        }
        validity.key(scan.key()).map_err(|problem| corrupt(&problem))?;
        scan.static_row().map_or(Ok(()), |row| validity.row(row)).map_err(|problem| corrupt(&problem))?;
        if !self.may_contain(&hash) {
            return Err(corrupt("the filter does not know it"));
        }
        if self.partitioner != Partitioner::Murmur3 {
            // Lookups need Murmur3's order. In format BIG the entries have been compared.
            return Ok(PartitionPosition { data: scan.start(), index: None });
        }
        match self.find(scan.key(), &hash, scan.decorated(), cx)? {
            Some(found) if found.data == scan.start() => Ok(found),
            Some(_) => Err(corrupt("the index leads elsewhere")),
            None => Err(corrupt("the index does not lead to it")),
        }
    }

    /// Checks and counts the rows of the scan's current partition.
    fn verify_rows(
        &self,
        scan: &mut Scan,
        checks: &PartitionChecks<'_>,
        mut blocks: Option<BlockCheck<'_>>,
        verified: &mut Verified,
        contexts: &mut Contexts<'_>,
    ) -> Result<()> {
        let PartitionChecks { validity, number } = *checks;
        let Contexts { data: cx, index: index_cx, progress } = contexts;
        let corrupt = |at, problem: &str| {
            self.data.file().corrupt(at, format!("partition {number} of the file: {problem}"))
        };
        let mut order = Order::default();
        loop {
            let (at, open) = (scan.position(), order.open);
            if !scan.advance(cx)? {
                break;
            }
            // The reader made this marker, because the file does not close a range tombstone.
            if scan.current().key() == AFTER_ALL {
                return Err(corrupt(at, "a range tombstone is not closed"));
            }
            order.next(scan.current()).map_err(|problem| corrupt(at, problem))?;
            validity.element(scan.current()).map_err(|problem| corrupt(at, &problem))?;
            if let Some(blocks) = &mut blocks {
                blocks.element((at, scan.position()), scan.current().key(), open, index_cx)?;
            }
            match scan.current() {
                Unfiltered::Row(row) if row.is_empty() => {}
                Unfiltered::Row(_) => verified.rows += 1,
                Unfiltered::Marker(_) => verified.markers += 1,
            }
            if (verified.rows + verified.markers).is_multiple_of(PROGRESS_ELEMENTS) {
                progress(scan.position());
            }
        }
        blocks.map_or(Ok(()), |blocks| blocks.finish(index_cx))
    }
}

/// What a partition is checked by, and its number in the file.
struct PartitionChecks<'a> {
    validity: &'a Validity,
    number: u64,
}

/// The reads of a verification, of the data and of the index, and who is told how far it is.
struct Contexts<'a> {
    data: &'a mut ReadContext,
    index: &'a mut ReadContext,
    progress: &'a mut dyn FnMut(u64),
}

/// Checks the order of a partition's rows and markers.
#[derive(Default)]
struct Order {
    last: Vec<u8>,
    open: Option<DeletionTime>,
}

impl Order {
    fn next(&mut self, element: Unfiltered<'_>) -> std::result::Result<(), &'static str> {
        if element.key() <= self.last.as_slice() {
            return Err("rows are not in clustering order (helenus sstable scrub puts them in order)");
        }
        self.last.clear();
        self.last.extend_from_slice(element.key());
        if let Unfiltered::Marker(marker) = element {
            let closes = Some(marker.marker.close).filter(|deletion| !deletion.is_live());
            if closes != self.open {
                return Err("a range tombstone's end does not match its start");
            }
            self.open = Some(marker.marker.open).filter(|deletion| !deletion.is_live());
        }
        Ok(())
    }
}
