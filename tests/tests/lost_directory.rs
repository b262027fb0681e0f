//! A data directory that is renamed, removed or replaced while a server works in it: writes stop, nothing is acknowledged that a
//! start would not find, nothing is written into what is there instead, and no second server gets into a directory in use.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use end_to_end::Server;
use end_to_end::raw::{ERROR, RESULT, Raw};
use tempfile::TempDir;

const SOON: Duration = Duration::from_secs(20);

/// What somebody does to a data directory.
type Change = fn(&Path);

/// What happens to a folder.
const CHANGES: [(&str, Change); 4] = [
    ("renamed", |folder| fs::rename(folder, away(folder)).expect("rename")),
    ("replaced by an empty one", |folder| {
        fs::rename(folder, away(folder)).expect("rename");
        fs::create_dir(folder).expect("a folder");
    }),
    ("replaced by a link elsewhere", |folder| {
        fs::rename(folder, away(folder)).expect("rename");
        let other = folder.with_extension("other");
        fs::create_dir(&other).expect("a folder");
        symlink(other, folder).expect("a link");
    }),
    ("removed", removed),
];

/// Removes a folder in which a server may make a file at any moment, as it does for the next segment of its log.
fn removed(folder: &Path) {
    let begin = Instant::now();
    while let Err(error) = fs::remove_dir_all(folder) {
        if error.kind() == ErrorKind::NotFound {
            return;
        }
        assert!(begin.elapsed() < SOON, "remove: {error}");
    }
}

fn away(folder: &Path) -> PathBuf {
    folder.with_extension("away")
}

/// The files in a folder and below; none if it is not there.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn insert(client: &mut Raw, row: usize) -> bool {
    client.query(&format!("INSERT INTO k.t (k, v) VALUES ({row}, 'v')")).opcode == RESULT
}

#[test]
fn a_folder_that_is_moved_or_replaced_stops_the_writes() {
    for sync in ["group", "periodic"] {
        for (what, change) in CHANGES {
            for part in ["", "commitlog"] {
                let name = format!("{sync}, data/{part} {what}");
                let mut server = Server::start_with(&["--set", &format!("commitlog_sync={sync}")]);
                let mut client = Raw::ready(server.address(), 4);
                client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
                client.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
                assert!((0..10).all(|row| insert(&mut client, row)), "{name}");
                let folder = match part {
                    "" => server.data(),
                    part => server.data().join(part),
                };
                change(&folder);
                let (begin, mut acknowledged) = (Instant::now(), 10);
                let refused = loop {
                    assert!(begin.elapsed() < SOON, "{name}: {acknowledged} writes are acknowledged");
                    let reply = client.query(&format!("INSERT INTO k.t (k, v) VALUES ({acknowledged}, 'v')"));
                    if reply.opcode == ERROR {
                        break reply.error().1;
                    }
                    acknowledged += 1;
                };
                assert!(refused.contains("put it back"), "{name}: {refused}");
                // Where each write is synced, not one is acknowledged afterwards.
                assert!(sync == "periodic" || acknowledged == 10, "{name}: {acknowledged}");
                // Reads go on.
                assert_eq!(client.query("SELECT v FROM k.t WHERE k = 3").opcode, RESULT, "{name}");
                let _code_says_that_the_flush_failed = server.stop();
                let log = server.log();
                assert!(log.contains("put it back"), "{name}: {log}");
                if what != "removed" {
                    let in_place = files_below(&folder);
                    assert!(in_place.is_empty(), "{name}: {in_place:?} was written");
                }
                if what == "renamed" {
                    fs::rename(away(&folder), &folder).expect("put back");
                    server.restart();
                    let mut client = Raw::ready(server.address(), 4);
                    for row in 0..acknowledged {
                        let reply = client.query(&format!("SELECT v FROM k.t WHERE k = {row}"));
                        assert!(
                            sync == "periodic" || reply.body.ends_with(b"\0\0\0\x01v"),
                            "{name}: row {row}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_lock_file_that_is_removed_or_replaced_lets_no_second_server_in() {
    let server = Server::start();
    let lock = server.data().join("helenus.lock");
    assert!(server.start_refused().contains(&format!("process {}", server.process_id())));
    fs::remove_file(&lock).expect("remove the lock file");
    let refused = server.start_refused();
    assert!(refused.contains("in use") || refused.contains("another"), "{refused}");
    fs::write(&lock, "").expect("another lock file");
    server.start_refused();
    let mut client = Raw::ready(server.address(), 4);
    assert_eq!(client.query("SELECT key FROM system.local").opcode, RESULT);
}

/// The owner of a machine prepares folders of a data directory on other disks, and keeps files of his own in some of them.
#[test]
fn a_start_changes_nothing_of_what_others_keep_in_a_folder_of_the_directory() {
    const FOLDERS: [&str; 5] = ["commitlog", "data", "export", "import", "restore"];
    let folder = TempDir::with_prefix("helenus-others-").expect("a temporary directory");
    let (other, data) = (folder.path().join("other"), folder.path().join("data"));
    fs::create_dir(&data).expect("a folder");
    for name in FOLDERS {
        fs::create_dir_all(other.join(name)).expect("a folder");
        symlink(other.join(name), data.join(name)).expect("a link");
    }
    let kept =
        ["import/report.ready/x", "import/a.staging", "restore/unpacked/x"].map(|name| other.join(name));
    let put = |path: &PathBuf| {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "kept").expect("a file");
    };
    kept.iter().for_each(put);
    let mut server = Server::start_in(folder, &[]);
    assert!(server.stop().success());
    let of_export = ["export/report.csv", "export/2026/x"].map(|name| other.join(name));
    of_export.iter().for_each(put);
    let left = other.join("export/0b1c5c0e-5d0f-4a52-9d5c-0d8f6b1f3a11/k/t/x");
    put(&left);
    server.restart();
    assert!(server.stop().success());
    for path in kept.iter().chain(&of_export) {
        assert_eq!(fs::read_to_string(path).expect("a file"), "kept", "{}", path.display());
    }
    assert!(FOLDERS.iter().all(|name| data.join(name).is_symlink() && other.join(name).is_dir()));
    assert!(!left.exists(), "of an export that was interrupted");
}

#[test]
fn a_directory_that_was_moved_while_no_server_ran_is_as_good_as_before() {
    let folder = TempDir::with_prefix("helenus-moved-").expect("a temporary directory");
    let other = folder.path().join("real");
    fs::create_dir(&other).expect("a folder");
    symlink(&other, folder.path().join("data")).expect("a link");
    let mut server = Server::start_in(folder, &[]);
    let mut client = Raw::ready(server.address(), 4);
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    assert!(insert(&mut client, 1));
    server.admin(&["flush"]);
    assert!(server.stop().success());
    let moved = other.with_extension("moved");
    fs::rename(&other, &moved).expect("rename");
    fs::remove_file(server.data()).expect("remove the link");
    symlink(&moved, server.data()).expect("a link");
    server.restart();
    let mut client = Raw::ready(server.address(), 4);
    assert!(client.query("SELECT v FROM k.t WHERE k = 1").body.ends_with(b"\0\0\0\x01v"));
    assert!(insert(&mut client, 2));
}
