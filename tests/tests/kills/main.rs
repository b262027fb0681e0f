//! Runs `kill -9` on the real binary in a loop while clients write: after each start every acknowledged write must be
//! there.
//!
//! Beside the writers, the tables are flushed, compacted, imported and restored, the process is stopped and continued,
//! its disk fills up, its clock jumps. Nine writers send raw frames (`end_to_end::raw`) and are checked by the Rust
//! driver; four are part of a Python driver program, which checks them. `KILLS=500 KILLS_SEED=1 cargo test --release -p
//! end-to-end --test kills -- --nocapture` runs longer.

mod activities;
mod jobs;
mod python;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use activities::Activity;
use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Cql, Server, SmallDisk};
use jobs::{JOBS, number_of};
use python::Python;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use scylla::value::CqlValue;
use tempfile::TempDir;

fn configure(at: &Path, sync: &str) {
    let text = format!(
        "commitlog_sync: {sync}\ncommitlog_segment_size: 1MiB\nmemtable_heap_space: 1MiB\ntombstone_purge_grace: 0s\n"
    );
    std::fs::write(at, text).expect("a configuration");
}

fn make_tables(cql: &Cql) {
    cql.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    for table in [
        "k.t (k int, c bigint, v bigint, w text, PRIMARY KEY (k, c))",
        "k.n (k int PRIMARY KEY, n counter)",
        "k.s (k int PRIMARY KEY, v bigint)",
        "k.a (k int, c bigint, PRIMARY KEY (k, c))",
        "k.b (k int, c bigint, PRIMARY KEY (k, c))",
        "k.backed_up (k int, c bigint, PRIMARY KEY (k, c))",
    ] {
        cql.run(&format!("CREATE TABLE {table}"));
    }
    for row in 0..500 {
        cql.run(&format!("INSERT INTO k.backed_up (k, c) VALUES ({}, {row})", row % 7));
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The most segments of the log while every table can be flushed (`upkeep_kills`).
const SEGMENTS_MAX: usize = 36;

/// A random number below `n` for each round, from a seed.
fn chance(seed: u64, round: u64, n: u64) -> u64 {
    let mut z = (seed << 32 ^ round).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 29)) % n
}

/// A server, and the progress of each of its writers.
struct Rounds {
    server: Server,
    config: PathBuf,
    seed: u64,
    next: Vec<i64>,
    slowest: Duration,
}

impl Rounds {
    /// Starts a server with small files in `folder`, and creates the tables.
    fn begin(folder: TempDir, environment: &[(&str, &str)]) -> Rounds {
        let config: PathBuf = folder.path().join("kills.yaml");
        configure(&config, "group");
        let path = config.to_str().expect("UTF-8").to_owned();
        let server = Server::start_under(folder, &["--config", &path], environment);
        make_tables(&Cql::connect(server.address()));
        let (seed, next) = (from_environment("KILLS_SEED", 1), vec![0; JOBS.len()]);
        Rounds { server, config, seed, next, slowest: Duration::ZERO }
    }

    /// Runs all writers beside an activity, kills the server, restarts it and checks everything.
    fn round(&mut self, round: u64, beside: &Activity, python: Option<&mut Python>, most_ms: u64) {
        if let Some(python) = python {
            python.go_on(self.server.address());
        }
        let after = Duration::from_millis(20 + chance(self.seed, round, most_ms));
        let acknowledged = self.write_and_kill(beside, after);
        let modes = ["group", "periodic", "batch"];
        configure(&self.config, modes[chance(self.seed, round, 3) as usize]);
        self.server.restart();
        self.slowest = self.slowest.max(self.server.start_time());
        let cql = Cql::connect(self.server.address());
        self.check_files(&cql, round);
        let checked =
            JOBS.iter().zip(&acknowledged).map(|(job, acknowledged)| job.check(&cql, *acknowledged));
        self.next = checked.collect();
        beside.check(&self.server, &cql);
        let backed_up = cql.rows("SELECT count(c) FROM k.backed_up");
        assert_eq!(number_of(&backed_up[0][0]), 500, "round {round}: rows of an import");
        if round % 50 == 49 {
            println!("{} kills: {:?} by each writer", round + 1, self.next);
        }
    }

