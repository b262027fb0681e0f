//! Every logged change can be applied, flushed and replayed. The changes are random and of every kind, half of them
//! with bytes that no statement writes. The engine either refuses a change before its record is written, or keeps it:
//! it is read, replayed after a crash, flushed, compacted and read again. `STORABLE_RUNS` sets the number of runs,
//! `STORABLE_SEED` their seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, Error};
use helenus_host::sim::{Machine, Survives};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::CqlType;
use std::sync::Arc;
use support::random::{Random, from_environment};
use support::{create, table_of};
use uuid::Uuid;

/// A table with a random clustering: types whose byte strings all have an order, and types for which some have none.
fn shape(random: &mut Random) -> Table {
    let text = || Arc::new(CqlType::Text);
    let clustering = [
        CqlType::Int,
        CqlType::Text,
        CqlType::SmallInt,
        CqlType::Decimal,
        CqlType::TimeUuid,
        CqlType::List { element: Arc::new(CqlType::Int), frozen: true },
        CqlType::Tuple(vec![CqlType::Int, CqlType::Text].into()),
    ];
    let mut columns = vec![Column::new("k", ColumnKind::PartitionKey, CqlType::Text)];
    for name in ["c0", "c1"] {
        let ty = random.pick(&clustering).clone();
        columns.push(Column { reversed: random.chance(30), ..Column::new(name, ColumnKind::Clustering, ty) });
    }
    columns.extend([
        Column::new("s", ColumnKind::Static, CqlType::Text),
        Column::new("n", ColumnKind::Regular, CqlType::Int),
        Column::new("v", ColumnKind::Regular, CqlType::Text),
        Column::new("l", ColumnKind::Regular, CqlType::List { element: text(), frozen: false }),
        Column::new("m", ColumnKind::Regular, CqlType::Map { key: text(), value: text(), frozen: false }),
        Column::new("e", ColumnKind::Regular, CqlType::Set { element: text(), frozen: false }),
    ]);
    Table::new(("ks", "t"), TableId(Uuid::from_u128(7)), columns)
}

/// A value of a type, as a statement writes it.
fn value(ty: &CqlType, random: &mut Random) -> Vec<u8> {
    let number = random.below(5) as u8;
    match ty {
        CqlType::Int => vec![0, 0, 0, number],
        CqlType::SmallInt => vec![0, number],
        CqlType::Decimal => vec![0, 0, 0, 1, number],
        CqlType::TimeUuid => [&[number; 6][..], &[0x10, 0, 0x80], &[number; 7]].concat(),
        CqlType::List { .. } => vec![0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, number],
        CqlType::Tuple(_) => vec![0, 0, 0, 4, 0, 0, 0, number, 0xFF, 0xFF, 0xFF, 0xFF],
        _ => vec![b'a' + number; usize::from(number)],
    }
}

fn deletion(random: &mut Random) -> DeletionTime {
    DeletionTime { timestamp_us: 1 + random.below(9) as i64, local_s: 1_700_000_000 }
}

/// Random changes as statements make them, with the cells of a column in the order of their paths.
fn drawn(table: &Table, random: &mut Random) -> Changes {
    let mut changes = Changes::default();
    for _ in 0..1 + random.below(3) {
        let clustering: Vec<Vec<u8>> =
            table.clustering.iter().map(|column| value(&column.ty, random)).collect();
        let prefix: Vec<Option<&[u8]>> = clustering.iter().map(|value| Some(&value[..])).collect();
        match random.below(10) {
            0 => changes.delete_partition(deletion(random)),
            1 | 2 => {
                let from = &prefix[..random.below(prefix.len() + 1)];
                changes.delete_range((from, true), (from, false), deletion(random));
            }
            3 => changes.static_row(&[], |row| {
                row.cell(&cell(table, "s", random), None, b"static");
            }),
            _ => {
                let live = if random.chance(60) { Liveness::at(5) } else { Liveness::NONE };
                let dead = if random.chance(20) { deletion(random) } else { DeletionTime::LIVE };
                let complex = table.column("m").unwrap().id;
                let complex: Vec<_> =
                    random.chance(20).then(|| (complex, deletion(random))).into_iter().collect();
                changes.row(prefix.iter().copied(), (live, dead), &complex, |row| {
                    for column in &table.regulars {
                        let paths = if column.ty.is_multi_cell() { random.below(4) } else { 1 };
                        for path in 0..paths {
                            if random.chance(30) {
                                continue;
                            }
                            let path = [[path as u8; 7].as_slice(), &[0x10; 9]].concat();
                            let of_path = column.ty.is_multi_cell().then_some(&path[..]);
                            let is_int = *column.name == *"n";
                            let bytes = if is_int { vec![0, 0, 0, 9] } else { vec![b'v'; random.below(9)] };
                            row.cell(&cell(table, &column.name, random), of_path, &bytes);
                        }
                    }
                });
            }
        }
    }
    changes
}

