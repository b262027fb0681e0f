//! Guarantees of the read path: where pages end, what stays cached, that a read that may not block never waits, and
//! that the memory reused by the next read carries no data over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::read::{
    BatchSink, KeyRange, PartitionKey, Partitions, Probe, ReadCommand, ReadEnd, RowOutcome, RowSink,
    SkipReason,
};
use helenus_engine::{Database, Error, ReadRequest};
use helenus_host::Host;
use helenus_host::sim::Machine;
use helenus_model::byte_comparable;
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use std::sync::Arc;
use support::*;

const WAITS: ReadRequest<'static> =
    ReadRequest { may_block: true, deadline_ns: None, cancelled: None, bypasses_cache: false };
const TRIES: ReadRequest<'static> =
    ReadRequest { may_block: false, deadline_ns: None, cancelled: None, bypasses_cache: false };

fn read(
    database: &Database,
    command: &ReadCommand,
    request: ReadRequest<'_>,
    sink: &mut dyn RowSink,
) -> (helenus_engine::Result<ReadEnd>, Probe) {
    let mut probe = Probe::default();
    let view = database.view(&command.table).unwrap();
    let end = database.read(command, &view, request, sink, Some(&mut probe));
    (end, probe)
}

fn load(database: &Database, table: &Arc<Table>, key: &str, rows: i32, value: &str) {
    for first in (0..rows).step_by(500) {
        let write = (first..(first + 500).min(rows))
            .fold(Write::default(), |write, c| write.insert(table, c, value, 10));
        write.to(database, &table.name, key).wait().unwrap();
    }
}

#[test]
fn a_page_over_garbage_ends_by_its_tombstones_and_the_pages_together_give_the_whole() {
    let machine = Machine::new(1);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    for first in (0..25_000).step_by(1000) {
        let write = (first..first + 1000).fold(Write::default(), |write, c| write.delete_row(c, 10));
        write.to(&database, "t", "a").wait().unwrap();
    }
    Write::default().insert(&t, 30_000, "alive", 11).to(&database, "t", "a").wait().unwrap();
    for flushed in [false, true] {
        if flushed {
            database.flush(t.id).unwrap();
        }
        let mut command = command(&database, "t", "a");
        command.page_rows = Some(100);
        let (mut pages, mut rows) = (Vec::new(), Rows::default());
        loop {
            let (end, probe) = read(&database, &command, WAITS, &mut rows);
            pages.push((probe.rows, probe.tombstones));
            match end.unwrap() {
                ReadEnd::Complete => break,
                ReadEnd::Page(at) => command.resume = Some(at),
            }
        }
        assert_eq!(pages, [(0, 10_000), (0, 10_000), (1, 5_000)], "flushed {flushed}");
        assert_eq!(rows.rows.len(), 1);
        // A read without pages returns everything.
        command.page_rows = None;
        command.resume = None;
        let end = read(&database, &command, WAITS, &mut Rows::default()).0.unwrap();
        assert_eq!(end, ReadEnd::Complete);
    }
    database.close().unwrap();
    machine.end_tasks();
}

/// Reads page by page. Returns the rows and tombstones of each page.
fn pages(database: &Database, command: &ReadCommand, rows: &mut Rows) -> Vec<(u64, u64)> {
    let (mut command, mut pages) = (command.clone(), Vec::new());
    loop {
        assert!(pages.len() < 100, "{pages:?}");
        let (end, probe) = read(database, &command, WAITS, rows);
        pages.push((probe.rows, probe.tombstones));
        match end.unwrap() {
            ReadEnd::Complete => return pages,
            ReadEnd::Page(at) => {
                // A paging state names a row.
                if let Some(position) = &at.clustering {
                    byte_comparable::decode_clustering(position, &command.table.clustering).unwrap();
                }
                command.resume = Some(at);
            }
        }
    }
}

/// Deletes 25,000 ranges of rows: `apart` leaves rows between them that nothing deletes.
fn many_ranges(database: &Database, key: &str, apart: i32, (start, end): (bool, bool)) {
    for first in (0..25_000).step_by(1000) {
        let mut write = Write::default();
        for c in first..first + 1000 {
            let (from, to) = ((c * apart).to_be_bytes(), (c * apart + 1).to_be_bytes());
            let timestamp_us = 10 + i64::from(c % 2);
            write.changes.delete_range((&[Some(&from)], start), (&[Some(&to)], end), deletion(timestamp_us));
        }
        write.to(database, "t", key).wait().unwrap();
    }
}

