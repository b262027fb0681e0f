//! One table whose flush fails never stops the others: its writes are refused, theirs and changes of the schema go on,
//! and once the cause is mended it takes writes again, with all that it had.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, Error, Event, Journal, JournalSlot, Result, Ticket};
use helenus_host::sim::Machine;
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_sstable::names::table_folder;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use support::*;

const MEMTABLE_BYTES: usize = 12 << 20;
const VALUE_BYTES: usize = 2000;
/// More steps than any background work in this test needs.
const STEPS_MAX: usize = 2000;

fn try_write(database: &Database, name: &str, c: i32) -> Result<Ticket> {
    let table = table_of(database, name);
    let write = Write::default().insert(&table, c, &"v".repeat(VALUE_BYTES), 10);
    database.write(&Mutation {
        updates: vec![PartitionUpdate { table, key: b"a".to_vec(), changes: write.changes }],
    })
}

fn rest(machine: &Machine) {
    machine.advance(1_000_000_000);
    assert!((0..STEPS_MAX).any(|_| !machine.step()), "background work goes on for ever");
}

/// A database with tables `bad` and `good`, and a file where the folder of `bad` should be.
fn opened(machine: &Machine) -> (Arc<Database>, PathBuf) {
    let host = machine.host();
    let database = open_with(&host, |options| options.memory.memtables = MEMTABLE_BYTES);
    create(&database, vec![table("bad", 7, false), table("good", 8, true)]);
    let bad = table_of(&database, "bad");
    let folder = PathBuf::from("/db/data/ks");
    host.disk.create_dir_all(&folder).unwrap();
    let in_the_way = folder.join(table_folder(&bad.name, bad.id));
    host.disk.create(&in_the_way).unwrap();
    (database, in_the_way)
}

/// Writes to `bad` until that is refused. Returns the number of rows taken.
fn fill(machine: &Machine, database: &Database) -> i32 {
    for c in 0.. {
        match try_write(database, "bad", c) {
            Ok(_ticket) => {}
            Err(error @ Error::FlushFails { .. }) => {
                assert!(error.to_string().starts_with("ks.bad takes no writes until"), "{error}");
                return c;
            }
            Err(error) => panic!("{error}"),
        }
        assert!((c as usize) * VALUE_BYTES < 3 * MEMTABLE_BYTES, "it takes writes for ever");
        if c % 100 == 0 {
            machine.advance(50_000_000);
            (0..20).for_each(|_| _ = machine.step());
        }
    }
    unreachable!("the loop has no end")
}

#[test]
fn the_other_tables_and_the_schema_go_on_while_one_cannot_be_flushed() {
    for seed in 1..=3 {
        let machine = Machine::new(seed);
        let (database, in_the_way) = opened(&machine);
        let taken = fill(&machine, &database);
        assert!(taken > 100, "{taken}");
        // Five times the memory, each write acknowledged.
        let rows = (5 * MEMTABLE_BYTES / VALUE_BYTES) as i32;
        for c in 0..rows {
            try_write(&database, "good", c).unwrap().wait().unwrap();
            if c % 200 == 0 {
                rest(&machine);
                assert!(database.status().memtable_bytes < 2 * MEMTABLE_BYTES as u64);
            }
        }
        let flushes = database.status().tables.iter().find(|table| table.table == "good").unwrap().flushes;
        assert!((5..150).contains(&flushes), "{flushes} flushes: a few, none of them tiny");
        assert!(matches!(try_write(&database, "bad", 0), Err(Error::FlushFails { .. })));
        create(&database, vec![table("new", 9, false)]);
        try_write(&database, "new", 1).unwrap().wait().unwrap();
        machine.host().disk.remove(&in_the_way).unwrap();
        (0..20).for_each(|_| rest(&machine));
        try_write(&database, "bad", taken).unwrap().wait().unwrap();
        assert_eq!(rows_of(&database, "bad", "a").len() as i32, taken + 1);
        assert_eq!(rows_of(&database, "good", "a").len() as i32, rows);
        database.close().unwrap();
        machine.end_tasks();
    }
}

