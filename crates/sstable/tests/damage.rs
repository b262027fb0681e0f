//! Tests tables whose components are cut short or have flipped bits.
//!
//! A table with our page checksums gives the right rows or an error, never a wrong row, and never misses one. Other
//! tables neither panic nor loop, and a table that `verify` passes gives the right rows, as far as its version has
//! checksums. The tables are our own in every version that is written, and fixtures of every Cassandra version.
//!
//!     FLIPS=2000 FLIP_SEED=7 cargo test --release -p helenus-sstable --test damage -- --nocapture

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;
mod sample;

use helenus_host::{Host, memory, real};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, Slice};
use helenus_model::partitions::PartitionKey;
use helenus_model::schema::Table;
use helenus_sstable::Error;
use helenus_sstable::component::Component;
use helenus_sstable::import::{SsTableFiles, add_page_checksums};
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::{OpenOptions, PartitionReader, SsTable};
use helenus_sstable::version::Version;
use sample::{FOLDER, Sample, VERSIONS, each_damage, each_damage_of, found, ordered, scanned, write};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a damaged table in every way. The rows before an error must be right.
fn check(sample: &Sample, table: &Arc<SsTable>, what: &str) {
    let (lines, end) = scanned(table);
    assert!(sample.lines.starts_with(&lines), "{what}: a scan yields other rows");
    match end {
        Ok(()) => assert_eq!(lines.len(), sample.lines.len(), "{what}: a scan misses rows"),
        Err(error) => assert_named(&error, what),
    }
    for (key, expected) in sample.partitions.iter().step_by(23) {
        let (lines, end) = found(table, &PartitionKey::new(key.clone()));
        assert!(expected.starts_with(&lines), "{what}: a partition yields other rows");
        match end {
            Ok(is_there) => {
                assert!(is_there && lines.len() == expected.len(), "{what}: a partition is missing");
            }
            Err(error) => assert_named(&error, what),
        }
    }
}

/// Checks that an error names the file.
fn assert_named(error: &Error, what: &str) {
    let is_named = match error {
        Error::Corrupt { file, .. } | Error::Io { file, .. } | Error::Unsupported { file, .. } => {
            file.starts_with(FOLDER)
        }
        Error::WouldBlock | Error::NoMemory(_) | Error::RowTooLarge { .. } => false,
    };
    assert!(is_named, "{what}: {error}");
}

#[test]
fn with_page_checksums_every_damage_is_an_error_or_does_not_matter() {
    for version in VERSIONS {
        for compressed in [false, true] {
            let sample = write(version, compressed, true);
            each_damage(&sample, 8, |name, bytes, what| match sample.damaged(name, bytes) {
                Ok(table) => check(&sample, &table, what),
                Err(error) => assert_named(&error, what),
            });
        }
    }
}

#[test]
fn without_them_no_damage_makes_a_reader_panic_or_never_end() {
    for version in VERSIONS {
        let mut sample = write(version, false, false);
        let crc = sample.descriptor.file_name(Component::Crc);
        sample.files.retain(|(name, _)| *name != crc);
        each_damage(&sample, 30, |name, bytes, _| {
            if let Ok(table) = sample.damaged(name, bytes) {
                let _ = scanned(&table);
                for key in sample.partitions.keys().step_by(31) {
                    let _ = found(&table, &PartitionKey::new(key.clone()));
                }
            }
        });
    }
}

#[test]
fn verify_finds_an_index_that_leads_elsewhere() {
    for version in [Version::Oa, Version::Nb, Version::Me] {
        let sample = write(version, false, false);
        let name = sample.descriptor.file_name(Component::Index);
        let (_, index) = sample.files.iter().find(|(file, _)| *file == name).unwrap();
        // The first entry: length, key of four bytes, position of the partition.
        let mut damaged = index.clone();
        damaged[6] ^= 1;
        let host = memory::host();
        let table = sample.damaged(&name, &damaged).unwrap();
        let error = table.verify(&*host.disk, Path::new(FOLDER)).unwrap_err();
        assert!(error.to_string().contains("Index.db"), "{error}");
    }
}

/// The rows of wide partitions, read by slices that begin at every 37th row, in both directions.
fn sliced(sample: &Sample, table: &Arc<SsTable>) -> Vec<Vec<String>> {
    let mut cx = render::cx();
    let mut all = Vec::new();
    for (key, _) in sample.partitions.iter().filter(|(_, lines)| lines.len() > 100) {
        for (from, reversed) in (0..400).step_by(37).flat_map(|from| [(from, false), (from, true)]) {
            let slice = Slice { start: ordered(&sample.schema, from, Some(true)), end: AFTER_ALL.to_vec() };
            let slice = match reversed {
                false => slice,
                true => Slice { start: BEFORE_ALL.to_vec(), end: slice.start },
            };
            let mut lines = Vec::new();
            if let Ok(Some(mut reader)) =
                PartitionReader::find(table, &PartitionKey::new(key.clone()), true, &mut cx)
            {
                reader.seek_slice(&slice, reversed);
                let ended = sample::rest(&mut reader, table, &mut lines);
                lines.extend(ended.err().map(|error| error.to_string()));
            }
            all.push(lines);
        }
    }
    all
}

