//! Drawn statements on one database; what its partitions then hold, turned into writes and run on another database, gives
//! the same cells, markers and deletions with the same timestamps and expiry. And so does the feed of changes.
//!
//! `MOVE_SEED=7 MOVE_RUNS=1 cargo test -p helenus-mover --test same_cells` repeats one run.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

use helenus_engine::changes::ChangeKind;
use helenus_engine::read::{KeyRange, UnfilteredSink};
use helenus_model::deletion::{DeletionTime, NO_EXPIRY};
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use helenus_model::unfiltered::Unfiltered;
use helenus_mover::source::{
    ListPlace, OpenRange, RowName, RowWrites, TableTexts, Write, in_parts, list_columns, list_of_row,
    list_writes,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

mod support;

use support::{Random, Side};

const CREATE: [&str; 3] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE ks.place (street text, number int)",
    "CREATE TABLE ks.t (p1 int, p2 text, c1 int, c2 int, a int, \"B b\" text, m map<text, int>, s set<int>, l list<text>, \
     u place, f frozen<list<int>>, st int static, sm map<int, int> static, sl list<int> static, \
     PRIMARY KEY ((p1, p2), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC) AND default_time_to_live = 5000",
];

/// Clustering values are below this.
const SIDE: i32 = 4;

/// All that a side holds.
fn seen(side: &Side) -> Seen {
    let table = side.table();
    let mut seen = Seen { table: table.clone(), now_s: side.database().now_s(), ..Seen::default_of(&table) };
    side.database().scan_unfiltered(&table, &KeyRange::all(), &mut seen).unwrap();
    seen
}

/// What a partition holds: by row the marker, the cells and the timestamp of what deletes it.
#[derive(Debug)]
struct Seen {
    table: Arc<Table>,
    now_s: i64,
    key: Vec<u8>,
    partition: i64,
    open: Option<(Vec<i32>, bool, i64)>,
    /// Deletions by partition and row, of every row that could be there.
    deleted: BTreeMap<(Vec<u8>, i32, i32), i64>,
    partitions: BTreeMap<Vec<u8>, i64>,
    /// Cells and markers in words.
    content: BTreeMap<(Vec<u8>, Vec<i32>), Vec<String>>,
}

fn int(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes.try_into().unwrap())
}

impl Seen {
    fn default_of(table: &Arc<Table>) -> Seen {
        Seen {
            table: table.clone(),
            now_s: 0,
            key: Vec::new(),
            partition: i64::MIN,
            open: None,
            deleted: BTreeMap::new(),
            partitions: BTreeMap::new(),
            content: BTreeMap::new(),
        }
    }

    fn delete(&mut self, c1: i32, c2: i32, timestamp_us: i64) {
        if c1 >= SIDE || c2 >= SIDE {
            return;
        }
        let entry = self.deleted.entry((self.key.clone(), c1, c2)).or_insert(i64::MIN);
        *entry = (*entry).max(timestamp_us);
    }

    fn describe(&mut self, row: RowView<'_>, clustering: Vec<i32>) {
        let mut lines = Vec::new();
        let now_s = self.now_s;
        let liveness = row.row.liveness;
        if !liveness.is_none() {
            let expiry = if liveness.is_live(now_s) { liveness.expires_s } else { 0 };
            lines.push(format!("marker @{} {expiry}", liveness.timestamp_us));
        }
        for (column, deletion) in &row.row.complex_deletions {
            lines.push(format!("{column:?} deleted @{}", deletion.timestamp_us));
        }
        for cell in &row.row.cells {
            let is_list = matches!(
                self.table.column_by_id(cell.column).unwrap().ty,
                CqlType::List { frozen: false, .. }
            );
            // Ids of list elements differ; those of dead elements are not written.
            if is_list && !cell.is_live(now_s) {
                continue;
            }
            let path = if is_list { &[] } else { row.path(cell) };
            let value = match cell.is_live(now_s) {
                true => format!("{:?} until {}", row.value(cell), cell.local_deletion_s),
                false => "dead".to_owned(),
            };
            lines.push(format!("{:?} {path:?} = {value} @{}", cell.column, cell.timestamp_us));
        }
        if !lines.is_empty() {
            self.content.insert((self.key.clone(), clustering), lines);
        }
    }
}

