//! Tests that a scrub keeps everything that can be read after any damage, and reports all losses.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;
mod sample;

use helenus_host::{Host, memory, real};
use helenus_model::deletion::DeletionTime;
use helenus_model::partitions::{KeyRange, PartitionKey};
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::scrub::{Loss, Lost, SORTED_BYTES_DEFAULT, Scrubbed, Scrubbing, scrub};
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::table::SsTable;
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use sample::{FOLDER, Sample, VERSIONS, each_damage, scanned, write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scrubs a table of a host into the folder `/out`.
fn scrubbed(
    host: &Host,
    place: (&Path, Descriptor),
    skip_corrupted: bool,
) -> helenus_sstable::Result<(Scrubbed, Vec<Loss>)> {
    scrubbed_how(host, place, (skip_corrupted, false))
}

fn scrubbed_how(
    host: &Host,
    (folder, descriptor): (&Path, Descriptor),
    (skip_corrupted, reinsert_overflowed): (bool, bool),
) -> helenus_sstable::Result<(Scrubbed, Vec<Loss>)> {
    let out = Path::new("/out");
    host.disk.create_dir_all(out).unwrap();
    let version = Version::all().find(|v| *v >= descriptor.version && v.is_written()).unwrap();
    let mut number = 100;
    let mut losses = Vec::new();
    let how = Scrubbing {
        folder: out,
        names: ("ks", "t"),
        known: None,
        version,
        validate: true,
        skip_corrupted,
        reinsert_overflowed,
        page_checksums: true,
        sorted_bytes: SORTED_BYTES_DEFAULT,
        next: &mut || {
            number += 1;
            Ok(Descriptor { version, id: SsTableId::Sequence(number) })
        },
        lost: &mut |loss| losses.push(loss.clone()),
        progress: &mut |_, _| {},
    };
    scrub(&host.disk, (folder, descriptor), how).map(|scrubbed| (scrubbed, losses))
}

fn outputs(host: &Host, scrubbed: &Scrubbed) -> Vec<Arc<SsTable>> {
    let open = |descriptor: &Descriptor| {
        let cache = BufferPool::offline();
        let place = (Path::new("/out"), *descriptor);
        let table = SsTable::open_without_schema(&*host.disk, place, ("ks", "t"), cache).unwrap();
        table.verify(&*host.disk, Path::new("/out")).unwrap();
        table
    };
    scrubbed.written.iter().map(open).collect()
}

/// The rows of a table: partition and row as text, and the start and end in the data.
fn rows_of(table: &Arc<SsTable>) -> Vec<(String, u64, u64)> {
    let mut cx = render::cx();
    let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
    let mut rows = Vec::new();
    while scan.next_partition(&mut cx).unwrap() {
        let key = render::hex(scan.key());
        loop {
            let at = scan.position();
            if !scan.advance(&mut cx).unwrap() {
                break;
            }
            if let Unfiltered::Row(_) = scan.current() {
                let mut line = key.clone();
                render::element(table.schema(), scan.current(), &mut line);
                rows.push((line, at, scan.position()));
            }
        }
    }
    rows
}

/// Checks that the outputs contain only sound rows, and every sound row outside of the reported losses.
fn check(sample: &Sample, all: &[(String, u64, u64)], host: &Host, what: &str) {
    let place = (Path::new(FOLDER), sample.descriptor);
    let (scrubbed, losses) = match scrubbed(host, place, false) {
        Ok(done) => done,
        Err(error) => {
            // Without these components rows cannot be found or decoded.
            let is_needed = ["Statistics.db", "CompressionInfo.db"].iter().any(|name| what.contains(name));
            assert!(is_needed, "{what}: {error}");
            return;
        }
    };
    let kept: Vec<String> =
        outputs(host, &scrubbed).iter().flat_map(rows_of).map(|(line, _, _)| line).collect();
    for row in &kept {
        assert!(all.iter().any(|(sample, _, _)| sample == row), "{what}: a row that never was: {row}");
    }
    // Only CompressionInfo.db contains the size of the data.
    let is_cut_short = what.contains("CompressionInfo.db");
    for (row, start, end) in all.iter().filter(|_| !is_cut_short) {
        let is_lost = losses.iter().any(|loss| {
            // Of a loss after the end of the data only the start is known.
            let bytes = if loss.problem.contains("behind the end") { u64::MAX >> 1 } else { loss.bytes };
            loss.position < *end && *start < loss.position + bytes
        });
        assert!(is_lost || kept.contains(row), "{what}: {row} is gone without a word: {losses:?}");
    }
}

#[test]
fn what_is_sound_comes_out_as_it_went_in() {
    for version in VERSIONS {
        for compressed in [false, true] {
            let sample = write(version, compressed, version == Version::Da);
            let host = sample.with("", b"");
            let place = (Path::new(FOLDER), sample.descriptor);
            let (scrubbed, losses) = scrubbed(&host, place, false).unwrap();
            assert_eq!((losses.len(), scrubbed.notes.len()), (0, 0), "{scrubbed:?}");
            let [table] = &outputs(&host, &scrubbed)[..] else { panic!("{scrubbed:?}") };
            let (lines, end) = scanned(table);
            end.unwrap();
            assert_eq!(lines.len(), sample.lines.len());
            assert_eq!(scrubbed.partitions, 300);
        }
    }
}

#[test]
fn every_fixture_of_every_version_is_kept_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/versions");
    let folders = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut checked = 0;
    for folder in folders(&root).iter().flat_map(|version| folders(version)) {
        let from = real::host();
        let descriptor = render::only_table(&from, &folder);
        let host = memory::host();
        host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
        for path in from.disk.list(&folder).unwrap() {
            let to = Path::new(FOLDER).join(path.file_name().unwrap());
            host.disk.create(&to).unwrap().write_all_at(&std::fs::read(&path).unwrap(), 0).unwrap();
        }
        let (scrubbed, losses) = scrubbed(&host, (Path::new(FOLDER), descriptor), false).unwrap();
        assert!(losses.is_empty(), "{}: {losses:?}", folder.display());
        let expected = std::fs::read_to_string(folder.join("rows.txt")).unwrap();
        let rows = expected.lines().filter(|line| line.starts_with("R ")).count() as u64;
        let [table] = &outputs(&host, &scrubbed)[..] else { panic!("{}: {scrubbed:?}", folder.display()) };
        assert_eq!((scrubbed.rows, rows_of(table).len() as u64), (rows, rows), "{}", folder.display());
        checked += 1;
    }
    assert!(checked > 30);
}

