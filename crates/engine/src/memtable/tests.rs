//! The memtable under several threads: writers do not disturb one another, and readers see writes whole.
//!
//! Small under Miri, which checks every access to the arena on the way.

use super::{MemoryAccount, Memtable, MemtableCursor, PartitionRef, Selected};
use crate::check_mutation::check;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::mutation::{Changes, PartitionUpdate};
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::token::Token;
use helenus_model::types::CqlType;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

/// `k text, c int, s text static, v text, PRIMARY KEY (k, c)`.
pub(super) fn small_table() -> Table {
    let columns = [
        Column::new("k", ColumnKind::PartitionKey, CqlType::Text),
        Column::new("c", ColumnKind::Clustering, CqlType::Int),
        Column::new("s", ColumnKind::Static, CqlType::Text),
        Column::new("v", ColumnKind::Regular, CqlType::Text),
    ];
    Table::new(("ks", "t"), TableId(Uuid::from_u128(1)), columns)
}

/// Changes of one partition of the small table.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) changes: Changes,
}

fn cell(column: &str, timestamp_us: i64) -> Cell {
    let column = small_table().column(column).unwrap().id;
    let (path, value) = (Span::NULL, Span::EMPTY);
    Cell { column, ttl_s: 0, timestamp_us, local_deletion_s: NO_EXPIRY, path, value }
}

impl Batch {
    pub(super) fn insert(mut self, c: i32, timestamp_us: i64) -> Batch {
        let clustering = c.to_be_bytes();
        let live = (Liveness::at(timestamp_us), DeletionTime::LIVE);
        self.changes.row([Some(&clustering[..])].into_iter(), live, &[], |row| {
            row.cell(&cell("v", timestamp_us), None, b"value");
        });
        self
    }

    /// Inserts a row so large that later changes are stored as parts.
    #[cfg(loom)]
    pub(super) fn insert_large(mut self, c: i32, timestamp_us: i64) -> Batch {
        let clustering = c.to_be_bytes();
        let live = (Liveness::at(timestamp_us), DeletionTime::LIVE);
        self.changes.row([Some(&clustering[..])].into_iter(), live, &[], |row| {
            row.cell(&cell("v", timestamp_us), None, &[7; 4 << 10]);
        });
        self
    }

    /// Writes a row's marker alone.
    #[cfg(loom)]
    pub(super) fn mark(mut self, c: i32, timestamp_us: i64) -> Batch {
        let clustering = c.to_be_bytes();
        let live = (Liveness::at(timestamp_us), DeletionTime::LIVE);
        self.changes.row([Some(&clustering[..])].into_iter(), live, &[], |_| {});
        self
    }

    pub(super) fn set_static(mut self, timestamp_us: i64) -> Batch {
        self.changes.static_row(&[], |row| row.cell(&cell("s", timestamp_us), None, b"static"));
        self
    }

    pub(super) fn delete_partition(mut self, timestamp_us: i64) -> Batch {
        self.changes.delete_partition(DeletionTime { timestamp_us, local_s: 1 });
        self
    }

    pub(super) fn delete_all_rows(self, timestamp_us: i64) -> Batch {
        self.delete_rows(None, timestamp_us)
    }

    pub(super) fn delete_rows(mut self, until: Option<i32>, timestamp_us: i64) -> Batch {
        let until = until.map(i32::to_be_bytes);
        let end: Vec<_> = until.iter().map(|bytes| Some(&bytes[..])).collect();
        self.changes.delete_range((&[], true), (&end, false), DeletionTime { timestamp_us, local_s: 1 });
        self
    }

    fn to(self, memtable: &Memtable, table: &Arc<Table>, key: &str) {
        let key = key.as_bytes().to_vec();
        let token = Token::of_key(&key);
        let update = PartitionUpdate { table: table.clone(), key, changes: self.changes };
        let extent = check(std::iter::once(&update)).unwrap();
        memtable.apply(&update, token, &extent);
    }
}

