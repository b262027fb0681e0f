//! Drawn rows: each single change of a cell is found, rows that are written elsewhere are the same there, and what is brought back
//! is what the other side has.

use super::bring_back::row_writes;
use super::compare::{Difference, Tolerance, compare};
use super::local::{read_local, scan_local};
use super::local_writer::LocalWriter;
use super::row::{SeenCell, SeenRow, Times};
use super::writes::{LOOKS, Place, cell_deletions, cell_writes, new_row};
use helenus_cql::backend::{Backend, BoundValue, Identity, NoRows, Outcome, Request};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::read::KeyRange;
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

const CREATE: [&str; 3] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE ks.place (street text, number int)",
    "CREATE TABLE ks.t (p1 int, p2 text, c int, a int, b text, m map<text, int>, s set<int>, l list<text>, u place, \
     f frozen<list<int>>, st int static, sm map<int, int> static, sl list<int> static, PRIMARY KEY ((p1, p2), c)) \
     WITH CLUSTERING ORDER BY (c DESC)",
];
const RUNS: u64 = 40;
const SLACK_S: i64 = 5;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

struct Side {
    machine: Machine,
    backend: Arc<LocalBackend>,
}

impl Side {
    fn new(seed: u64) -> Side {
        Side::of(seed, &CREATE)
    }

    fn of(seed: u64, create: &[&str]) -> Side {
        let machine = Machine::new(seed);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let side = Side { backend: LocalBackend::new(database, LocalOptions::default()), machine };
        create.iter().for_each(|text| side.run(text));
        side
    }

    fn run(&self, text: &str) {
        let identity = Identity::default();
        // The only values that no literal gives are the empty ones of `EmptyType`.
        let values = vec![BoundValue::Bytes(&[]); text.matches('?').count()];
        let answer = self.backend.query(text, &Request::plain(&identity, &values), &mut NoRows);
        match answer.unwrap_or_else(|error| panic!("{text}: {error}")).outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
            _ => {}
        }
    }

    fn table(&self) -> Arc<Table> {
        self.backend.database().schema().table("ks", "t").unwrap().clone()
    }

    fn rows(&self) -> Vec<SeenRow> {
        let (sender, mut portions) = mpsc::channel(64);
        scan_local(self.backend.database(), &self.table(), &KeyRange::all(), &sender).unwrap();
        drop(sender);
        let mut rows = Vec::new();
        while let Ok(portion) = portions.try_recv() {
            rows.extend(portion.unwrap());
        }
        assert!(rows.windows(2).all(|pair| pair[0].position() < pair[1].position()));
        rows
    }

    fn times(&self) -> (i64, i64) {
        (self.backend.database().wall_us(), self.backend.database().now_s())
    }
}

/// A drawn statement at a timestamp.
fn statement(random: &mut Random, stamp: u64) -> String {
    let partition = format!("p1 = {} AND p2 = 'x'", random.below(2));
    let row = format!("{partition} AND c = {}", random.below(4));
    let number = random.below(100);
    let ttl = if random.below(3) == 0 { " AND TTL 900" } else { "" };
    let set = match random.below(9) {
        0 => format!("a = {number}, b = 'text {number}'"),
        1 => format!("m['k{}'] = {number}", number % 3),
        2 => format!("m = {{'k': {number}}}, s = {{1, {number}}}"),
        3 => format!("s = s + {{{number}}}"),
        4 => format!("l = ['a', 'b{number}'], a = null"),
        5 => format!("u.street = 'street {number}'"),
        6 => format!("u = {{street: 'x', number: {number}}}, f = [1, {number}]"),
        7 => "b = null, u.number = null".to_owned(),
        _ => format!("l = l + ['{number}']"),
    };
    match random.below(14) {
        0 => format!(
            "INSERT INTO ks.t (p1, p2, c, a) VALUES ({}, 'x', {}, {number}) USING TIMESTAMP {stamp}{ttl}",
            random.below(2),
            random.below(4)
        ),
        1 => format!(
            "INSERT INTO ks.t (p1, p2, c) VALUES (0, 'x', {}) USING TIMESTAMP {stamp}",
            random.below(4)
        ),
        2 => format!(
            "UPDATE ks.t USING TIMESTAMP {stamp}{ttl} SET st = {number}, sm[{}] = 7, sl = [{number}] WHERE {partition}",
            number % 3
        ),
        3 => format!("DELETE m['k'], b, s FROM ks.t USING TIMESTAMP {stamp} WHERE {row}"),
        4 => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {row}"),
        5 => format!("DELETE st, sm, sl FROM ks.t USING TIMESTAMP {stamp} WHERE {partition}"),
        6 if number < 30 => format!("DELETE FROM ks.t USING TIMESTAMP {stamp} WHERE {partition}"),
        _ => format!("UPDATE ks.t USING TIMESTAMP {stamp}{ttl} SET {set} WHERE {row}"),
    }
}