#[test]
fn of_every_damage_what_is_not_said_to_be_lost_is_kept() {
    for version in VERSIONS {
        for compressed in [false, true] {
            let sample = write(version, compressed, false);
            let all = rows_of(&sample.open(&sample.with("", b"")).unwrap());
            each_damage(&sample, 12, |name, bytes, what| {
                let what = format!("{version} {compressed} {what}");
                check(&sample, &all, &sample.with(name, bytes), &what);
            });
        }
    }
}

#[test]
fn of_a_wide_partition_only_the_rows_of_the_damaged_chunk_are_lost() {
    for version in VERSIONS {
        let sample = write(version, true, false);
        let all = rows_of(&sample.open(&sample.with("", b"")).unwrap());
        let name = sample.descriptor.file_name(Component::Data);
        let (_, data) = sample.files.iter().find(|(file, _)| *file == name).unwrap();
        let mut damaged = data.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x10;
        let host = sample.with(&name, &damaged);
        let (done, losses) = scrubbed(&host, (Path::new(FOLDER), sample.descriptor), false).unwrap();
        assert!(done.bytes_lost > 0 && done.bytes_lost < 4 * 4096, "{version}: {losses:?}");
        assert!(
            done.rows as usize > all.len() - 200 && (done.rows as usize) < all.len(),
            "{version}: {done:?}"
        );
        check(&sample, &all, &sample.with(&name, &damaged), "a chunk");
    }
}

#[test]
fn without_an_index_the_rows_before_the_damage_are_kept() {
    for version in VERSIONS {
        let sample = write(version, true, false);
        let data = sample.descriptor.file_name(Component::Data);
        let (_, bytes) = sample.files.iter().find(|(file, _)| *file == data).unwrap();
        let mut damaged = bytes.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x10;
        let host = sample.with(&data, &damaged);
        for component in [Component::Index, Component::Partitions, Component::Summary, Component::Filter] {
            let path = sample.descriptor.path(Path::new(FOLDER), component);
            if host.disk.exists(&path) {
                host.disk.remove(&path).unwrap();
            }
        }
        let (done, losses) = scrubbed(&host, (Path::new(FOLDER), sample.descriptor), false).unwrap();
        assert_eq!(losses.len(), 1, "{losses:?}");
        assert!(
            matches!(losses[0].lost, Lost::RestOfPartition | Lost::Partition) && done.rows > 100,
            "{done:?}"
        );
        assert!(!done.notes.is_empty());
        outputs(&host, &done);
    }
}

#[test]
fn partitions_that_came_too_late_are_put_in_order() {
    // The data of a table twice, so that the partitions start again half way.
    let sample = write(Version::Nb, false, false);
    let name = sample.descriptor.file_name(Component::Data);
    let (_, data) = sample.files.iter().find(|(file, _)| *file == name).unwrap();
    let twice = [data.as_slice(), data.as_slice()].concat();
    let host = sample.with(&name, &twice);
    for component in [Component::Index, Component::Summary, Component::Crc] {
        host.disk.remove(&sample.descriptor.path(Path::new(FOLDER), component)).unwrap();
    }
    let (done, losses) = scrubbed(&host, (Path::new(FOLDER), sample.descriptor), false).unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    assert_eq!((done.partitions_out_of_order, done.written.len()), (300, 2));
    for table in outputs(&host, &done) {
        assert_eq!(scanned(&table).0.len(), sample.lines.len());
    }
}