fn everything(
    memtable: &Arc<Memtable>,
    partition: PartitionRef<'_>,
    sequence: u64,
    reversed: bool,
) -> MemtableCursor {
    let filter = &Arc::new(ClusteringFilter::Slices(vec![Slice::all()]));
    let selected = Selected { sequence, table: &Arc::new(small_table()), filter, reversed };
    MemtableCursor::new(memtable, partition, &selected, Box::default())
}

/// Clustering and timestamp of each row, and the number of markers, as a reader finds them now.
fn read(memtable: &Arc<Memtable>, key: &str, reversed: bool) -> (Vec<(i32, i64)>, usize) {
    let token = Token::of_key(key.as_bytes());
    let Some(partition) = memtable.partition_of_key(token, key.as_bytes()) else { return Default::default() };
    let sequence = partition.content().sequence();
    let mut cursor = everything(memtable, partition, sequence, reversed);
    let (mut rows, mut markers) = (Vec::new(), 0);
    while cursor.advance(&mut ()).unwrap() {
        match <MemtableCursor as Source<()>>::current(&cursor) {
            Unfiltered::Row(row) => {
                let c = row.clustering(0).and_then(|c| c.first_chunk::<4>()).unwrap();
                rows.push((i32::from_be_bytes(*c), row.row.liveness.timestamp_us));
            }
            Unfiltered::Marker(_) => markers += 1,
        }
    }
    if reversed {
        rows.reverse();
    }
    (rows, markers)
}

fn scaled(n: i32, under_miri: i32) -> i32 {
    if cfg!(miri) { under_miri } else { n }
}

#[test]
fn writers_to_different_partitions_lose_nothing() {
    let (memtable, table) = (Arc::new(Memtable::new(&MemoryAccount::default())), Arc::new(small_table()));
    let (partitions, rows) = (scaled(200, 6), scaled(20, 3));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (memtable, table) = (&memtable, &table);
            scope.spawn(move || {
                for c in 0..rows {
                    for partition in 0..partitions {
                        // Each thread creates its own partitions, and all of them share one.
                        Batch::default().insert(c, 1).to(memtable, table, &format!("{thread}-{partition}"));
                    }
                    Batch::default().insert(c * 4 + thread, 1).to(memtable, table, "all");
                }
            });
        }
    });
    for thread in 0..4 {
        for partition in 0..partitions {
            let found = read(&memtable, &format!("{thread}-{partition}"), false).0;
            assert_eq!(found, (0..rows).map(|c| (c, 1)).collect::<Vec<_>>());
        }
    }
    assert_eq!(read(&memtable, "all", false).0.len() as i32, 4 * rows);
    let mut keys = Vec::new();
    let mut partition = memtable.first();
    while let Some(present) = partition {
        keys.push(present.decorated().to_vec());
        partition = memtable.next(present);
    }
    assert_eq!(keys.len() as i32, 4 * partitions + 1);
    assert!(keys.is_sorted());
    let stats = memtable.stats();
    assert_eq!((stats.partitions, stats.rows), (keys.len() as u64, (4 * rows * (partitions + 1)) as u64));
}

#[test]
fn a_wide_partition_reads_the_same_both_ways_whatever_the_order_of_its_writes() {
    let (memtable, table) = (Arc::new(Memtable::new(&MemoryAccount::default())), Arc::new(small_table()));
    let n = scaled(5_000, 60);
    Batch::default().set_static(1).delete_partition(0).to(&memtable, &table, "wide");
    for index in 0..n {
        let c = (index * 7_919) % n;
        Batch::default().insert(c, i64::from(c)).to(&memtable, &table, "wide");
    }
    Batch::default().delete_rows(Some(n / 2), 10).to(&memtable, &table, "wide");
    let expected: Vec<_> = (0..n).map(|c| (c, i64::from(c))).collect();
    for reversed in [false, true] {
        let (rows, markers) = read(&memtable, "wide", reversed);
        assert_eq!(rows, expected);
        assert_eq!(markers, 2);
    }
}