#[test]
fn a_page_over_range_tombstones_ends_between_two_of_them_in_either_direction() {
    let machine = Machine::new(1);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    // `>= c AND < c + 1`, with and without rows between; `> c AND <= c + 1`; `>= c AND <= c + 1`.
    let kinds =
        [("a", 3, (true, true)), ("b", 1, (true, true)), ("c", 3, (false, false)), ("d", 3, (true, false))];
    for (key, apart, sides) in kinds {
        many_ranges(&database, key, apart, sides);
        Write::default().insert(&t, 60_001, "alive", 99).to(&database, "t", key).wait().unwrap();
    }
    for (flushed, reversed) in [(false, false), (false, true), (true, false), (true, true)] {
        if flushed {
            database.flush(t.id).unwrap();
        }
        for (key, ..) in kinds {
            let mut command = command(&database, "t", key);
            (command.page_rows, command.reversed) = (Some(100), reversed);
            let mut rows = Rows::default();
            let pages = pages(&database, &command, &mut rows);
            let wanted = if key == "b" { 3 } else { 6 };
            assert!(
                pages.len().abs_diff(wanted) <= 1,
                "{key}, reversed {reversed}, flushed {flushed}: {pages:?}"
            );
            assert!(pages.iter().all(|page| page.1 <= 10_001), "{pages:?}");
            assert_eq!(rows.rows.len(), 1, "{pages:?}");
            command.page_rows = None;
            assert_eq!(read(&database, &command, WAITS, &mut Rows::default()).0.unwrap(), ReadEnd::Complete);
        }
    }
    database.close().unwrap();
    machine.end_tasks();
}

/// A table with partitions that have a static row and much that is dead before their first row: range tombstones (`a`, and in
/// an SSTable `d`), and rows that a deletion hides (`b`, and in an SSTable `c`). A row follows if it `is_alive`.
fn queues_with_static_rows(host: &Host, is_alive: bool) -> Arc<Database> {
    let database = open(host);
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    let hidden: i32 = 220_000;
    load(&database, &t, "c", hidden, "");
    many_ranges(&database, "d", 3, (true, true));
    database.flush(t.id).unwrap();
    load(&database, &t, "b", hidden, "");
    many_ranges(&database, "a", 3, (true, true));
    for key in ["b", "c"] {
        Write::default().delete_range(0, hidden, 20).to(&database, "t", key).wait().unwrap();
    }
    for key in ["a", "b", "c", "d"] {
        let mut write = Write::default().set_static(&t, "static", 30);
        if is_alive {
            write = write.insert(&t, hidden + 1, "alive", 30);
        }
        write.to(&database, "t", key).wait().unwrap();
    }
    database
}

#[test]
fn a_static_row_alone_is_given_though_a_page_would_have_ended_before() {
    for is_alive in [false, true] {
        let machine = Machine::new(1);
        let database = queues_with_static_rows(&machine.host(), is_alive);
        for (key, reversed) in ["a", "b", "c", "d"].into_iter().flat_map(|key| [(key, false), (key, true)]) {
            // Read by its key, and in a range of partitions.
            let by_key = command(&database, "t", key).partitions;
            let start = PartitionKey::new(key.as_bytes().to_vec()).decorated;
            let in_range = Partitions::Range(KeyRange { end: [&start[..], &[0]].concat(), start });
            for partitions in [by_key, in_range] {
                let mut command = command(&database, "t", key);
                (command.page_rows, command.reversed, command.partitions) = (Some(100), reversed, partitions);
                let mut rows = Rows::default();
                let pages = pages(&database, &command, &mut rows);
                let what = format!("{key}, reversed {reversed}, alive {is_alive}: {pages:?}");
                assert!(pages.len() > 1 && pages.iter().all(|page| page.1 <= 10_001), "{what}");
                let alone = (!is_alive).then(|| (key.to_owned(), Some("static".to_owned())));
                assert_eq!(rows.empty, Vec::from_iter(alone), "{what}");
                assert_eq!(rows.rows.len(), usize::from(is_alive), "{what}");
            }
        }
        database.close().unwrap();
        machine.end_tasks();
    }
}

