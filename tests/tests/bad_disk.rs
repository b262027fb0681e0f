//! Tests the real binary on disks that fill up and on damaged files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use end_to_end::raw::{RESULT, Raw};
use end_to_end::{Server, SmallDisk, files};
use tempfile::TempDir;

const OVERLOADED: i32 = 0x1001;
const READ_FAILURE: i32 = 0x1300;
/// Maximum time until a server notices that there is space again.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

fn keyspace(client: &mut Raw) {
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
}

fn insert(client: &mut Raw, table: &str, partition: i32, row: i32, value: &str) -> Result<(), (i32, String)> {
    let text = format!("INSERT INTO k.{table} (k, c, v) VALUES ({partition}, {row}, '{value}')");
    let reply = client.query(&text);
    if reply.opcode == RESULT { Ok(()) } else { Err(reply.error()) }
}

/// The result of a `count(*)`: the last eight bytes.
fn count(client: &mut Raw, table: &str) -> u64 {
    let reply = client.query(&format!("SELECT count(*) FROM k.{table}"));
    assert_eq!(reply.opcode, RESULT, "{:?}", reply.error());
    u64::from_be_bytes(*reply.body.last_chunk().expect("a row"))
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_recovers_without_a_restart() {
    let folder = TempDir::with_prefix("helenus-full-").expect("a temporary directory");
    let data = folder.path().join("data");
    let Some(_disk) = SmallDisk::mount(&data, 48) else {
        println!("not run: this user may not mount a tmpfs");
        return;
    };
    // A dot file, which is no sign of somebody else's directory.
    let ballast = data.join(".ballast");
    fs::write(&ballast, vec![1; 24 << 20]).expect("24 MiB fit");
    let config = folder.path().join("small.yaml");
    fs::write(&config, "commitlog_segment_size: 2MiB\n").expect("a file");
    let mut server = Server::start_in(folder, &["--config", config.to_str().expect("UTF-8")]);
    let mut client = Raw::ready(server.address(), 4);
    keyspace(&mut client);
    client.run(
        "CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c)) WITH compression = {'enabled': false}",
    );
    // Table compression is off, so that every row takes its 20,000 bytes on disk.
    let value = "v".repeat(20_000);
    let mut written = 0;
    let (code, text) = loop {
        match insert(&mut client, "t", written % 10, written, &value) {
            Ok(()) => written += 1,
            Err(refused) => break refused,
        }
        assert!(written < 5000, "100 MB do not fit 24 MiB");
    };
    assert_eq!(code, OVERLOADED, "{text}");
    assert!(text.contains("commitlog") && text.contains("No space left on device"), "{text}");
    println!("refused after {written} rows: {text}");
    for _ in 0..3 {
        assert_eq!(count(&mut client, "t"), written as u64, "reads go on");
        insert(&mut client, "t", 0, written, &value).expect_err("still full");
    }
    // A server killed now must start again without any free space.
    server.kill();
    server.restart();
    let mut client = Raw::ready(server.address(), 4);
    assert_eq!(count(&mut client, "t"), written as u64, "whatever was acknowledged is there, on a full disk");
    fs::remove_file(&ballast).expect("removed");
    // The server is not told that there is space. A write succeeds at once, or after the waiting flush has finished.
    let begin = Instant::now();
    while let Err((_, text)) = insert(&mut client, "t", 3, written, &value) {
        assert!(begin.elapsed() < RECOVERY_MAX, "no recovery: {text}");
    }
    written += 1;
    for _ in 0..100 {
        insert(&mut client, "t", written % 10, written, &value).expect("there is room");
        written += 1;
    }
    assert_eq!(count(&mut client, "t"), written as u64);
    server.kill();
    server.restart();
    let mut client = Raw::ready(server.address(), 4);
    assert_eq!(count(&mut client, "t"), written as u64, "whatever was acknowledged is there");
}

/// The path of a component of a table's only SSTable.
fn component(folder: &Path, name: &str) -> PathBuf {
    let [data] = &files::tables(folder)[..] else { panic!("one SSTable in {}", folder.display()) };
    let path = PathBuf::from(data.to_str().expect("UTF-8").replace("-Data.db", &format!("-{name}.db")));
    assert!(path.exists(), "{}", path.display());
    path
}

/// Flips a bit in the middle of a file.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_damaged_block_index_or_statistics_file_fails_its_reads_alone() {
    let mut server = Server::start();
    let mut client = Raw::ready(server.address(), 4);
    keyspace(&mut client);
    let damaged = [
        ("blocks", "Data"),
        ("partitions", "Partitions"),
        ("rows", "Rows"),
        ("statistics", "Statistics"),
        ("bloom", "Filter"),
    ];
    let value = "v".repeat(300);
    for table in damaged.iter().map(|(table, _)| *table).chain(["sound"]) {
        client.run(&format!("CREATE TABLE k.{table} (k int, c int, v text, PRIMARY KEY (k, c))"));
        for partition in 0..20 {
            for row in 0..200 {
                insert(&mut client, table, partition, row, &value).expect("written");
            }
        }
    }
    server.admin(&["flush"]);
    let cql = end_to_end::Cql::connect(server.address());
    let files = damaged.map(|(table, name)| {
        (table, component(&files::table_folder(&server.tables(), &cql, "k", table), name))
    });
    drop(cql);
    assert!(server.stop().success());
    files.iter().for_each(|(_, file)| damage(file));
    server.restart();
    let head = server.head().join("\n");
    let mut client = Raw::ready(server.address(), 4);
    for (table, file) in &files {
        // A read of all rows needs no index of rows.
        let of = if *table == "rows" { " WHERE k = 7 AND c > 100" } else { "" };
        let reply = client.query(&format!("SELECT count(*) FROM k.{table}{of}"));
        let (code, text) = reply.error();
        assert_eq!(code, READ_FAILURE, "{table}: {text}");
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(text.contains(name) && text.contains(" at byte "), "{table}: {text}");
        println!("{table}: {text}");
        insert(&mut client, table, 99, 0, "new").expect("writes go on");
    }
    let name = files[3].1.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(head.contains(name), "what cannot be opened is said at the start:\n{head}");
    assert_eq!(count(&mut client, "sound"), 4000, "the rest goes on");
    // Intact blocks are still read, though another block of the file is damaged.
    let sound_blocks = (0..20).filter(|partition| {
        client.query(&format!("SELECT count(*) FROM k.blocks WHERE k = {partition}")).opcode == RESULT
    });
    assert!((15..20).contains(&sound_blocks.count()), "one block of the twenty partitions is damaged");
    // Unreadable files are never deleted: they survive a flush, a stop and a start.
    server.admin(&["flush"]);
    assert!(server.stop().success());
    assert!(files.iter().all(|(_, file)| file.exists()));
    files.iter().for_each(|(_, file)| damage(file)); // the same bit again: repaired
    server.restart();
    let mut client = Raw::ready(server.address(), 4);
    for (table, _) in &files {
        assert_eq!(count(&mut client, table), 4001, "{table}");
    }
}

