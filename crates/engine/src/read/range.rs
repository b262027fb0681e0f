//! Reads a range of partitions in ring order: merges the partitions of equal key from all sources.
//!
//! An SSTable is opened when the read reaches its first partition, and closed behind its last one. So the work for a
//! partition, and the memory, depend on the number of SSTables that overlap there, and not on the number in the range.

use super::command::{KeyRange, PartitionKey, ReadCommand};
use super::execute::resumed_filter;
use super::partition::{PartitionEnd, Progress};
use super::probe::{Probe, SkipReason};
use super::scratch::ReadScratch;
use super::sink::{ReadEnd, RowSink};
use super::source::{AnySource, add_memtable};
use crate::error::Result;
use crate::memtable::{Memtable, PartitionRef};
use crate::table::View;
use helenus_model::token::Token;
use helenus_sstable::block::ReadContext;
use helenus_sstable::stopwatch::Stage;
use helenus_sstable::table::{Scan, SsTable};
use std::sync::Arc;

/// The sources of a range read, each at its next partition.
pub(super) struct RangeSources {
    memtables: Vec<MemtableRange>,
    /// The scans that have begun and not ended, newest data first.
    scans: Vec<TableScan>,
    /// The SSTables that are not reached yet, with their positions in the view. The last one is the next in ring order.
    ahead: Vec<(usize, Arc<SsTable>)>,
    range: KeyRange,
    /// Position of the partition that an earlier page has begun; the first partition read continues it if it is the
    /// same.
    resumed: Option<Vec<u8>>,
    /// Partitions read.
    partitions: u64,
    /// Byte-comparable position and serialised key of the current partition.
    decorated: Vec<u8>,
    key: Vec<u8>,
}

struct MemtableRange {
    memtable: Arc<Memtable>,
    /// Token and byte-comparable position of the next partition.
    next: Option<(Token, Vec<u8>)>,
}

struct TableScan {
    /// The position of its SSTable in the view.
    position: usize,
    /// `None` while its partition is being read: then `scratch.found` has the scan.
    scan: Option<Box<Scan>>,
    /// Whether the scan is at a partition that has not been read.
    ready: bool,
    ended: bool,
    /// The scan selects only the rest of a partition that an earlier page has begun. The full filter is set again at
    /// the next partition, and only then, because a new selection makes the scan walk the partition again to find its
    /// end.
    narrowed: bool,
}

impl RangeSources {
    pub(super) fn open(
        command: &ReadCommand,
        view: &View,
        range: &KeyRange,
        mut probe: Option<&mut Probe>,
    ) -> RangeSources {
        let mut range = range.clone();
        let mut resumed = None;
        if let Some(resume) = &command.resume {
            let key = PartitionKey::new(resume.key.clone());
            range.start = key.decorated.clone();
            if resume.clustering.is_none() {
                range.start.push(0);
            } else {
                resumed = Some(key.decorated);
            }
        }
        let memtables: Vec<MemtableRange> =
            view.memtables.iter().map(|memtable| MemtableRange::new(memtable, &range)).collect();
        if let Some(probe) = probe.as_deref_mut() {
            probe.memtables += memtables.iter().filter(|memtable| memtable.next.is_some()).count() as u64;
        }
        let near = near(view, &range);
        if let Some(probe) = probe.as_deref_mut() {
            probe.note_elsewhere(view.sstables.len() - near.len());
        }
        let mut ahead = Vec::new();
        for (position, table) in near {
            let outside = is_outside(table, &range);
            if let Some(probe) = probe.as_deref_mut() {
                probe.note(table, outside.then_some(SkipReason::KeyRange));
            }
            if !outside {
                ahead.push((position, table.clone()));
            }
        }
        ahead.sort_by(|(_, a), (_, b)| b.first_decorated().cmp(a.first_decorated()));
        let (scans, decorated, key) = (Vec::new(), Vec::new(), Vec::new());
        RangeSources { memtables, scans, ahead, range, resumed, partitions: 0, decorated, key }
    }

    /// The number of partitions read.
    pub(super) fn partitions(&self) -> u64 {
        self.partitions
    }