impl UnfilteredSink for Seen {
    fn partition(
        &mut self,
        key: &[u8],
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> helenus_engine::Result<()> {
        self.key = key.to_vec();
        self.partition = deletion.timestamp_us;
        if !deletion.is_live() {
            self.partitions.insert(self.key.clone(), deletion.timestamp_us);
        }
        assert!(self.open.is_none(), "a range is open at the end of a partition");
        if let Some(row) = static_row {
            self.describe(row, Vec::new());
        }
        Ok(())
    }

    fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
        match element {
            Unfiltered::Row(row) => {
                let clustering = [int(row.clustering(0).unwrap()), int(row.clustering(1).unwrap())];
                if !row.row.deletion.is_live() {
                    self.delete(clustering[0], clustering[1], row.row.deletion.timestamp_us);
                }
                self.describe(row, clustering.to_vec());
            }
            Unfiltered::Marker(marker) => {
                let values: Vec<i32> = (0..marker.marker.clustering.len())
                    .map(|index| int(marker.clustering(index).unwrap()))
                    .collect();
                // Sorts before or after rows with the prefix; the first column is in descending order.
                let side = |c1: i32, c2: i32, values: &[i32], before: bool| {
                    let order = values.iter().zip([c1, c2]).enumerate().map(|(at, (bound, value))| {
                        if at == 0 { bound.cmp(&value) } else { value.cmp(bound) }
                    });
                    match order.into_iter().find(|order| order.is_ne()) {
                        Some(order) => order.is_gt(),
                        None => before,
                    }
                };
                if let Some((start, before, timestamp_us)) = self.open.take() {
                    for (c1, c2) in (0..SIDE).flat_map(|c1| (0..SIDE).map(move |c2| (c1, c2))) {
                        let is_in =
                            side(c1, c2, &start, before) && !side(c1, c2, &values, marker.marker.before);
                        if is_in {
                            self.delete(c1, c2, timestamp_us);
                        }
                    }
                }
                if !marker.marker.open.is_live() {
                    self.open = Some((values, marker.marker.before, marker.marker.open.timestamp_us));
                }
            }
        }
        Ok(())
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        Ok(())
    }
}

/// Turns what partitions hold into writes.
struct Copy {
    rows: RowWrites,
    range: OpenRange,
    now_s: i64,
    key: Vec<u8>,
    writes: Vec<Write>,
}

impl Copy {
    fn new(table: &Arc<Table>, now_s: i64) -> Copy {
        let (rows, range) = (RowWrites::new(table), OpenRange::default());
        Copy { rows, range, now_s, key: Vec::new(), writes: Vec::new() }
    }

    fn lists(&mut self, row: RowView<'_>, is_static: bool) {
        let table = self.rows.table().clone();
        let name = RowName::of(&table, &self.key, row, is_static).unwrap();
        for column in list_columns(&table, is_static) {
            if let Some(state) = list_of_row(row, column.id, self.now_s) {
                let list = ListPlace { table: &table, name: &name, column: column.id };
                list_writes(list, &state, None, self.now_s, &mut self.writes).unwrap();
            }
        }
    }
}

impl UnfilteredSink for Copy {
    fn partition(
        &mut self,
        key: &[u8],
        deletion: DeletionTime,
        static_row: Option<RowView<'_>>,
    ) -> helenus_engine::Result<()> {
        self.key = key.to_vec();
        self.range.clear();
        self.rows.partition_deletion(key, deletion, &mut self.writes);
        if let Some(row) = static_row {
            self.rows.static_row(key, row, self.now_s, &mut self.writes).unwrap();
            self.lists(row, true);
        }
        Ok(())
    }

    fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
        let table = self.rows.table().clone();
        match element {
            Unfiltered::Row(row) => {
                let key = self.key.clone();
                self.rows.row(&key, row, self.now_s, &mut self.writes).unwrap();
                self.lists(row, false);
            }
            Unfiltered::Marker(marker) => {
                self.range.marker((&table, &self.key), marker, &mut self.writes).unwrap();
            }
        }
        Ok(())
    }

    fn partition_end(&mut self) -> helenus_engine::Result<()> {
        Ok(())
    }
}

/// A drawn statement. Lists are written by one statement only, because a change of a list needs its rows.
fn statement(random: &mut Random, with_lists: bool) -> String {
    let partition = format!("p1 = {} AND p2 = '{}'", random.below(2), random.of(&["x", "y"]));
    let stamp = 1000 + random.below(200);
    let ttl = random.of(&["", "", "", " AND TTL 900", " AND TTL 300", " AND TTL 0"]);
    let (c1, c2) = (random.below(SIDE as u64), random.below(SIDE as u64));
    let row = format!("{partition} AND c1 = {c1} AND c2 = {c2}");
    let number = random.below(100);
    let lists = if with_lists { 3 } else { 0 };
    match random.below(18 + lists) {
        0..=2 => {
            let values = partition.replace("p1 = ", "").replace(" AND p2 = ", ", ");
            let (columns, of) = match random.below(3) {
                0 => ("a, \"B b\"", format!("{number}, 'b{number}'")),
                1 => ("a, m, u", format!("{number}, {{'k': 1, 'n': {number}}}, {{street: 's', number: 4}}")),
                _ => ("s, f, m", format!("{{1, {number}}}, [1, 2], null")),
            };
            format!(
                "INSERT INTO ks.t (p1, p2, c1, c2, {columns}) VALUES ({values}, {c1}, {c2}, {of}) USING TIMESTAMP {stamp}{ttl}"
            )
        }
        3..=6 => {
            let set = match random.below(7) {
                0 => format!("a = {number}"),
                1 => format!("\"B b\" = 'c{number}', a = null"),
                2 => format!("m['{}'] = {number}, a = 5", random.of(&["k", "n", "o"])),
                3 => format!("m = {{'k': {number}}}, s = s + {{2, 3}}"),
                4 => format!("u.street = '{number}'"),
                5 => "u = {street: 'whole', number: null}, f = null".to_owned(),
                _ => "u.number = null, s = s + {9}".to_owned(),
            };
            format!("UPDATE ks.t USING TIMESTAMP {stamp}{ttl} SET {set} WHERE {row}")
        }
        7 => format!(
            "UPDATE ks.t USING TIMESTAMP {stamp}{ttl} SET st = {number}, sm[{c1}] = 7 WHERE {partition}"
        ),
        8 => format!("DELETE st, sm FROM ks.t USING TIMESTAMP {stamp} WHERE {partition}"),
        9 => {
            let what =
                random.of(&["a", "m", "m['k']", "s", "s[2]", "u", "u.street", "\"B b\", f", "s[2], s[3], a"]);
            format!("DELETE {what} FROM ks.t USING TIMESTAMP {stamp} WHERE {row}")
        }
        10 => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {row}"),
        11 => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {partition} AND c1 = {c1}"),
        12 | 13 => {
            let (sign, other) = (random.of(&[">", ">="]), random.of(&["<", "<="]));
            let end = c2 + 1 + random.below(2);
            format!(
                "DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {partition} AND c1 = {c1} AND c2 {sign} {c2} AND c2 {other} {end}"
            )
        }
        14 | 15 => {
            let sign = random.of(&[">", ">=", "<", "<="]);
            format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {partition} AND c1 {sign} {c1}")
        }
        16 => match random.below(4) {
            0 => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {partition}"),
            _ => format!("UPDATE ks.t USING TIMESTAMP {stamp}{ttl} SET a = {number} WHERE {row}"),
        },
        17 => {
            format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {partition} AND (c1, c2) >= ({c1}, {c2})")
        }
        18 => format!("UPDATE ks.t USING TIMESTAMP {stamp}{ttl} SET l = ['a', 'b{number}'] WHERE {row}"),
        19 => format!("UPDATE ks.t USING TIMESTAMP {stamp}{ttl} SET l = l + ['{number}'] WHERE {row}"),
        _ => format!("UPDATE ks.t USING TIMESTAMP {stamp}{ttl} SET sl = [{number}] + sl WHERE {partition}"),
    }
}

