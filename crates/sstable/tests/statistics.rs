//! Compares the statistics collected when Cassandra's tables are written again with those that Cassandra collected.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod render;

use helenus_host::{memory, real};
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::partitions::KeyRange;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Source;
use helenus_sstable::deletion_time::INVALID_LOCAL_S;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::{Statistics, Stats, with_level};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::path::Path;
use std::sync::Arc;

/// The statistics of a fixture, and those collected when it is written again.
fn rewrite(name: &str) -> (Statistics, Statistics) {
    let host = real::host();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let table = render::open(&host, &folder, render::schema_in(&host, &folder));
    let theirs = table.statistics().clone();

    let disk = memory::host().disk;
    disk.create_dir_all(Path::new("/t")).unwrap();
    let options = WriterOptions::of_table(table.schema().clone(), 10, theirs.header.encoding);
    let descriptor = Descriptor::new(SsTableId::Sequence(7));
    let mut writer = SsTableWriter::create(disk, Path::new("/t"), descriptor, options).unwrap();
    let mut cx = render::cx();
    let mut scan = Arc::clone(&table).scan(&KeyRange::all(), &mut cx).unwrap();
    while scan.next_partition(&mut cx).unwrap() {
        let hash = KeyHash::of(scan.key());
        writer.begin_partition(scan.key(), &hash, scan.deletion(), scan.static_row()).unwrap();
        while scan.advance(&mut cx).unwrap() {
            writer.add(scan.current()).unwrap();
        }
        writer.end_partition().unwrap();
    }
    (theirs, writer.finish().unwrap().statistics)
}

#[test]
fn a_table_written_again_has_the_statistics_that_cassandra_gave_it() {
    for name in ["simple", "mixed", "wide", "many", "types", "dropped", "counts", "compactless"] {
        let (theirs, ours) = rewrite(name);
        // These fields depend on the machine, the compressor and the node, not on the content.
        let stats = Stats {
            compression_ratio: theirs.stats.compression_ratio,
            originating_host_id: theirs.stats.originating_host_id,
            commit_log_intervals: theirs.stats.commit_log_intervals.clone(),
            token_space_coverage: theirs.stats.token_space_coverage,
            ..ours.stats
        };
        let ours = Statistics { stats, ..ours };
        if ours.to_bytes(Version::Da) != theirs.to_bytes(Version::Da) {
            assert_eq!(format!("{:#?}", ours.stats), format!("{:#?}", theirs.stats), "{name}");
            assert_eq!(format!("{ours:#?}"), format!("{theirs:#?}"), "{name}");
        }
    }
}

/// The Statistics.db of fixtures of every version, those of Cassandra 6.0 included, whose further fields nobody here knows.
fn of_every_version() -> Vec<(std::path::PathBuf, Version, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")];
    while let Some(folder) = left.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match Descriptor::parse(name) {
                _ if path.is_dir() => left.push(path),
                Some((descriptor, "Statistics.db")) => {
                    let bytes = std::fs::read(&path).unwrap();
                    found.push((path, descriptor.version, bytes));
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn another_level_changes_nothing_else_in_any_version() {
    let files = of_every_version();
    for version in [Version::Mc, Version::Nb, Version::Oa, Version::Da, Version::Pa, Version::Ea] {
        assert!(files.iter().any(|(_, other, _)| *other == version), "{version}");
    }
    for (path, version, bytes) in files {
        let what = path.display().to_string();
        let before = Statistics::read(&bytes, version, &path).unwrap();
        let changed = with_level(&bytes, version, &path, 7).unwrap();
        assert_eq!(changed.len(), bytes.len(), "{what}");
        let differing = changed.iter().zip(&bytes).filter(|(a, b)| a != b).count();
        assert!((1..=8).contains(&differing), "{what}: a level and a checksum, not {differing} bytes");
        let mut expected = before.clone();
        expected.stats.level = 7;
        let after = Statistics::read(&changed, version, &path).unwrap();
        assert_eq!(format!("{after:?}"), format!("{expected:?}"), "{what}");
        assert_eq!(with_level(&changed, version, &path, before.stats.level).unwrap(), bytes, "{what}");
    }
}

/// CASSANDRA-14092: times beyond 2038 were stored as negative numbers. What has one is alive, so its file is never wholly
/// expired, whatever else is in it.
#[test]
fn a_file_with_a_time_that_has_overflowed_does_not_expire() {
    const MARK: i64 = 0x1234_5678;
    const LAST: i64 = 0x2345_6789;
    let (path, version) = (Path::new("x"), Version::Md);
    let (_, _, bytes) =
        of_every_version().into_iter().find(|(_, version, _)| *version == Version::Md).unwrap();
    let mut statistics = Statistics::read(&bytes, version, path).unwrap();
    (statistics.stats.local_deletion_s_min, statistics.stats.local_deletion_s_max) = (MARK, LAST);
    let written = statistics.to_bytes(version);
    let place = |of: i64| {
        let of = (of as i32).to_be_bytes();
        written.windows(4).position(|four| four == of).unwrap()
    };
    let (at_min, at_max) = (place(MARK), place(LAST));
    let read = |min: i32, max: i32| {
        let mut bytes = written.clone();
        bytes[at_min..at_min + 4].copy_from_slice(&min.to_be_bytes());
        bytes[at_max..at_max + 4].copy_from_slice(&max.to_be_bytes());
        Statistics::read(&bytes, version, path).unwrap().stats.local_deletion_s_max
    };
    assert_eq!(read(MARK as i32, LAST as i32), LAST);
    assert_eq!(read(-5, LAST as i32), INVALID_LOCAL_S);
    assert_eq!(read(-5, -1), INVALID_LOCAL_S);
    assert_eq!(read(-5, i32::MAX), NO_EXPIRY);
}
