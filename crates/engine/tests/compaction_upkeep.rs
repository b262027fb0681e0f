//! Compaction beside everything else: a disk with little space, failures that last, a long compaction beside small ones,
//! tables of many SSTables, and what holds the space of the disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::read::{KeyRange, Partitions, Probe, SkipReason};
use helenus_engine::{
    CheckedName, Database, Event, Exports, Journal, JournalSlot, ReadRequest, Snapshots, SpacePurpose,
    TableStatus,
};
use helenus_host::sim::{Call, Fault, Machine};
use helenus_model::schema::Table;
use helenus_model::token::Token;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};
use support::random::{Random, from_environment};
use support::*;

const SECOND_NS: u64 = 1_000_000_000;
const KIB: u64 = 1 << 10;

/// Keeps the names of the events that concern compactions.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Journal for Told {
    fn note(&self, event: &Event<'_>) {
        let text = match event {
            Event::CompactionFailed { left_out, .. } => format!("failed, without {}", left_out.len()),
            Event::CompactionWaits { .. } => "waits".to_owned(),
            Event::CompactionGoesOn { .. } => "goes on".to_owned(),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

impl Told {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A database with small segments and memtables, whose tables are compacted by themselves from four SSTables on.
struct Setting {
    machine: Machine,
    database: Arc<Database>,
    told: Arc<Told>,
    clock_us: i64,
}

fn tiered(name: &str, id: u128) -> Table {
    let mut table = table(name, id, false);
    table.options.compaction =
        BTreeMap::from([("class".to_owned(), "SizeTieredCompactionStrategy".to_owned())]);
    table
}

impl Setting {
    fn new(seed: u64, tables: Vec<Table>, automatic: bool) -> Setting {
        let machine = Machine::new(seed);
        let told = Arc::new(Told::default());
        let database = open_with(&machine.host(), |options| {
            options.segment_bytes = 16 << 10;
            options.memory.memtables = 8 << 20;
            options.compaction.automatic = automatic;
            options.journal = JournalSlot::of(told.clone());
        });
        create(&database, tables);
        Setting { machine, database, told, clock_us: 0 }
    }

    /// Flushes one SSTable of a table with rows that do not compress. Each partition has one row.
    fn flush(&mut self, table: &str, keys: impl Iterator<Item = String>, bytes: usize) {
        for key in keys {
            self.clock_us += 1;
            let mut random = Random::new(self.clock_us as u64);
            let value: String = (0..bytes).map(|_| char::from(b'!' + random.below(90) as u8)).collect();
            let of = table_of(&self.database, table);
            Write::default()
                .insert(&of, 1, &value, self.clock_us)
                .to(&self.database, table, &key)
                .wait()
                .unwrap();
        }
        self.database.flush(table_of(&self.database, table).id).unwrap();
    }

    fn status(&self, table: &str) -> TableStatus {
        self.database.status().tables.into_iter().find(|line| line.table == table).unwrap()
    }

    fn pass(&self, seconds: u64) {
        self.machine.advance(seconds * SECOND_NS);
        self.machine.run_until_idle();
    }

    /// The keys of all partitions of a table.
    fn keys(&self, table: &str) -> Vec<String> {
        let mut whole = command(&self.database, table, "");
        whole.partitions = Partitions::Range(KeyRange::all());
        run(&self.database, &whole).rows.into_iter().map(|row| row.0).collect()
    }

    /// Checks that the folder of a table has the files of its SSTables and nothing else.
    fn assert_nothing_is_left(&self, what: &str) {
        let usage = self.database.disk_usage().unwrap();
        let odd = usage.uses.iter().filter(|((purpose, ..), _)| {
            matches!(purpose, SpacePurpose::Left | SpacePurpose::Temporary | SpacePurpose::Writing)
        });
        assert_eq!(odd.count(), 0, "{what}: {usage:?}");
        let named: u64 = usage.uses.values().map(|space| space.bytes).sum();
        assert_eq!(named, self.machine.used_bytes(), "{what}: {usage:?}");
    }
}

fn names(prefix: &str, count: usize) -> impl Iterator<Item = String> + use<'_> {
    (0..count).map(move |n| format!("{prefix}{n}"))
}

#[test]
fn a_compaction_without_room_does_not_begin_is_told_once_and_goes_on_with_space() {
    let mut setting = Setting::new(1, vec![tiered("t", 1)], true);
    let table = table_of(&setting.database, "t");
    setting.database.compactions().set_automatic(&[table.id], false);
    for n in 0..4 {
        setting.flush("t", names(&format!("{n}-"), 20), 4096);
    }
    // Until other tables are flushed for the log, and the log has its segments.
    (0..100).for_each(|_| setting.pass(1));
    setting.database.compactions().set_automatic(&[table.id], true);
    let (used, created) = (setting.machine.used_bytes(), setting.machine.calls(Call::Create));
    setting.machine.set_capacity(used + 100 * KIB);
    for _ in 0..100 {
        setting.pass(30);
    }
    assert_eq!(setting.machine.calls(Call::Create), created, "nothing was begun");
    assert_eq!(setting.machine.used_bytes(), used);
    assert_eq!(setting.told.take(), ["waits"]);
    let trouble = setting.database.compactions().troubles().remove(0);
    assert_eq!((trouble.keyspace.as_str(), trouble.table.as_str()), ("ks", "t"));
    let wanted = trouble.wanted_bytes.unwrap();
    assert!(wanted > 160 * KIB && wanted < 500 * KIB, "of the two smallest: {trouble:?}");
    assert_eq!(trouble.free_bytes, 100 * KIB);
    assert!(trouble.reason.contains("no space for the compaction"), "{}", trouble.reason);
    assert_eq!(setting.status("t").compaction_failure, Some(trouble.reason));
    // Who asks is told, and the table's state is as before.
    let refused = setting.database.compact(vec![table_of(&setting.database, "t").id]).wait().unwrap_err();
    assert!(refused.contains("no space for the compaction") && refused.contains("diskusage"), "{refused}");
    assert_eq!(setting.status("t").sstables, 4);
    setting.machine.set_capacity(used + 4 * 1024 * KIB);
    setting.pass(10);
    assert_eq!(setting.status("t").sstables, 1);
    assert_eq!(setting.told.take(), ["goes on"]);
    assert_eq!(setting.database.compactions().troubles(), []);
    assert_eq!((setting.status("t").compaction_failure, setting.keys("t").len()), (None, 80));
    setting.assert_nothing_is_left("at the end");
    setting.machine.end_tasks();
}

#[test]
fn small_sstables_are_compacted_while_large_ones_wait_for_space() {
    let mut large = tiered("t", 1);
    large.options.compaction.insert("min_sstable_size".into(), "0".into());
    let mut setting = Setting::new(14, vec![large], true);
    let table = table_of(&setting.database, "t");
    setting.database.compactions().set_automatic(&[table.id], false);
    for n in 0..4 {
        setting.flush("t", names(&format!("{n}-"), 200), 4096);
    }
    (0..100).for_each(|_| setting.pass(1));
    setting.machine.set_capacity(setting.machine.used_bytes() + 700 * KIB);
    setting.database.compactions().set_automatic(&[table.id], true);
    setting.pass(1);
    for n in 4..20 {
        setting.flush("t", names(&format!("{n}-"), 2), 100);
        setting.pass(1);
        assert!(setting.status("t").sstables <= 4 + 7, "{} SSTables", setting.status("t").sstables);
    }
    assert_eq!(setting.told.take(), ["waits"], "told once, whatever the small ones do");
    setting.machine.set_capacity(u64::MAX);
    (0..10).for_each(|_| setting.pass(10));
    assert_eq!((setting.told.take(), setting.keys("t").len()), (vec!["goes on".to_owned()], 832));
    setting.assert_nothing_is_left("at the end");
    setting.machine.end_tasks();
}

#[test]
fn the_largest_sstables_are_left_out_for_want_of_room() {
    let mut setting = Setting::new(2, vec![tiered("t", 1)], true);
    setting.database.compactions().set_automatic(&[table_of(&setting.database, "t").id], false);
    for n in 0..5 {
        setting.flush("t", names(&format!("{n}-"), if n == 2 { 200 } else { 5 }), 4096);
    }
    setting.machine.set_capacity(setting.machine.used_bytes() + 600 * KIB);
    setting.database.compactions().set_automatic(&[table_of(&setting.database, "t").id], true);
    setting.pass(1);
    let status = setting.status("t");
    assert_eq!((status.sstables, status.compaction_failure), (2, None));
    let work = setting.database.status().work;
    assert_eq!((work.compactions, work.compactions_reduced, work.compaction_sstables_left_out), (1, 1, 1));
    assert_eq!((setting.told.take(), setting.keys("t").len()), (Vec::<String>::new(), 220));
    setting.assert_nothing_is_left("at the end");
    setting.machine.end_tasks();
}

/// Tables and sizes are drawn, the disk fills up and becomes larger again.
fn run_on_a_small_disk(seed: u64) {
    let mut random = Random::new(seed);
    let tables = ["a", "b", "c"];
    let mut setting =
        Setting::new(seed, (1..).zip(tables).map(|(id, name)| tiered(name, id)).collect(), true);
    let mut keys: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for round in 0..12 {
        let table = *random.pick(&tables);
        let most = if random.chance(20) { 60 } else { 10 };
        let count = 1 + random.below(most);
        setting.machine.set_capacity(u64::MAX);
        let new: Vec<String> = names(&format!("{round}-"), count).collect();
        setting.flush(table, new.iter().cloned(), 1000 + random.below(4000));
        keys.entry(table).or_default().extend(new);
        setting.machine.set_capacity(setting.machine.used_bytes() + random.below(600) as u64 * KIB);
        let written = setting.database.status().work.compaction_failures;
        for _ in 0..random.below(40) {
            setting.pass(10);
        }
        let failures = setting.database.status().work.compaction_failures - written;
        assert!(failures <= 3 * 6, "seed {seed}: {failures} attempts failed within 400 seconds");
        if random.chance(30) {
            // Whatever the answer, it comes.
            let _ = setting.database.compact(vec![table_of(&setting.database, table).id]).wait();
        }
        setting.assert_nothing_is_left(&format!("seed {seed}, round {round}"));
    }
    setting.machine.set_capacity(u64::MAX);
    setting.pass(10);
    setting.pass(60);
    for table in tables {
        assert!(setting.status(table).sstables < 4, "seed {seed}: {table} is compacted again");
        let mut right = keys.remove(table).unwrap_or_default();
        let mut found = setting.keys(table);
        right.sort();
        found.sort();
        assert_eq!(found, right, "seed {seed}");
    }
    assert_eq!(setting.database.compactions().troubles(), [], "seed {seed}");
    setting.assert_nothing_is_left(&format!("seed {seed}, at the end"));
    setting.machine.end_tasks();
}

#[test]
fn drawn_tables_on_a_small_disk_are_compacted_as_far_as_there_is_room_and_wholly_later() {
    let first = from_environment("SEED", 1);
    (first..first + from_environment("RUNS", 12)).for_each(run_on_a_small_disk);
}

#[test]
fn two_compactions_do_not_count_the_same_free_space() {
    let machine = Machine::new(3);
    let database = open_with(&machine.host(), |options| {
        options.segment_bytes = 16 << 10;
        options.memory.memtables = 1 << 20;
        options.compaction.threads = 2;
    });
    let of_two = |name: &str, id| {
        let mut table = tiered(name, id);
        table.options.compaction.insert("min_threshold".into(), "2".into());
        table
    };
    create(&database, vec![of_two("a", 1), of_two("b", 2)]);
    let told = Arc::new(Told::default());
    let mut setting = Setting { machine, database, told, clock_us: 0 };
    let ids: Vec<_> = ["a", "b"].map(|name| table_of(&setting.database, name).id).to_vec();
    setting.database.compactions().set_automatic(&ids, false);
    for n in 0..2 {
        setting.flush("a", names(&format!("{n}-"), 30), 4096);
        setting.flush("b", names(&format!("{n}-"), 30), 4096);
    }
    // Room for one of them with its reserve, and for both without.
    let one = setting.status("a").disk_bytes;
    setting.machine.set_capacity(setting.machine.used_bytes() + one * 7 / 2);
    setting.database.compactions().set_automatic(&ids, true);
    let mut most = 0;
    while setting.database.status().work.compactions < 2 {
        most = most.max(setting.database.status().compactions.len());
        if !setting.machine.step() {
            setting.machine.advance(SECOND_NS);
        }
    }
    assert_eq!(most, 1, "one after the other");
    assert_eq!(setting.database.status().work.compaction_failures, 0);
    setting.machine.end_tasks();
}

#[test]
fn an_input_that_fails_is_named_tried_ever_less_often_and_does_not_block_the_others() {
    let mut setting = Setting::new(4, vec![tiered("t", 1)], true);
    let table = table_of(&setting.database, "t");
    setting.database.compactions().set_automatic(&[table.id], false);
    for n in 0..5 {
        setting.flush("t", names(&format!("{n}-"), 5), 2000);
    }
    let bad = *setting.database.view(&table).unwrap().sstables[0].descriptor();
    let bad = format!("{bad}-Data.db");
    setting.machine.fail(Fault::new(Call::Read, 1, ErrorKind::Other).on(&bad).lasting());
    setting.database.compactions().set_automatic(&[table.id], true);
    setting.pass(1);
    assert_eq!(setting.status("t").sstables, 2, "the four others are compacted");
    assert_eq!(setting.told.take(), ["failed, without 1"]);
    for n in 5..7 {
        setting.flush("t", names(&format!("{n}-"), 5), 2000);
        setting.pass(1);
    }
    let trouble = setting.database.compactions().troubles();
    assert_eq!(trouble.iter().map(|one| one.left_out.clone()).collect::<Vec<_>>(), [vec![bad.clone()]]);
    let before = setting.database.status().work.compaction_failures;
    (0..360).for_each(|_| setting.pass(10));
    let failures = setting.database.status().work.compaction_failures - before;
    assert!((1..=10).contains(&failures), "{failures} attempts in an hour");
    assert_eq!(setting.told.take(), Vec::<String>::new(), "told once");
    assert_eq!(setting.keys_without_faults().len(), 35);
    // Who requests a compaction has it tried at once.
    setting.database.compact(vec![table.id]).wait().unwrap();
    assert_eq!((setting.status("t").sstables, setting.keys("t").len()), (1, 35));
    setting.machine.end_tasks();
}

impl Setting {
    fn keys_without_faults(&self) -> Vec<String> {
        self.machine.clear_faults();
        self.keys("t")
    }
}

#[test]
fn a_compaction_that_runs_into_a_full_disk_backs_off_by_doubling() {
    let mut setting = Setting::new(5, vec![tiered("t", 1)], true);
    let table = table_of(&setting.database, "t");
    setting.database.compactions().set_automatic(&[table.id], false);
    for n in 0..4 {
        setting.flush("t", names(&format!("{n}-"), 5), 2000);
    }
    // The system said that there is space, and there is none.
    setting.machine.fail(Fault::new(Call::Create, 1, ErrorKind::StorageFull).on("ks/t-").lasting());
    setting.database.compactions().set_automatic(&[table.id], true);
    (0..360).for_each(|_| setting.pass(10));
    let failures = setting.database.status().work.compaction_failures;
    assert!((5..=10).contains(&failures), "{failures} attempts in an hour");
    assert_eq!(setting.told.take(), ["failed, without 0"], "told once");
    setting.machine.clear_faults();
    (0..360).for_each(|_| setting.pass(10));
    assert_eq!((setting.status("t").sstables, setting.told.take()), (1, vec!["goes on".to_owned()]));
    setting.assert_nothing_is_left("at the end");
    setting.machine.end_tasks();
}

#[test]
fn small_tables_stay_small_beside_a_long_compaction() {
    let mut setting = Setting::new(6, vec![tiered("long", 1), tiered("small", 2)], true);
    let long = table_of(&setting.database, "long").id;
    setting.database.compactions().set_automatic(&[long], false);
    for n in 0..4 {
        setting.flush("long", names(&format!("{n}-"), 60), 60_000);
    }
    setting.database.compactions().set_bytes_per_s(512 * KIB);
    setting.database.compactions().set_automatic(&[long], true);
    setting.pass(1);
    let is_long_there = |setting: &Setting| {
        setting.database.status().compactions.iter().any(|running| running.table == "long")
    };
    let (mut most, mut flushes) = (0, 0);
    while is_long_there(&setting) {
        setting.flush("small", names(&format!("{flushes}-"), 2), 100);
        setting.machine.run_until_idle();
        setting.machine.advance(SECOND_NS);
        setting.machine.run_until_idle();
        flushes += 1;
        most = most.max(setting.status("small").sstables);
        assert!(flushes < 500, "the long compaction ends");
    }
    assert!(flushes > 20, "{flushes} flushes beside it");
    assert!(most <= 8, "{most} SSTables after {flushes} flushes");
    assert_eq!((setting.keys("long").len(), setting.keys("small").len()), (240, 2 * flushes));
    setting.machine.end_tasks();
}

/// A table of disjoint SSTables, each with four partitions that are neighbours on the ring. Returns the keys in ring order.
fn disjoint(setting: &mut Setting, sstables: usize) -> Vec<String> {
    let mut keys: Vec<String> = names("key ", 4 * sstables).collect();
    keys.sort_by_key(|key| Token::of_key(key.as_bytes()));
    for four in keys.chunks(4) {
        setting.flush("t", four.iter().cloned(), 50);
    }
    keys
}

#[test]
fn a_read_by_key_looks_at_no_sstable_that_cannot_have_the_key() {
    let mut setting = Setting::new(7, vec![tiered("t", 1)], false);
    let keys = disjoint(&mut setting, 100);
    // Two that cover all, one of them newest.
    setting.flush("t", [keys[0].clone(), keys[399].clone()].into_iter(), 50);
    let view = setting.database.view(&table_of(&setting.database, "t")).unwrap();
    assert_eq!(view.sstables.len(), 101);
    for key in &keys {
        let command = command(&setting.database, "t", key);
        let (mut rows, mut probe) = (Rows::default(), Probe::default());
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        setting.database.read(&command, &view, request, &mut rows, Some(&mut probe)).unwrap();
        assert_eq!(rows.rows.len(), 1, "{key}");
        assert!(probe.tables.len() <= 2, "looked at {} SSTables", probe.tables.len());
        assert_eq!(probe.sstables + probe.sstables_skipped, 101, "all are accounted for");
        assert!(probe.skipped(SkipReason::KeyRange) >= 99);
        let positions: Vec<usize> = view.sstables.at(Token::of_key(key.as_bytes())).collect();
        assert!(positions.is_sorted() && positions.len() <= 2, "newest first: {positions:?}");
    }
    setting.machine.end_tasks();
}

#[test]
fn a_page_of_a_range_opens_only_the_sstables_that_it_reaches() {
    let mut setting = Setting::new(8, vec![tiered("t", 1)], false);
    let keys = disjoint(&mut setting, 100);
    let view = setting.database.view(&table_of(&setting.database, "t")).unwrap();
    let mut whole = command(&setting.database, "t", "");
    whole.partitions = Partitions::Range(KeyRange::all());
    whole.page_rows = Some(2);
    let (mut rows, mut pages, mut touched) = (Rows::default(), 0, 0);
    loop {
        let mut probe = Probe::default();
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        let end = setting.database.read(&whole, &view, request, &mut rows, Some(&mut probe)).unwrap();
        let blocks = probe.touched.blocks_read + probe.touched.blocks_cached;
        touched += blocks + probe.touched.index_pages_read + probe.touched.index_pages_cached;
        pages += 1;
        match end {
            helenus_engine::read::ReadEnd::Complete => break,
            helenus_engine::read::ReadEnd::Page(resume) => whole.resume = Some(resume),
        }
    }
    assert_eq!(rows.rows.into_iter().map(|row| row.0).collect::<Vec<_>>(), keys);
    assert!(pages >= 200 && touched < 12 * pages, "{touched} blocks in {pages} pages");
    setting.machine.end_tasks();
}

#[test]
fn a_compaction_of_disjoint_sstables_keeps_every_row_and_purges_by_what_overlaps() {
    let mut setting = Setting::new(9, vec![tiered("t", 1)], false);
    let keys = disjoint(&mut setting, 60);
    let deleted = &keys[17];
    // Long ago, but newer than the row.
    Write::default().delete_partition(1_000_000).to(&setting.database, "t", deleted).wait().unwrap();
    setting.database.flush(table_of(&setting.database, "t").id).unwrap();
    setting.database.compact(vec![table_of(&setting.database, "t").id]).wait().unwrap();
    let mut right = keys.clone();
    right.remove(17);
    assert_eq!((setting.keys("t"), setting.status("t").sstables), (right, 1));
    setting.machine.end_tasks();
}

#[test]
fn changed_compaction_options_count_at_once() {
    let mut off = tiered("t", 1);
    off.options.compaction.insert("enabled".into(), "false".into());
    let mut setting = Setting::new(10, vec![off], true);
    for n in 0..4 {
        setting.flush("t", names(&format!("{n}-"), 2), 100);
    }
    setting.machine.run_until_idle();
    assert_eq!(setting.status("t").sstables, 4);
    let mut on = (*table_of(&setting.database, "t")).clone();
    on.options.compaction.insert("enabled".into(), "true".into());
    create(&setting.database, vec![on]);
    setting.machine.run_until_idle();
    assert_eq!(setting.status("t").sstables, 1, "without a moment passing");
    setting.machine.end_tasks();
}

#[test]
fn tombstones_are_kept_from_the_start_if_the_options_say_so() {
    for keeps in [false, true] {
        let mut setting = Setting::new(11, vec![tiered("t", 1)], false);
        let an_hour_ago = setting.machine.host().clock.wall_us() - 3_600_000_000;
        for n in 0..4 {
            let key = format!("key {n}");
            Write::default().delete_partition(an_hour_ago).to(&setting.database, "t", &key).wait().unwrap();
            setting.flush("t", std::iter::once(format!("other {n}")), 100);
        }
        setting.database.close().unwrap();
        setting.machine.end_tasks();
        let machine = setting.machine.crash_image(helenus_host::sim::Survives::EverythingWritten);
        let database = open_with(&machine.host(), |options| options.compaction.keeps_tombstones = keeps);
        machine.run_until_idle();
        let status = database.status();
        let line = status.tables.iter().find(|line| line.table == "t").unwrap();
        assert_eq!((line.sstables, line.partitions), (1, if keeps { 8 } else { 4 }));
        machine.end_tasks();
    }
}

#[test]
fn a_truncate_succeeds_though_another_removes_the_same_files() {
    let mut setting = Setting::new(12, vec![tiered("t", 1)], false);
    setting.flush("t", names("a", 3), 100);
    // As at the end of a compaction, which removes its inputs while the table is truncated.
    setting.machine.fail(Fault::new(Call::Remove, 2, ErrorKind::NotFound).on("ks/t-"));
    setting.database.truncate(&table_of(&setting.database, "t")).unwrap();
    assert_eq!((setting.machine.faults_struck(), setting.keys("t").len()), (1, 0));
    setting.machine.end_tasks();
}

#[test]
fn every_byte_of_the_disk_has_a_name() {
    let mut setting = Setting::new(13, vec![tiered("t", 1), tiered("gone", 2)], false);
    let table = table_of(&setting.database, "t");
    let gone = table_of(&setting.database, "gone");
    setting.flush("gone", names("g", 3), 500);
    for n in 0..3 {
        setting.flush("t", names(&format!("{n}-"), 30), 3000);
    }
    let name = CheckedName::new("a snapshot", "s").unwrap();
    Snapshots::of(&setting.database).take(&[table.clone(), gone], &name, false).unwrap();
    Exports::of(&setting.database).link(std::slice::from_ref(&table)).unwrap();
    setting.assert_nothing_is_left("links take no space");
    let held = setting.database.view(&table).unwrap();
    let request = setting.database.compact(vec![table.id]);
    while setting.database.status().compactions.iter().all(|running| running.bytes_done == 0) {
        assert!(setting.machine.step());
    }
    let purposes = |setting: &Setting| {
        let usage = setting.database.disk_usage().unwrap();
        let bytes: u64 = usage.uses.values().map(|space| space.bytes).sum();
        assert_eq!(bytes, setting.machine.used_bytes(), "{usage:?}");
        usage.uses.into_keys().map(|(purpose, _, table)| (purpose, table)).collect::<Vec<_>>()
    };
    assert!(purposes(&setting).contains(&(SpacePurpose::Writing, "t".into())));
    request.wait().unwrap();
    let dropped = setting.database.change_schema::<()>(|schema, _| {
        let mut next = schema.clone();
        let mut keyspace = (*next.keyspaces["ks"]).clone();
        keyspace.tables.remove("gone");
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    });
    dropped.map_err(|_| "the table is dropped").unwrap().1.wait().unwrap();
    let found = purposes(&setting);
    for (purpose, of) in [
        (SpacePurpose::Live, "t"),
        (SpacePurpose::Snapshot, "t"),
        (SpacePurpose::Snapshot, "gone"),
        (SpacePurpose::CommitLog, ""),
    ] {
        assert!(found.contains(&(purpose, of.into())), "{purpose:?} of {of}: {found:?}");
    }
    // The snapshot and the export have links to the files that the reader holds, so they count there.
    assert!(!found.contains(&(SpacePurpose::HeldByReaders, "t".into())), "{found:?}");
    drop(held);
    let held = setting.database.view(&table).unwrap();
    setting.flush("t", names("more", 3), 3000);
    setting.database.compact(vec![table.id]).wait().unwrap();
    assert!(purposes(&setting).contains(&(SpacePurpose::HeldByReaders, "t".into())));
    drop(held);
    assert!(!purposes(&setting).contains(&(SpacePurpose::HeldByReaders, "t".into())));
    assert!(setting.machine.files_below(Path::new("/db")).unwrap().len() > 10);
    setting.machine.end_tasks();
}