fn numbers() -> std::ops::Range<u64> {
    let number = |name: &str, default| {
        std::env::var(name).ok().and_then(|text: String| text.parse().ok()).unwrap_or(default)
    };
    let first = number("MOVE_SEED", 1);
    first..first + number("MOVE_RUNS", 60)
}

fn compare(seed: u64, script: &[String], source: &Side, target: &Side) {
    let (one, other) = (seen(source), seen(target));
    let words = |what: &str| format!("seed {seed}: {what} differ after\n{};", script.join(";\n"));
    assert_eq!(one.partitions, other.partitions, "{}", words("partition deletions"));
    assert_eq!(one.deleted, other.deleted, "{}", words("deletions"));
    assert_eq!(one.content, other.content, "{}", words("cells"));
}

#[test]
fn rows_turned_into_statements_give_the_same_cells_elsewhere() {
    for seed in numbers() {
        let mut random = Random(seed);
        let (source, target) = (Side::new(seed, &CREATE), Side::new(seed + 1, &CREATE));
        let mut script = Vec::new();
        for at in 0..60 {
            let text = statement(&mut random, true);
            source.run(&text);
            script.push(text);
            if at == 30 && seed % 2 == 0 {
                source.database().flush_all().unwrap();
            }
        }
        [&source, &target].iter().for_each(|side| side.pass(400));
        let table = source.table();
        let mut copy = Copy::new(&table, source.database().now_s());
        source.database().scan_unfiltered(&table, &KeyRange::all(), &mut copy).unwrap();
        let texts = TableTexts::new(&table);
        // Some runs cut what is more than a few bytes, as others cut what is more than a frame.
        let part_bytes = if seed % 3 == 0 { 30 + random.below(60) as usize } else { usize::MAX };
        let writes: Vec<Write> =
            copy.writes.iter().flat_map(|write| in_parts(&table, write, part_bytes)).collect();
        // Backwards, because the order must not matter, but for lists.
        let (lists, others): (Vec<_>, Vec<_>) = writes.iter().partition(|write| texts.is_of_list(write.kind));
        others.iter().rev().chain(lists.iter()).for_each(|write| target.write(&texts, write));
        // An expired marker is written with a second to live.
        [&source, &target].iter().for_each(|side| side.pass(2));
        compare(seed, &script, &source, &target);
    }
}