fn drawn(seed: u64) -> Side {
    let mut random = Random(seed);
    let side = Side::new(seed);
    (0..80).for_each(|at| side.run(&statement(&mut random, 1000 + at)));
    side
}

/// A row with one cell that is otherwise, and whether that is a difference: if it is there, and if it is here.
type Mutation = (SeenRow, [bool; 2]);

fn mutations(row: &SeenRow, table: &Table) -> Vec<Mutation> {
    let mut all = Vec::new();
    for at in 0..row.cells.len() {
        let mut with = |is_other: [bool; 2], change: &dyn Fn(&mut SeenCell)| {
            let mut other = row.clone();
            change(&mut other.cells[at]);
            all.push((other, is_other));
        };
        let cell = &row.cells[at];
        let ty = &table.column_by_id(cell.column).unwrap().ty;
        let is_of_set = matches!(ty, CqlType::Set { .. });
        // An element of a list may be somewhat later there.
        let is_of_list = matches!(ty, CqlType::List { frozen: false, .. });
        if !is_of_set {
            with([true; 2], &|cell| cell.value.push(1));
            with([true; 2], &|cell| cell.value = cell.value.iter().map(|byte| !byte).chain([0]).collect());
        }
        with([!is_of_list, true], &|cell| cell.times.as_mut().unwrap().timestamp_us += 1);
        with([true; 2], &|cell| cell.times.as_mut().unwrap().timestamp_us += 10_000);
        with([true, !is_of_list], &|cell| cell.times.as_mut().unwrap().timestamp_us -= 1);
        let expires_s = cell.times.unwrap().expires_s;
        if expires_s == NO_EXPIRY {
            with([true; 2], &|cell| cell.times.as_mut().unwrap().expires_s = 4_000_000_000);
        } else {
            with([true; 2], &|cell| cell.times.as_mut().unwrap().expires_s = NO_EXPIRY);
            for by in [-SLACK_S - 1, -SLACK_S, SLACK_S, SLACK_S + 1] {
                let is_other = by.abs() > SLACK_S;
                with([is_other; 2], &|cell| cell.times.as_mut().unwrap().expires_s += by);
            }
        }
        let mut without = row.clone();
        without.cells.remove(at);
        all.push((without, [true; 2]));
        if !cell.path.is_empty() {
            let mut other = row.clone();
            other.cells[at].path.push(0);
            all.push((other, [true; 2]));
        }
    }
    all
}

#[test]
fn each_single_change_of_a_cell_is_found() {
    let (mut changes, mut kinds) = (0, BTreeMap::new());
    for seed in 0..RUNS {
        let side = drawn(seed);
        let table = side.table();
        let tolerance = Tolerance { now_s: side.times().1, slack_s: SLACK_S };
        for row in side.rows() {
            assert_eq!(compare(&table, Some(&row), Some(&row), tolerance), None);
            assert_eq!(compare(&table, Some(&row), None, tolerance), Some(Difference::OnlyHere));
            assert_eq!(compare(&table, None, Some(&row), tolerance), Some(Difference::OnlyThere));
            for cell in &row.cells {
                *kinds.entry(cell.column).or_insert(0) += 1;
            }
            for (other, is_other) in mutations(&row, &table) {
                changes += 1;
                for ((here, there), is_other) in [(&row, &other), (&other, &row)].into_iter().zip(is_other) {
                    let found = compare(&table, Some(here), Some(there), tolerance);
                    assert_eq!(found.is_some(), is_other, "seed {seed}: {here:?}\n{there:?}");
                }
            }
        }
    }
    assert!(changes > 5_000, "{changes}");
    assert_eq!(kinds.len(), 10, "a kind of column is not drawn: {kinds:?}");
}