#[test]
fn readers_see_each_batch_whole_or_not_at_all() {
    let (memtable, table) = (Arc::new(Memtable::new(&MemoryAccount::default())), Arc::new(small_table()));
    let (batches, rows) = (scaled(200, 4), scaled(100, 8));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reversed in [false, true] {
            let (memtable, done) = (&memtable, &done);
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(Ordering::Acquire) {
                    let found = read(memtable, "p", reversed).0;
                    let Some(first) = found.first() else { continue };
                    assert!(found.iter().all(|row| row.1 == first.1), "rows of several batches");
                    assert!(first.1 >= last, "an older batch after a newer one");
                    last = first.1;
                    // Each batch has more rows than the one before.
                    assert_eq!(found.len() as i64, i64::from(rows) + first.1);
                }
            });
        }
        for batch in 1..=batches {
            let mut write = Batch::default();
            for c in (0..rows + batch).rev() {
                write = write.insert(c * 3 % (rows + batch), i64::from(batch)).insert(c, i64::from(batch));
            }
            write.to(&memtable, &table, "p");
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(read(&memtable, "p", false).0.len() as i32, rows + batches);
}

#[test]
fn a_cursor_keeps_its_picture_while_writes_go_on() {
    let (memtable, table) = (Arc::new(Memtable::new(&MemoryAccount::default())), Arc::new(small_table()));
    for (reversed, key) in [(false, "forward"), (true, "backward")] {
        for c in 0..10 {
            Batch::default().insert(c * 2, 1).to(&memtable, &table, key);
        }
        let token = Token::of_key(key.as_bytes());
        let partition = memtable.partition_of_key(token, key.as_bytes()).unwrap();
        let sequence = partition.content().sequence();
        let before = read(&memtable, key, false).0;
        let mut cursor = everything(&memtable, partition, sequence, reversed);
        let mut seen = Vec::new();
        while cursor.advance(&mut ()).unwrap() {
            let c = match <MemtableCursor as Source<()>>::current(&cursor) {
                Unfiltered::Row(row) => (
                    i32::from_be_bytes(row.clustering(0).unwrap().try_into().unwrap()),
                    row.row.liveness.timestamp_us,
                ),
                Unfiltered::Marker(_) => panic!("a deletion from after the cursor began"),
            };
            seen.push(c);
            // Writes on both sides of the cursor, at its row, and deletes everything.
            let write = Batch::default().insert(c.0 + 1, 3).insert(c.0 - 1, 3).insert(c.0, 3);
            write.delete_all_rows(2).to(&memtable, &table, key);
        }
        if reversed {
            seen.reverse();
        }
        assert_eq!(seen, before);
    }
}

/// Nested ranges, the wider ones later and stronger: each of them covers the ends of all before it.
#[test]
fn many_range_deletions_of_one_write_take_memory_by_their_number() {
    let count: i32 = if cfg!(miri) { 40 } else { 6000 };
    let table = Arc::new(small_table());
    let memtable = Arc::new(Memtable::new(&MemoryAccount::default()));
    let mut changes = Changes::default();
    for number in 0..count {
        let (from, to) = ((count - number).to_be_bytes(), (count + number).to_be_bytes());
        let deletion = DeletionTime { timestamp_us: i64::from(number) + 1, local_s: 1 };
        changes.delete_range((&[Some(&from[..])], true), (&[Some(&to[..])], false), deletion);
    }
    Batch { changes }.to(&memtable, &table, "key");
    assert!(memtable.bytes() < 64 << 20, "{} bytes", memtable.bytes());
    let token = Token::of_key(b"key");
    let partition = memtable.partition_of_key(token, b"key").expect("written");
    let filter = Arc::new(ClusteringFilter::Slices(vec![Slice::all()]));
    let sequence = partition.content().sequence();
    let selected = Selected { sequence, table: &table, filter: &filter, reversed: false };
    let mut cursor = MemtableCursor::new(&memtable, partition, &selected, Box::default());
    let mut markers = 0;
    while cursor.advance(&mut ()).unwrap() {
        markers += 1;
    }
    assert_eq!(markers, 2, "the last covers all");
}
