//! Compares the statistics collected when Cassandra's tables are written again with those that Cassandra collected.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod render;

use helenus_host::{memory, real};
use helenus_model::partitions::KeyRange;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Source;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::{Statistics, Stats};
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