#[test]
fn dropping_the_table_that_cannot_be_flushed_frees_its_memory() {
    let machine = Machine::new(4);
    let (database, in_the_way) = opened(&machine);
    fill(&machine, &database);
    let (_, ticket) = database
        .change_schema::<()>(|schema, _| {
            let mut next = schema.clone();
            let mut keyspace = (*next.keyspaces["ks"]).clone();
            keyspace.tables.remove("bad");
            next.keyspaces.insert("ks".into(), Arc::new(keyspace));
            Ok(next)
        })
        .map_err(|_| "the schema changes")
        .unwrap();
    ticket.wait().unwrap();
    rest(&machine);
    assert!(database.status().memtable_bytes < MEMTABLE_BYTES as u64 / 4);
    assert_eq!(database.status().flush_failure, None);
    try_write(&database, "good", 1).unwrap().wait().unwrap();
    machine.host().disk.remove(&in_the_way).unwrap();
    database.close().unwrap();
    machine.end_tasks();
}

#[test]
fn the_tables_that_are_flushed_together_with_it_are_flushed() {
    let machine = Machine::new(5);
    let (database, in_the_way) = opened(&machine);
    for name in ["bad", "good"] {
        try_write(&database, name, 1).unwrap().wait().unwrap();
    }
    let failed = database.flush_all().unwrap_err();
    assert!(matches!(&failed, Error::NotFlushed { tables, .. } if tables == &["ks.bad"]), "{failed}");
    machine.host().disk.remove(&in_the_way).unwrap();
    assert_eq!(database.flush_all().unwrap(), 1);
    database.close().unwrap();
    machine.end_tasks();
}

/// Collects the events of replaced options.
#[derive(Default)]
struct Replaced(Mutex<Vec<(String, String)>>);

impl Journal for Replaced {
    fn note(&self, event: &Event<'_>) {
        if let Event::OptionsReplaced { table, problem } = event {
            self.0.lock().unwrap().push((table.name.to_string(), (*problem).to_owned()));
        }
    }
}

/// Statements refuse such options. A schema that an older server or another program wrote may have them.
#[test]
fn compression_that_cannot_be_written_is_replaced_by_the_default_and_named() {
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("class", "LZ4Compressor"), ("chunk_length_in_kb", "524288")], "chunk length 536870912"),
        (&[("class", "LZ4Compressor"), ("chunk_length_in_kb", "3")], "chunk length 3072"),
        (
            &[("class", "org.example.Brotli"), ("chunk_length_in_kb", "16")],
            "org.example.Brotli is not supported",
        ),
        (&[("class", "ZstdCompressor"), ("compression_level", "99")], "compression_level is no level"),
    ];
    let machine = Machine::new(6);
    let journal = Arc::new(Replaced::default());
    let database = open_with(&machine.host(), |options| options.journal = JournalSlot::of(journal.clone()));
    for (number, (compression, problem)) in cases.into_iter().enumerate() {
        let name = format!("t{number}");
        let mut odd = table(&name, 20 + number as u128, false);
        odd.options.compression =
            compression.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        create(&database, vec![odd]);
        let table = table_of(&database, &name);
        for c in 0..3 {
            try_write(&database, &name, c).unwrap().wait().unwrap();
            assert_eq!(database.flush(table.id).unwrap(), 1);
        }
        let compacting = database.compact(vec![table.id]);
        machine.run_until_idle();
        compacting.wait().unwrap();
        assert_eq!(rows_of(&database, &name, "a").len(), 3);
        let events = std::mem::take(&mut *journal.0.lock().unwrap());
        assert_eq!(events.len(), 4, "three flushes and a compaction: {events:?}");
        assert!(events.iter().all(|(of, text)| *of == name && text.contains(problem)), "{events:?}");
    }
    database.close().unwrap();
    machine.end_tasks();
}