#[test]
fn a_read_over_rows_that_a_deletion_hides_looks_at_its_deadline_and_ends_its_pages() {
    let machine = Machine::new(1);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    let hidden: i32 = 220_000;
    // The rows are in the memtable of the deletion, or in an SSTable.
    for (key, flushed) in [("a", false), ("b", true)] {
        load(&database, &t, key, hidden, "");
        if flushed {
            database.flush(t.id).unwrap();
        }
        let write = Write::default().delete_range(0, hidden, 20).insert(&t, hidden + 1, "alive", 30);
        write.to(&database, "t", key).wait().unwrap();
        for reversed in [false, true] {
            let mut command = command(&database, "t", key);
            (command.page_rows, command.reversed) = (Some(100), reversed);
            let mut rows = Rows::default();
            let pages = pages(&database, &command, &mut rows);
            assert_eq!((pages.len(), rows.rows.len()), (2, 1), "{pages:?}");
            let cancelled = std::sync::atomic::AtomicBool::new(true);
            let request = ReadRequest { cancelled: Some(&cancelled), ..WAITS };
            command.page_rows = None;
            let end = read(&database, &command, request, &mut Rows::default()).0;
            assert!(matches!(end, Err(Error::Cancelled)), "{end:?}");
        }
    }
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn a_read_of_many_keys_looks_at_its_deadline_between_them() {
    let machine = Machine::new(1);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    load(&database, &t, "key 7", 1, "value");
    let mut command = command(&database, "t", "key 7");
    command.partitions =
        Partitions::Keys((0..1000).map(|key| PartitionKey::new(format!("key {key}").into_bytes())).collect());
    let cancelled = std::sync::atomic::AtomicBool::new(true);
    let request = ReadRequest { cancelled: Some(&cancelled), ..WAITS };
    let end = read(&database, &command, request, &mut Rows::default()).0;
    assert!(matches!(end, Err(Error::Cancelled)), "{end:?}");
    database.close().unwrap();
    machine.end_tasks();
}

/// A sink that is full after `room` rows.
struct Small {
    rows: Rows,
    room: usize,
    in_runs: bool,
}

impl RowSink for Small {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        self.rows.partition(key, static_row)
    }
    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        self.rows.row(row)
    }
    fn partition_end(&mut self, rows: u64) -> helenus_engine::Result<RowOutcome> {
        self.rows.partition_end(rows)
    }
    fn batches(&mut self) -> Option<&mut dyn BatchSink> {
        if self.in_runs { self.rows.batches() } else { None }
    }
    fn is_full(&self) -> bool {
        self.rows.rows.len() >= self.room
    }
}