#[test]
fn many_copies_of_partitions_become_few_sstables_with_every_row_once() {
    let sample = write(Version::Nb, false, false);
    let name = sample.descriptor.file_name(Component::Data);
    let (_, data) = sample.files.iter().find(|(file, _)| *file == name).unwrap();
    // The start of the fourth partition.
    let table = sample.open(&sample.with("", &[])).unwrap();
    let mut cx = render::cx();
    let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
    for _ in 0..4 {
        assert!(scan.next_partition(&mut cx).unwrap());
    }
    let three = &data[..scan.start() as usize];
    for copies in [2, 33, 75] {
        let repeated = [data.as_slice(), three.repeat(copies).as_slice()].concat();
        let host = sample.with(&name, &repeated);
        for component in [Component::Index, Component::Summary, Component::Crc] {
            host.disk.remove(&sample.descriptor.path(Path::new(FOLDER), component)).unwrap();
        }
        let (done, losses) = scrubbed(&host, (Path::new(FOLDER), sample.descriptor), false).unwrap();
        assert!(losses.is_empty(), "{losses:?}");
        let outputs = outputs(&host, &done);
        assert_eq!(outputs.len(), 3, "{copies} copies");
        assert_eq!(scanned(&outputs[0]).0, sample.lines, "{copies} copies");
        let of_three = scanned(&outputs[1]).0;
        assert_eq!(sample.lines[..of_three.len()], of_three, "{copies} copies");
        assert_eq!(scanned(&outputs[2]).0, of_three, "{copies} copies");
        let rows: usize = outputs.iter().map(|table| rows_of(table).len()).sum();
        assert_eq!(done.rows, rows as u64);
        let files = host.disk.list(Path::new("/out")).unwrap();
        let data = files.iter().filter(|path| path.to_string_lossy().ends_with("-Data.db")).count();
        assert_eq!(data, 3, "nothing else is left");
    }
}

#[test]
fn the_only_further_copy_of_a_partition_makes_no_sstable_and_that_of_a_piece_is_small() {
    let sample = write(Version::Nb, false, false);
    let name = sample.descriptor.file_name(Component::Data);
    let (_, data) = sample.files.iter().find(|(file, _)| *file == name).unwrap();
    for further in [1, 2] {
        let host = sample.with(&name, &data.repeat(2 + further));
        for component in [Component::Index, Component::Summary, Component::Crc] {
            host.disk.remove(&sample.descriptor.path(Path::new(FOLDER), component)).unwrap();
        }
        let out = Path::new("/out");
        host.disk.create_dir_all(out).unwrap();
        let (mut number, mut filter_bytes) = (100, 0);
        let how = Scrubbing {
            folder: out,
            names: ("ks", "t"),
            known: None,
            version: Version::Nb,
            validate: true,
            skip_corrupted: false,
            reinsert_overflowed: false,
            page_checksums: true,
            sorted_bytes: SORTED_BYTES_DEFAULT,
            next: &mut || {
                let pieces =
                    (104..=number).map(|id| Descriptor { version: Version::Nb, id: SsTableId::Sequence(id) });
                for piece in pieces {
                    let path = piece.path(out, Component::Filter);
                    if host.disk.exists(&path) {
                        filter_bytes = filter_bytes.max(host.disk.open(&path).unwrap().size().unwrap());
                    }
                }
                number += 1;
                Ok(Descriptor { version: Version::Nb, id: SsTableId::Sequence(number) })
            },
            lost: &mut |loss| panic!("{loss:?}"),
            progress: &mut |_, _| {},
        };
        let done = scrub(&host.disk, (Path::new(FOLDER), sample.descriptor), how).unwrap();
        assert_eq!(done.written.len(), 3);
        for table in outputs(&host, &done) {
            assert_eq!(scanned(&table).0, sample.lines);
        }
        assert!(further > 1 || number == 103, "{number} SSTables were begun");
        assert!(filter_bytes < 64, "{filter_bytes} bytes for one key");
        assert!(further == 1 || filter_bytes > 0);
    }
}

