//! Checks with loom, over all interleavings, that a reader sees a concurrent write whole or not at all.

use super::super::row_parts::RowBuffers;
use super::*;
use crate::memtable::tests::{Batch, small_table};
use loom::sync::Arc;
use loom::thread as interleaved;

struct Shared {
    arena: Arena,
    partition: Partition,
}

/// What a reader finds: the number of rows forwards and backwards, whether there is a static row, a partition deletion
/// and a covering range deletion, and the greatest timestamp of the rows' markers.
fn read(partition: &Partition) -> [usize; 6] {
    let sequence = partition.sequence();
    let table = small_table();
    let visible = |node: &NodeRef<'_, AtomicPtr<Version<RowVersion>>>| {
        // SAFETY: the caller holds the arena.
        unsafe { row_at(*node, sequence) }.is_some()
    };
    let rows = || std::iter::successors(partition.rows.first(), |node| node.next());
    let newest_us = rows().filter_map(|node| {
        // SAFETY: as above.
        let stored = unsafe { row_at(node, sequence) }?;
        let mut buffers = RowBuffers::default();
        let row = stored.decode((&table, 1), &mut buffers).unwrap();
        assert_eq!(row.row.cells.len(), 1, "a part without the value before it");
        usize::try_from(row.row.liveness.timestamp_us).ok()
    });
    let last = partition.rows.before(&[0xFF]);
    let backward = std::iter::successors(last, |node| node.previous()).filter(visible).count();
    let is_covered = |run: &Run| !run.covering_before(&[0x40, 0x90]).is_live();
    [
        rows().filter(visible).count(),
        backward,
        usize::from(partition.static_row(sequence).is_some()),
        usize::from(!partition.deletion(sequence).is_live()),
        usize::from(partition.ranges(sequence).is_some_and(is_covered)),
        newest_us.max().unwrap_or_default(),
    ]
}

/// Applies `first`, one write after another, then `batch` while a reader reads.
fn check(first: Vec<Batch>, batch: Batch, before: [usize; 6], after: [usize; 6]) {
    let first: Vec<_> = first.into_iter().map(|first| first.changes).collect();
    let batch = batch.changes;
    loom::model(move || {
        let shared = Arc::new(Shared { arena: Arena::default(), partition: Partition::default() });
        let table = small_table();
        let mut scratch = ApplyScratch::default();
        for first in &first {
            shared.partition.apply(&shared.arena, &table, (first, LogPosition(1)), &mut scratch).unwrap();
        }
        let reading = shared.clone();
        let reader = interleaved::spawn(move || {
            let found = read(&reading.partition);
            assert!(found == before || found == after, "{found:?} is neither {before:?} nor {after:?}");
            let logged = reading.partition.logged();
            assert!(
                found == before || logged == LogPosition(2),
                "seen before its place in the log is: {logged:?}"
            );
        });
        let _lock = shared.partition.writer_lock();
        shared.partition.apply(&shared.arena, &table, (&batch, LogPosition(2)), &mut scratch).unwrap();
        assert_eq!(read(&shared.partition), after);
        reader.join().unwrap();
    });
}

#[test]
fn rows_of_a_first_write_appear_together() {
    let batch = Batch::default().insert(2, 5).insert(1, 5).insert(3, 5);
    check(vec![], batch, [0; 6], [3, 3, 0, 0, 0, 5]);
}

#[test]
fn a_write_between_rows_that_are_there_appears_whole() {
    let first = Batch::default().insert(1, 1).insert(4, 1);
    let batch = Batch::default().insert(2, 5).insert(1, 5);
    check(vec![first], batch, [2, 2, 0, 0, 0, 1], [3, 3, 0, 0, 0, 5]);
}

#[test]
fn deletions_and_the_static_row_appear_with_the_rows() {
    let batch = Batch::default().delete_partition(1).delete_all_rows(2).set_static(5).insert(1, 5);
    check(vec![], batch, [0; 6], [1, 1, 1, 1, 1, 5]);
}

#[test]
fn a_part_of_a_large_row_appears_with_its_write() {
    let first = Batch::default().insert_large(1, 1);
    let batch = Batch::default().mark(1, 5).set_static(5);
    check(vec![first], batch, [1, 1, 0, 0, 0, 1], [1, 1, 1, 0, 0, 5]);
}

#[test]
fn a_write_that_merges_parts_and_runs_appears_whole_and_hides_nothing_before() {
    let mut first = vec![Batch::default().insert_large(1, 1)];
    first.extend((2..5).map(|at| Batch::default().mark(1, at).delete_rows(Some(at as i32), at)));
    let batch = Batch::default().mark(1, 5).delete_all_rows(9);
    check(first, batch, [1, 1, 0, 0, 0, 4], [1, 1, 0, 0, 1, 5]);
}