#[test]
fn changes_turned_into_statements_give_the_same_cells_elsewhere() {
    for seed in numbers() {
        let mut random = Random(seed);
        let (source, target) = (Side::new(seed, &CREATE), Side::new(seed + 1, &CREATE));
        source.run("ALTER TABLE ks.t WITH cdc = true");
        let from = source.database().changes().now().unwrap();
        let mut script = Vec::new();
        for _ in 0..60 {
            let text = statement(&mut random, false);
            source.run(&text);
            script.push(text);
        }
        [&source, &target].iter().for_each(|side| side.pass(400));
        let table = source.table();
        let now_s = source.database().now_s();
        let mut rows = RowWrites::new(&table);
        let mut writes = Vec::new();
        source
            .database()
            .changes()
            .read(("ks", "t"), from, &mut |change| {
                match &change.kind {
                    ChangeKind::Row { key, row } => rows.row(key, *row, now_s, &mut writes).unwrap(),
                    ChangeKind::StaticRow { key, row } => {
                        rows.static_row(key, *row, now_s, &mut writes).unwrap();
                    }
                    ChangeKind::RangeDeletion { key, start, end, deletion } => {
                        OpenRange::deletion((&table, key), (start, end), *deletion, &mut writes).unwrap();
                    }
                    ChangeKind::PartitionDeletion { key, deletion } => {
                        rows.partition_deletion(key, *deletion, &mut writes);
                    }
                    _ => {}
                }
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        let texts = TableTexts::new(&table);
        // Twice, as after a crash.
        writes.iter().rev().chain(writes.iter()).for_each(|write| target.write(&texts, write));
        // An expired marker is written with a second to live.
        [&source, &target].iter().for_each(|side| side.pass(2));
        compare(seed, &script, &source, &target);
    }
}

#[test]
fn a_list_that_may_have_been_sent_before_is_not_there_twice() {
    let (source, target) = (Side::new(1, &CREATE), Side::new(2, &CREATE));
    let row = "WHERE p1 = 1 AND p2 = 'x' AND c1 = 1 AND c2 = 1";
    source.run(&format!("UPDATE ks.t USING TIMESTAMP 10 AND TTL 0 SET l = ['a', 'b'] {row}"));
    source.run(&format!("UPDATE ks.t USING TIMESTAMP 20 AND TTL 500 SET l = l + ['c'] {row}"));
    let table = source.table();
    let now_s = source.database().now_s();
    struct Lists {
        table: Arc<Table>,
        now_s: i64,
        found: Vec<(RowName, helenus_mover::source::ListState)>,
    }
    impl UnfilteredSink for Lists {
        fn partition(
            &mut self,
            key: &[u8],
            _deletion: DeletionTime,
            _static_row: Option<RowView<'_>>,
        ) -> helenus_engine::Result<()> {
            self.found.push((
                RowName { key: key.to_vec(), clustering: None },
                helenus_mover::source::ListState {
                    deletion: DeletionTime::LIVE,
                    elements: Vec::new(),
                    newest_us: 0,
                },
            ));
            Ok(())
        }
        fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
            if let Unfiltered::Row(row) = element {
                let key = self.found.pop().unwrap().0.key;
                let column = list_columns(&self.table, false).next().unwrap();
                let name = RowName::of(&self.table, &key, row, false).unwrap();
                self.found.push((name, list_of_row(row, column.id, self.now_s).unwrap()));
            }
            Ok(())
        }
        fn partition_end(&mut self) -> helenus_engine::Result<()> {
            Ok(())
        }
    }
    let mut lists = Lists { table: table.clone(), now_s, found: Vec::new() };
    source.database().scan_unfiltered(&table, &KeyRange::all(), &mut lists).unwrap();
    let (name, state) = lists.found.pop().unwrap();
    let column = list_columns(&table, false).next().unwrap().id;
    assert_eq!(state.newest_us, 20);
    let stamps: Vec<(i64, bool)> =
        state.elements.iter().map(|element| (element.timestamp_us, element.expires_s == NO_EXPIRY)).collect();
    assert_eq!(stamps, [(10, true), (10, true), (20, false)]);
    let texts = TableTexts::new(&table);
    for floor in [None, Some(20), Some(21)] {
        let mut writes = Vec::new();
        let list = ListPlace { table: &table, name: &name, column };
        list_writes(list, &state, floor, now_s, &mut writes).unwrap();
        writes.iter().for_each(|write| target.write(&texts, write));
        let seen = seen(&target);
        let lines: Vec<&String> =
            seen.content.values().flatten().filter(|line| line.contains(" = ")).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[2].contains("[99] until"), "{lines:?}");
    }
}
