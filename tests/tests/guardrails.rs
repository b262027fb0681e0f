//! Guardrails that look at the disk and at new SSTables.

use std::fs;
use std::time::{Duration, Instant};

use end_to_end::Server;
use end_to_end::raw::{RESULT, Raw};
use tempfile::TempDir;

const INVALID: i32 = 0x2200;
const FULL: &str = "Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds failure threshold";
const STUFFED: &str = "Guardrail replica_disk_usage violated: Replica disk usage exceeds warning threshold";

/// A server whose file of settings the test changes.
struct Guarded {
    server: Server,
    settings: std::path::PathBuf,
}

impl Guarded {
    fn start(settings: &str) -> Guarded {
        let folder = TempDir::with_prefix("helenus-guardrails-").expect("a temporary directory");
        let path = folder.path().join("settings.yaml");
        fs::write(&path, settings).expect("written");
        let server = Server::start_in(folder, &["--config", path.to_str().expect("UTF-8")]);
        Guarded { server, settings: path }
    }

    /// Waits for a line of the log, which is written behind the answers.
    fn logged(&self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let log = self.server.log();
            if log.contains(text) {
                return log;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no {text:?} in {log}");
            std::thread::yield_now();
        }
    }

    /// Replaces the settings, which the server reads again and measures by.
    fn set(&self, settings: &str) {
        fs::write(&self.settings, settings).expect("written");
        self.server.admin(&["reloadsettings"]);
    }
}

fn tables(client: &mut Raw) {
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (p int, c int, v text, PRIMARY KEY (p, c))");
}

#[test]
fn writes_are_warned_of_and_refused_before_the_disk_is_full() {
    let guarded = Guarded::start("cluster_name: c\n");
    let mut client = Raw::ready(guarded.server.address(), 4);
    tables(&mut client);
    client.run(&format!("INSERT INTO k.t (p, c, v) VALUES (1, 1, '{}')", "v".repeat(100_000)));
    guarded.server.admin(&["flush"]);
    let write = "INSERT INTO k.t (p, c, v) VALUES (2, 2, 'x')";
    let none = client.query(write);
    assert!(!contains(&none.body, "Guardrail"), "{none:?}");

    // The room counts as so small that what is there is more than half of it, and less than all.
    let used = |percent: u64| {
        let room = bytes_below(&guarded.server.data().join("data")) * 100 / percent;
        format!("data_disk_usage_max_disk_size: {room}B\n")
    };
    guarded.set(&format!(
        "data_disk_usage_percentage_warn_threshold: 40\ndata_disk_usage_percentage_fail_threshold: 99\n{}",
        used(60)
    ));
    let warned = client.query(write);
    assert!(warned.opcode == RESULT && contains(&warned.body, STUFFED), "{warned:?}");
    // Only one client is told so in half an hour.
    let again = client.query(write);
    assert!(again.opcode == RESULT && !contains(&again.body, STUFFED), "{again:?}");
    guarded.logged("exceeds warning threshold of 40%");

    guarded.set(&format!("data_disk_usage_percentage_fail_threshold: 40\n{}", used(60)));
    for text in [
        write,
        "UPDATE k.t SET v = 'y' WHERE p = 1 AND c = 1",
        "DELETE FROM k.t WHERE p = 1",
        "INSERT INTO k.t (p, c) VALUES (3, 3) IF NOT EXISTS",
        "BEGIN BATCH INSERT INTO k.t (p, c) VALUES (4, 4); INSERT INTO k.t (p, c) VALUES (5, 5); APPLY BATCH",
    ] {
        let reply = client.query(text);
        assert_eq!(reply.error(), (INVALID, FULL.to_owned()), "{text}");
    }
    guarded.logged("exceeds failure threshold of 40%, will stop accepting writes");
    // Reads go on, and so does what makes room.
    assert_eq!(client.query("SELECT * FROM k.t").opcode, RESULT);
    client.run("CREATE TABLE k.other (p int PRIMARY KEY)");
    client.run("TRUNCATE k.t");
    guarded.set("cluster_name: c\n");
    client.run(write);
    guarded.logged("below the thresholds again");
}