    /// The log comes within its bound, and no folder is left that is of no table and has more than snapshots.
    fn check_files(&self, cql: &Cql, round: u64) {
        let names = |folder: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let tables = cql.rows("SELECT table_name, id FROM system_schema.tables WHERE keyspace_name = 'k'");
        let folder = |row: &[Option<CqlValue>]| match row {
            [Some(CqlValue::Text(name)), Some(CqlValue::Uuid(id))] => format!("{name}-{}", id.simple()),
            other => panic!("no table: {other:?}"),
        };
        let known: Vec<String> = tables.iter().map(|row| folder(row)).collect();
        let keyspace = self.server.tables().join("k");
        let left = || -> Vec<String> {
            let has_files = |name: &String| {
                let files = names(&keyspace.join(name));
                !known.contains(name) && files.iter().any(|file| file != "snapshots")
            };
            let mut left: Vec<String> = names(&keyspace).into_iter().filter(has_files).collect();
            let log = names(&self.server.data().join("commitlog"));
            let segments = log.iter().filter(|name| name.starts_with("helenus-")).count();
            left.extend((segments > SEGMENTS_MAX).then(|| format!("{segments} segments")));
            left
        };
        let began = Instant::now();
        while !left().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "round {round}: {:?} stay", left());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The first unacknowledged number of each job when the server was killed.
    fn write_and_kill(&mut self, beside: &Activity, after: Duration) -> Vec<i64> {
        let over = AtomicBool::new(false);
        let address = self.server.address().to_owned();
        let (running, next) = (&self.server, &self.next);
        let acknowledged = std::thread::scope(|scope| {
            let writers = JOBS.iter().zip(next).map(|(job, next)| {
                let (address, over) = (&address, &over);
                scope.spawn(move || job.run(address, *next, over))
            });
            let writers: Vec<_> = writers.collect();
            let besides = scope.spawn(|| beside.run(running, &over));
            std::thread::sleep(after);
            let pid = Pid::from_raw(running.process_id() as i32).expect("a process");
            kill_process(pid, Signal::KILL).expect("kill the server");
            let acknowledged = writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
            over.store(true, Ordering::Relaxed);
            besides.join().expect("what runs beside the writers");
            acknowledged
        });
        self.server.kill();
        acknowledged
    }

    fn end(&self, kills: u64, began: Instant) {
        println!(
            "{kills} kills in {:.0} s, seed {}: {:?} acknowledged by {JOBS:?}, all there; slowest start {:?}",
            began.elapsed().as_secs_f64(),
            self.seed,
            self.next,
            self.slowest
        );
        assert!(self.next.iter().all(|count| *count > 0), "every writer wrote: {:?}", self.next);
    }
}

#[test]
fn every_acknowledged_write_is_there_after_kill_9_whatever_the_server_was_doing() {
    let kills = from_environment("KILLS", 12);
    let folder = TempDir::with_prefix("helenus-kills-").expect("a temporary directory");
    let (export, backup) = (folder.path().join("export"), folder.path().join("backup"));
    let mut rounds = Rounds::begin(folder, &[]);
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let data = text(&rounds.server.data());
    end_to_end::tool(&["export", &text(&export), "k", "backed_up", "--data", &data]);
    end_to_end::tool(&["backup", &text(&backup), "--data", &data]);
    let besides = [
        Activity::Nothing,
        Activity::Admin("flush"),
        Activity::Admin("compact"),
        Activity::Import(export),
        Activity::Restore(backup),
        Activity::Pause,
    ];
    let mut python = Python::start();
    let began = Instant::now();
    for round in 0..kills {
        rounds.round(round, &besides[(round % besides.len() as u64) as usize], Some(&mut python), 250);
    }
    println!("the Python driver: {}", python.end(rounds.server.address()));
    rounds.end(kills, began);
}

#[test]
fn every_acknowledged_write_is_there_after_kill_9_while_the_disk_fills_up() {
    let kills = from_environment("KILLS", 4);
    let folder = TempDir::with_prefix("helenus-kills-full-").expect("a temporary directory");
    let data = folder.path().join("data");
    let Some(_disk) = SmallDisk::mount(&data, 96) else {
        println!("not run: this user may not mount a tmpfs");
        return;
    };
    let fill = Activity::Fill(data.join("ballast"));
    let mut rounds = Rounds::begin(folder, &[]);
    let began = Instant::now();
    for round in 0..kills {
        rounds.round(round, &fill, None, 250);
    }
    rounds.end(kills, began);
}