/// What makes a list that was there before newer, though nothing of it is left: what replaced the list at the target is as late.
#[test]
fn a_list_may_be_as_late_there_as_its_newest_element_that_has_died() {
    const NEWEST: i64 = 1_000_000;
    for seed in 0..RUNS {
        let (mut random, side) = (Random(seed), Side::new(seed));
        let is_static = random.below(2) == 0;
        let (list, row) = if is_static { ("sl", "") } else { ("l", " AND c = 1") };
        let key = format!("p1 = 1 AND p2 = 'x'{row}");
        let element = |number: u64| if is_static { number.to_string() } else { format!("'{number}'") };
        let elements: Vec<String> = (0..1 + random.below(3)).map(element).collect();
        side.run(&format!(
            "UPDATE ks.t USING TIMESTAMP 1000 SET {list} = [{}] WHERE {key}",
            elements.join(", ")
        ));
        let (more, end) = (element(90), random.below(2) == 0);
        let sum = if end { format!("{list} + [{more}]") } else { format!("[{more}] + {list}") };
        let (ttl, at) = if random.below(2) == 0 { (" AND TTL 5", NEWEST) } else { ("", NEWEST - 7) };
        side.run(&format!("UPDATE ks.t USING TIMESTAMP {at}{ttl} SET {list} = {sum} WHERE {key}"));
        if ttl.is_empty() {
            side.run(&format!(
                "UPDATE ks.t USING TIMESTAMP {NEWEST} SET {list} = {list} - [{more}] WHERE {key}"
            ));
        }
        side.machine.advance(60_000_000_000);
        let table = side.table();
        let tolerance = Tolerance { now_s: side.times().1, slack_s: SLACK_S };
        let seen = side.rows().remove(0);
        let read = read_local(side.backend.database(), &table, &seen.name()).unwrap().unwrap();
        assert_eq!(seen.cells.len(), elements.len(), "seed {seed}");
        for here in [&seen, &read] {
            for (late_us, is_other) in [(0, false), (1, false), (1_000, false), (1_001, true)] {
                let mut there = here.clone();
                there.lists_us.clear();
                for cell in &mut there.cells {
                    cell.times.as_mut().unwrap().timestamp_us = NEWEST + late_us;
                }
                let found = compare(&table, Some(here), Some(&there), tolerance);
                assert_eq!(found.is_some(), is_other, "seed {seed}: {here:?}\n{there:?}");
            }
        }
    }
}

#[test]
fn cells_that_are_about_to_expire_are_no_difference() {
    let side = drawn(3);
    let table = side.table();
    let now_s = side.times().1;
    let mut row = side.rows().into_iter().find(|row| !row.cells.is_empty()).unwrap();
    row.cells.truncate(1);
    row.marker = None;
    for (left_s, is_other) in [(0, false), (SLACK_S, false), (SLACK_S + 1, true)] {
        row.cells[0].times = Some(Times { timestamp_us: 1, expires_s: now_s + left_s });
        let tolerance = Tolerance { now_s, slack_s: SLACK_S };
        assert_eq!(compare(&table, Some(&row), None, tolerance).is_some(), is_other);
        let empty = SeenRow { cells: Vec::new(), ..row.clone() };
        assert_eq!(compare(&table, Some(&empty), Some(&row), tolerance).is_some(), is_other);
    }
}

/// Elements that were written one by one have as many timestamps as there are elements.
#[test]
fn the_cells_of_a_row_are_written_and_deleted_by_a_few_looks_at_each() {
    const ELEMENTS: usize = 10_000;
    let side = Side::new(1);
    let table = side.table();
    side.run("INSERT INTO ks.t (p1, p2, c, a) VALUES (1, 'x', 1, 1)");
    let mut row = side.rows().remove(0);
    let column = table.column("s").unwrap().id;
    row.cells = (0..ELEMENTS)
        .map(|at| SeenCell {
            column,
            path: (at as i32).to_be_bytes().to_vec(),
            value: Vec::new(),
            times: Some(Times { timestamp_us: at as i64, expires_s: NO_EXPIRY }),
        })
        .collect();
    let (name, mut writes) = (row.name(), Vec::new());
    let place = Place { table: &table, name: &name };
    let most = 2 * ELEMENTS * table.regulars.len();
    LOOKS.set(0);
    cell_writes(place, &row.cells, None, side.times(), &mut writes).unwrap();
    assert_eq!(writes.len(), ELEMENTS);
    cell_deletions(place, &row.cells, &mut writes).unwrap();
    assert_eq!(writes.len(), 2 * ELEMENTS);
    assert!(LOOKS.get() <= most, "{} looks", LOOKS.get());
}