#[test]
fn a_table_that_verify_passes_answers_rightly_whatever_is_wrong_with_its_indexes() {
    for version in VERSIONS {
        let sample = write(version, false, false);
        let expected = sliced(&sample, &sample.open(&sample.with("", b"")).unwrap());
        let (mut passed, mut refused) = (0, 0);
        each_damage(&sample, 150, |name, bytes, what| {
            let is_index = ["Index.db", "Summary.db", "Partitions.db", "Rows.db"];
            if !is_index.iter().any(|component| name.ends_with(component)) {
                return;
            }
            let host = sample.with(name, bytes);
            let Ok(table) = sample.open(&host) else { return refused += 1 };
            if table.verify(&*host.disk, Path::new(FOLDER)).is_err() {
                return refused += 1;
            }
            passed += 1;
            check(&sample, &table, what);
            assert!(sliced(&sample, &table) == expected, "{version} {what}: slices yield other rows");
        });
        assert!(refused > 3 * passed, "{version}: {passed} passed, {refused} refused");
    }
}

/// A table written by Cassandra, in memory.
struct Foreign {
    what: String,
    descriptor: Descriptor,
    schema: Arc<Table>,
    files: Vec<(String, Vec<u8>)>,
    /// Its content, one element on each line.
    lines: Vec<String>,
}

/// Tables of every version that Cassandra wrote, with our page checksums or without.
fn foreign(page_checksums: bool) -> Vec<Foreign> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut folders: Vec<PathBuf> =
        list(&root.join("versions")).iter().flat_map(|version| list(version)).collect();
    // The fixtures of the last version are not in that folder.
    folders.extend(["simple", "mixed", "wide", "types", "counts"].map(|name| root.join(name)));
    folders.sort();
    let from = real::host();
    let of = |folder: PathBuf| {
        let descriptor = render::only_table(&from, &folder);
        let disk = memory::host();
        disk.disk.create_dir_all(Path::new(FOLDER)).unwrap();
        for path in from.disk.list(&folder).unwrap() {
            let name = path.file_name().unwrap();
            if Descriptor::parse(name.to_str().unwrap()).is_some() {
                let file = disk.disk.create(&Path::new(FOLDER).join(name)).unwrap();
                file.write_all_at(&std::fs::read(&path).unwrap(), 0).unwrap();
            }
        }
        if page_checksums {
            let place = SsTableFiles { disk: &*disk.disk, folder: Path::new(FOLDER), descriptor };
            assert!(add_page_checksums(place).unwrap());
        }
        let files = sample::files_of(&disk);
        let schema = Arc::new(render::schema_in(&from, &folder));
        let what = folder.strip_prefix(&root).unwrap().display().to_string();
        let mut foreign = Foreign { what, descriptor, schema, files, lines: Vec::new() };
        let (lines, end) = scanned(&foreign.open(&disk).unwrap());
        end.unwrap();
        foreign.lines = lines;
        foreign
    };
    folders.into_iter().map(of).collect()
}

impl Foreign {
    fn open(&self, host: &Host) -> helenus_sstable::Result<Arc<SsTable>> {
        let options =
            OpenOptions { schema: self.schema.clone(), buffers: helenus_sstable::buffer::BufferPool::none() };
        SsTable::open(&*host.disk, Path::new(FOLDER), self.descriptor, options)
    }
}

#[test]
fn taken_over_from_any_cassandra_every_damage_is_an_error_or_does_not_matter() {
    let mut count = 0_u64;
    for foreign in foreign(true) {
        each_damage_of(&foreign.files, 2, |name, bytes, what| {
            count += 1;
            let what = format!("{} {what}", foreign.what);
            let host = sample::host_with(&foreign.files, name, bytes);
            let table = match foreign.open(&host) {
                Ok(table) => table,
                Err(error) => return assert_named(&error, &what),
            };
            let (lines, end) = scanned(&table);
            assert!(foreign.lines.starts_with(&lines), "{what}: a scan yields other rows");
            match end {
                Ok(()) => assert_eq!(lines.len(), foreign.lines.len(), "{what}: a scan misses rows"),
                Err(error) => assert_named(&error, &what),
            }
        });
    }
    println!("{count} damages of tables with page checksums: each an error, or the right rows");
}

/// The results of damages of one component: refused by a read or by `verify`, passed with the right rows, passed with
/// others.
#[derive(Default)]
struct Fates {
    damages: u64,
    refused: u64,
    right: u64,
    wrong: u64,
}

#[test]
fn as_it_came_from_any_cassandra_what_verify_passes_is_right_where_there_are_checksums() {
    let mut fates: BTreeMap<(String, String), Fates> = BTreeMap::new();
    for foreign in foreign(false) {
        let version = foreign.descriptor.version;
        each_damage_of(&foreign.files, 2, |name, bytes, what| {
            let component = name.rsplit('-').next().unwrap().to_owned();
            let fate = fates.entry((component.clone(), version.to_string())).or_default();
            fate.damages += 1;
            let host = sample::host_with(&foreign.files, name, bytes);
            let Ok(table) = foreign.open(&host) else { return fate.refused += 1 };
            let (lines, end) = scanned(&table);
            if end.is_err() || table.verify(&*host.disk, Path::new(FOLDER)).is_err() {
                return fate.refused += 1;
            }
            if lines == foreign.lines {
                return fate.right += 1;
            }
            // Before `na` Statistics.db has no checksum, and its header contains the bases of all times in rows.
            let is_unguarded = component == "Statistics.db" && !version.has_statistics_checksums();
            assert!(is_unguarded, "{} {what}: verify passes other rows", foreign.what);
            fate.wrong += 1;
        });
    }
    for ((component, version), Fates { damages, refused, right, wrong }) in &fates {
        println!(
            "{version} {component:<20} {damages:>6} damages, {refused:>6} refused, {right:>6} harmless, {wrong:>4} not found"
        );
    }
}
