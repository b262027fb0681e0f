//! The memory that one read leaves for the next: readers, cursors, the merge and its buffers.
//!
//! A read borrows a scratch from the database's pool and returns it, so that a read from memory allocates almost
//! nothing. A returned scratch holds no source, so nothing in the pool keeps a file open or a memtable alive.

use super::source::{AnySource, PartitionSources};
use crate::log_position::LogPosition;
use crate::memtable::CursorMemory;
use helenus_model::deletion::DeletionTime;
use helenus_model::merge::Merge;
use helenus_model::schema::Table;
use helenus_sstable::block::ReadContext;
use helenus_sstable::table::SpareReaders;
use parking_lot::Mutex;
use std::sync::Arc;

/// Reusable memory of reads. `ReadScratch::default()` has none yet.
#[derive(Default)]
pub struct ReadScratch {
    /// The read's permissions and counters.
    pub cx: ReadContext,
    /// Memory of closed readers of SSTables.
    pub(super) readers: SpareReaders,
    /// The sources of the current partition.
    pub(super) found: PartitionSources,
    /// `None` before the first read.
    pub(super) merge: Option<Merge<AnySource>>,
    #[expect(clippy::vec_box, reason = "memories move between here and cursors, which hold them boxed")]
    pub(super) cursors: Vec<Box<CursorMemory>>,
    /// Rows that the last read returned.
    pub(crate) rows_returned: u64,
    /// Dead rows and markers that the last read passed.
    pub(crate) tombstones_passed: u64,
    /// The log position that covers all writes that the read has seen in memtables.
    pub(crate) logged: LogPosition,
    /// SSTables that reads by key opened, summed over their partitions.
    pub(crate) sstables_asked: u64,
}

/// Cursors kept for reuse: more than the memtables of most reads.
const CURSORS_MAX: usize = 8;

impl ReadScratch {
    /// Moves the partition's sources into the merge.
    pub(super) fn start_merge(&mut self, table: &Arc<Table>, reversed: bool) {
        let PartitionSources { sources, deletion, begun, .. } = &mut self.found;
        let with_keys = sources.len() > 1;
        sources.iter_mut().for_each(|source| source.set_keys(with_keys));
        let new = || Merge::new(table.clone(), reversed, DeletionTime::LIVE, Vec::new());
        let merge = self.merge.get_or_insert_with(new);
        merge.restart(table, reversed, *deletion, sources);
        begun
            .drain(..)
            .enumerate()
            .for_each(|(index, has_element)| merge.set_first_element(index, has_element));
    }

    /// Moves the sources back from the merge, if it has any.
    pub(super) fn end_merge(&mut self) {
        if let Some(merge) = &mut self.merge {
            merge.give_back(&mut self.found.sources);
        }
    }

    /// Closes the partition's sources and keeps their memory. The owner of scans takes them back before.
    pub(super) fn close_sources(&mut self) {
        self.end_merge();
        for source in self.found.sources.drain(..) {
            match source {
                AnySource::Memtable(cursor) if self.cursors.len() < CURSORS_MAX => {
                    self.cursors.push(cursor.into_memory());
                }
                AnySource::Table(reader) => self.readers.close(reader),
                AnySource::Memtable(_) | AnySource::Scan(_) => {}
            }
        }
    }
}

/// The scratches that no read uses at the moment.
pub(crate) struct ScratchPool {
    slots: [Mutex<Option<Box<ReadScratch>>>; SLOTS],
}

/// The most bytes of a merge's buffers that are kept for the next read.
const MERGE_BYTES_MAX: usize = 256 << 10;

/// The number of concurrent reads that can reuse a scratch. Further reads make a new one and drop it.
const SLOTS: usize = 32;

impl ScratchPool {
    /// An empty pool.
    pub(crate) fn new() -> ScratchPool {
        ScratchPool { slots: [const { Mutex::new(None) }; SLOTS] }
    }

    /// Takes a scratch out, or makes one.
    pub(crate) fn take(&self) -> Box<ReadScratch> {
        let found = self.slots().find_map(|slot| slot.try_lock()?.take());
        found.unwrap_or_default()
    }

    /// Puts a scratch back. Drops a merge whose buffers grew too large, and the whole scratch if the pool is full.
    pub(crate) fn give_back(&self, mut scratch: Box<ReadScratch>) {
        scratch.close_sources();
        scratch.merge.take_if(|merge| merge.buffer_bytes() > MERGE_BYTES_MAX);
        let mut scratch = Some(scratch);
        for slot in self.slots() {
            if let Some(mut slot) = slot.try_lock().filter(|slot| slot.is_none()) {
                *slot = scratch.take();
                return;
            }
        }
    }

    /// The slots, starting at an index that depends on the thread's stack address: threads start at different slots.
    fn slots(&self) -> impl Iterator<Item = &Mutex<Option<Box<ReadScratch>>>> {
        let here = 0_u8;
        let stack = (&raw const here).addr();
        let first = (stack >> 16 ^ stack >> 21) % SLOTS;
        self.slots[first..].iter().chain(&self.slots[..first])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_that_came_back_is_given_out_again_and_a_full_pool_drops_the_rest() {
        let pool = ScratchPool::new();
        let mut scratch = pool.take();
        scratch.cursors.push(Box::default());
        pool.give_back(scratch);
        assert_eq!(pool.take().cursors.len(), 1);
        assert_eq!(pool.take().cursors.len(), 0);
        (0..2 * SLOTS).for_each(|_| pool.give_back(Box::default()));
        assert!(pool.slots.iter().all(|slot| slot.lock().is_some()));
    }
}
