//! Reads the SSTables of a compaction as one sequence of partitions: merges the rows of partitions with equal keys.
//!
//! An SSTable is opened when the sequence reaches its first partition, and closed behind its last one. So the work for a
//! partition, and the memory, depend on the number of SSTables that overlap there, and not on the number of inputs.

use crate::error::Result;
use helenus_model::deletion::DeletionTime;
use helenus_model::merge::Merge;
use helenus_model::partitions::KeyRange;
use helenus_model::reconcile::{filter_row, try_merge_rows};
use helenus_model::row::RowBuf;
use helenus_model::schema::Table;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use helenus_sstable::table::{Scan, SsTable};
use std::sync::Arc;

/// The scans that have begun and not ended, each at its next partition. Between two calls of `next`, the current
/// partition holds the scans that contain it.
pub(super) struct Inputs {
    scans: Vec<Input>,
    /// The SSTables that are not reached yet. The last one is the next in ring order.
    ahead: Vec<Arc<SsTable>>,
    /// Uncompressed bytes of the SSTables that have ended.
    ended_bytes: u64,
    /// Byte-comparable position of the current partition.
    decorated: Vec<u8>,
}

struct Input {
    /// `None` while the current partition holds the scan.
    scan: Option<Box<Scan>>,
    ready: bool,
    ended: bool,
}

/// A scan while a partition holds it.
pub(super) struct Lent {
    index: usize,
    scan: Box<Scan>,
}

impl Source<ReadContext> for Lent {
    type Error = helenus_sstable::Error;

    fn advance(&mut self, cx: &mut ReadContext) -> std::result::Result<bool, helenus_sstable::Error> {
        self.scan.advance(cx)
    }

    fn release_bytes(&mut self) -> usize {
        self.scan.release_bytes()
    }

    fn reload(
        &mut self,
        expected: usize,
        cx: &mut ReadContext,
    ) -> std::result::Result<(), helenus_sstable::Error> {
        self.scan.reload(expected, cx)
    }

    fn current(&self) -> Unfiltered<'_> {
        self.scan.current()
    }
}

/// The current partition.
pub(super) struct Partition {
    pub(super) key: Vec<u8>,
    pub(super) hash: KeyHash,
    /// The newest partition deletion of all inputs.
    pub(super) deletion: DeletionTime,
    /// The merged static row without the cells that the deletion covers; may be empty.
    pub(super) static_row: RowBuf,
    /// Rows and markers; `advance` moves it to the first one.
    pub(super) rows: Merge<Lent>,
}

impl Inputs {
    pub(super) fn new(mut tables: Vec<Arc<SsTable>>) -> Inputs {
        tables.sort_by(|a, b| b.first_decorated().cmp(a.first_decorated()));
        Inputs { scans: Vec::new(), ahead: tables, ended_bytes: 0, decorated: Vec::new() }
    }

    /// The next partition of all inputs, with the current definition of the table.
    pub(super) fn next(&mut self, table: &Arc<Table>, cx: &mut ReadContext) -> Result<Option<Partition>> {
        for input in self.scans.iter_mut().filter(|input| !input.ready) {
            let Some(scan) = &mut input.scan else { continue };
            input.ready = scan.next_partition(cx)?;
            if !input.ready {
                input.ended = true;
                self.ended_bytes += scan.position();
            }
        }
        self.scans.retain(|input| !input.ended);
        let ready = self.scans.iter().filter(|input| input.ready).filter_map(|input| input.scan.as_ref());
        let mut is_found = false;
        if let Some(first) = ready.map(|scan| scan.decorated()).min() {
            self.decorated.clear();
            self.decorated.extend_from_slice(first);
            is_found = true;
        }
        while let Some(next) = self.ahead.last()
            && (!is_found || next.first_decorated() <= &self.decorated[..])
        {
            let mut scan = Box::new(next.scan(&KeyRange::all(), cx)?);
            let is_ready = scan.next_partition(cx)?;
            self.ahead.pop();
            if !is_ready {
                self.ended_bytes += scan.position();
                continue;
            }
            if !is_found || scan.decorated() < &self.decorated[..] {
                self.decorated.clear();
                self.decorated.extend_from_slice(scan.decorated());
                is_found = true;
            }
            self.scans.push(Input { scan: Some(scan), ready: true, ended: false });
        }
        if is_found { self.take(table) } else { Ok(None) }
    }

    fn take(&mut self, table: &Arc<Table>) -> Result<Option<Partition>> {
        let mut lent: Vec<Lent> = Vec::new();
        let mut deletion = DeletionTime::LIVE;
        let (mut static_row, mut spare) = (RowBuf::default(), RowBuf::default());
        for (index, input) in self.scans.iter_mut().enumerate().filter(|(_, input)| input.ready) {
            if input.scan.as_ref().is_none_or(|scan| scan.decorated() != self.decorated) {
                continue;
            }
            let Some(scan) = input.scan.take() else { continue };
            input.ready = false;
            deletion = deletion.max(scan.deletion());
            if let Some(row) = scan.static_row() {
                try_merge_rows(table, static_row.view(), row, DeletionTime::LIVE, &mut spare)
                    .map_err(|too_large| helenus_sstable::Error::from(too_large).of_partition(scan.key()))?;
                std::mem::swap(&mut static_row, &mut spare);
            }
            lent.push(Lent { index, scan });
        }
        if !deletion.is_live() && !static_row.view().is_empty() {
            filter_row(static_row.view(), deletion, &mut spare);
            std::mem::swap(&mut static_row, &mut spare);
        }
        let Some(key) = lent.first().map(|first| first.scan.key().to_vec()) else { return Ok(None) };
        let rows = Merge::new(table.clone(), false, deletion, lent);
        Ok(Some(Partition { hash: KeyHash::of(&key), key, deletion, static_row, rows }))
    }

    /// Takes the scans back from a partition, which may be read to its end or not.
    pub(super) fn give_back(&mut self, rows: Merge<Lent>) {
        for Lent { index, scan } in rows.into_sources() {
            if let Some(input) = self.scans.get_mut(index) {
                input.scan = Some(scan);
            }
        }
    }

    /// Byte-comparable position of the current partition.
    pub(super) fn decorated(&self) -> &[u8] {
        &self.decorated
    }

    /// Uncompressed bytes read so far, including the scans that `partition` holds.
    pub(super) fn passed_bytes(&self, partition: Option<&Partition>) -> u64 {
        let here = self.scans.iter().filter_map(|input| input.scan.as_ref()).map(|scan| scan.position());
        let lent = partition.into_iter().flat_map(|partition| partition.rows.sources());
        self.ended_bytes + here.chain(lent.map(|lent| lent.scan.position())).sum::<u64>()
    }
}