/// Debian's package libfaketime.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

#[test]
fn every_acknowledged_write_is_there_after_kill_9_while_the_clock_jumps() {
    let kills = from_environment("KILLS", 4);
    if !Path::new(FAKETIME).exists() {
        println!("not run: {FAKETIME} is not there (package libfaketime)");
        return;
    }
    let folder = TempDir::with_prefix("helenus-kills-clock-").expect("a temporary directory");
    let time = folder.path().join("time");
    std::fs::write(&time, "+0s\n").expect("the file that says what time it is");
    let variables = [
        ("LD_PRELOAD", FAKETIME),
        ("FAKETIME_TIMESTAMP_FILE", time.to_str().expect("UTF-8")),
        ("FAKETIME_NO_CACHE", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut rounds = Rounds::begin(folder, &variables.each_ref().map(|(name, value)| (&**name, &**value)));
    let cql = Cql::connect(rounds.server.address());
    // The process's clock is not this process's: a jump shows in the server's own answer.
    let told = |by: &str| {
        std::fs::write(&time, by).expect("the file that says what time it is");
        number_of(&cql.rows("SELECT tounixtimestamp(now()) FROM system.local")[0][0])
    };
    let (before, after) = (told("+0s\n"), told("+86400s\n"));
    assert!(after - before > 86_000_000, "the clock jumps: {before}, {after}");
    drop(cql);
    let began = Instant::now();
    for round in 0..kills {
        let clock = Activity::Clock(time.clone(), rounds.seed, round);
        rounds.round(round, &clock, None, 400);
    }
    rounds.end(kills, began);
}

/// Sets the maximum number of open files of a process; returns the previous limit.
fn limit_files(process: u32, files: Option<u64>) -> Option<u64> {
    let pid = Pid::from_raw(process as i32);
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(pid, Resource::Nofile, Rlimit { current: files, maximum }).expect("a limit of files").current
}

#[test]
fn without_file_descriptors_nothing_acknowledged_is_lost_and_it_goes_on_when_there_are_some() {
    let folder = TempDir::with_prefix("helenus-files-").expect("a temporary directory");
    let config = folder.path().join("small.yaml");
    configure(&config, "group");
    let path = config.to_str().expect("UTF-8").to_owned();
    let mut server = Server::start_in(folder, &["--config", &path]);
    make_tables(&Cql::connect(server.address()));
    let mut client = Raw::ready(server.address(), 4);
    let process = server.process_id();
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).expect("its files").count() as u64;
    let before = limit_files(process, Some(open + 1));
    // Connections that cannot be accepted are not answered, and do no harm.
    let waiting: Vec<TcpStream> = (0..20).filter_map(|_| TcpStream::connect(server.address()).ok()).collect();
    let value = "w".repeat(4000);
    let mut acknowledged = 0_u64;
    let mut refused = 0;
    let mut write = |client: &mut Raw| {
        let n = acknowledged;
        let reply =
            client.query(&format!("INSERT INTO k.t (k, c, v, w) VALUES (1, {n}, {}, '{value}')", n * 7));
        let is_done = reply.opcode == RESULT;
        acknowledged += u64::from(is_done);
        is_done
    };
    // Eight megabytes, more than the log segments and the memtable can hold, so that the server needs new files.
    for _ in 0..2000 {
        refused += u64::from(!write(&mut client));
    }
    limit_files(process, before);
    let begin = Instant::now();
    let mut more = 0;
    while more < 500 {
        more += u64::from(write(&mut client));
        assert!(begin.elapsed() < Duration::from_secs(60), "no recovery: {more} of 500 rows");
    }
    drop(waiting);
    println!("{acknowledged} rows acknowledged, {refused} refused while there were no files");
    server.kill();
    server.restart();
    let rows = Cql::connect(server.address()).rows("SELECT count(c), max(c) FROM k.t WHERE k = 1");
    assert_eq!(
        rows[0].iter().map(number_of).collect::<Vec<_>>(),
        [acknowledged as i64, acknowledged as i64 - 1]
    );
}