#[test]
fn rows_that_are_written_elsewhere_have_the_same_cells_and_are_seen_as_long() {
    for seed in 0..RUNS {
        let (source, copy) = (drawn(seed), Side::new(seed + 1000));
        let (rows, table) = (source.rows(), copy.table());
        let mut writes = Vec::new();
        for row in &rows {
            new_row(&table, row, copy.times(), &mut writes).unwrap();
        }
        let mut writer = LocalWriter::new(&copy.backend, &table);
        writer.run(&writes).unwrap();
        writer.finish().unwrap();
        for seconds in [0, 1000] {
            source.machine.advance(seconds * 1_000_000_000);
            copy.machine.advance(seconds * 1_000_000_000);
            let (wanted, found) = (source.rows(), copy.rows());
            let names = |rows: &[SeenRow]| rows.iter().map(SeenRow::name).collect::<Vec<_>>();
            if seconds == 0 {
                assert_eq!(names(&found), names(&wanted), "seed {seed}");
            }
            for row in wanted {
                let name = row.name();
                let copied = read_local(copy.backend.database(), &table, &name).unwrap();
                // A row of cells that have all expired may have had a marker, which a cluster does not tell.
                if seconds == 0 || !row.cells.is_empty() {
                    assert_eq!(copied.map(|row| row.cells).as_ref(), Some(&row.cells), "seed {seed}");
                }
            }
        }
    }
}

/// A row here and at the other side.
type RowPair = (Option<SeenRow>, Option<SeenRow>);

#[test]
fn what_is_brought_back_is_what_the_other_side_has() {
    for seed in 0..RUNS {
        let (here, there) = (drawn(seed), drawn(seed));
        let mut random = Random(seed + 77);
        let later: Vec<String> = (0..60).map(|at| statement(&mut random, 5_000 + at)).collect();
        later.iter().for_each(|text| there.run(text));
        let table = here.table();
        for round in 0..2 {
            let mut pairs: BTreeMap<(Vec<u8>, Vec<u8>), RowPair> = BTreeMap::new();
            let position = |row: &SeenRow| (row.position().0.to_vec(), row.position().1.to_vec());
            for row in here.rows() {
                let pair = pairs.entry(position(&row)).or_default();
                pair.0 = Some(row);
            }
            for row in there.rows() {
                let pair = pairs.entry(position(&row)).or_default();
                pair.1 = Some(row);
            }
            let mut writes = Vec::new();
            for pair in pairs.values() {
                let kept = row_writes(&table, pair, here.times(), &mut writes).unwrap();
                assert!(!kept, "seed {seed}");
                let values = |row: &Option<SeenRow>| row.as_ref().map(|row| without_list_times(row, &table));
                if round == 1 {
                    assert_eq!(values(&pair.0), values(&pair.1), "seed {seed}\n{}", later.join(";\n"));
                }
            }
            let mut writer = LocalWriter::new(&here.backend, &table);
            writer.run(&writes).unwrap();
            writer.finish().unwrap();
        }
    }
}

