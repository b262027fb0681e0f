//! Guardrails that look at the disk and at new SSTables.

use std::fs;
use std::time::{Duration, Instant};

use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Calls, Server};
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ColumnParent, Compression, ConsistencyLevel, CounterColumn, Map, Method,
    Mutation, SlicePredicate, SliceRange, args,
};
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
        Guarded::start_with(settings, &[])
    }

    fn start_with(settings: &str, options: &[&str]) -> Guarded {
        let folder = TempDir::with_prefix("helenus-guardrails-").expect("a temporary directory");
        let path = folder.path().join("settings.yaml");
        fs::write(&path, settings).expect("written");
        let options = [&["--config", path.to_str().expect("UTF-8")], options].concat();
        let server = Server::start_in(folder, &options);
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

/// The old interface refuses them too; it still reads and truncates.
#[test]
fn writes_by_rpc_are_refused_before_the_disk_is_full() {
    let guarded = Guarded::start_with("cluster_name: c\n", &["--rpc", "127.0.0.1:0"]);
    let mut client = Raw::ready(guarded.server.address(), 4);
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (key blob, c blob, v blob, PRIMARY KEY (key, c)) WITH COMPACT STORAGE");
    client.run(
        "CREATE TABLE k.counts (key blob, c blob, v counter, PRIMARY KEY (key, c)) WITH COMPACT STORAGE",
    );
    let mut calls = Calls::connect(&Calls::address_of(&guarded.server));
    calls.answer(Method::SetKeyspace, &args::OfKeyspace { keyspace: "k" });
    let one = ConsistencyLevel::One;
    let parent = |column_family| ColumnParent { column_family, super_column: None };
    let column = || Column { name: b"c", value: Some(b"v"), timestamp: Some(1), ttl: None };
    let written = ColumnOrSuperColumn {
        column: Some(column()),
        super_column: None,
        counter_column: None,
        counter_super_column: None,
    };
    let mutation = Mutation { column_or_supercolumn: Some(written), deletion: None };
    let mutation_map = Map(vec![(&b"k"[..], Map(vec![("t", vec![mutation])]))]);
    let insert =
        args::Insert { key: b"k", column_parent: parent("t"), column: column(), consistency_level: one };
    let batch = args::BatchMutate { mutation_map, consistency_level: one };
    let counted = CounterColumn { name: b"c", value: 1 };
    let add =
        args::Add { key: b"k", column_parent: parent("counts"), column: counted, consistency_level: one };
    let cas = args::Cas {
        key: b"k",
        column_family: "t",
        expected: None,
        updates: Some(vec![column()]),
        serial_consistency_level: ConsistencyLevel::Serial,
        commit_consistency_level: one,
    };
    let cql = args::Cql3Query {
        query: b"INSERT INTO t (key, c, v) VALUES (0x01, 0x02, 0x03)",
        compression: Compression::None,
        consistency: one,
    };
    calls.answer(Method::Insert, &insert);
    guarded.server.admin(&["flush"]);
    guarded.set("data_disk_usage_percentage_fail_threshold: 90\ndata_disk_usage_max_disk_size: 1KiB\n");
    for refused in [
        calls.exception(Method::Insert, &insert),
        calls.exception(Method::BatchMutate, &batch),
        calls.exception(Method::AtomicBatchMutate, &batch),
        calls.exception(Method::Add, &add),
        calls.exception(Method::Cas, &cas),
        calls.exception(Method::ExecuteCql3Query, &cql),
    ] {
        assert!(contains(&refused, FULL), "{}", String::from_utf8_lossy(&refused));
    }
    let slice_range = SliceRange { start: b"", finish: b"", reversed: false, count: 10 };
    let predicate = SlicePredicate { column_names: None, slice_range: Some(slice_range) };
    let read = args::GetSlice { key: b"k", column_parent: parent("t"), predicate, consistency_level: one };
    calls.answer(Method::GetSlice, &read);
    calls.answer(Method::Truncate, &args::OfColumnFamily { column_family: "t" });
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