#[test]
fn a_page_ends_when_the_answer_is_full_and_the_next_goes_on_behind_it() {
    let machine = Machine::new(2);
    let database = open(&machine.host());
    for (name, id, descending) in [("t", 1, false), ("d", 2, true)] {
        create(&database, vec![table(name, id, descending)]);
        let t = table_of(&database, name);
        load(&database, &t, "a", 1000, "value");
        database.flush(t.id).unwrap();
        for (reversed, in_runs) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut command = command(&database, name, "a");
            (command.page_rows, command.reversed) = (Some(5000), reversed);
            let mut sink = Small { rows: Rows::default(), room: 0, in_runs };
            loop {
                sink.room = sink.rows.rows.len() + 137;
                match read(&database, &command, WAITS, &mut sink).0.unwrap() {
                    ReadEnd::Complete => break,
                    ReadEnd::Page(at) => {
                        let beyond = sink.rows.rows.len() - sink.room;
                        assert!(beyond == 0 || in_runs, "{beyond} rows more than there is room for");
                        command.resume = Some(at);
                    }
                }
            }
            let found: Vec<i32> = sink.rows.rows.iter().map(|row| row.2).collect();
            let mut wanted: Vec<i32> = (0..1000).collect();
            if descending != reversed {
                wanted.reverse();
            }
            assert_eq!(found, wanted, "{name}, reversed {reversed}, in runs {in_runs}");
        }
    }
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn single_reads_keep_their_blocks_while_scans_pass_by() {
    let machine = Machine::new(3);
    let database = open_with(&machine.host(), |options| options.memory.cache = 1 << 20);
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    // About 4 MiB: four times the cache.
    let value = "x".repeat(1000);
    for key in ["a", "b", "c", "d"] {
        load(&database, &t, key, 1000, &value);
    }
    database.flush(t.id).unwrap();
    let mut one = command(&database, "t", "b");
    one.filter = Arc::new(ClusteringFilter::Names(vec![row_key(&t, 500)]));
    let passing = ReadRequest { bypasses_cache: true, ..WAITS };
    for request in [passing, passing, WAITS] {
        let cold = read(&database, &one, request, &mut Rows::default()).1.touched;
        assert!(cold.blocks_read > 0, "a read that bypasses the cache leaves nothing in it");
    }
    let mut scan = command(&database, "t", "a");
    scan.partitions = Partitions::Range(KeyRange::all());
    for _ in 0..3 {
        let mut rows = Rows::default();
        let touched = read(&database, &scan, WAITS, &mut rows).1.touched;
        assert_eq!(rows.rows.len(), 4000);
        assert!(touched.bytes_read > 0, "a scan leaves nothing in the cache");
        let again = read(&database, &one, WAITS, &mut Rows::default()).1.touched;
        assert_eq!((again.blocks_read, again.index_pages_read), (0, 0));
    }
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn a_scan_reads_each_block_about_once_and_asks_no_index_for_each_partition() {
    let machine = Machine::new(7);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    let value = "x".repeat(100);
    for sstable in 0..3 {
        for key in (0..3000).filter(|key| (key + sstable) % 3 > 0) {
            Write::default()
                .insert(&t, 1, &value, 10 + sstable)
                .to(&database, "t", &key.to_string())
                .wait()
                .unwrap();
        }
        database.flush(t.id).unwrap();
    }
    let bytes: u64 = database.view(&t).unwrap().sstables.iter().map(|table| table.uncompressed_bytes()).sum();
    let (blocks, mut all) = (bytes.div_ceil(4 << 10), command(&database, "t", "a"));
    all.partitions = Partitions::Range(KeyRange::all());
    let mut rows = Rows::default();
    let touched = read(&database, &all, WAITS, &mut rows).1.touched;
    assert_eq!(rows.rows.len(), 3000);
    assert!(touched.blocks_read + touched.blocks_cached <= blocks, "{touched:?} of {blocks} blocks");
    assert!(touched.index_nodes < 100, "{touched:?}");

    // A page in the midst of a wide partition begins there, not at its first row.
    load(&database, &t, "wide", 5000, &value);
    database.flush(t.id).unwrap();
    all.page_rows = Some(100);
    let (mut rows, mut decoded) = (Rows::default(), 0);
    loop {
        let (end, probe) = read(&database, &all, WAITS, &mut rows);
        decoded += probe.touched.rows_decoded;
        match end.unwrap() {
            ReadEnd::Complete => break,
            ReadEnd::Page(at) => all.resume = Some(at),
        }
    }
    assert_eq!(rows.rows.len(), 8000);
    assert!(decoded < 3 * 8000, "{decoded} rows decoded");
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn a_row_by_name_has_its_chunk_decompressed_up_to_it_and_longer_ones_are_read_whole() {
    let machine = Machine::new(4);
    for cache in [0, 64 << 20] {
        let database = open_with(&machine.host(), |options| {
            options.memory.cache = cache;
            options.dir = format!("/cache-{cache}").into();
        });
        create(&database, vec![table("t", 1, false)]);
        let t = table_of(&database, "t");
        // Some rows end after the few kilobytes that a read expects to need, and some are longer than a chunk.
        let value = |c: i32| format!("{c} is the row of {}", "x".repeat((c * c % 311 * 70) as usize));
        let write = |writes: Write, c| writes.insert(&t, c, &value(c), 10);
        (0..300).fold(Write::default(), write).to(&database, "t", "a").wait().unwrap();
        database.flush(t.id).unwrap();
        let mut fewest = u64::MAX;
        for round in 0..2 {
            for c in (0..300).map(|at| at * 47 % 300) {
                let mut one = command(&database, "t", "a");
                one.filter = Arc::new(ClusteringFilter::Names(vec![row_key(&t, c)]));
                one.reversed = (c + round) % 2 == 0;
                let mut rows = Rows::default();
                let (end, probe) = read(&database, &one, WAITS, &mut rows);
                assert_eq!(end.unwrap(), ReadEnd::Complete);
                let found: Vec<_> =
                    rows.rows.iter().map(|row| (row.2, row.3.clone().unwrap_or_default())).collect();
                assert_eq!(found, [(c, value(c))]);
                let bytes = probe.touched.bytes_decompressed;
                fewest = if bytes > 0 { fewest.min(bytes) } else { fewest };
            }
        }
        assert!(fewest < 8 << 10, "no chunk was decompressed in part: {fewest}");
        let mut rows = Rows::default();
        read(&database, &command(&database, "t", "a"), WAITS, &mut rows).0.unwrap();
        assert_eq!(rows.rows.len(), 300);
        assert!(rows.rows.iter().all(|row| row.3.as_deref() == Some(&*value(row.2))));
        database.close().unwrap();
    }
    machine.end_tasks();
}

#[test]
fn a_first_try_never_waits_and_the_second_reads_only_what_the_first_missed() {
    let machine = Machine::new(5);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    load(&database, &t, "a", 5000, "value");
    database.flush(t.id).unwrap();
    let slice = |from: i32| {
        let mut slice = command(&database, "t", "a");
        let bounds = Slice { start: row_key(&t, from), end: row_key(&t, from + 100) };
        slice.filter = Arc::new(ClusteringFilter::Slices(vec![bounds]));
        slice
    };
    // The data is in the page cache: a read that may not block reads the file without waiting.
    let (end, probe) = read(&database, &slice(100), TRIES, &mut Rows::default());
    assert_eq!(end.unwrap(), ReadEnd::Complete);
    assert!(probe.touched.blocks_read > 0);
    // The data is not in memory: reads of compressed chunks are refused like those of index pages.
    machine.set_cold_reads(100);
    let refused = read(&database, &slice(4000), TRIES, &mut Rows::default()).0;
    assert!(matches!(refused, Err(Error::WouldBlock)));
    let mut rows = Rows::default();
    let (end, waited) = read(&database, &slice(4000), WAITS, &mut rows);
    assert_eq!((end.unwrap(), rows.rows.len()), (ReadEnd::Complete, 100));
    // The first slice has read the index, which stays cached.
    assert_eq!(waited.touched.index_pages_read, 0);
    assert!(waited.touched.blocks_read > 0);
    // From then on, a read that may not block finds the data in the block cache.
    let (end, probe) = read(&database, &slice(4000), TRIES, &mut Rows::default());
    assert_eq!((end.unwrap(), probe.touched.blocks_read), (ReadEnd::Complete, 0));
    machine.set_cold_reads(0);
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn memory_that_a_read_leaves_carries_nothing_into_the_next() {
    let machine = Machine::new(4);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false), table("d", 2, true)]);
    let (t, d) = (table_of(&database, "t"), table_of(&database, "d"));
    Write::default().set_static(&t, "static", 10).to(&database, "t", "a").wait().unwrap();
    load(&database, &t, "a", 300, "old");
    database.flush(t.id).unwrap();
    Write::default().delete_range(10, 290, 20).to(&database, "t", "a").wait().unwrap();
    load(&database, &d, "a", 50, "other");
    // A merge of memtable and SSTable with a range deletion and a static row, then a memtable alone, then a missing
    // partition, then a failure in the middle.
    for _ in 0..3 {
        assert_eq!(rows_of(&database, "t", "a").len(), 10 + 9);
        let rows = run(&database, &command(&database, "d", "a"));
        assert_eq!(rows.rows.len(), 50);
        assert!(rows.rows.iter().all(|row| row.1.is_none()), "no static row of the table before");
        assert_eq!(rows_of(&database, "d", "b"), []);
        let cancelled = std::sync::atomic::AtomicBool::new(true);
        let request = ReadRequest { cancelled: Some(&cancelled), ..WAITS };
        let mut all = command(&database, "t", "a");
        all.partitions = Partitions::Range(KeyRange::all());
        let refused = read(&database, &all, request, &mut Rows::default()).0;
        assert!(matches!(refused, Err(Error::Cancelled)));
    }
    database.close().unwrap();
    machine.end_tasks();
}

