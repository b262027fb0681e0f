//! Imports and adopts directories of Cassandra nodes of several versions with the real binary, and kills a server
//! during an import. No Cassandra runs here: the nodes' answers are stored beside their files
//! (`tests/fixtures/sstables/README.md`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use end_to_end::{Cql, Server, binary, files, root, tool};
use scylla::value::CqlValue;
use tempfile::TempDir;

fn node(version: &str) -> PathBuf {
    root().join("crates/cql/tests/fixtures/nodes").join(version)
}

/// The node's answers: on each line, a table and a row of it as JSON.
fn expected(node: &Path) -> Vec<String> {
    let text = fs::read_to_string(node.join("rows.txt")).expect("the node's answers");
    text.lines().map(str::to_owned).collect()
}

fn answered(cql: &Cql, expected: &[String]) -> Vec<String> {
    let mut tables: Vec<&str> = expected.iter().filter_map(|line| line.split(' ').next()).collect();
    tables.dedup();
    let rows = |table: &&str| {
        let rows = cql.rows(&format!("SELECT JSON * FROM fx.{table}"));
        let table = (*table).to_owned();
        rows.into_iter().map(move |row| match &row[..] {
            [Some(CqlValue::Text(json))] => format!("{table} {json}"),
            other => panic!("no JSON: {other:?}"),
        })
    };
    tables.iter().flat_map(rows).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn a_server_of_memory_takes_a_nodes_directory() {
    for version in ["ma", "oa"] {
        let node = node(version);
        let server = Server::start_with(&["--memory"]);
        let socket =
            server.head().iter().find_map(|line| line.trim().strip_prefix("admin")).expect("the socket");
        let socket = socket.split_whitespace().next().expect("a path").to_owned();
        let told = tool(&["import", text(&node.join("data")), "--socket", &socket]);
        assert!(told.contains("imported    fx.wide: 2 SSTables"), "{told}");
        let expected = expected(&node);
        assert_eq!(answered(&Cql::connect(server.address()), &expected), expected, "{version}");
    }
}

#[test]
fn a_copy_of_a_directory_of_any_version_is_adopted_and_goes_on() {
    for version in ["ma", "me", "nb", "oa"] {
        let expected = expected(&node(version));
        let scratch = TempDir::with_prefix("helenus-adopt-").expect("a temporary directory");
        let copy = scratch.path().join("node");
        files::copy_all(&node(version).join("data"), &copy.join("data"));
        let args = ["--adopt", text(&copy)];
        let mut server =
            Server::start_in(TempDir::with_prefix("helenus-adopted-").expect("a directory"), &args);
        assert!(server.head().join("\n").contains("adopted "), "{:?}", server.head());
        let cql = Cql::connect(server.address());
        assert_eq!(answered(&cql, &expected), expected, "{version}");
        cql.run("INSERT INTO fx.wide (k, c) VALUES (77, 'written here')");
        // Unflushed writes are in the log, so the old files and the new log are both needed.
        server.kill();
        server.restart();
        let cql = Cql::connect(server.address());
        assert_eq!(cql.rows("SELECT * FROM fx.wide WHERE k = 77").len(), 1);
        cql.run("DELETE FROM fx.wide WHERE k = 77");
        assert_eq!(answered(&cql, &expected), expected, "{version}, after kill -9");
    }
}

/// Copies the SSTables of a table, so that there is more to import.
fn multiply(table: &Path, copies: u32) {
    for path in files::tables(table) {
        let prefix = text(&path).strip_suffix("Data.db").expect("a data file").to_owned();
        let (before, _) = prefix.split_once("/nb-").expect("a file of version nb");
        let first = if prefix.contains("/nb-1-") { 100 } else { 10_000 };
        for component in [
            "Data.db",
            "Index.db",
            "Summary.db",
            "Filter.db",
            "Statistics.db",
            "CompressionInfo.db",
            "Digest.crc32",
            "TOC.txt",
        ] {
            for number in first..first + copies {
                fs::copy(format!("{prefix}{component}"), format!("{before}/nb-{number}-big-{component}"))
                    .expect("copy a component");
            }
        }
    }
}

/// The number of files in a folder and its subfolders.
fn count(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries.flatten().map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

#[test]
fn a_server_killed_in_the_middle_of_an_import_has_all_of_it_or_nothing() {
    const COPIES: u32 = 60;
    let node = node("nb");
    let expected = expected(&node);
    let scratch = TempDir::with_prefix("helenus-import-").expect("a temporary directory");
    let data = scratch.path().join("data");
    files::copy_all(&node.join("data"), &data);
    let folders = fs::read_dir(data.join("fx")).expect("the keyspace").flatten().map(|entry| entry.path());
    let wide = folders.into_iter().find(|path| text(path).contains("/wide-")).expect("the table");
    multiply(&wide, COPIES);
    let (mut none, mut all) = (0, 0);
    // Kills the server when this number of files is gathered; the last ones after the import has been committed.
    for gathered in [1, 40, 200, 500, 900, usize::MAX, usize::MAX] {
        let mut server = Server::start();
        let mut import = Command::new(binary());
        import.arg("import").arg(&data).args(["--copy-data", "--data"]).arg(server.data());
        import.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut import = import.spawn().expect("start the import");
        let folder = server.data().join("import");
        let is_ready = || {
            let entries = fs::read_dir(&folder).map(|entries| entries.flatten().collect::<Vec<_>>());
            entries.unwrap_or_default().iter().any(|entry| text(&entry.path()).ends_with(".ready"))
        };
        while import.try_wait().expect("ask for the import's end").is_none() {
            if is_ready() || (gathered < usize::MAX && count(&folder) >= gathered) {
                break;
            }
            std::thread::yield_now();
        }
        server.kill();
        let _ = import.wait();
        server.restart();
        let cql = Cql::connect(server.address());
        let tables = cql.rows("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'fx'").len();
        let is_there = tables > 0 && !cql.rows("SELECT k FROM fx.wide").is_empty();
        if is_there {
            assert_eq!(answered(&cql, &expected), expected, "killed at {gathered} files");
            all += 1;
        } else {
            for table in ["counts", "collections", "shrunk"].iter().filter(|_| tables > 0) {
                assert!(cql.rows(&format!("SELECT * FROM fx.{table}")).is_empty(), "half an import: {table}");
            }
            none += 1;
        }
        assert_eq!(count(&folder), 0, "something is left of the import");
        // The import is repeated, to its end.
        tool(&["import", text(&data), "--data", text(&server.data())]);
        assert_eq!(answered(&Cql::connect(server.address()), &expected), expected);
    }
    assert!(none >= 2 && all >= 1, "{none} with nothing, {all} with all");
}

#[test]
fn a_damaged_table_is_refused_scrubbed_and_then_taken() {
    let scratch = TempDir::with_prefix("helenus-scrub-").expect("a temporary directory");
    let data = scratch.path().join("data");
    files::copy_all(&node("nb").join("data"), &data);
    let folders = fs::read_dir(data.join("fx")).expect("the keyspace").flatten().map(|entry| entry.path());
    let folder = folders.into_iter().find(|path| text(path).contains("/indexed-")).expect("the table");
    let file = files::tables(&folder).remove(0);
    let mut bytes = fs::read(&file).expect("the data");
    bytes[10] ^= 0x40;
    fs::write(&file, bytes).expect("damage it");
    let server = Server::start();
    let ours = server.data();
    let import = ["import", text(&data), "--data", text(&ours)];
    let told = end_to_end::refused(&import);
    assert!(told.contains("nothing was imported") && told.contains("nb-1-big-Data.db"), "{told}");
    // Three small partitions in one chunk: nothing of them is left, so that it stays.
    let told = end_to_end::refused(&["sstable", "scrub", text(&file)]);
    assert!(told.contains("left as it is") && told.contains("--output") && file.exists(), "{told}");
    let saved = scratch.path().join("saved");
    let told = end_to_end::refused(&["sstable", "scrub", "--output", text(&saved), text(&file)]);
    assert!(told.contains("1 SSTable lost data"), "{told}");
    for path in fs::read_dir(&folder).expect("the table").flatten().map(|entry| entry.path()) {
        if text(&path).contains("/nb-1-big-") {
            fs::remove_file(path).expect("take it away");
        }
    }
    let told = tool(&["sstable", "verify", text(&folder)]);
    assert!(told.contains("sound"), "{told}");
    tool(&import);
    let cql = Cql::connect(server.address());
    // The row of the second SSTable is kept; those of the first were in the damaged chunk.
    assert_eq!(cql.rows("SELECT * FROM fx.indexed").len(), 1);
    assert_eq!(cql.rows("SELECT * FROM fx.wide").len(), 3);
}
