//! `CREATE TABLE .. WITH id` may name any id: one that is in use is refused, and one that was dropped brings nothing back.
//! And a TRUNCATE that a start has replayed is done: what is imported after it stays.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DdlError, Error, SyncMode};
use helenus_host::sim::{Call, Fault, Machine, Survives};
use helenus_model::schema::Schema;
use std::io::ErrorKind;
use std::sync::Arc;
use support::world::{Form, World};
use support::*;

fn drop_table(database: &Database, name: &str) {
    let dropped = database.change_schema::<()>(|schema, _| {
        let mut next: Schema = schema.clone();
        let mut keyspace = (*next.keyspaces["ks"]).clone();
        keyspace.tables.remove(name);
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    });
    dropped.map_err(|_| "the table is dropped").unwrap().1.wait().unwrap();
}

fn write(database: &Database, name: &str, rows: std::ops::Range<i32>) {
    let table = table_of(database, name);
    for c in rows {
        Write::default().insert(&table, c, name, 10).to(database, name, "a").wait().unwrap();
    }
}

#[test]
fn the_id_of_a_live_table_is_refused() {
    let machine = Machine::new(1);
    let database = open(&machine.host());
    create(&database, vec![table("t", 7, false)]);
    write(&database, "t", 0..3);
    let refused = database.change_schema::<()>(|schema, _| {
        let mut next: Schema = schema.clone();
        let mut keyspace = (*next.keyspaces["ks"]).clone();
        keyspace.tables.insert("u".into(), Arc::new(table("u", 7, false)));
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    });
    assert!(matches!(refused, Err(DdlError::Engine(Error::TableIdInUse { .. }))), "{:?}", refused.err());
    assert_eq!(rows_of(&database, "t", "a").len(), 3);
    machine.end_tasks();
}

#[test]
fn the_id_of_a_dropped_table_brings_none_of_its_rows_back() {
    for is_flushed in [false, true] {
        let machine = Machine::new(2);
        let database = open(&machine.host());
        create(&database, vec![table("t", 7, false)]);
        write(&database, "t", 0..20);
        if is_flushed {
            database.flush_all().unwrap();
            write(&database, "t", 20..40);
        }
        drop_table(&database, "t");
        create(&database, vec![table("u", 7, false)]);
        write(&database, "u", 100..103);
        let after = machine.crash_image(Survives::EverythingWritten);
        let expected: Vec<_> = (100..103).map(|c| (c, "u".to_owned())).collect();
        assert_eq!(rows_of(&database, "u", "a"), expected);
        let again = open(&after.host());
        assert_eq!(rows_of(&again, "u", "a"), expected, "flushed: {is_flushed}");
        machine.end_tasks();
        after.end_tasks();
    }
}

#[test]
fn files_of_a_dropped_table_are_not_removed_from_under_a_new_one() {
    let machine = Machine::new(3);
    let database = open(&machine.host());
    create(&database, vec![table("t", 7, false)]);
    write(&database, "t", 0..20);
    database.flush_all().unwrap();
    machine.fail(Fault::new(Call::Remove, 1, ErrorKind::Other).on("Data.db").lasting());
    drop_table(&database, "t");
    machine.clear_faults();
    let refused = database.change_schema::<()>(|schema, _| {
        let mut next: Schema = schema.clone();
        let mut keyspace = (*next.keyspaces["ks"]).clone();
        keyspace.tables.insert("t".into(), Arc::new(table("t", 7, false)));
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    });
    assert!(matches!(refused, Err(DdlError::Engine(Error::TableIdInUse { .. }))), "{:?}", refused.err());
    // Once the files are gone, the id is free.
    machine.advance(2_000_000_000);
    machine.run_until_idle();
    create(&database, vec![table("t", 7, false)]);
    write(&database, "t", 5..7);
    database.flush_all().unwrap();
    machine.advance(120_000_000_000);
    machine.run_until_idle();
    let after = machine.crash_image(Survives::OnlySynced);
    assert_eq!(rows_of(&open(&after.host()), "t", "a").len(), 2);
    machine.end_tasks();
    after.end_tasks();
}

#[test]
fn what_is_imported_after_a_start_that_replayed_a_truncate_stays() {
    for seed in 1..5 {
        let form = Form {
            seed,
            segment_bytes: 32 << 10,
            memtable_bytes: 64 << 20,
            mode: SyncMode::Group,
            value_bytes: (30, 5_000),
            kept_bytes: 1 << 30,
        };
        let mut world = World::new(form);
        world.load("t", 2, "rows");
        world.snapshot("s", &["t"]).unwrap();
        world.machine.fail(Fault::new(Call::Remove, 1, ErrorKind::Other).on("/t-").lasting());
        assert!(world.truncate("t").is_err(), "its files cannot be removed");
        world.machine.clear_faults();
        world.known.tables.insert("t", Default::default());
        let mut world = world.kill("within a TRUNCATE");
        world.check("truncated");
        world.import("s", &["t"]).unwrap();
        assert!(!world.known.tables["t"].is_empty());
        let world = world.kill("after the import, with no other write");
        world.check("imported");
        let world = world.restart("once more");
        world.check("imported, later");
        world.end();
    }
}
