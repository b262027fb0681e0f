//! The begin of the kept changes has two writers: flushes, which let segments go, and acknowledgements, which make them useless.
//! Whatever their order, both succeed, and the disk never names a position before that of the process: after a
//! start a consumer would pass over a gap without a word.
//!
//! The disk gives other threads a turn at each call that has to do with the file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions, KeptLimits};
use helenus_host::{Disk, File, Host, memory};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::random::from_environment;
use support::*;

/// A disk on which threads take turns around a file.
struct Turns(Arc<dyn Disk>);

fn turn(path: &Path) {
    if path.to_string_lossy().contains("/changes/begin") {
        for _ in 0..20 {
            std::thread::yield_now();
        }
    }
}

impl Disk for Turns {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.0.open(path)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.0.open_write(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        turn(path);
        let made = self.0.create(path);
        turn(path);
        made
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.0.lock(path, holder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        turn(from);
        self.0.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        turn(path);
        self.0.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        turn(path);
        self.0.exists(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.0.is_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.0.free_bytes(dir)
    }
}

/// The position on the disk: in the name of a file, or in the file `begin` of earlier versions.
fn begin_on_disk(disk: &dyn Disk) -> u64 {
    let names = disk.list(Path::new("/db/changes")).unwrap();
    let names = names.iter().filter_map(|path| path.file_name()?.to_str()?.strip_prefix("begin-"));
    if let Some(named) = names.filter_map(|digits| digits.parse().ok()).max() {
        return named;
    }
    let file = disk.open(Path::new("/db/changes/begin")).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8(bytes).unwrap().trim().parse().unwrap()
}

/// The position of the process.
fn begin_in_memory(database: &Database) -> u64 {
    let text = database.changes().begin().unwrap().text(database.host_id());
    u64::from_str_radix(text.split('-').nth(1).unwrap(), 16).unwrap()
}

#[test]
fn acknowledgements_beside_flushes_succeed_and_leave_the_latest_begin_on_the_disk() {
    let host = memory::host();
    let host = Host { disk: Arc::new(Turns(host.disk.clone())), ..host };
    let mut options = DatabaseOptions::new("/db");
    options.segment_bytes = 16 << 10;
    // A segment that is filled after the last acknowledgement is kept, and released by the next one; any other goes with
    // the flush.
    options.kept_log = KeptLimits { bytes: 1 << 30, age_s: 7 * 86_400 };
    let database = Database::open(host.clone(), options).unwrap().0;
    let mut watched = table("w", 7, false);
    watched.options.cdc = true;
    create(&database, vec![watched]);
    let ended = AtomicBool::new(false);
    let rounds = from_environment("BEGIN_ROUNDS", 60) as i32;
    std::thread::scope(|scope| {
        let acknowledging = scope.spawn(|| {
            let feed = database.changes();
            while !ended.load(Ordering::Relaxed) {
                let now = feed.now().unwrap();
                feed.acknowledge(("ks", "w"), "c", (now, String::new())).unwrap();
            }
        });
        let w = table_of(&database, "w");
        for round in 0..rounds {
            for c in 0..40 {
                let write = Write::default().insert(&w, c, &"v".repeat(900), i64::from(round * 100 + c));
                write.to(&database, "w", "a").wait().unwrap();
            }
            database.flush_all().unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        ended.store(true, Ordering::Relaxed);
        acknowledging.join().unwrap();
    });
    database.flush_all().unwrap();
    assert_eq!(begin_on_disk(&*host.disk), begin_in_memory(&database));
    database.close().unwrap();
}