#[test]
fn a_table_without_its_index_is_scanned_from_any_key_on() {
    for version in VERSIONS {
        let sample = write(version, true, false);
        let host = sample.with("", &[]);
        for component in [Component::Index, Component::Partitions, Component::Rows, Component::Summary] {
            let path = sample.descriptor.path(Path::new(FOLDER), component);
            if host.disk.exists(&path) {
                host.disk.remove(&path).unwrap();
            }
        }
        let place = (Path::new(FOLDER), sample.descriptor);
        let names = (("ks", "t"), None);
        assert!(SsTable::open_by_header(&*host.disk, place, names, BufferPool::offline()).is_err());
        let table = SsTable::open_for_scans(&*host.disk, place, names, BufferPool::offline()).unwrap();
        let (lines, ended) = scanned(&table);
        ended.unwrap();
        assert_eq!(lines.len(), sample.lines.len());
        let mut cx = render::cx();
        for key in sample.partitions.keys().step_by(29) {
            let start = PartitionKey::new(key.clone()).decorated;
            let mut scan = table.scan(&KeyRange { start, ..KeyRange::all() }, &mut cx).unwrap();
            assert!(scan.next_partition(&mut cx).unwrap() && scan.key() == key.as_slice());
        }
    }
}

#[test]
fn empty_values_that_cassandra_3_sorted_first_are_put_where_they_belong() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/empty_reversed/empty_reversed");
    let from = real::host();
    let descriptor = render::only_table(&from, &folder);
    let host = memory::host();
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    for path in from.disk.list(&folder).unwrap() {
        let to = Path::new(FOLDER).join(path.file_name().unwrap());
        host.disk.create(&to).unwrap().write_all_at(&std::fs::read(&path).unwrap(), 0).unwrap();
    }
    let cache = BufferPool::offline();
    let place = (Path::new(FOLDER), descriptor);
    let table = SsTable::open_without_schema(&*host.disk, place, ("ks", "t"), cache).unwrap();
    let problem = table.verify(&*host.disk, Path::new(FOLDER)).unwrap_err().to_string();
    assert!(problem.contains("not in clustering order (helenus sstable scrub"), "{problem}");
    // Cassandra 5 reads the rows in the order of the file.
    let all = std::fs::read_to_string(folder.join("rows.txt")).unwrap();
    let (done, losses) = scrubbed(&host, (Path::new(FOLDER), descriptor), false).unwrap();
    assert!(losses.is_empty() && done.rows_out_of_order > 0, "{done:?} {losses:?}");
    assert_eq!(done.rows, all.lines().filter(|line| line.starts_with("R ")).count() as u64);
    let outputs = outputs(&host, &done);
    assert!(outputs.len() > 1);
    let kept: Vec<String> = outputs.iter().flat_map(rows_of).map(|(line, _, _)| line).collect();
    for row in all.split("\nR ").skip(1) {
        let first = row.lines().next().unwrap();
        assert!(kept.iter().any(|kept| kept.contains(&format!("R {first}\n"))), "{first} is gone: {kept:?}");
    }
}

/// Two partitions of one row: in one the whole row expires at this time, in the other only a cell.
fn expiring(version: Version, expires_s: i64) -> Sample {
    let schema = Arc::new(sample::schema());
    let host = memory::host();
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let options = WriterOptions::of_table(schema.clone(), 2, EncodingStats::NONE).for_version(version);
    let descriptor = Descriptor { version, id: SsTableId::Sequence(1) };
    let mut writer =
        SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
    let mut keys = [1_u32, 2].map(|key| PartitionKey::new(key.to_be_bytes().to_vec()));
    keys.sort_by(|a, b| a.decorated.cmp(&b.decorated));
    for (number, key) in keys.iter().enumerate() {
        writer.begin_partition(&key.bytes, &key.hash, DeletionTime::LIVE, None).unwrap();
        let mut row = sample::row(&schema, 7, number);
        if number == 0 {
            (row.liveness.ttl_s, row.liveness.expires_s) = (500, expires_s);
        }
        (row.cells[0].ttl_s, row.cells[0].local_deletion_s) = (500, expires_s);
        writer.add(Unfiltered::Row(row.view())).unwrap();
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap();
    Sample {
        schema,
        descriptor,
        files: sample::files_of(&host),
        lines: Vec::new(),
        partitions: Default::default(),
    }
}

#[test]
fn what_expires_at_a_time_that_did_not_overflow_is_kept_as_it_is() {
    for version in [Version::Me, Version::Nb] {
        let sample = expiring(version, 1_900_000_000);
        let before = rows_of(&sample.open(&sample.with("", b"")).unwrap());
        let host = sample.with("", b"");
        let (done, losses) =
            scrubbed_how(&host, (Path::new(FOLDER), sample.descriptor), (false, true)).unwrap();
        assert!(losses.is_empty() && done.rows == 2 && done.rows_reinserted == 0, "{done:?} {losses:?}");
        let [table] = &outputs(&host, &done)[..] else { panic!("{done:?}") };
        assert_eq!(rows_of(table), before);
    }
}
