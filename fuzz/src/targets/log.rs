//! The commit log: a whole opening over one segment, as it comes and with its checksums made right again, so that what stands
//! behind them is reached (docs/formats/commitlog.md).

use crate::targets::sstable::{SCHEMA, fill, put, whole_file};
use helenus_engine::{Database, DatabaseOptions, SyncMode};
use helenus_host::memory;
use helenus_sstable::checksum::Crc32;
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

pub(super) fn run_mended(input: &[u8]) {
    let mut input = input.to_vec();
    mend(&mut input);
    run(&input);
}

/// Number of the segment that `run` makes of the input.
const NUMBER: u32 = 1;
const HEAD_BYTES: usize = 20;

/// Puts the right checksums before the head and every record that its length leads to.
fn mend(segment: &mut [u8]) {
    let Some((head, mut rest)) = segment.split_at_mut_checked(HEAD_BYTES) else { return };
    head[12..16].copy_from_slice(&NUMBER.to_le_bytes());
    let crc = crc_of(&[&head[..16]]);
    head[16..].copy_from_slice(&crc);
    while let Some((front, behind)) = rest.split_at_mut_checked(8) {
        let length = [front[0], front[1], front[2], front[3]];
        let bytes = u32::from_le_bytes(length) as usize;
        let Some((content, next)) = behind.split_at_mut_checked(bytes) else { return };
        front[4..].copy_from_slice(&crc_of(&[&NUMBER.to_le_bytes(), &length, content]));
        rest = next;
    }
}

fn crc_of(parts: &[&[u8]]) -> [u8; 4] {
    let mut crc = Crc32::default();
    parts.iter().for_each(|part| crc.update(part));
    crc.value().to_le_bytes()
}
