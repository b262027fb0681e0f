//! A server with small segments, a consumer of changes, and the knowledge of what it must show.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Cql, Injection, Server, binary, tool};
use scylla::value::CqlValue;
use tempfile::TempDir;

/// The most segments of the log while every table can be flushed: the engine acts beyond 32, and its look comes every
/// 100 ms. What is more must be gone some looks after the load.
const SEGMENTS_MAX: usize = 36;
/// How long the upkeep may take to reach a bound.
const UPKEEP_MAX: Duration = Duration::from_secs(60);
/// Rows of the table that is imported.
const IMPORTED: i64 = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    Flush,
    Drop,
    Truncate,
    Import,
}

pub struct Ground {
    server: Server,
    export: PathBuf,
    /// Rows of `k.t` and `k.w`, each in its own partition.
    rows: [i64; 2],
    /// Rows of `k.w` that the consumer has not seen.
    unread: i64,
}

impl Ground {
    /// Starts a server and makes its tables. The ids of tables are random, so is which of them the flusher meets first.
    pub fn begin(memory_limit: &str) -> Ground {
        let folder = TempDir::with_prefix("helenus-upkeep-").expect("a temporary directory");
        let config = folder.path().join("helenus.yaml");
        let text = format!(
            "commitlog_segment_size: 1MiB\nmemory_limit: {memory_limit}\ntombstone_purge_grace: 0s\n"
        );
        std::fs::write(&config, text).expect("a configuration");
        let export = folder.path().join("export");
        let server = Server::start_in(folder, &["--config", config.to_str().expect("UTF-8")]);
        let cql = Cql::connect(server.address());
        cql.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        for table in ["t", "d", "imported"] {
            cql.run(&format!("CREATE TABLE k.{table} (k bigint PRIMARY KEY, v text)"));
        }
        cql.run("CREATE TABLE k.w (k bigint PRIMARY KEY, v text) WITH cdc = true");
        let mut ground = Ground { server, export, rows: [0, 0], unread: 0 };
        ground.fill("imported", IMPORTED, 50);
        let (export, data) = (ground.export.clone(), ground.server.data());
        tool(&[
            Path::new("export"),
            &export,
            Path::new("k"),
            Path::new("imported"),
            Path::new("--data"),
            &data,
        ]);
        ground.changes(&["--from", "now"]);
        ground
    }

    /// Inserts rows of this many bytes.
    pub fn fill(&mut self, table: &str, rows: i64, bytes: usize) {
        let mut client = Raw::ready(self.server.address(), 4);
        let at = ["t", "w"].iter().position(|name| *name == table);
        let first = at.map_or(0, |at| self.rows[at]);
        let value = "v".repeat(bytes);
        for row in first..first + rows {
            client.run(&format!("INSERT INTO k.{table} (k, v) VALUES ({row}, '{value}')"));
        }
        if let Some(at) = at {
            self.rows[at] += rows;
        }
        if table == "w" {
            self.unread += rows;
        }
    }

    pub fn flush(&self, table: &[&str]) {
        self.server.admin(&[&["flush"], table].concat());
    }

    /// Ends the server and starts it again; after a stop in order everything is flushed.
    pub fn restart(&mut self, in_order: bool) {
        if in_order {
            assert!(self.server.stop().success(), "the server stops");
        } else {
            self.server.kill();
        }
        self.server.restart();
    }

    /// Kills the server at a call of an upkeep, starts it and checks what it shows. False without strace.
    pub fn kill_within(&mut self, upkeep: Upkeep, calls: &str, nth: u64) -> bool {
        let what = format!("{upkeep:?} killed at {calls} number {nth}");
        self.prepare(upkeep);
        let Some(injection) = Injection::kill_at(&self.server, calls, nth) else { return false };
        let done = self.perform(upkeep);
        self.server.kill();
        drop(injection);
        self.server.restart();
        self.check(upkeep, done, &what);
        true
    }

    fn prepare(&mut self, upkeep: Upkeep) {
        match upkeep {
            // Reused segments with records of more than 4 KiB at their ends, of both tables in turns.
            Upkeep::Flush => {
                self.fill("t", 3000, 500);
                self.flush(&[]);
                for _ in 0..3 {
                    self.fill("t", 100, 10_000);
                    self.fill("w", 100, 10_000);
                }
            }
            Upkeep::Drop | Upkeep::Truncate => {
                self.fill("d", 50, 100);
                self.flush(&["k", "d"]);
                self.fill("d", 10, 100);
            }
            Upkeep::Import => {
                Raw::ready(self.server.address(), 4).run("TRUNCATE k.imported");
            }
        }
    }

