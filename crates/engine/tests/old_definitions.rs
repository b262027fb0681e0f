//! Statements that bound a definition of their table before columns were dropped and made again, and are executed after.
//! The columns that were made again never have what such a statement writes to the old ones: not in memory, not in files,
//! not after a restart.
//!
//! `OLD_DEFINITION_RUNS` sets the number of runs, `OLD_DEFINITION_SEED` selects one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::{Machine, Survives};
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::schema::{DroppedColumn, Keyspace, Table};
use std::sync::Arc;
use support::actual::{read, table_of_shape, update};
use support::judge::{Ask, CellWrite, Change, FoundPartition, Kind, Shape, Timed};
use support::random::{Random, from_environment};
use support::{create, table_of};

const SHAPE: fn() -> Shape = || Shape {
    name: "t",
    id: 0x30,
    clustering: vec![(Kind::Int, false)],
    has_static: true,
    has_map: true,
    compressed: false,
    value_bytes: 0,
    width: 0,
    strategy: 0,
    many: 0,
};

/// A column that is dropped and made again, and a path and value of it.
type Column = (&'static str, Option<&'static [u8]>, &'static [u8]);

const COLUMNS: [Column; 4] = [
    ("v", None, b"value"),
    ("w", None, b"\0\0\0\x01"),
    ("m", Some(b"path"), b"element"),
    ("s", None, b"static"),
];

fn open(machine: &Machine) -> Arc<Database> {
    let mut options = DatabaseOptions::new("/db");
    options.segment_bytes = 64 << 10;
    Database::open(machine.host(), options).unwrap().0
}

fn change_table(database: &Database, change: impl FnOnce(&mut Table, i64)) {
    let changed = database.change_schema::<()>(|schema, made_us| {
        let mut next = schema.clone();
        let keyspace = next.keyspaces.get_mut("ks").unwrap();
        let mut table = Table::clone(&keyspace.tables["t"]);
        change(&mut table, made_us);
        table.arrange();
        let mut changed = Keyspace::clone(keyspace);
        changed.tables.insert("t".into(), Arc::new(table));
        *keyspace = Arc::new(changed);
        Ok(next)
    });
    changed.map_err(|_| "the schema changes").unwrap().1.wait().unwrap();
}

/// Drops a column, or makes it again if it is dropped.
fn toggle(database: &Database, name: &str) {
    let first = table_of_shape(&SHAPE());
    change_table(database, |table, made_us| {
        let of = if name == "s" { &mut table.statics } else { &mut table.regulars };
        match of.iter().position(|column| &*column.name == name) {
            Some(at) => {
                let column = of.remove(at);
                let (ty, kind, dropped_us) = (column.ty, column.kind, made_us);
                let dropped = DroppedColumn { name: column.name.clone(), ty, kind, dropped_us };
                table.dropped.insert(column.name, dropped);
            }
            None => {
                let mut column = first.column(name).unwrap().clone();
                column.id = Table::UNNUMBERED;
                of.push(column);
            }
        }
    });
}

/// A write of some of the columns that the table has now.
fn bind(database: &Database, random: &mut Random) -> (Arc<Table>, Vec<u8>, Timed) {
    let table = table_of(database, "t");
    let is_static = random.chance(25);
    let fits = |(name, ..): &&Column| (*name == "s") == is_static && table.column(name).is_some();
    let cells: Vec<CellWrite> = COLUMNS
        .iter()
        .filter(fits)
        .map(|(column, path, value)| CellWrite {
            column,
            path: path.map(<[u8]>::to_vec),
            value: Some(value.to_vec()),
        })
        .collect();
    let change = match is_static {
        true => Change::Static(cells),
        false => Change::Row {
            clustering: vec![(random.below(3) as i32).to_be_bytes().to_vec()],
            marker: random.chance(30),
            cells,
            clear_map: false,
        },
    };
    (table, vec![b'a' + random.below(2) as u8], Timed { change, timestamp_us: 0, ttl_s: 0 })
}

/// Executes a bound write with a timestamp of now.
fn execute(database: &Database, (table, key, timed): &(Arc<Table>, Vec<u8>, Timed)) {
    let timed = Timed { timestamp_us: database.next_timestamp().unwrap(), ..timed.clone() };
    let made: PartitionUpdate = update(table, key, &[timed], database.now_s());
    database.write(&Mutation { updates: vec![made] }).unwrap().wait().unwrap();
}

fn content(database: &Database) -> Vec<FoundPartition> {
    let table = table_of(database, "t");
    read(database, &table, &Ask::everything(), 1_700_000_000).unwrap()
}

#[test]
fn what_is_written_to_a_dropped_column_is_not_in_the_column_made_again() {
    let runs = from_environment("OLD_DEFINITION_RUNS", 60);
    let first = from_environment("OLD_DEFINITION_SEED", 1);
    let mut late = 0;
    for seed in first..first + runs {
        let mut random = Random::new(seed);
        let mut machine = Machine::new(seed);
        let mut database = open(&machine);
        create(&database, vec![table_of_shape(&SHAPE())]);
        let mut bound = Vec::new();
        for _ in 0..40 {
            match random.below(10) {
                0..3 => bound.push(bind(&database, &mut random)),
                3..6 if !bound.is_empty() => {
                    let write = bound.swap_remove(random.below(bound.len()));
                    late += u64::from(!Arc::ptr_eq(&write.0, &table_of(&database, "t")));
                    execute(&database, &write);
                }
                6..8 => toggle(&database, COLUMNS[random.below(COLUMNS.len())].0),
                8 => _ = database.flush_all().unwrap(),
                _ => machine.advance(5_000_000),
            }
            if random.chance(15) {
                // Nothing is in flight over a restart.
                bound.clear();
                let before = content(&database);
                let after = machine.crash_image(Survives::EverythingWritten);
                machine.end_tasks();
                drop(database);
                machine = after;
                database = open(&machine);
                assert_eq!(content(&database), before, "seed {seed}: after a restart");
            }
        }
        let before = content(&database);
        database.flush_all().unwrap();
        assert_eq!(content(&database), before, "seed {seed}: after a flush");
        machine.end_tasks();
    }
    assert!(late > runs, "{late} writes had bound an old definition");
}
