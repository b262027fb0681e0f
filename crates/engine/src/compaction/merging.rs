//! The main loop of a compaction: merges, purges and writes partitions, in steps of a fixed number of rows or bytes.

use super::inputs::{Inputs, Partition};
use super::output::{Outputs, Place};
use super::purge::Purger;
use crate::error::Result;
use crate::table::View;
use helenus_model::deletion::DeletionTime;
use helenus_model::row::RowBuf;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Source;
use helenus_sstable::block::ReadContext;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::SsTable;
use helenus_sstable::transaction_log::TransactionLog;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows, markers and partitions in one step.
const STEP_ELEMENTS: u32 = 2048;
/// Bytes read from files in one step, if rows are large: the throttle and other compactions wait for its end.
const STEP_BYTES: u64 = 1 << 20;

/// A running merge.
pub(super) struct Merging {
    inputs: Inputs,
    open: Option<Open>,
    pub(super) outputs: Outputs,
    purger: Purger,
    /// The SSTables that the compaction replaces.
    compacted: BTreeSet<Descriptor>,
    cx: ReadContext,
}

/// The current partition.
struct Open {
    partition: Partition,
    /// What purging leaves of its deletion and its static row. Written when the partition begins in the output.
    deletion: DeletionTime,
    static_row: RowBuf,
    begun: bool,
}

impl Merging {
    /// A merge of `inputs` in a compaction that replaces the SSTables of `compacted`.
    pub(super) fn new(
        (inputs, compacted): (Inputs, &[Arc<SsTable>]),
        outputs: Outputs,
        purger: Purger,
        cx: ReadContext,
    ) -> Merging {
        let compacted = compacted.iter().map(|sstable| *sstable.descriptor()).collect();
        Merging { inputs, open: None, outputs, purger, compacted, cx }
    }

    /// Bytes read from files since the last call.
    pub(super) fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.cx.touched.bytes_read)
    }

    /// Uncompressed bytes of data read so far.
    pub(super) fn passed_bytes(&self) -> u64 {
        self.inputs.passed_bytes(self.open.as_ref().map(|open| &open.partition))
    }

    /// Runs a step. Returns whether everything is written.
    pub(super) fn step(&mut self, place: Place<'_>, transaction: &mut TransactionLog) -> Result<bool> {
        let mut left = STEP_ELEMENTS;
        let bytes_before = self.cx.touched.bytes_read;
        while left > 0 {
            if self.cx.touched.bytes_read - bytes_before >= STEP_BYTES {
                break;
            }
            let mut open = match self.open.take() {
                Some(open) => open,
                None => match self.inputs.next(place.table, &mut self.cx)? {
                    Some(partition) => self.begin(partition, place),
                    None => {
                        self.outputs.finish_current(place)?;
                        return Ok(true);
                    }
                },
            };
            left = left.saturating_sub(1);
            if self.rows(&mut open, &mut left, place, transaction)? {
                if open.begun
                    && let Some(writer) = self.outputs.current()
                {
                    writer.end_partition()?;
                }
                self.inputs.give_back(open.partition.rows);
            } else {
                self.open = Some(open);
            }
        }
        Ok(false)
    }

    /// Begins a partition: purges its deletion and its static row.
    fn begin(&mut self, partition: Partition, place: Place<'_>) -> Open {
        let decorated = self.inputs.decorated();
        let compacted = &self.compacted;
        let outside =
            || outside_us(&place.store.view(), compacted, (&partition.hash, &partition.key, decorated));
        self.purger.begin_partition(&partition.key);
        let deletion = self.purger.deletion(partition.deletion, &outside);
        let mut static_row = RowBuf::default();
        let view = partition.static_row.view();
        if !view.is_empty()
            && let Some(row) = self.purger.row(view, &outside)
        {
            static_row.copy_from(row);
        }
        Open { partition, deletion, static_row, begun: false }
    }

    /// Writes what purging leaves of rows and markers. Returns whether the partition has ended.
    fn rows(
        &mut self,
        open: &mut Open,
        left: &mut u32,
        place: Place<'_>,
        transaction: &mut TransactionLog,
    ) -> Result<bool> {
        let Merging { inputs, outputs, purger, compacted, cx, .. } = self;
        let Open { partition: Partition { key, hash, rows, .. }, deletion, static_row, begun } = open;
        let outside = || outside_us(&place.store.view(), compacted, (&*hash, &*key, inputs.decorated()));
        let static_row = Some(static_row.view()).filter(|row| !row.is_empty());
        if !*begun && (static_row.is_some() || !deletion.is_live()) {
            outputs
                .writer(place, transaction, hash.token)?
                .begin_partition(key, hash, *deletion, static_row)?;
            *begun = true;
        }
        let bytes_before = cx.touched.bytes_read;
        while rows.advance(cx).map_err(|error| error.of_partition(key))? {
            if let Some(remaining) = purger.unfiltered(rows.current(), &outside) {
                let writer = if *begun {
                    outputs.current()
                } else {
                    let writer = outputs.writer(place, transaction, hash.token)?;
                    writer.begin_partition(key, hash, *deletion, static_row)?;
                    *begun = true;
                    Some(writer)
                };
                if let Some(writer) = writer {
                    writer.add(remaining)?;
                }
            }
            *left = left.saturating_sub(1);
            if *left == 0 || cx.touched.bytes_read - bytes_before >= STEP_BYTES {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The smallest timestamp that data of a partition may have in memtables and in SSTables outside the compaction; `None`
/// if there is no such data (`CompactionController.getPurgeEvaluator`). Data of unknown content may have any timestamp.
fn outside_us(
    view: &View,
    compacted: &BTreeSet<Descriptor>,
    (hash, key, decorated): (&KeyHash, &[u8], &[u8]),
) -> Option<i64> {
    if view.has_unknown() {
        return Some(i64::MIN);
    }
    let memtables =
        view.memtables.iter().filter(|memtable| memtable.partition_of_key(hash.token, key).is_some());
    let may_have = |table: &&Arc<SsTable>| {
        table.covers(decorated) && !compacted.contains(table.descriptor()) && table.may_contain(hash)
    };
    let near = view.sstables.at(hash.token).filter_map(|position| view.sstables.get(position));
    let in_memory = memtables.map(|memtable| memtable.stats().timestamp_us_min);
    in_memory.chain(near.filter(may_have).map(|table| table.stats().timestamp_us_min)).min()
}