    /// Whether it was done before the server died.
    fn perform(&self, upkeep: Upkeep) -> bool {
        let command = |args: &[&Path]| {
            let mut command = Command::new(binary());
            command.args(args).arg("--data").arg(self.server.data());
            let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            ended.is_ok_and(|status| status.success())
        };
        let statement = |text: &str| {
            let client = Raw::try_ready(self.server.address(), 4);
            client.and_then(|mut client| client.try_query(text)).is_some_and(|reply| reply.opcode == RESULT)
        };
        match upkeep {
            Upkeep::Flush => command(&[Path::new("admin"), Path::new("flush")]),
            Upkeep::Drop => statement("DROP TABLE k.d"),
            Upkeep::Truncate => statement("TRUNCATE k.d"),
            Upkeep::Import => command(&[Path::new("import"), &self.export]),
        }
    }

    fn check(&mut self, upkeep: Upkeep, done: bool, what: &str) {
        let cql = Cql::connect(self.server.address());
        for (table, rows) in ["t", "w"].into_iter().zip(self.rows) {
            assert_eq!(count(&cql, table), rows, "{what}: rows of k.{table}");
        }
        let fed = self.changes(&["--ack-all"]);
        assert_eq!(fed as i64, self.unread, "{what}: changes that the consumer gets");
        self.unread = 0;
        match upkeep {
            Upkeep::Flush => {}
            Upkeep::Drop => {
                let is_there = cql.try_run("SELECT k FROM k.d LIMIT 1").is_ok();
                assert!(!(done && is_there), "{what}: a dropped table is there");
                if is_there {
                    assert_eq!(count(&cql, "d"), 60, "{what}");
                    cql.run("DROP TABLE k.d");
                }
                let left = || folders_of(&self.server.tables().join("k"), "d-");
                wait_for(|| left().is_empty(), || format!("{what}: {:?} is left", left()));
                cql.run("CREATE TABLE k.d (k bigint PRIMARY KEY, v text)");
            }
            Upkeep::Truncate => {
                let rows = count(&cql, "d");
                assert!(rows == 0 || !done && rows == 60, "{what}: {rows} rows");
                cql.run("TRUNCATE k.d");
            }
            Upkeep::Import => {
                let rows = count(&cql, "imported");
                assert!(rows == IMPORTED || !done && rows == 0, "{what}: {rows} rows");
                cql.run("TRUNCATE k.imported");
            }
        }
        drop(cql);
        self.restart(false);
        let cql = Cql::connect(self.server.address());
        let emptied = match upkeep {
            Upkeep::Flush => None,
            Upkeep::Drop | Upkeep::Truncate => Some("d"),
            Upkeep::Import => Some("imported"),
        };
        if let Some(table) = emptied {
            assert_eq!(count(&cql, table), 0, "{what}: rows of k.{table} are back");
        }
        self.check_files(what);
    }

    /// Writes to one table, and waits until the log is within its bound.
    pub fn load(&mut self, table: &str, megabytes: u64, what: &str) {
        const BYTES: usize = 100_000;
        self.fill(table, (megabytes << 20) as i64 / BYTES as i64, BYTES);
        let told =
            || format!("{what}: after {megabytes} MB of load the log has {} segments", self.segments());
        wait_for(|| self.segments() <= SEGMENTS_MAX, told);
        // One write more: what was refused would be refused still.
        self.fill(table, 1, 10);
        let cql = Cql::connect(self.server.address());
        assert_eq!(count(&cql, "t"), self.rows[0], "{what}");
    }

    fn segments(&self) -> usize {
        names(&self.server.data().join("commitlog"))
            .iter()
            .filter(|name| name.starts_with("helenus-"))
            .count()
    }

    /// No import, no replaced file, no transaction is left, and no folder without a table.
    pub fn check_files(&self, what: &str) {
        let data = self.server.data();
        let left = || -> Vec<String> {
            let mut left = names(&data.join("import"));
            left.extend(names(&data.join("changes")).into_iter().filter(|name| name == "begin.new"));
            for folder in folders_of(&self.server.tables().join("k"), "") {
                let files = names(&folder);
                left.extend(files.into_iter().filter(|name| name.contains("_txn_")));
            }
            left
        };
        wait_for(|| left().is_empty(), || format!("{what}: {:?} is left", left()));
    }

    /// Reads the changes of the consumer; returns their number.
    fn changes(&self, args: &[&str]) -> usize {
        let data = self.server.data();
        let fixed = ["changes", "k.w", "--consumer", "c", "--json", "--data", data.to_str().expect("UTF-8")];
        let lines = tool(&[&fixed, args].concat());
        lines.lines().count()
    }
}

fn count(cql: &Cql, table: &str) -> i64 {
    match cql.rows(&format!("SELECT count(*) FROM k.{table}")).first().and_then(|row| row[0].as_ref()) {
        Some(CqlValue::BigInt(count)) => *count,
        other => panic!("no count of k.{table}: {other:?}"),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn folders_of(keyspace: &Path, begin: &str) -> Vec<PathBuf> {
    names(keyspace)
        .into_iter()
        .filter(|name| name.starts_with(begin))
        .map(|name| keyspace.join(name))
        .collect()
}

fn wait_for(is_so: impl Fn() -> bool, told: impl Fn() -> String) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < UPKEEP_MAX, "{}", told());
        std::thread::sleep(Duration::from_millis(20));
    }
}
