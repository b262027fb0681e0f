//! A panic ends only the operation in which it happens: a flush, a compaction or a read, at a random call of the disk.
//! Other tables are written and read, the table is marked until its operation succeeds, its memtable and its log
//! records stay, and after a crash all rows are there. `PANIC_RUNS` sets the number of runs, `PANIC_SEED` their seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, Error, ReadRequest};
use helenus_host::sim::{Call, Fault, Machine, Survives};
use std::io::ErrorKind::Other;
use std::sync::Arc;
use support::random::{Random, from_environment};
use support::{Write, command, create, rows_of, table, table_of};

const CALLS: &[Call] = &[
    Call::Open,
    Call::Create,
    Call::Read,
    Call::Write,
    Call::Allocate,
    Call::SetSize,
    Call::Sync,
    Call::SyncDir,
    Call::Rename,
    Call::Remove,
    Call::CreateDir,
    Call::List,
];

/// Opens the database without a cache, so that reads reach the files.
fn open(machine: &Machine) -> Arc<Database> {
    support::open_with(&machine.host(), |options| options.memory.cache = 0)
}

struct Run {
    machine: Machine,
    database: Arc<Database>,
    /// The rows of `t`; `other` has as many.
    rows: Vec<(i32, String)>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let machine = Machine::new(seed);
        let database = open(&machine);
        create(&database, vec![table("t", 1, false), table("other", 2, false)]);
        Run { machine, database, rows: Vec::new() }
    }

    fn write(&mut self, count: usize) {
        for _ in 0..count {
            let c = self.rows.len() as i32;
            let text = format!("row {c} {}", "x".repeat(300));
            for name in ["t", "other"] {
                let table = table_of(&self.database, name);
                Write::default().insert(&table, c, &text, 1).to(&self.database, name, "key").wait().unwrap();
            }
            self.rows.push((c, text));
        }
    }

    fn check(&self) {
        assert_eq!(rows_of(&self.database, "other", "key"), self.rows);
        assert_eq!(rows_of(&self.database, "t", "key"), self.rows);
    }

    /// Sets a random fault that panics, in the files of `t`.
    fn draw(&self, random: &mut Random) {
        let (call, nth) = (*random.pick(CALLS), 1 + random.below(6) as u64);
        self.machine.fail(Fault::new(call, nth, Other).on("/ks/t-").panicking());
    }

    fn failures(&self) -> [Option<String>; 3] {
        let status = self.database.status();
        let line = status.tables.into_iter().find(|line| line.keyspace == "ks" && line.table == "t").unwrap();
        [line.flush_failure, line.compaction_failure, line.read_panic]
    }

    fn read_cold(&self) -> Result<(), Error> {
        let command = command(&self.database, "t", "key");
        let view = self.database.view(&command.table)?;
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        self.database.read(&command, &view, request, &mut support::Ignoring, None).map(drop)
    }

    fn crash(&mut self) {
        let after = self.machine.crash_image(Survives::OnlySynced);
        self.machine.end_tasks();
        self.machine = after;
        self.database = open(&self.machine);
    }
}

fn go(seed: u64, seen: &mut [usize; 4]) {
    let mut random = Random::new(seed);
    let mut run = Run::new(seed);
    run.write(30);
    let (t, other) = (table_of(&run.database, "t").id, table_of(&run.database, "other").id);
    for _ in 0..4 {
        run.write(10);
        let what = random.below(4);
        if what == 2 {
            run.database.flush(t).unwrap();
            run.machine
                .fail(Fault::new(Call::Read, 1 + random.below(2) as u64, Other).on("/ks/t-").panicking());
        } else {
            run.draw(&mut random);
        }
        let failed = match what {
            0 => run.database.flush(t).map(drop).map_err(|error| error.to_string()),
            1 => {
                run.database.flush(other).unwrap();
                run.database.compact(vec![t, other]).wait()
            }
            2 => run.read_cold().map_err(|error| error.to_string()),
            _ => run.database.flush_all().map(drop).map_err(|error| error.to_string()),
        };
        if let Err(told) = &failed {
            assert!(told.contains("on purpose, by a test") && told.contains("a bug"), "{what}: {told}");
            seen[what] += 1;
            assert!(run.failures().iter().flatten().any(|failure| failure.contains("on purpose")), "{what}");
        }
        run.machine.clear_faults();
        run.check();
        if random.chance(30) {
            run.crash();
            run.check();
        }
        // The failed operation succeeds the next time.
        run.database.flush_all().unwrap();
        run.database.compact(vec![t, other]).wait().unwrap();
        assert_eq!(run.failures()[..2], [None, None], "{what}");
        run.check();
    }
    // A shutdown whose flush panics reports the unflushed table, and the next start has its rows.
    run.write(5);
    run.machine.fail(Fault::new(Call::Create, 1, Other).on("/ks/t-").lasting().panicking());
    let told = run.database.close().unwrap_err().to_string();
    assert!(told.contains("ks.t") && !told.contains("ks.other"), "{told}");
    run.machine.clear_faults();
    run.crash();
    run.check();
    run.machine.end_tasks();
}

#[test]
fn a_panic_costs_the_work_that_it_happens_in() {
    let runs = from_environment("PANIC_RUNS", 25);
    let first = from_environment("PANIC_SEED", 1);
    let mut seen = [0; 4];
    for seed in first..first + runs {
        println!("seed {seed}");
        go(seed, &mut seen);
    }
    println!("flushes, compactions, reads, flushes of all that panicked: {seen:?}");
    assert!(runs < 25 || seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn a_table_whose_flush_panics_does_not_keep_others_from_being_written_in_the_background() {
    let machine = Machine::new(3);
    let database = support::open_with(&machine.host(), |options| options.memory.memtables = 4 << 20);
    create(&database, vec![table("t", 1, false), table("other", 2, false)]);
    machine.fail(Fault::new(Call::Create, 1, Other).on("/ks/t-").lasting().panicking());
    // This test ignores waits for memory.
    let write = |from: i32| {
        for c in from..from + 3000 {
            for name in ["t", "other"] {
                let write = Write::default().insert(&table_of(&database, name), c, &"v".repeat(600), 1);
                drop(write.to(&database, name, "key"));
            }
        }
    };
    write(0);
    machine.run_until_idle();
    let flushed = |name: &str| {
        let status = database.status();
        status.tables.into_iter().find(|line| line.keyspace == "ks" && line.table == name).unwrap().flushes
    };
    assert!(flushed("other") > 0 && flushed("t") == 0);
    machine.clear_faults();
    // Longer than the longest pause.
    machine.advance(10_000_000_000);
    machine.run_until_idle();
    assert!(flushed("t") > 0, "and is tried again");
    write(3000);
    machine.end_tasks();
}
