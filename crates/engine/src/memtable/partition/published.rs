//! Checks with loom, over all interleavings, that a reader sees a concurrent write whole or not at all.

use super::*;
use crate::memtable::tests::{Batch, small_table};
use loom::sync::Arc;
use loom::thread as interleaved;

struct Shared {
    arena: Arena,
    partition: Partition,
}

/// What a reader finds: the number of rows forwards and backwards, and whether there is a static row, a partition
/// deletion and a covering range deletion.
fn read(partition: &Partition) -> [usize; 5] {
    let sequence = partition.sequence();
    let visible = |node: &NodeRef<'_, AtomicPtr<Version<Bytes>>>| {
        // SAFETY: the caller holds the arena.
        unsafe { row_at(*node, sequence) }.is_some()
    };
    let forward = std::iter::successors(partition.rows.first(), |node| node.next()).filter(visible).count();
    let last = partition.rows.before(&[0xFF]);
    let backward = std::iter::successors(last, |node| node.previous()).filter(visible).count();
    [
        forward,
        backward,
        usize::from(partition.static_row(sequence).is_some()),
        usize::from(!partition.deletion(sequence).is_live()),
        usize::from(!partition.covering_before(&[0x40, 0x90], sequence).is_live()),
    ]
}

fn check(first: Option<Batch>, batch: Batch, before: [usize; 5], after: [usize; 5]) {
    let (first, batch) = (first.map(|first| first.changes), batch.changes);
    loom::model(move || {
        let shared = Arc::new(Shared { arena: Arena::default(), partition: Partition::default() });
        let table = small_table();
        let mut scratch = ApplyScratch::default();
        if let Some(first) = &first {
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
    check(None, batch, [0; 5], [3, 3, 0, 0, 0]);
}

#[test]
fn a_write_between_rows_that_are_there_appears_whole() {
    let first = Batch::default().insert(1, 1).insert(4, 1);
    let batch = Batch::default().insert(2, 5).insert(1, 5);
    check(Some(first), batch, [2, 2, 0, 0, 0], [3, 3, 0, 0, 0]);
}

#[test]
fn deletions_and_the_static_row_appear_with_the_rows() {
    let batch = Batch::default().delete_partition(1).delete_all_rows(2).set_static(5).insert(1, 5);
    check(None, batch, [0; 5], [1, 1, 1, 1, 1]);
}
