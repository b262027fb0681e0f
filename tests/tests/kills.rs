//! `kill -9` of the real binary in a loop while clients write: every acknowledged write is looked for after each start.
//!
//! Beside the writers the tables are flushed, compacted, exported and imported, or the process is stopped and continued. The
//! writers send bytes of their own (`end_to_end::raw`), the checks are the Rust driver's. `KILLS=500 KILLS_SEED=1
//! cargo test --release -p end-to-end --test kills -- --nocapture` runs more.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Cql, Server, binary};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use scylla::value::CqlValue;
use tempfile::TempDir;

/// What one client does, over and over, each time with the next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Rows of a partition of its own, plain.
    Insert(i32),
    /// The same, and all but the last ten deleted by a range.
    Trim(i32),
    /// One more on a counter.
    Count,
    /// The next number, if the last one is there.
    Swap,
    /// A row in each of two tables, in a logged batch.
    Batch,
}

const JOBS: [Job; 7] =
    [Job::Insert(0), Job::Insert(1), Job::Insert(2), Job::Trim(100), Job::Count, Job::Swap, Job::Batch];

impl Job {
    fn statements(self, n: i64) -> Vec<String> {
        let row = |k: i32| {
            format!(
                "INSERT INTO k.t (k, c, v, w) VALUES ({k}, {n}, {}, '{}')",
                n * 7,
                "w".repeat(n as usize % 900)
            )
        };
        match self {
            Job::Insert(k) => vec![row(k)],
            Job::Trim(k) => vec![row(k), format!("DELETE FROM k.t WHERE k = {k} AND c < {}", n - 9)],
            Job::Count => vec!["UPDATE k.n SET n = n + 1 WHERE k = 0".into()],
            Job::Swap if n == 0 => vec!["INSERT INTO k.s (k, v) VALUES (0, 0)".into()],
            Job::Swap => vec![format!("UPDATE k.s SET v = {n} WHERE k = 0 IF v = {}", n - 1)],
            Job::Batch => vec![format!(
                "BEGIN BATCH INSERT INTO k.a (k, c) VALUES ({}, {n}); INSERT INTO k.b (k, c) VALUES (0, {n}); APPLY BATCH",
                n % 5
            )],
        }
    }

    /// Begins with number `next` until the server is gone; the first number that was not acknowledged whole.
    fn run(self, address: &str, next: i64, over: &AtomicBool) -> i64 {
        let Some(mut client) = Raw::try_ready(address, 4) else { return next };
        for n in next.. {
            if over.load(Ordering::Relaxed) {
                return n;
            }
            for statement in self.statements(n) {
                let Some(reply) = client.try_query(&statement) else { return n };
                if reply.opcode != RESULT {
                    let (code, text) = reply.error();
                    // Refusals of a disk or a process that has nothing left; the rest is a finding.
                    assert!([0x1001, 0x1100, 0x1500].contains(&code), "{statement}: {code:#x} {text}");
                    return n;
                }
            }
        }
        next
    }

    /// Checks that everything before `next` is there, and whole; the number to go on with.
    fn check(self, cql: &Cql, next: i64) -> i64 {
        let one = |statement: &str| -> Vec<i64> {
            let row = cql.rows(statement).remove(0);
            row.into_iter().map(|value| value.as_ref().map_or(0, number)).collect()
        };
        let found = match self {
            Job::Insert(k) => {
                let of = one(&format!("SELECT count(c), max(c), sum(v), sum(c) FROM k.t WHERE k = {k}"));
                let rows = of[0];
                assert!(rows == 0 || of[1] == rows - 1, "{self:?}: {rows} rows up to {}", of[1]);
                assert_eq!(of[2], of[3] * 7, "{self:?}: a row is not whole");
                rows
            }
            Job::Trim(k) => {
                let of = one(&format!("SELECT count(c), min(c), max(c) FROM k.t WHERE k = {k}"));
                let (rows, least, greatest) = (of[0], of[1], of[2]);
                assert!(
                    rows == 0 || rows == greatest - least + 1,
                    "{self:?}: {rows} rows, {least} to {greatest}"
                );
                // The row before may have come through a kill whose deletion did not.
                assert!(least >= (next - 11).max(0), "{self:?}: {least} is back, {} was deleted", next - 12);
                if rows == 0 { 0 } else { greatest + 1 }
            }
            Job::Count => {
                cql.rows("SELECT n FROM k.n WHERE k = 0").first().map_or(0, |row| number_of(&row[0]))
            }
            Job::Swap => {
                cql.rows("SELECT v FROM k.s WHERE k = 0").first().map_or(0, |row| number_of(&row[0]) + 1)
            }
            Job::Batch => {
                let a = one("SELECT count(c) FROM k.a")[0];
                let b = one("SELECT count(c), max(c) FROM k.b WHERE k = 0");
                assert_eq!(a, b[0], "half of a batch");
                assert!(b[0] == 0 || b[1] == b[0] - 1, "{self:?}: {} rows up to {}", b[0], b[1]);
                a
            }
        };
        // What was sent last may have been done without being acknowledged.
        assert!(found == next || found == next + 1, "{self:?}: {next} acknowledged, {found} there");
        found
    }
}

