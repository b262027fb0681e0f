//! Tests tables of every version, written by a Cassandra of that version: they are read as by Cassandra 5.0.6, and
//! rewritten in every version that is written here. `tests/fixtures/sstables/README.md` of the repository describes how
//! the files were made.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;

use helenus_host::{Host, memory, real};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, ClusteringFilter, Slice};
use helenus_model::partitions::{KeyRange, PartitionKey};
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::{Statistics, Stats};
use helenus_sstable::table::{PartitionReader, SsTable};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folders of all fixtures, one table each.
fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/versions");
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut found: Vec<PathBuf> = list(&root).iter().flat_map(|version| list(version)).collect();
    found.sort();
    assert!(found.len() > 10, "the fixtures are in {}", root.display());
    found
}

fn open(host: &Host, folder: &Path) -> Arc<SsTable> {
    render::open(host, folder, render::schema_in(host, folder))
}

fn assert_same(found: &str, expected: &str, what: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{what}, line {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{what}");
}

#[test]
fn every_version_reads_as_cassandra_5_reads_it() {
    let host = real::host();
    for folder in folders() {
        let what = folder.display().to_string();
        let table = open(&host, &folder);
        let expected = std::fs::read_to_string(folder.join("rows.txt")).unwrap();
        assert_same(&render::dump(&table), &expected, &what);
        let verified = table.verify(&*host.disk, &folder).unwrap_or_else(|error| panic!("{what}: {error}"));
        let count = |tag| expected.lines().filter(|line| line.starts_with(tag)).count() as u64;
        assert_eq!(verified.partitions, count("P "), "{what}");
        assert_eq!(verified.rows, count("R"), "{what}");
        assert_eq!(table.partition_count(), verified.partitions, "{what}");
    }
}

/// The elements of a partition, each as text.
fn elements(reader: &mut PartitionReader, table: &SsTable) -> Vec<String> {
    let mut cx = render::cx();
    let mut found = Vec::new();
    while reader.advance(&mut cx).unwrap() {
        let mut line = render::hex(reader.current().key());
        render::element(table.schema(), reader.current(), &mut line);
        found.push(line);
    }
    found
}

#[test]
fn slices_and_names_of_every_version_are_parts_of_the_whole_in_both_directions() {
    let host = real::host();
    let mut cx = render::cx();
    for folder in folders() {
        let table = open(&host, &folder);
        let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
        while scan.next_partition(&mut cx).unwrap() {
            let key = PartitionKey::new(scan.key().to_vec());
            let mut reader = PartitionReader::find(&table, &key, true, &mut cx).unwrap().unwrap();
            let mut rows = Vec::new();
            while reader.advance(&mut cx).unwrap() {
                if let Unfiltered::Row(row) = reader.current() {
                    rows.push(row.row.key.clone());
                }
            }
            let slices = |start: &[u8], end: &[u8]| {
                let slice = Slice { start: start.to_vec(), end: end.to_vec() };
                Arc::new(ClusteringFilter::Slices(vec![slice]))
            };
            reader.select(slices(BEFORE_ALL, AFTER_ALL), false);
            let all = elements(&mut reader, &table);
            reader.select(slices(BEFORE_ALL, AFTER_ALL), true);
            assert!(elements(&mut reader, &table).iter().rev().eq(&all), "{}", folder.display());
            for row in rows.iter().step_by(7) {
                reader.select(Arc::new(ClusteringFilter::Names(vec![row.clone()])), false);
                let named = elements(&mut reader, &table);
                let wanted = all.iter().find(|line| line.starts_with(&render::hex(row))).unwrap();
                assert!(named.contains(wanted), "{}", folder.display());
                for reversed in [false, true] {
                    reader.select(slices(row, AFTER_ALL), reversed);
                    let mut from = elements(&mut reader, &table);
                    if reversed {
                        from.reverse();
                    }
                    from.retain(|line| line.contains('R'));
                    let rest = all.iter().skip_while(|line| *line != wanted);
                    assert!(from.iter().eq(rest.filter(|line| line.contains('R'))), "{}", folder.display());
                }
            }
        }
    }
}

#[test]
fn a_key_that_is_not_there_is_not_found() {
    let host = real::host();
    let mut cx = render::cx();
    for folder in folders() {
        let table = open(&host, &folder);
        for number in 0..200_u32 {
            let key = PartitionKey::new(format!("absent {number}").into_bytes());
            assert!(PartitionReader::find(&table, &key, true, &mut cx).unwrap().is_none());
        }
    }
}

#[test]
fn a_missing_or_foreign_summary_is_made_again() {
    let host = real::host();
    let mut rebuilt = 0;
    for folder in folders() {
        let disk = memory::host();
        let descriptor = render::only_table(&host, &folder);
        let summary = descriptor.file_name(Component::Summary);
        if !folder.join(&summary).exists() {
            continue;
        }
        disk.disk.create_dir_all(Path::new("/t")).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name != summary || rebuilt % 2 == 0 {
                let bytes = if name == summary { vec![7; 100] } else { std::fs::read(&path).unwrap() };
                disk.disk.create(&Path::new("/t").join(name)).unwrap().write_all_at(&bytes, 0).unwrap();
            }
        }
        let expected = std::fs::read_to_string(folder.join("rows.txt")).unwrap();
        let table = open(&disk, Path::new("/t"));
        assert_same(&render::dump(&table), &expected, &summary);
        // Reads ignore a summary of another table, and `verify` reports it, as in Cassandra (`verifyIndexSummary`).
        let verified = table.verify(&*disk.disk, Path::new("/t"));
        match rebuilt % 2 {
            0 => assert!(verified.unwrap_err().to_string().contains(&summary)),
            _ => _ = verified.unwrap(),
        }
        rebuilt += 1;
    }
    assert!(rebuilt > 10);
}

