//! The commit log: a whole opening over one segment.

use crate::targets::sstable::{SCHEMA, fill, put, whole_file};
use helenus_engine::{Database, DatabaseOptions, SyncMode};
use helenus_host::memory;
use std::path::{Path, PathBuf};

const SEGMENT_BYTES: u32 = 256 << 10;

fn options() -> DatabaseOptions {
    DatabaseOptions {
        segment_bytes: SEGMENT_BYTES,
        mutation_bytes_max: 64 << 10,
        sync: Some(SyncMode::Batch),
        ..DatabaseOptions::new("/db")
    }
}

pub(super) fn corpus() -> Vec<Vec<u8>> {
    let host = memory::host();
    let (database, _) = Database::open(host.clone(), options()).unwrap_or_else(|error| panic!("{error}"));
    fill(&database, &SCHEMA[..3], 20);
    let folder = host.disk.list(Path::new("/db/commitlog"));
    let mut segments: Vec<PathBuf> = folder.unwrap_or_else(|error| panic!("{error}"));
    segments.sort();
    let is_log = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let mut corpus: Vec<_> =
        segments.iter().filter(is_log).filter_map(|path| whole_file(&host, path)).collect();
    // Behind the last record there is nothing to change.
    for segment in &mut corpus {
        let end = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 64);
        segment.truncate(end);
    }
    corpus
}

pub(super) fn run(input: &[u8]) {
    for skip_damaged_log in [false, true] {
        let host = memory::host();
        put(&host, Path::new("/db/commitlog/helenus-1.log"), input);
        let options = DatabaseOptions { skip_damaged_log, ..options() };
        if let Ok((database, _)) = Database::open(host, options) {
            let _closed = database.close();
        }
    }
}
