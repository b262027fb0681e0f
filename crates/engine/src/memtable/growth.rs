//! Counts memory and steps of work for lists of the memtable that grow: twice the writes take about twice as much. And
//! checks that what is merged on the way gives the answers of a list that is never merged, to readers of old views too.

use super::{MemoryAccount, Memtable, MemtableCursor, Selected, work};
use crate::check_mutation::check;
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::mutation::{Changes, PartitionUpdate};
use helenus_model::packed::{self, pack};
use helenus_model::reconcile::merge_rows;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::token::Token;
use helenus_model::types::CqlType;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::sync::Arc;
use uuid::Uuid;

const KEY: &[u8] = b"key";

/// `k text, a int, b int, s map static, v text, m map, l list, PRIMARY KEY (k, a, b)`; the second clustering column may
/// be descending.
fn table(is_reversed: bool) -> Arc<Table> {
    let map = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Text), frozen: false };
    let list = CqlType::List { element: Arc::new(CqlType::Text), frozen: false };
    let mut second = Column::new("b", ColumnKind::Clustering, CqlType::Int);
    (second.position, second.reversed) = (1, is_reversed);
    let columns = [
        Column::new("k", ColumnKind::PartitionKey, CqlType::Text),
        Column::new("a", ColumnKind::Clustering, CqlType::Int),
        second,
        Column::new("s", ColumnKind::Static, map.clone()),
        Column::new("v", ColumnKind::Regular, CqlType::Text),
        Column::new("l", ColumnKind::Regular, list),
        Column::new("m", ColumnKind::Regular, map),
    ];
    Arc::new(Table::new(("ks", "t"), TableId(Uuid::from_u128(1)), columns))
}

struct Written {
    table: Arc<Table>,
    memtable: Arc<Memtable>,
}

impl Written {
    fn new(table: Arc<Table>) -> Written {
        Written { table, memtable: Arc::new(Memtable::new(&MemoryAccount::default())) }
    }

    fn apply(&self, changes: Changes) {
        let update = PartitionUpdate { table: self.table.clone(), key: KEY.to_vec(), changes };
        let extent = check(std::iter::once(&update)).unwrap();
        self.memtable.apply(&update, Token::of_key(KEY), &extent);
    }

    fn sequence(&self) -> u64 {
        self.memtable.partition_of_key(Token::of_key(KEY), KEY).map_or(0, |found| found.content().sequence())
    }

    fn cursor(&self, sequence: u64, reversed: bool) -> MemtableCursor {
        let filter = &Arc::new(ClusteringFilter::Slices(vec![Slice::all()]));
        let selected = Selected { sequence, table: &self.table, filter, reversed };
        let partition = self.memtable.partition_of_key(Token::of_key(KEY), KEY).unwrap();
        MemtableCursor::new(&self.memtable, partition, &selected, Box::default())
    }

    /// Each row packed, without its clustering.
    fn rows(&self, sequence: u64) -> Vec<Vec<u8>> {
        let mut cursor = self.cursor(sequence, false);
        let mut rows = Vec::new();
        while cursor.advance(&mut ()).unwrap() {
            if let Unfiltered::Row(row) = <MemtableCursor as Source<()>>::current(&cursor) {
                rows.push(packed_row(row));
            }
        }
        rows
    }
}

fn packed_row(row: RowView<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    pack(row, &mut out);
    out
}