/// A compact table here, and what DROP COMPACT STORAGE leaves of it at the other side; statements there; whether the other side is shown as
/// a compact one, which hides the cell of a table of keys alone.
const COMPACT: [(&str, &str, &[&str]); 3] = [
    (
        "CREATE TABLE ks.t (k int PRIMARY KEY, a int, b text) WITH COMPACT STORAGE",
        "CREATE TABLE ks.t (k int, column1 text, a int static, b text static, value blob, PRIMARY KEY (k, column1))",
        &[
            "UPDATE ks.t USING TIMESTAMP {} SET a = {}, b = 'x' WHERE k = {k}",
            "UPDATE ks.t USING TIMESTAMP {} SET b = null WHERE k = {k}",
            "UPDATE ks.t USING TIMESTAMP {} AND TTL 900 SET value = 0x0{k} WHERE k = {k} AND column1 = 'c{k}'",
            "UPDATE ks.t USING TIMESTAMP {} SET value = 0x1{k} WHERE k = {k} AND column1 = 'it'",
            "DELETE FROM ks.t USING TIMESTAMP {} WHERE k = {k} AND column1 = 'it'",
            "DELETE FROM ks.t USING TIMESTAMP {} WHERE k = {k}",
        ],
    ),
    (
        "CREATE TABLE ks.t (k int, c int, d int, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
        "CREATE TABLE ks.t (k int, c int, d int, value 'org.apache.cassandra.db.marshal.EmptyType', PRIMARY KEY (k, c, d))",
        &[
            "INSERT INTO ks.t (k, c, d, value) VALUES ({k}, 1, 2, ?) USING TIMESTAMP {}",
            "INSERT INTO ks.t (k, c, d, value) VALUES ({k}, 1, {k}, ?) USING TIMESTAMP {} AND TTL 900",
            "DELETE FROM ks.t USING TIMESTAMP {} WHERE k = {k} AND c = 1 AND d = 2",
            "DELETE FROM ks.t USING TIMESTAMP {} WHERE k = {k}",
        ],
    ),
    (
        "CREATE TABLE ks.t (k int, c int, a int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
        "CREATE TABLE ks.t (k int, c int, a int, PRIMARY KEY (k, c))",
        &[
            "UPDATE ks.t USING TIMESTAMP {} SET a = {} WHERE k = {k} AND c = 1",
            "UPDATE ks.t USING TIMESTAMP {} AND TTL 900 SET a = {} WHERE k = {k} AND c = {k}",
            "DELETE a FROM ks.t USING TIMESTAMP {} WHERE k = {k} AND c = {k}",
            "DELETE FROM ks.t USING TIMESTAMP {} WHERE k = {k}",
        ],
    ),
];

#[test]
fn what_is_brought_back_into_a_compact_table_is_what_the_other_side_has() {
    for seed in 0..RUNS {
        for (compact, open, statements) in COMPACT {
            let (here, there) = (Side::of(seed, &[CREATE[0], compact]), Side::of(seed, &[CREATE[0], open]));
            let mut random = Random(seed + 5);
            let table = here.table();
            let of_there = there.table();
            for round in 0..3 {
                for at in 0..20 {
                    let text = statements[random.below(statements.len() as u64) as usize];
                    let stamp = (1_000 + round * 100 + at).to_string();
                    let (k, number) = (random.below(3).to_string(), random.below(9).to_string());
                    there.run(&text.replacen("{}", &stamp, 1).replace("{}", &number).replace("{k}", &k));
                }
                // As a client of the cluster reads them: rows of the table here.
                let as_here = |row: SeenRow| {
                    let mut row = SeenRow { marker: None, ..row };
                    for cell in &mut row.cells {
                        let name = &of_there.column_by_id(cell.column).unwrap().name;
                        cell.column = table.column(name).unwrap().id;
                    }
                    row.cells.sort_by_key(|cell| cell.column);
                    row
                };
                let wanted: Vec<SeenRow> = there.rows().into_iter().map(as_here).collect();
                let mut pairs: BTreeMap<(Vec<u8>, Vec<u8>), RowPair> = BTreeMap::new();
                let position = |row: &SeenRow| (row.position().0.to_vec(), row.position().1.to_vec());
                for row in here.rows() {
                    let at = position(&row);
                    pairs.entry(at).or_default().0 = Some(row);
                }
                for row in &wanted {
                    pairs.entry(position(row)).or_default().1 = Some(row.clone());
                }
                let mut writes = Vec::new();
                let opened = crate::forms::opened(&table);
                for pair in pairs.values() {
                    row_writes(&opened, pair, here.times(), &mut writes).unwrap();
                }
                let mut writer = LocalWriter::new(&here.backend, &table);
                writer.run(&writes).unwrap();
                writer.finish().unwrap();
                let of = |rows: Vec<SeenRow>| -> Vec<_> {
                    rows.into_iter()
                        .map(|row| (row.name(), row.cells))
                        .filter(|row| !row.1.is_empty())
                        .collect()
                };
                assert_eq!(of(here.rows()), of(wanted), "seed {seed}, {compact}");
            }
        }
    }
}

/// The cells of a row; those of lists with their values alone.
fn without_list_times(row: &SeenRow, table: &Table) -> Vec<SeenCell> {
    let mut cells = row.cells.clone();
    for cell in &mut cells {
        if matches!(table.column_by_id(cell.column).unwrap().ty, CqlType::List { frozen: false, .. }) {
            cell.times = None;
        }
    }
    cells
}
