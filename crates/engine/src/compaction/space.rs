//! The space that compactions may take on the disk.
//!
//! A compaction needs room for its whole output before it frees its inputs. It begins only if its output fits into what
//! is free, less the rest that running compactions were promised and less a reserve for the commit log and for a flush:
//! writes must not fail because of a compaction. The promise shrinks as the output grows, so no byte counts twice. A
//! compaction whose output grows beyond its promise asks again (`Promise::written`), and ends if there is no more room.
//!
//! Cassandra compares with the free space less `min_free_space_per_drive`, and counts what running compactions will
//! still write (`Directories.hasDiskSpaceForCompactionsAndStreams`).

use crate::error::{Error, Result};
use crate::table::Storage;
use helenus_model::schema::Table;
use helenus_sstable::table::SsTable;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What else is written to the disk while compactions run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OtherWrites {
    /// The most segments of the commit log before every table in the oldest one is flushed.
    pub(crate) segments_max: u64,
    /// Size of a segment, bytes.
    pub(crate) segment_bytes: u64,
    /// The most bytes in memtables. A flush begins at half of it.
    pub(crate) memtable_bytes_max: u64,
}

/// The promises to running compactions.
pub(super) struct Space {
    others: OtherWrites,
    /// For each running compaction, the bytes that it may still write.
    promised: Mutex<Vec<Arc<AtomicU64>>>,
}

/// Too little space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    /// Bytes that the compaction wants to write.
    pub(super) wanted: u64,
    /// Bytes that are free.
    pub(super) free: u64,
    /// Bytes of them that are not for this compaction.
    pub(super) kept: u64,
}

impl Shortage {
    pub(super) fn error(self) -> Error {
        Error::NoSpaceToCompact { wanted: self.wanted, free: self.free, kept: self.kept }
    }
}

impl Space {
    pub(super) fn new(others: OtherWrites) -> Space {
        Space { others, promised: Mutex::default() }
    }

    /// Promises bytes in a table's folder to a compaction.
    pub(super) fn promise(
        &self,
        storage: &Storage,
        folder: &Path,
        wanted: u64,
    ) -> std::result::Result<Promise, Shortage> {
        let mut promised = self.promised.lock();
        self.look(storage, folder, wanted, &promised).map_or(Ok(()), Err)?;
        let left = Arc::new(AtomicU64::new(wanted));
        promised.retain(|other| Arc::strong_count(other) > 1);
        promised.push(left.clone());
        Ok(Promise { left, bytes: wanted, written: 0 })
    }

    /// What a compaction that writes this many bytes would lack now; `None` if it could begin.
    pub(super) fn shortage(&self, storage: &Storage, folder: &Path, wanted: u64) -> Option<Shortage> {
        self.look(storage, folder, wanted, &self.promised.lock())
    }

    /// Bytes that are free in a table's folder; `u64::MAX` if the system does not tell.
    pub(super) fn free(storage: &Storage, folder: &Path) -> u64 {
        let disk = &storage.host.disk;
        let known = disk.free_bytes(folder).or_else(|_| disk.free_bytes(&storage.dir));
        known.unwrap_or(u64::MAX)
    }

    fn look(
        &self,
        storage: &Storage,
        folder: &Path,
        wanted: u64,
        promised: &[Arc<AtomicU64>],
    ) -> Option<Shortage> {
        let free = Space::free(storage, folder);
        // The promise of an ended compaction counts nothing.
        let running = promised.iter().filter(|left| Arc::strong_count(left) > 1);
        let running: u64 = running.map(|left| left.load(Ordering::Relaxed)).sum();
        let kept = running.saturating_add(self.reserve(storage, wanted));
        (free != u64::MAX && wanted > free.saturating_sub(kept)).then_some(Shortage { wanted, free, kept })
    }

    /// Bytes that are kept free beside a compaction that writes `wanted` bytes: what the commit log may still need, and a
    /// flush of the memtables. The log holds no more than the memtables do, but for segments that tables with little data
    /// keep. A small compaction is over before that much is written: beside it, twice its own bytes and a segment are
    /// enough. Otherwise nothing could be compacted on a small disk, where a compaction frees more than it takes.
    fn reserve(&self, storage: &Storage, wanted: u64) -> u64 {
        let OtherWrites { segments_max, segment_bytes, memtable_bytes_max } = self.others;
        let (log, segment) = match &storage.log {
            None => (0, 0),
            Some(log) => {
                let segments = segments_max.saturating_sub(log.segments_count() as u64);
                (segments.saturating_mul(segment_bytes).min(memtable_bytes_max), segment_bytes)
            }
        };
        let flush = (storage.memory.bytes() as u64).max(memtable_bytes_max / 2);
        (log.saturating_add(flush)).min(wanted.saturating_mul(2).saturating_add(segment))
    }
}

/// Bytes that a compaction may write. They are given back when it is dropped.
pub(super) struct Promise {
    left: Arc<AtomicU64>,
    bytes: u64,
    written: u64,
}

impl Promise {
    /// Bytes that were promised in all.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The compaction has written so many bytes in all. If they are more than promised, asks for a quarter more.
    ///
    /// # Errors
    /// `NoSpaceToCompact`.
    pub(super) fn written(
        &mut self,
        space: &Space,
        storage: &Storage,
        folder: &Path,
        bytes: u64,
    ) -> Result<()> {
        self.written = bytes;
        if bytes > self.bytes {
            let promised = space.promised.lock();
            let more = bytes - self.bytes + bytes / 4;
            self.left.store(0, Ordering::Relaxed);
            if let Some(shortage) = space.look(storage, folder, more, &promised) {
                return Err(shortage.error());
            }
            self.bytes += more;
        }
        self.left.store(self.bytes - bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// A part of the sizes of components by which an output may exceed its inputs: chunks end elsewhere, and timestamps are
/// stored as differences to another base.
const MARGIN: u64 = 16;
/// Bytes for components of one SSTable that do not grow with its content.
const FIXED_BYTES: u64 = 16 << 10;
/// The most bytes of a Bloom filter for a partition: Cassandra allows 20 bits.
const FILTER_BYTES: u64 = 3;

/// The most bytes that a compaction of these SSTables writes, if the table is as it is now.
///
/// Nothing is taken off for data that the compaction removes: how much that is, is known only afterwards. Data that is
/// compressed in another way than the table's options say counts as if it did not compress.
pub(super) fn output_bytes_max(table: &Table, inputs: &[Arc<SsTable>]) -> u64 {
    let params = table.options.compression_params();
    let bytes = |input: &Arc<SsTable>| {
        let data = match input.is_compressed_as(&params) {
            true => input.data_bytes(),
            false => input.data_bytes().max(input.uncompressed_bytes()),
        };
        let others = input.size_on_disk().saturating_sub(input.data_bytes());
        let filter = input.partition_count().saturating_mul(FILTER_BYTES);
        let bytes = data.saturating_add(others.max(filter));
        bytes.saturating_add(bytes / MARGIN).saturating_add(FIXED_BYTES)
    };
    inputs.iter().map(bytes).fold(0, u64::saturating_add)
}