fn cell(table: &Table, column: &str, random: &mut Random) -> Cell {
    let is_expiring = random.chance(20);
    Cell {
        column: table.column(column).unwrap().id,
        ttl_s: if is_expiring { 60 } else { 0 },
        timestamp_us: 1 + random.below(9) as i64,
        local_deletion_s: if is_expiring { 1_900_000_000 } else { NO_EXPIRY },
        path: Span::NULL,
        value: Span::EMPTY,
    }
}

/// The same changes with some bytes changed, duplicated or removed.
fn spoilt(changes: &Changes, random: &mut Random) -> Changes {
    let mut bytes = changes.as_bytes().to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes.truncate(at),
            1 => {
                let end = (at + 1 + random.below(8)).min(bytes.len());
                let piece = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ if bytes.is_empty() => {}
            2 => bytes[at] = *random.pick(&[0, 1, 2, 4, 8, 0x7F, 0x80, 0xFF]),
            _ => bytes[at] ^= 1 << random.below(8),
        }
    }
    Changes::from_bytes(bytes)
}

fn read_all(database: &Database, keys: usize) {
    for key in 0..keys {
        let mut command = support::command(database, "t", &format!("key {key}"));
        for reversed in [false, true] {
            command.reversed = reversed;
            let mut sink = support::Ignoring;
            let view = database.view(&command.table).unwrap();
            let request = helenus_engine::ReadRequest { may_block: true, ..Default::default() };
            let end = database.read(&command, &view, request, &mut sink, None);
            assert!(end.is_ok(), "key {key}: {:?}", end.err());
        }
    }
}

fn go(seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let mut machine = Machine::new(seed);
    let mut database = support::open(&machine.host());
    create(&database, vec![shape(&mut random)]);
    let (mut kept, mut refused) = (0, 0);
    for round in 0..6 {
        let table = table_of(&database, "t");
        for _ in 0..12 {
            let mut changes = drawn(&table, &mut random);
            let is_spoilt = random.chance(70);
            if is_spoilt {
                changes = spoilt(&changes, &mut random);
            }
            let key = format!("key {}", random.below(3)).into_bytes();
            let update = PartitionUpdate { table: table.clone(), key, changes };
            match database.write(&Mutation { updates: vec![update] }) {
                Ok(ticket) => {
                    ticket.wait().unwrap();
                    kept += 1;
                }
                Err(Error::Unstorable { .. }) if is_spoilt => refused += 1,
                Err(other) => panic!("round {round}, spoilt {is_spoilt}: {other}"),
            }
        }
        read_all(&database, 3);
        if random.chance(40) {
            database.flush_all().unwrap();
            database.compact(vec![table.id]).wait().unwrap();
        }
        if random.chance(60) {
            let is_clean = random.chance(50);
            if is_clean {
                database.close().unwrap();
            }
            let after = machine.crash_image(Survives::OnlySynced);
            machine.end_tasks();
            drop(database);
            machine = after;
            database = support::open(&machine.host());
        }
        read_all(&database, 3);
    }
    machine.end_tasks();
    (kept, refused)
}

#[test]
fn what_is_logged_can_be_applied_flushed_and_replayed() {
    let runs = from_environment("STORABLE_RUNS", 40);
    let first = from_environment("STORABLE_SEED", 1);
    let (mut kept, mut refused) = (0, 0);
    for seed in first..first + runs {
        println!("seed {seed}");
        let of_run = go(seed);
        (kept, refused) = (kept + of_run.0, refused + of_run.1);
    }
    println!("{kept} changes were kept, {refused} refused");
    assert!(runs < 10 || kept > refused / 20 && refused > kept / 20, "{kept} kept, {refused} refused");
}