fn random(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

/// A range of rows: from one value of `a` to another, and the timestamp.
type Drawn = (Option<usize>, Option<usize>, i64);

fn delete(changes: &mut Changes, (from, to, timestamp_us): Drawn) {
    let bytes = |value: Option<usize>| value.map(|value| (value as i32).to_be_bytes());
    let (from, to) = (bytes(from), bytes(to));
    let start: Vec<_> = from.iter().map(|bytes| Some(&bytes[..])).collect();
    let end: Vec<_> = to.iter().map(|bytes| Some(&bytes[..])).collect();
    let is_open = end.is_empty();
    changes.delete_range((&start, true), (&end, !is_open), DeletionTime { timestamp_us, local_s: 1 });
}

fn insert(changes: &mut Changes, a: usize, timestamp_us: i64) {
    let a = (a as i32).to_be_bytes();
    let live = (Liveness::at(timestamp_us), DeletionTime::LIVE);
    changes.row([Some(&a[..]), Some(&a[..])].into_iter(), live, &[], |_| {});
}

/// The n-th of `of` range deletions.
type Pattern = fn(usize, usize) -> Drawn;

const PATTERNS: &[(&str, Pattern)] = &[
    ("prefixes that grow", |n, _| (None, Some(n + 1), n as i64)),
    ("prefixes that grow, with one timestamp", |n, _| (None, Some(n + 1), 7)),
    ("prefixes that grow, later ones weaker", |n, of| (None, Some(n + 1), (of - n) as i64)),
    ("prefixes that shrink", |n, of| (None, Some(of - n), n as i64)),
    ("prefixes that shrink, later ones weaker", |n, of| (None, Some(of - n), (of - n) as i64)),
    ("ends that grow", |n, of| (Some(of - n), None, n as i64)),
    ("nested, later ones wider", |n, of| (Some(of - n), Some(of + n + 1), n as i64)),
    ("nested, later ones wider and weaker", |n, of| (Some(of - n), Some(of + n + 1), (of - n) as i64)),
    ("nested, later ones narrower", |n, of| (Some(n), Some(2 * of - n), n as i64)),
    ("overlapping", |n, _| (Some(n), Some(n + 50), n as i64)),
    ("overlapping, later ones weaker", |n, of| (Some(n), Some(n + 50), (of - n) as i64)),
    ("apart", |n, _| (Some(2 * n), Some(2 * n + 1), n as i64)),
    ("apart, downwards", |n, of| (Some(2 * (of - n)), Some(2 * (of - n) + 1), 7)),
    ("anywhere", |n, of| {
        let mut state = n as u64;
        (0..3).for_each(|_| _ = random(&mut state, 2));
        let (from, len) = (random(&mut state, 4 * of), 1 + random(&mut state, of));
        (Some(from), Some(from + len), random(&mut state, of) as i64)
    }),
    ("strong islands, then wide ones above one another", |n, of| match n < of / 2 {
        true => (Some(2 * n), Some(2 * n + 1), (of + n) as i64),
        false => (Some(0), Some(2 * of), n as i64),
    }),
    ("one range again and again", |n, _| (Some(3), Some(9), n as i64)),
];

/// Memory and steps of one half and of all of `of` writes, and of one read of everything after them.
fn of_half_and_all(
    table: Arc<Table>,
    of: usize,
    write: &mut dyn FnMut(usize, &mut Changes),
) -> [(usize, usize); 2] {
    let written = Written::new(table);
    work::take();
    let mut steps = 0;
    let mut half = (0, 0);
    for n in 0..of {
        let mut changes = Changes::default();
        write(n, &mut changes);
        written.apply(changes);
        if n + 1 == of / 2 {
            steps += work::take();
            half = (written.memtable.used_bytes(), steps);
        }
    }
    let all = (written.memtable.used_bytes(), steps + work::take());
    for reversed in [false, true] {
        let mut cursor = written.cursor(written.sequence(), reversed);
        while cursor.advance(&mut ()).unwrap() {}
        // A flush is such a read.
        let read = work::take();
        assert!(read <= 60 * of + 100, "{read} steps of a read of {of} writes");
    }
    [half, all]
}

/// Whether twice the writes took about twice as much; `n log n` is 2.2 times for these numbers.
fn check_growth(
    name: &str,
    [half, all]: [(usize, usize); 2],
    (bytes_max, steps_max): (usize, usize),
    writes: usize,
) {
    println!("{name}: {half:?} {all:?}, {} bytes and {} steps a write", all.0 / writes, all.1 / writes);
    assert!(all.0 <= half.0 * 5 / 2 + (64 << 10), "{name}: {} bytes, then {}", half.0, all.0);
    assert!(all.1 <= half.1 * 5 / 2 + 1000, "{name}: {} steps, then {}", half.1, all.1);
    assert!(all.0 <= bytes_max * writes, "{name}: {} bytes", all.0);
    assert!(all.1 <= steps_max * writes, "{name}: {} steps", all.1);
}

#[test]
fn range_deletions_of_one_partition_take_memory_and_work_by_their_number() {
    let of = if cfg!(miri) { 32 } else { 4096 };
    for &(name, pattern) in PATTERNS {
        for is_alternating in [false, true] {
            let found = of_half_and_all(table(true), of, &mut |n, changes| {
                delete(changes, pattern(n, of));
                if is_alternating {
                    insert(changes, n, n as i64);
                }
            });
            let name = format!("{name}{}", if is_alternating { ", with rows" } else { "" });
            if !cfg!(miri) {
                check_growth(&name, found, (if is_alternating { 1100 } else { 900 }, 250), of);
            }
        }
    }
}

/// What a reader finds: for each place between two rows, the deletion that covers it.
fn coverings(written: &Written, sequence: u64, reversed: bool, places: usize) -> Vec<i64> {
    let mut cursor = written.cursor(sequence, reversed);
    let mut markers: Vec<(Vec<u8>, i64, i64)> = Vec::new();
    while cursor.advance(&mut ()).unwrap() {
        if let Unfiltered::Marker(marker) = <MemtableCursor as Source<()>>::current(&cursor) {
            let of = |deletion: DeletionTime| if deletion.is_live() { -1 } else { deletion.timestamp_us };
            markers.push((marker.marker.key.clone(), of(marker.marker.close), of(marker.marker.open)));
        }
    }
    if reversed {
        markers.reverse();
    }
    assert!(markers.is_sorted_by(|one, next| one.0 < next.0 && one.2 == next.1), "{markers:?}");
    assert!(markers.iter().all(|marker| marker.1 != marker.2), "a marker that changes nothing: {markers:?}");
    let key_of = |a: usize| {
        let mut key = Vec::new();
        let a = (a as i32).to_be_bytes();
        let columns = &written.table.clustering;
        helenus_model::byte_comparable::clustering_key([Some(&a[..]), Some(&a[..])], columns, &mut key)
            .unwrap();
        key
    };
    let covering =
        |a| markers.iter().take_while(|marker| marker.0 < key_of(a)).last().map_or(-1, |marker| marker.2);
    (0..places).map(covering).collect()
}

#[test]
fn runs_of_range_deletions_answer_as_all_ranges_do_to_readers_of_any_moment() {
    const PLACES: usize = 40;
    let (runs, most) = if cfg!(miri) { (2, 20) } else { (60, 150) };
    for seed in 0..runs {
        let mut state = seed;
        let written = Written::new(table(seed % 2 == 0));
        let mut ranges: Vec<Drawn> = Vec::new();
        let mut moments = Vec::new();
        for _ in 0..1 + random(&mut state, most) {
            let mut changes = Changes::default();
            for _ in 0..if random(&mut state, 8) == 0 { random(&mut state, 40) } else { 1 } {
                let bound = |state: &mut u64| (random(state, 10) > 0).then(|| random(state, PLACES));
                let range = (bound(&mut state), bound(&mut state), random(&mut state, 30) as i64);
                delete(&mut changes, range);
                ranges.push(range);
            }
            if random(&mut state, 3) == 0 {
                insert(&mut changes, random(&mut state, PLACES), 1);
            }
            if changes.is_empty() {
                continue;
            }
            written.apply(changes);
            moments.push((written.sequence(), ranges.len()));
        }
        for (sequence, count) in moments.into_iter().rev().take(12) {
            let covers = |place: usize| {
                let within = |range: &&Drawn| {
                    range.0.is_none_or(|from| from <= place) && range.1.is_none_or(|to| place < to)
                };
                ranges[..count].iter().filter(within).map(|range| range.2).max().unwrap_or(-1)
            };
            let expected: Vec<i64> = (0..PLACES).map(covers).collect();
            for reversed in [false, true] {
                assert_eq!(coverings(&written, sequence, reversed, PLACES), expected, "seed {seed}");
            }
        }
    }
}

fn path_of(column: &Column, element: usize) -> Option<Vec<u8>> {
    match &column.ty {
        CqlType::Map { .. } => Some((element as i32).to_be_bytes().to_vec()),
        CqlType::List { .. } => {
            let mut uuid = vec![0; 16];
            uuid[..4].copy_from_slice(&(element as u32).to_be_bytes());
            (uuid[6], uuid[8]) = (0x10, 0x80);
            Some(uuid)
        }
        _ => None,
    }
}

fn cell_of(column: ColumnId, timestamp_us: i64, is_dead: bool) -> Cell {
    let local_deletion_s = if is_dead { 1 } else { NO_EXPIRY };
    Cell { column, ttl_s: 0, timestamp_us, local_deletion_s, path: Span::NULL, value: Span::EMPTY }
}

/// Adds a write of one element of a column to the only row, or to the static row.
fn put(changes: &mut Changes, column: &Column, element: usize, timestamp_us: i64, value: &[u8]) {
    let path = path_of(column, element);
    let cell = cell_of(column.id, timestamp_us, false);
    if column.kind == ColumnKind::Static {
        return changes.static_row(&[], |row| row.cell(&cell, path.as_deref(), value));
    }
    let clustering = [Some(&[0; 4][..]), Some(&[0; 4][..])].into_iter();
    let live = (Liveness::NONE, DeletionTime::LIVE);
    changes.row(clustering, live, &[], |row| row.cell(&cell, path.as_deref(), value));
}

#[test]
fn elements_written_one_by_one_take_memory_and_work_by_their_number() {
    let of = if cfg!(miri) { 64 } else { 8192 };
    let table = table(false);
    let value = [7; 20];
    type Element = fn(usize, usize) -> usize;
    let orders: [(&str, Element); 4] = [
        ("in order", |n, _| n),
        ("against the order", |n, of| of - n),
        ("in any order", |n, of| n * 7919 % of),
        ("a few again and again", |n, _| n % 300),
    ];
    for column in [table.column("m"), table.column("l"), table.column("s")].map(Option::unwrap) {
        for (name, element) in orders {
            let found = of_half_and_all(table.clone(), of, &mut |n, changes| {
                put(changes, column, element(n, of), n as i64 + 1, &value);
            });
            if !cfg!(miri) {
                check_growth(&format!("{} {name}", column.name), found, (1500, 100), of);
            }
        }
    }
}

/// A row of 60,000 elements of which each write changes one; and a large value beside a small one.
#[test]
fn small_changes_of_a_large_row_take_memory_by_their_number() {
    let (elements, of) = if cfg!(miri) { (300, 16) } else { (60_000, 4096) };
    let table = table(false);
    let column = |name: &str| table.column(name).unwrap();
    let first = |changes: &mut Changes| {
        let clustering = [Some(&[0; 4][..]), Some(&[0; 4][..])].into_iter();
        changes.row(clustering, (Liveness::NONE, DeletionTime::LIVE), &[], |row| {
            row.cell(&cell_of(column("v").id, 1, false), None, &vec![1; 20 * elements]);
            for element in 0..elements {
                let path = path_of(column("m"), element);
                row.cell(&cell_of(column("m").id, 1, false), path.as_deref(), b"value");
            }
        });
    };
    let written = Written::new(table.clone());
    let mut changes = Changes::default();
    first(&mut changes);
    written.apply(changes);
    let before = written.memtable.used_bytes();
    work::take();
    for n in 0..of {
        let mut changes = Changes::default();
        put(&mut changes, column("m"), n * 7919 % elements, 2 + n as i64, b"other");
        written.apply(changes);
    }
    let (bytes, steps) = (written.memtable.used_bytes() - before, work::take());
    println!("{} bytes and {} cells a write", bytes / of, steps / of);
    if !cfg!(miri) {
        assert!(bytes <= of * 1000, "{bytes} bytes");
        assert!(steps <= of * 50, "{steps} cells");
    }
    // A reader merges few parts.
    let rows = written.rows(written.sequence());
    assert_eq!(rows.len(), 1);
    if !cfg!(miri) {
        let steps = work::take();
        assert!(steps <= 2 * elements, "{steps} cells merged by a reader");
    }
}

/// A drawn change of the row, packed.
fn draw(state: &mut u64, table: &Table, timestamp_us: i64) -> Vec<u8> {
    let regulars = &table.regulars;
    let dies = |state: &mut u64, one_in: usize| random(state, one_in) == 0;
    let deletion = |timestamp_us| DeletionTime { timestamp_us, local_s: 1 };
    let row_deletion =
        if dies(state, 40) { deletion(timestamp_us - random(state, 3) as i64) } else { DeletionTime::LIVE };
    let liveness = if dies(state, 3) { Liveness::at(timestamp_us) } else { Liveness::NONE };
    let mut complex = Vec::new();
    for column in regulars.iter().filter(|column| column.ty.is_multi_cell()) {
        if dies(state, 30) {
            complex.push((column.id, deletion(timestamp_us - 1)));
        }
    }
    let clustering = [Some(&[0; 4][..]), Some(&[0; 4][..])].into_iter();
    let mut out = Vec::new();
    let mut writer = packed::RowWriter::begin(&mut out, clustering, liveness, row_deletion, &complex);
    let count = if dies(state, 20) { 60 } else { 1 + random(state, 3) };
    for column in regulars {
        let mut elements: Vec<usize> = (0..count).map(|_| random(state, 200)).collect();
        elements.sort_unstable();
        elements.dedup();
        elements.truncate(if column.ty.is_multi_cell() { usize::MAX } else { 1 });
        for element in elements.into_iter().filter(|_| random(state, 2) == 0).collect::<Vec<_>>() {
            let is_dead = dies(state, 5);
            let value = vec![random(state, 3) as u8; if is_dead { 0 } else { 1 + random(state, 60) }];
            let shift = random(state, 3) as i64;
            writer.cell(
                &cell_of(column.id, timestamp_us + shift, is_dead),
                path_of(column, element).as_deref(),
                &value,
            );
        }
    }
    writer.finish();
    out
}

#[test]
fn a_row_in_parts_is_the_row_that_merging_write_by_write_gives_to_readers_of_any_moment() {
    let (runs, most) = if cfg!(miri) { (2, 40) } else { (60, 400) };
    for seed in 0..runs {
        let mut state = seed + 1;
        let written = Written::new(table(false));
        let table = written.table.clone();
        let (mut expected, mut moments) = (Vec::new(), Vec::new());
        let (mut left, mut right, mut merged) = (RowBuf::default(), RowBuf::default(), RowBuf::default());
        for write in 0..1 + random(&mut state, most) {
            // In any order: some are older than what is there.
            let timestamp_us = 10 + write as i64 - random(&mut state, 8) as i64;
            let change = draw(&mut state, &table, timestamp_us);
            let mut changes = Changes::default();
            changes.packed_row(false, &change);
            written.apply(changes);
            expected = if write == 0 {
                change
            } else {
                packed::unpack(&expected, 2, &mut left).unwrap();
                packed::unpack(&change, 2, &mut right).unwrap();
                let views = (RowView { row: &left, data: &expected }, RowView { row: &right, data: &change });
                merge_rows(&table, views.0, views.1, DeletionTime::LIVE, &mut merged);
                packed_row(merged.view())
            };
            if random(&mut state, 20) == 0 {
                moments.push((written.sequence(), expected.clone()));
            }
        }
        moments.push((written.sequence(), expected));
        for (sequence, expected) in moments {
            assert_eq!(written.rows(sequence), [expected], "seed {seed}");
        }
    }
}