#[test]
fn a_start_on_a_full_disk_refuses_the_first_write() {
    let mut guarded = Guarded::start("cluster_name: c\n");
    let mut client = Raw::ready(guarded.server.address(), 4);
    tables(&mut client);
    client.run("INSERT INTO k.t (p, c) VALUES (1, 1)");
    assert!(guarded.server.stop().success());
    let settings = "data_disk_usage_percentage_fail_threshold: 90\ndata_disk_usage_max_disk_size: 1KiB\n";
    fs::write(&guarded.settings, settings).expect("written");
    guarded.server.restart();
    let mut client = Raw::ready(guarded.server.address(), 4);
    assert_eq!(client.query("INSERT INTO k.t (p, c) VALUES (2, 2)").error(), (INVALID, FULL.to_owned()));
    assert_eq!(client.query("SELECT * FROM k.t").opcode, RESULT);
}

#[test]
fn large_partitions_and_those_with_many_tombstones_are_named_in_the_log() {
    let guarded = Guarded::start(
        "partition_size_warn_threshold: 1KiB\npartition_size_fail_threshold: 100KiB\n\
         partition_tombstones_warn_threshold: 10\n",
    );
    let mut client = Raw::ready(guarded.server.address(), 4);
    tables(&mut client);
    client.run(&format!("INSERT INTO k.t (p, c, v) VALUES (7, 1, '{}')", "v".repeat(2000)));
    client.run(&format!("INSERT INTO k.t (p, c, v) VALUES (8, 1, '{}')", "v".repeat(200_000)));
    client.run("INSERT INTO k.t (p, c, v) VALUES (9, 1, 'small')");
    (0..11).for_each(|c| client.run(&format!("DELETE FROM k.t WHERE p = 10 AND c = {c}")));
    (0..10).for_each(|c| client.run(&format!("DELETE FROM k.t WHERE p = 11 AND c = {c}")));
    guarded.server.admin(&["flush", "k"]);
    // The line about the flush comes after those about its partitions.
    let log = guarded.logged("flushed: k.t");
    let line = |start: &str, end: &str| {
        let found = log.lines().find(|line| line.contains(start) && line.contains(end));
        found.unwrap_or_else(|| panic!("no {start} … {end} in {log}")).to_owned()
    };
    let warned = line(
        "partition_size violated: Partition k.t:7 on sstable ",
        "exceeds the warning threshold of 1024.",
    );
    assert!(warned.contains("-Data.db has size 2") && !warned.contains("ERROR"), "{warned}");
    line("partition_size violated: Partition k.t:8 on sstable ", "exceeds the failure threshold of 102400.");
    line(
        "partition_tombstones violated: Partition k.t:10 on sstable ",
        "has 11 tombstones, this exceeds the warning threshold of 10.",
    );
    for quiet in ["k.t:9 ", "k.t:11 "] {
        assert!(!log.contains(quiet), "{log}");
    }
    // Compaction writes them again, and new thresholds count.
    guarded.set("partition_size_warn_threshold: 150KiB\n");
    client.run("INSERT INTO k.t (p, c, v) VALUES (12, 1, 'x')");
    guarded.server.admin(&["flush", "k"]);
    guarded.server.admin(&["compact", "k"]);
    let log = guarded.logged("compacted: k.t");
    let of = |partition: &str| log.lines().filter(|line| line.contains(partition)).count();
    assert_eq!((of("Partition k.t:7 "), of("Partition k.t:8 "), of("Partition k.t:10 ")), (1, 2, 1), "{log}");
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

fn bytes_below(folder: &std::path::Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let bytes = entries.map(|path| match path.is_dir() {
        true => bytes_below(&path),
        false => path.metadata().map_or(0, |facts| facts.len()),
    });
    bytes.sum()
}
