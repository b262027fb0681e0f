//! Runs each of the tools of `helenus sstable`, and `helenus export`, on files of other programs: what comes out is what
//! went in, a loss is an error, and nothing half made is left.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

use helenus_sstable::transaction_log::{Record, RecordKind};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sstable/tests/fixtures")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_helenus")).args(args).output().unwrap()
}

/// Runs a tool that must succeed, and returns its output.
fn tool(args: &[&str]) -> String {
    let output = run(args);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}\n{out}{err}");
    out.into_owned()
}

/// Runs a tool that must fail, and returns what it says.
fn refused(args: &[&str]) -> String {
    let output = run(args);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "{args:?} was done: {out}");
    format!("{out}{err}")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The elements that `dump` prints, without their positions in the file.
fn dumped(folder: &Path) -> Vec<Value> {
    let lines = tool(&["sstable", "dump", text(folder)]);
    let parsed = lines.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("position");
        line
    });
    let mut lines: Vec<Value> = parsed.collect();
    lines.sort_by_key(ToString::to_string);
    lines
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in names(from).iter().filter(|name| name.contains("-big-") || name.contains("-bti-")) {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

fn folders_in(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixtures().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn each_tool_keeps_each_element_of_files_of_both_lines_of_cassandra_3_and_of_later_versions() {
    let all: Vec<PathBuf> = ["cassandra-3.0", "versions/mc", "versions/me", "versions/nb"]
        .iter()
        .flat_map(|folder| folders_in(folder))
        .collect();
    let mut checked = 0;
    for fixture in all {
        let scratch = TempDir::new().unwrap();
        let at = |name: &str| scratch.path().join(name).join("fx").join("t");
        let from = at("from");
        copy(&fixture, &from);
        let expected = dumped(&from);
        let verified = tool(&["sstable", "verify", text(&from)]);
        assert!(verified.starts_with("sound"), "{}: {verified}", fixture.display());
        tool(&["sstable", "partitions", text(&from)]);
        tool(&["sstable", "metadata", text(&from)]);
        tool(&["sstable", "scrub", text(&from), "--output", text(&at("scrubbed"))]);
        tool(&["sstable", "upgrade", text(&from), "--output", text(&at("da"))]);
        tool(&["sstable", "upgrade", text(&at("da")), "--to", "nb", "--output", text(&at("nb"))]);
        tool(&["sstable", "split", text(&from), "--output", text(&at("split"))]);
        tool(&["sstable", "scrub", text(&from)]);
        for name in ["scrubbed", "da", "nb", "split", "from"] {
            let found = dumped(&at(name));
            assert_eq!(found, expected, "{}: {name}", fixture.display());
        }
        // The pieces have the version of the old SSTable, or the next that is written.
        let version = names(&fixture).into_iter().find(|name| name.ends_with("-Data.db")).unwrap();
        let kept = if version.starts_with('m') { "me-" } else { "nb-" };
        let pieces = names(&at("split"));
        assert!(pieces.iter().all(|name| name.starts_with(kept)), "{}: {pieces:?}", fixture.display());
        checked += 1;
    }
    assert!(checked > 15, "{checked}");
}

/// A keyspace's folder with the tables of Cassandra 3.0, each with its schema beside it.
fn snapshot(root: &Path) {
    let frozen = "CREATE TYPE fx.addr (street text, no int);\n\
        CREATE TABLE fx.frozen_udts (k int, c int, s frozen<addr> static, a frozen<addr>, l list<frozen<addr>>, v text, \
        PRIMARY KEY (k, c));\n";
    let named = "CREATE TABLE fx.named (k int, c int, c2 int, \"PartitionKey\" text, clustering text static, \
        clustering1 int, PRIMARY KEY (k, c, c2));\n";
    for (table, schema) in [("frozen_udts", frozen), ("named", named)] {
        let folder = root.join("fx").join(table);
        copy(&fixtures().join("cassandra-3.0").join(table), &folder);
        std::fs::write(folder.join("schema.cql"), schema).unwrap();
    }
}

#[test]
fn a_database_that_took_files_of_cassandra_3_0_is_exported_for_every_target() {
    let scratch = TempDir::new().unwrap();
    let (from, data) = (scratch.path().join("from"), scratch.path().join("data"));
    snapshot(&from);
    tool(&["import", text(&from), "--data", text(&data)]);
    let expected = dumped(&from.join("fx/frozen_udts"));
    for target in ["cassandra-4", "cassandra-5", "cassandra-5-bti", "scylla"] {
        let to = scratch.path().join(target);
        tool(&["export", text(&to), "fx", "--for", target, "--data", text(&data)]);
        // The key columns have no names in files; all others have the same.
        assert_eq!(dumped(&to.join("fx/frozen_udts")), expected, "{target}");
        assert_eq!(dumped(&to.join("fx/named")), dumped(&from.join("fx/named")), "{target}");
    }
}

#[test]
fn the_schema_beside_a_file_or_given_decides_what_its_header_leaves_open() {
    let scratch = TempDir::new().unwrap();
    snapshot(scratch.path());
    let folder = scratch.path().join("fx/frozen_udts");
    let expected = dumped(&fixtures().join("cassandra-3.0/frozen_udts"));
    assert_eq!(dumped(&folder), expected);
    let schema = scratch.path().join("given.cql");
    std::fs::rename(folder.join("schema.cql"), &schema).unwrap();
    let verified = tool(&["sstable", "verify", "--schema", text(&schema), text(&folder)]);
    assert!(verified.starts_with("sound"), "{verified}");
    // The schema is taken at its word.
    let wrong = "CREATE TYPE fx.addr (street text, no int);\n\
        CREATE TABLE fx.frozen_udts (k int, c int, s addr static, a addr, PRIMARY KEY (k, c));\n";
    std::fs::write(&schema, wrong).unwrap();
    assert!(refused(&["sstable", "verify", "--schema", text(&schema), text(&folder)]).contains("DAMAGED"));
    std::fs::write(&schema, "SELECT 1").unwrap();
    let said = refused(&["sstable", "verify", "--schema", text(&schema), text(&folder)]);
    assert!(said.contains("given.cql"), "{said}");
}

#[test]
fn a_scrub_that_loses_something_fails_and_one_that_would_lose_most_leaves_the_files() {
    let scratch = TempDir::new().unwrap();
    let folder = scratch.path().join("fx").join("t");
    copy(&fixtures().join("versions/nb/wide"), &folder);
    let before = names(&folder);
    let data = before.iter().find(|name| name.ends_with("-Data.db")).unwrap();
    let sound = std::fs::read(folder.join(data)).unwrap();
    let mut damaged = sound.clone();
    for at in (10..damaged.len()).step_by(100) {
        damaged[at] ^= 4;
    }
    std::fs::write(folder.join(data), &damaged).unwrap();
    let said = refused(&["sstable", "scrub", text(&folder)]);
    assert!(said.contains("left as it is") && said.contains("--output"), "{said}");
    assert_eq!(names(&folder), before);
    let saved = scratch.path().join("saved");
    let said = refused(&["sstable", "scrub", text(&folder), "--output", text(&saved)]);
    assert!(said.contains("lost") && said.contains("1 SSTable lost data"), "{said}");
    assert_eq!(names(&folder), before);
    // One damaged chunk.
    let mut damaged = sound;
    let last = damaged.len() - 20;
    damaged[last] ^= 1;
    std::fs::write(folder.join(data), &damaged).unwrap();
    let said = refused(&["sstable", "scrub", text(&folder)]);
    assert!(said.contains("snapshot    ") && said.contains("1 SSTable lost data"), "{said}");
    assert!(tool(&["sstable", "verify", text(&folder)]).starts_with("sound"));
    let snapshots = names(&folder.join("snapshots"));
    let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
    assert_eq!(std::fs::read(folder.join("snapshots").join(snapshot).join(data)).unwrap(), damaged);
}

#[test]
fn a_tool_that_fails_leaves_nothing_half_made_and_one_that_was_ended_is_cleaned_up() {
    let scratch = TempDir::new().unwrap();
    let folder = scratch.path().join("fx").join("t");
    copy(&fixtures().join("versions/nb/wide"), &folder);
    let data = names(&folder).into_iter().find(|name| name.ends_with("-Data.db")).unwrap();
    let mut damaged = std::fs::read(folder.join(&data)).unwrap();
    let last = damaged.len() - 20;
    damaged[last] ^= 1;
    std::fs::write(folder.join(&data), &damaged).unwrap();
    for command in ["upgrade", "split"] {
        let to = scratch.path().join(command);
        refused(&["sstable", command, text(&folder), "--output", text(&to)]);
        assert_eq!(names(&to), Vec::<String>::new(), "{command}");
        // As a run leaves it that was ended within an SSTable.
        std::fs::write(to.join("da-7-bti-Data.db"), b"half").unwrap();
        let log = to.join("bti-da_txn_write_5bc52802-de25-35ed-aeab-188eecebb090.log");
        let path = to.join("da-7-bti-").to_str().unwrap().to_owned();
        let record = Record { kind: RecordKind::Add, path, modified_ms: 0, files: 9 };
        std::fs::write(log, record.to_line() + "\n").unwrap();
        refused(&["sstable", command, text(&folder), "--output", text(&to)]);
        assert_eq!(names(&to), Vec::<String>::new(), "{command}");
    }
}