#[test]
fn a_damaged_commit_log_is_refused_with_segment_and_offset_unless_told_to_skip() {
    let mut server = Server::start();
    let mut client = Raw::ready(server.address(), 4);
    keyspace(&mut client);
    client.run("CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c))");
    for row in 0..1000 {
        insert(&mut client, "t", 1, row, &"v".repeat(100)).expect("written");
    }
    server.kill();
    let log = server.data().join("commitlog");
    let mut segments: Vec<PathBuf> = fs::read_dir(&log)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    segments.sort();
    let segment = segments.first().expect("a segment");
    let mut bytes = fs::read(segment).expect("a segment");
    // Rows 0 to 999 take about 200 KB, so the bytes after 100,000 were synced long before the end.
    bytes[100_000] ^= 0x10;
    fs::write(segment, &bytes).expect("written");
    let text = server.start_refused();
    let name = segment.file_name().and_then(|name| name.to_str()).expect("a name");
    for expected in ["damaged commit log", name, " at byte ", "--skip-damaged-log"] {
        assert!(text.contains(expected), "`{expected}` is missing: {text}");
    }
    println!("{text}");
    server.add_args(&["--skip-damaged-log"]);
    server.restart();
    let head = server.head().join("\n");
    assert!(head.contains("skipped") && head.contains(name), "{head}");
    let mut client = Raw::ready(server.address(), 4);
    let left = count(&mut client, "t");
    println!("{left} of 1000 rows are left");
    assert!((100..1000).contains(&left), "what stands before the damage is there: {left}");
}