fn number(value: &CqlValue) -> i64 {
    match value {
        CqlValue::BigInt(n) => *n,
        CqlValue::Int(n) => i64::from(*n),
        CqlValue::Counter(n) => n.0,
        other => panic!("no number: {other:?}"),
    }
}

fn number_of(value: &Option<CqlValue>) -> i64 {
    value.as_ref().map_or(0, number)
}

/// What happens beside the writers.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Nothing,
    Admin(&'static str),
    Import,
    Pause,
}

const BESIDE: [Beside; 5] =
    [Beside::Nothing, Beside::Admin("flush"), Beside::Admin("compact"), Beside::Import, Beside::Pause];

impl Beside {
    fn run(self, server: &Server, backup: &Path, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let mut command = Command::new(binary());
            match self {
                Beside::Nothing => return,
                Beside::Admin(verb) => command.args(["admin", verb]),
                Beside::Import => command.arg("import").arg(backup),
                Beside::Pause => {
                    let Some(pid) = Pid::from_raw(server.process_id() as i32) else { return };
                    // It is gone when it has been killed meanwhile.
                    let _ = kill_process(pid, Signal::STOP).and_then(|()| kill_process(pid, Signal::CONT));
                    continue;
                }
            };
            // The server may be killed under it: what it says then is its own affair.
            let _ =
                command.arg("--data").arg(server.data()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

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

/// A number below `n` for each round, of a seed.
fn chance(seed: u64, round: u64, n: u64) -> u64 {
    let mut z = (seed << 32 ^ round).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 29)) % n
}

/// Lets all jobs run until the server is killed; how far each was acknowledged.
fn write_and_kill(
    server: &mut Server,
    next: &[i64],
    (beside, backup): (Beside, &Path),
    after: Duration,
) -> Vec<i64> {
    let over = AtomicBool::new(false);
    let address = server.address().to_owned();
    let acknowledged = std::thread::scope(|scope| {
        let writers: Vec<_> = JOBS
            .iter()
            .zip(next)
            .map(|(job, next)| {
                let (address, over) = (&address, &over);
                scope.spawn(move || job.run(address, *next, over))
            })
            .collect();
        let running: &Server = server;
        let besides = scope.spawn(|| beside.run(running, backup, &over));
        std::thread::sleep(after);
        let pid = Pid::from_raw(running.process_id() as i32).expect("a process");
        kill_process(pid, Signal::KILL).expect("kill the server");
        let acknowledged = writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
        over.store(true, Ordering::Relaxed);
        besides.join().expect("what runs beside the writers");
        acknowledged
    });
    server.kill();
    acknowledged
}

#[test]
fn every_acknowledged_write_is_there_after_kill_9_whatever_the_server_was_doing() {
    let (kills, seed) = (from_environment("KILLS", 10), from_environment("KILLS_SEED", 1));
    let folder = TempDir::with_prefix("helenus-kills-").expect("a temporary directory");
    let config: PathBuf = folder.path().join("kills.yaml");
    let backup = folder.path().join("backup");
    configure(&config, "group");
    let path = config.to_str().expect("UTF-8").to_owned();
    let mut server = Server::start_in(folder, &["--config", &path]);
    make_tables(&Cql::connect(server.address()));
    end_to_end::tool(&[
        "export",
        backup.to_str().expect("UTF-8"),
        "k",
        "backed_up",
        "--data",
        server.data().to_str().expect("UTF-8"),
    ]);
    let mut next = vec![0; JOBS.len()];
    let begin = Instant::now();
    let mut slowest = Duration::ZERO;
    for round in 0..kills {
        let beside = BESIDE[(round % BESIDE.len() as u64) as usize];
        let after = Duration::from_millis(20 + chance(seed, round, 250));
        let acknowledged = write_and_kill(&mut server, &next, (beside, &backup), after);
        configure(&config, ["group", "periodic", "batch"][chance(seed, round, 3) as usize]);
        server.restart();
        slowest = slowest.max(server.start_time());
        let cql = Cql::connect(server.address());
        next = JOBS
            .iter()
            .zip(&acknowledged)
            .map(|(job, acknowledged)| job.check(&cql, *acknowledged))
            .collect();
        let backed_up = cql.rows("SELECT count(c) FROM k.backed_up");
        assert_eq!(number_of(&backed_up[0][0]), 500, "round {round}: rows of an import");
        if round % 50 == 49 {
            println!("{} kills: {next:?} by each writer", round + 1);
        }
    }
    println!(
        "{kills} kills in {:.0} s, seed {seed}: {next:?} acknowledged by {JOBS:?}, all there; slowest start {slowest:?}",
        begin.elapsed().as_secs_f64()
    );
    assert!(next.iter().all(|count| *count > 0), "every writer wrote: {next:?}");
}

/// Sets how many files a process may have open; the limit before.
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
    // What cannot be accepted is not answered, and hurts nobody.
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
    // Eight megabytes: more than the log's segments and the memtable have room for, so that files are wanted.
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