/// A read of one row.
fn one_row(database: &Database, table: &Arc<Table>, c: i32) -> ReadCommand {
    let mut one = command(database, &table.name, "a");
    one.filter = Arc::new(ClusteringFilter::Names(vec![row_key(table, c)]));
    one.statics = false;
    one
}

/// The values of `v` that a read of one row returns, the SSTables it read, and those it skipped as older than the row.
fn row_and_sstables(database: &Database, command: &ReadCommand) -> (Vec<Option<String>>, u64, u64) {
    let mut rows = Rows::default();
    let (end, probe) = read(database, command, WAITS, &mut rows);
    assert_eq!(end.unwrap(), ReadEnd::Complete);
    let values = rows.rows.into_iter().map(|(.., v)| v).collect();
    (values, probe.sstables, probe.skipped(SkipReason::Older))
}

/// An INSERT of `v` and `w` both.
fn whole(table: &Table, c: i32, v: &str, timestamp_us: i64) -> Write {
    Write::default().insert(table, c, v, timestamp_us).set(table, (c, "w"), "w", timestamp_us)
}

#[test]
fn a_row_whose_newest_cells_are_all_there_asks_no_older_sstable() {
    let machine = Machine::new(6);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    let write = |write: Write| {
        write.to(&database, "t", "a").wait().unwrap();
        database.flush(t.id).unwrap();
    };
    // Row 1 is overwritten twice, row 2 in part, row 3 is deleted, and row 4 is as old as the data in older SSTables.
    for (timestamp_us, v) in [(10, "oldest"), (20, "old")] {
        let rows = (1..=4).map(|c| whole(&t, c, v, timestamp_us));
        rows.for_each(|row| row.to(&database, "t", "a").wait().unwrap());
        database.flush(t.id).unwrap();
    }
    whole(&t, 1, "new", 30).to(&database, "t", "a").wait().unwrap();
    Write::default().insert(&t, 2, "new", 30).to(&database, "t", "a").wait().unwrap();
    Write::default().delete_row(3, 30).to(&database, "t", "a").wait().unwrap();
    write(whole(&t, 4, "same", 20));
    let new = || vec![Some("new".to_owned())];
    assert_eq!(row_and_sstables(&database, &one_row(&database, &t, 1)), (new(), 1, 2));
    assert_eq!(row_and_sstables(&database, &one_row(&database, &t, 2)), (new(), 2, 1), "w is further down");
    assert_eq!(row_and_sstables(&database, &one_row(&database, &t, 3)), (vec![], 1, 2));
    let same = vec![Some("same".to_owned())];
    assert_eq!(
        row_and_sstables(&database, &one_row(&database, &t, 4)),
        (same, 2, 1),
        "a tie is decided by value"
    );
    let only_v = Some(t.column("v").unwrap().id).into_iter().collect();
    let only_v = ReadCommand { columns: Some(only_v), ..one_row(&database, &t, 2) };
    assert_eq!(row_and_sstables(&database, &only_v), (new(), 1, 2), "w is not asked for");
    // A static column is requested, and only the oldest SSTable may contain it.
    let with_static = ReadCommand { statics: true, ..one_row(&database, &t, 1) };
    assert_eq!(row_and_sstables(&database, &with_static), (new(), 3, 0));
    // The memtable has the row: no SSTable is read.
    whole(&t, 1, "newest", 40).to(&database, "t", "a").wait().unwrap();
    let newest = vec![Some("newest".to_owned())];
    assert_eq!(row_and_sstables(&database, &one_row(&database, &t, 1)), (newest.clone(), 0, 3));
    // A row after a range tombstone marker counts as unknown; the newest SSTable determines it.
    Write::default().delete_range(0, 3, 5).to(&database, "t", "a").wait().unwrap();
    assert_eq!(row_and_sstables(&database, &one_row(&database, &t, 1)), (newest, 1, 2));
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn a_row_that_only_expired_or_deleted_cells_are_known_of_is_looked_for_further_down() {
    let machine = Machine::new(7);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    // The newer SSTable has neither the row marker nor the third column: only the older one shows that the row is
    // alive.
    Write::default().insert(&t, 1, "old", 10).to(&database, "t", "a").wait().unwrap();
    database.flush(t.id).unwrap();
    let unset = ["v", "w"].iter().fold(Write::default(), |write, column| write.unset(&t, (1, column), 20));
    unset.to(&database, "t", "a").wait().unwrap();
    database.flush(t.id).unwrap();
    let (rows, asked, older) = row_and_sstables(&database, &one_row(&database, &t, 1));
    assert_eq!((rows.len(), asked, older), (1, 2, 0), "the row lives by its marker");
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn a_range_deletion_before_1970_is_kept_in_a_wide_partition_and_found_again() {
    let machine = Machine::new(8);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    // Row 1999 is older than the deletion, all others are newer. The row index has many blocks.
    load(&database, &t, "a", 1_999, &"x".repeat(200));
    Write::default().insert(&t, 1_999, "hidden", -10).to(&database, "t", "a").wait().unwrap();
    Write::default().delete_range(100, 3_000, -5).to(&database, "t", "a").wait().unwrap();
    for _ in 0..2 {
        assert_eq!(rows_of(&database, "t", "a").len(), 1_999);
        for c in [50, 150, 1_998] {
            assert_eq!(run(&database, &one_row(&database, &t, c)).rows.len(), 1, "row {c}");
        }
        assert_eq!(run(&database, &one_row(&database, &t, 1_999)).rows.len(), 0);
        database.flush(t.id).unwrap();
    }
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn a_limited_slice_has_chunks_decompressed_as_far_as_it_goes_and_comes_back_to_none() {
    let machine = Machine::new(6);
    for cache in [0, 64 << 20] {
        let database = open_with(&machine.host(), |options| {
            options.memory.cache = cache;
            options.dir = format!("/cache-{cache}").into();
        });
        create(&database, vec![table("even", 1, false), table("odd", 1, false)]);
        // Rows of equal size, and rows whose mean size says nothing about a single row.
        let even = |c: i32| format!("{c:>40}");
        let odd = |c: i32| format!("{c} is the row of {}", "x".repeat((c * c % 311 * 30) as usize));
        for (name, value) in [("even", &even as &dyn Fn(i32) -> String), ("odd", &odd)] {
            let t = table_of(&database, name);
            let write = |writes: Write, c| writes.insert(&t, c, &value(c), 10);
            (0..3000).fold(Write::default(), write).to(&database, name, "a").wait().unwrap();
            database.flush(t.id).unwrap();
            let mut fewest = u64::MAX;
            for from in (0..300).map(|at| at * 1009 % 2900) {
                for reversed in [false, true] {
                    let mut slice = command(&database, name, "a");
                    let (start, end) = match reversed {
                        false => (row_key(&t, from), row_key(&t, i32::MAX)),
                        true => (row_key(&t, i32::MIN), row_key(&t, from + 50)),
                    };
                    slice.filter = Arc::new(ClusteringFilter::Slices(vec![Slice { start, end }]));
                    slice.reversed = reversed;
                    slice.statics = false;
                    slice.limits.rows = 50;
                    let mut rows = Rows::default();
                    let (end, probe) = read(&database, &slice, WAITS, &mut rows);
                    assert_eq!(end.unwrap(), ReadEnd::Complete);
                    let found: Vec<_> =
                        rows.rows.iter().map(|row| (row.2, row.3.clone().unwrap_or_default())).collect();
                    let mut expected: Vec<_> =
                        (from..).take(50).filter(|c| *c < 3000).map(|c| (c, value(c))).collect();
                    if reversed {
                        expected = (0..from + 50).rev().take(50).map(|c| (c, value(c))).collect();
                    }
                    assert_eq!(found, expected, "{name} from {from}, reversed {reversed}");
                    let touched = probe.touched;
                    if name == "even" && cache == 0 {
                        assert!(touched.blocks_decompressed <= 2, "reversed {reversed}: {touched:?}");
                        fewest = fewest.min(touched.bytes_decompressed);
                    }
                }
            }
            assert!(cache > 0 || name == "odd" || fewest < 12 << 10, "nothing was left out: {fewest}");
        }
        database.close().unwrap();
    }
    machine.end_tasks();
}

#[test]
fn names_near_each_other_are_found_whatever_lies_between_them() {
    let machine = Machine::new(7);
    let database = open(&machine.host());
    create(&database, vec![table("t", 1, false)]);
    let t = table_of(&database, "t");
    // Every third row is missing; ranges and rows are deleted.
    let is_there = |c: i32| c % 3 != 1 && !(700..760).contains(&c) && c != 1200 && c != 1500;
    let write = |writes: Write, c| if c % 3 == 1 { writes } else { writes.insert(&t, c, "value", 10) };
    let all = (0..3000).fold(Write::default(), write);
    all.delete_range(700, 759, 11)
        .delete_range(1200, 1200, 11)
        .delete_row(1500, 11)
        .to(&database, "t", "a")
        .wait()
        .unwrap();
    database.flush(t.id).unwrap();
    for step in [1, 2, 5, 40, 333] {
        for from in (0..2900).step_by(37) {
            for reversed in [false, true] {
                // Rows near each other, then some far away.
                let names = (0..20).map(|at| from + at * step).chain([2950, 2951, 2953]);
                let mut names: Vec<i32> = names.filter(|c| *c < 3000).collect();
                names.sort_unstable();
                names.dedup();
                let mut by_name = command(&database, "t", "a");
                let keys = names.iter().map(|c| row_key(&t, *c)).collect();
                by_name.filter = Arc::new(ClusteringFilter::Names(keys));
                by_name.reversed = reversed;
                let mut rows = Rows::default();
                read(&database, &by_name, WAITS, &mut rows).0.unwrap();
                let mut found: Vec<i32> = rows.rows.iter().map(|row| row.2).collect();
                if reversed {
                    found.reverse();
                }
                names.retain(|c| is_there(*c));
                assert_eq!(found, names, "from {from} by {step}, reversed {reversed}");
            }
        }
    }
    database.close().unwrap();
    machine.end_tasks();
}

/// A partition of 4,000 rows in one SSTable, with range deletions at arbitrary positions, a static row, and an older
/// partition deletion.
fn wide_with_deletions(database: &Database, name: &str) {
    let t = table_of(database, name);
    Write::default().delete_partition(3).to(database, name, "a").wait().unwrap();
    Write::default().set_static(&t, "static", 9).to(database, name, "a").wait().unwrap();
    for c in (0..4_000).step_by(170) {
        Write::default().delete_range(c, c + 90, 5).to(database, name, "a").wait().unwrap();
    }
    load(database, &t, "a", 4_000, &"value ".repeat(8));
    for c in (50..4_000).step_by(390) {
        Write::default().delete_range(c, c + 75, 20).to(database, name, "a").wait().unwrap();
    }
    database.flush(t.id).unwrap();
    // This row is hidden by the partition deletion, which a read must take from the SSTable.
    Write::default().insert(&t, 5_000, "deleted", 2).to(database, name, "a").wait().unwrap();
}

/// Reads of slices and names of that partition, in both directions, with and without the static row.
fn many_reads(database: &Database, name: &str) -> Vec<ReadCommand> {
    let t = table_of(database, name);
    let mut asked = Vec::new();
    for at in 0..60 {
        let from = at * 7919 % 4_000;
        for reversed in [false, true] {
            let mut slice = command(database, name, "a");
            let (mut start, mut end) = (row_key(&t, from), row_key(&t, from + 130));
            if start > end {
                std::mem::swap(&mut start, &mut end);
            }
            slice.filter = Arc::new(ClusteringFilter::Slices(vec![Slice { start, end }]));
            (slice.reversed, slice.page_rows) = (reversed, (at % 3 == 0).then_some(20));
            let mut names = command(database, name, "a");
            let mut keys: Vec<Vec<u8>> =
                (0..12).map(|step| row_key(&t, (from + step * 337) % 5_100)).collect();
            keys.sort();
            keys.dedup();
            names.filter = Arc::new(ClusteringFilter::Names(keys));
            names.reversed = reversed;
            (slice.statics, names.statics) = (at % 2 == 0, at % 4 < 2);
            asked.extend([slice, names]);
        }
    }
    let mut last = command(database, name, "a");
    last.filter = Arc::new(ClusteringFilter::Names(vec![row_key(&t, 5_000)]));
    asked.push(last);
    asked
}

#[test]
fn a_partition_whose_row_index_is_in_memory_gives_the_same_rows() {
    let machine = Machine::new(6);
    // Without memory for the row index, every read walks the trie.
    let [without, with] = [0, 64 << 20].map(|cache| {
        let database = open_with(&machine.host(), |options| {
            options.memory.cache = cache;
            options.dir = format!("/cache-{cache}").into();
        });
        create(&database, vec![table("t", 1, false), table("d", 2, true)]);
        ["t", "d"].iter().for_each(|name| wide_with_deletions(&database, name));
        database
    });
    for name in ["t", "d"] {
        let ask = |database: &Database| -> Vec<_> {
            let ask = |command: &ReadCommand| {
                let mut rows = Rows::default();
                let (end, probe) = read(database, command, WAITS, &mut rows);
                (rows.rows, rows.empty, end.unwrap(), probe.touched)
            };
            many_reads(database, name).iter().map(ask).collect()
        };
        let (walked, found) = (ask(&without), ask(&with));
        assert!(walked.iter().all(|read| read.3.index_nodes > 0 && read.3.index_blocks_cached == 0));
        for (number, (one, other)) in walked.iter().zip(&found).enumerate() {
            assert_eq!((&one.0, &one.1, &one.2), (&other.0, &other.1, &other.2), "{name}, read {number}");
        }
        assert_eq!(
            walked.last().map(|read| read.0.len()),
            Some(0),
            "a row older than the partition's deletion"
        );
        let from_memory = found.iter().filter(|read| read.3.index_blocks_cached > 0).count();
        assert!(from_memory > 200, "{from_memory} of {} reads", found.len());
    }
    for database in [without, with] {
        database.close().unwrap();
    }
    machine.end_tasks();
}