    /// The serialised key of the current partition.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Reads partition after partition.
    pub(super) fn run(
        &mut self,
        progress: &mut Progress<'_>,
        sink: &mut dyn RowSink,
        scratch: &mut ReadScratch,
    ) -> Result<ReadEnd> {
        loop {
            (progress.interrupt)()?;
            if !self.next_partition(progress.command, &mut scratch.cx)? {
                return Ok(ReadEnd::Complete);
            }
            let left = self.take(progress.command, scratch)?;
            self.partitions += 1;
            let before_merge = scratch.cx.enter(Stage::Merge);
            let end = progress.run(&self.key, left, sink, scratch)?;
            scratch.cx.leave(before_merge);
            self.give_back(&mut scratch.found.sources);
            scratch.close_sources();
            match end {
                PartitionEnd::Finished => {}
                PartitionEnd::ReadComplete => return Ok(ReadEnd::Complete),
                PartitionEnd::Page(at) => return Ok(ReadEnd::Page(at)),
            }
        }
    }

    /// Finds the smallest position of all sources and stores it in `decorated`; returns false when no source has a
    /// partition left.
    pub(super) fn next_partition(&mut self, command: &ReadCommand, cx: &mut ReadContext) -> Result<bool> {
        for entry in &mut self.scans {
            let Some(scan) = entry.scan.as_mut().filter(|_| !entry.ready && !entry.ended) else { continue };
            if std::mem::take(&mut entry.narrowed) {
                scan.select(command.filter.clone(), command.reversed);
            }
            let choosing = cx.enter(Stage::Index);
            entry.ready = scan.next_partition(cx)?;
            cx.leave(choosing);
            entry.ended = !entry.ready;
        }
        self.scans.retain(|entry| !entry.ended);
        let of_scans =
            self.scans.iter().filter(|s| s.ready).filter_map(|s| s.scan.as_ref()).map(|s| s.decorated());
        let of_memtables =
            self.memtables.iter().filter_map(|m| m.next.as_ref()).map(|(_, position)| &position[..]);
        let mut is_found = false;
        if let Some(least) = of_scans.chain(of_memtables).min() {
            self.decorated.clear();
            self.decorated.extend_from_slice(least);
            is_found = true;
        }
        while let Some((_, table)) = self.ahead.last()
            && (!is_found || table.first_decorated() <= &self.decorated[..])
        {
            let Some((position, table)) = self.ahead.pop() else { break };
            let choosing = cx.enter(Stage::Index);
            let mut scan = Box::new(table.scan(&self.range, cx)?);
            scan.select(command.filter.clone(), command.reversed);
            let is_ready = scan.next_partition(cx)?;
            cx.leave(choosing);
            if !is_ready {
                continue;
            }
            if !is_found || scan.decorated() < &self.decorated[..] {
                self.decorated.clear();
                self.decorated.extend_from_slice(scan.decorated());
                is_found = true;
            }
            let place = self.scans.partition_point(|entry| entry.position < position);
            let entry = TableScan { position, scan: Some(scan), ready: true, ended: false, narrowed: false };
            self.scans.insert(place, entry);
        }
        Ok(is_found)
    }