/// Writes a table's content in a version.
fn rewrite(table: &Arc<SsTable>, version: Version, host: &Host, folder: &Path) -> Descriptor {
    let encoding = table.statistics().header.encoding;
    let options = WriterOptions::of_table(table.schema().clone(), table.partition_count(), encoding);
    let mut options = options.for_version(version);
    options.row_index_block_bytes = 1024;
    let descriptor = Descriptor { version, id: SsTableId::Sequence(2) };
    host.disk.create_dir_all(folder).unwrap();
    let mut writer = SsTableWriter::create(host.disk.clone(), folder, descriptor, options).unwrap();
    let mut cx = render::cx();
    let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
    while scan.next_partition(&mut cx).unwrap() {
        let hash = KeyHash::of(scan.key());
        writer.begin_partition(scan.key(), &hash, scan.deletion(), scan.static_row()).unwrap();
        while scan.advance(&mut cx).unwrap() {
            writer.add(scan.current()).unwrap();
        }
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap();
    descriptor
}

/// A file's bytes.
fn file(host: &Host, path: &Path) -> Vec<u8> {
    let file = host.disk.open(path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn statistics_of_every_version_are_written_back_byte_for_byte() {
    let host = real::host();
    for folder in folders() {
        let table = open(&host, &folder);
        let version = table.descriptor().version;
        // Clustering ranges that may be wrong are not kept.
        if version.has_right_clusterings() {
            let bytes = file(&host, &table.descriptor().path(&folder, Component::Statistics));
            assert!(table.statistics().to_bytes(version) == bytes, "{}", folder.display());
        }
    }
}

#[test]
fn what_finds_rows_is_written_byte_for_byte_as_cassandra_writes_it() {
    let host = real::host();
    let mut compared = 0;
    for folder in folders() {
        let table = open(&host, &folder);
        let version = table.descriptor().version;
        if !version.is_written() {
            continue;
        }
        let disk = memory::host();
        let ours = rewrite(&table, version, &disk, Path::new("/t"));
        for component in Component::all_of(version) {
            let theirs = table.descriptor().path(&folder, component);
            let is_index = component.is_page_checksummed(version)
                && !matches!(component, Component::CompressionInfo | Component::Statistics);
            if !is_index || !theirs.exists() {
                continue;
            }
            let same = file(&disk, &ours.path(Path::new("/t"), component)) == file(&host, &theirs);
            assert!(same, "{}", theirs.display());
            compared += 1;
        }
        // Histograms had fewer buckets before 5.0.
        if version < Version::Oa {
            continue;
        }
        let again = open(&disk, Path::new("/t"));
        // These fields depend on the machine, the compressor and the node, not on the content.
        let theirs = table.statistics();
        let stats = Stats {
            compression_ratio: theirs.stats.compression_ratio,
            originating_host_id: theirs.stats.originating_host_id,
            commit_log_intervals: theirs.stats.commit_log_intervals.clone(),
            token_space_coverage: theirs.stats.token_space_coverage,
            ..again.statistics().stats.clone()
        };
        let ours = Statistics { stats, ..again.statistics().clone() };
        if ours.to_bytes(version) != theirs.to_bytes(version) {
            assert_same(&format!("{ours:#?}"), &format!("{theirs:#?}"), &folder.display().to_string());
        }
    }
    assert!(compared > 20);
}

#[test]
fn what_one_version_holds_every_written_version_holds_too() {
    let host = real::host();
    for folder in folders() {
        let table = open(&host, &folder);
        let expected = std::fs::read_to_string(folder.join("rows.txt")).unwrap();
        for version in Version::all().filter(|version| version.is_written()) {
            let disk = memory::host();
            rewrite(&table, version, &disk, Path::new("/t"));
            let again = open(&disk, Path::new("/t"));
            assert_same(&render::dump(&again), &expected, &format!("{} as {version}", folder.display()));
            again.verify(&*disk.disk, Path::new("/t")).unwrap();
        }
    }
}