    /// Opens the sources of the partition at `decorated` into `scratch.found`. If an earlier page has begun this
    /// partition, returns the rows left of its limit.
    pub(super) fn take(&mut self, command: &ReadCommand, scratch: &mut ReadScratch) -> Result<Option<u64>> {
        let decorated = &self.decorated[..];
        let (mut filter, mut rows_left) = (command.filter.clone(), None);
        let continues = self.resumed.take().is_some_and(|resumed| resumed == decorated);
        if let Some((left, rows)) = resumed_filter(command).filter(|_| continues) {
            (filter, rows_left) = (left, Some(rows));
        }
        scratch.found.clear();
        let key = &mut self.key;
        key.clear();
        for range in &mut self.memtables {
            let Some((token, position)) = range.next.take() else { continue };
            if position != decorated {
                range.next = Some((token, position));
                continue;
            }
            let partition = range.memtable.partition_at_or_after(token, &position);
            let Some(partition) = partition.filter(|p| p.decorated() == position) else { continue };
            key.clear();
            key.extend_from_slice(partition.key());
            add_memtable(scratch, command, &filter, (&range.memtable, partition))?;
            let after = range.memtable.next(partition);
            range.next = after.and_then(|partition| position_before(partition, &self.range.end));
        }
        for entry in self.scans.iter_mut().filter(|entry| entry.ready) {
            if entry.scan.as_ref().is_none_or(|scan| scan.decorated() != decorated) {
                continue;
            }
            let Some(mut scan) = entry.scan.take() else { continue };
            entry.ready = false;
            if continues {
                scan.select_rest(filter.clone(), command.reversed, &mut scratch.cx)?;
                entry.narrowed = true;
            }
            key.clear();
            key.extend_from_slice(scan.key());
            let found = &mut scratch.found;
            found.deletion = found.deletion.max(scan.deletion());
            if let Some(row) = scan.static_row().filter(|_| command.statics) {
                found.add_static(&command.table, row)?;
            }
            found.sources.push(AnySource::Scan(scan));
        }
        scratch.found.hide_static();
        Ok(rows_left)
    }

    /// Puts the scans back into their entries, in the order in which they were taken.
    pub(super) fn give_back(&mut self, sources: &mut Vec<AnySource>) {
        let mut places = self.scans.iter_mut().filter(|entry| entry.scan.is_none());
        for source in sources.extract_if(.., |source| matches!(source, AnySource::Scan(_))) {
            if let AnySource::Scan(scan) = source
                && let Some(place) = places.next()
            {
                place.scan = Some(scan);
            }
        }
    }
}

impl MemtableRange {
    fn new(memtable: &Arc<Memtable>, range: &KeyRange) -> MemtableRange {
        let first = match token_of(&range.start) {
            None => memtable.first(),
            Some(token) => memtable.partition_at_or_after(token, &range.start),
        };
        let next = first.and_then(|partition| position_before(partition, &range.end));
        MemtableRange { memtable: memtable.clone(), next }
    }
}

/// Whether a memtable has a partition of a range.
pub(super) fn has_part_of(memtable: &Arc<Memtable>, range: &KeyRange) -> bool {
    MemtableRange::new(memtable, range).next.is_some()
}

/// The SSTables that may have partitions of a range, with their positions in the view, ascending.
pub(super) fn near<'v>(view: &'v View, range: &KeyRange) -> Vec<(usize, &'v Arc<SsTable>)> {
    let first = token_of(&range.start).unwrap_or(Token::MIN);
    let last = token_of(&range.end).unwrap_or(Token::MAX);
    let positions = view.sstables.between(first, last).into_iter();
    positions.filter_map(|position| Some((position, view.sstables.get(position)?))).collect()
}

/// Whether a table has no partition of a range.
pub(super) fn is_outside(table: &SsTable, range: &KeyRange) -> bool {
    table.last_decorated() < &range.start[..] || table.first_decorated() >= &range.end[..]
}

fn position_before(partition: PartitionRef<'_>, end: &[u8]) -> Option<(Token, Vec<u8>)> {
    let decorated = partition.decorated();
    (decorated < end).then(|| (partition.token(), decorated.to_vec()))
}

/// The token of a byte-comparable position: the eight bytes after the separator, with the sign bit flipped.
fn token_of(position: &[u8]) -> Option<Token> {
    let bytes = position.get(1..9)?.first_chunk::<8>()?;
    Some(Token((u64::from_be_bytes(*bytes) ^ (1 << 63)) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::byte_comparable::{decorated_key, token_bound};

    #[test]
    fn the_token_is_read_back_from_an_ordered_position() {
        for token in [i64::MIN, -1, 0, 1, i64::MAX, 0x0123_4567_89AB_CDEF].map(Token) {
            let mut position = Vec::new();
            decorated_key(token, b"key", &mut position);
            assert_eq!(token_of(&position), Some(token));
            position.clear();
            token_bound(token, true, &mut position);
            assert_eq!(token_of(&position), Some(token));
        }
    }
}
