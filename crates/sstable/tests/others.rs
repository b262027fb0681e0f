//! Tests files of other programs: Cassandra 6.0, other partitioners, overflowed times, estimators of other sizes, and
//! folders in which components are missing or other programs left files. `fixtures/others/README.md` describes how the
//! files were made.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;

use helenus_host::{Host, memory, real};
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::import::{SsTableFiles, missing_components};
use helenus_sstable::names::{Descriptor, SsTableId, refusal};
use helenus_sstable::partitioner::Partitioner;
use helenus_sstable::scrub::{SORTED_BYTES_DEFAULT, Scrubbed, Scrubbing, scrub};
use helenus_sstable::table::SsTable;
use helenus_sstable::version::Version;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn fixtures(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(of)
}

fn open_alone(host: &Host, folder: &Path) -> helenus_sstable::Result<Arc<SsTable>> {
    open_one(host, folder, render::only_table(host, folder))
}

fn open_one(host: &Host, folder: &Path, descriptor: Descriptor) -> helenus_sstable::Result<Arc<SsTable>> {
    let cache = BufferPool::offline();
    SsTable::open_without_schema(&*host.disk, (folder, descriptor), ("ks", "t"), cache)
}

/// The lines of each partition, in the order of their keys' bytes.
fn partitions(dumps: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in dumps.iter().flat_map(|dump| dump.lines()) {
        match found.last_mut() {
            Some(partition) if !line.starts_with("P ") => *partition = format!("{partition}\n{line}"),
            _ => found.push(line.to_owned()),
        }
    }
    found.sort();
    found
}

/// Scrubs a table into the folder `/out` of a host in memory.
fn scrubbed(folder: &Path, reinsert_overflowed: bool) -> (Host, Scrubbed, Vec<Arc<SsTable>>) {
    let host = memory::host();
    copy(folder, &host, |_| true);
    let descriptor = render::only_table(&host, Path::new("/t"));
    let next = |version: &Version| *version >= descriptor.version && version.is_written();
    let version = Version::all().find(next).unwrap_or(Version::Oa);
    host.disk.create_dir_all(Path::new("/out")).unwrap();
    let mut number = 0;
    let how = Scrubbing {
        folder: Path::new("/out"),
        names: ("ks", "t"),
        known: None,
        version,
        validate: true,
        skip_corrupted: false,
        reinsert_overflowed,
        page_checksums: false,
        sorted_bytes: SORTED_BYTES_DEFAULT,
        next: &mut || {
            number += 1;
            Ok(Descriptor { version, id: SsTableId::Sequence(number) })
        },
        lost: &mut |loss| panic!("{}: {loss:?}", folder.display()),
        progress: &mut |_, _| {},
    };
    let done = scrub(&host.disk, (Path::new("/t"), descriptor), how).unwrap();
    let tables = done.written.iter().map(|descriptor| {
        let table = open_one(&host, Path::new("/out"), *descriptor).unwrap();
        table.verify(&*host.disk, Path::new("/out")).unwrap();
        assert_eq!(table.partitioner(), Partitioner::Murmur3, "{}", folder.display());
        table
    });
    let tables = tables.collect();
    (host, done, tables)
}

/// Copies the `wanted` files of a folder to `/t`.
fn copy(folder: &Path, host: &Host, wanted: impl Fn(&str) -> bool) {
    host.disk.create_dir_all(Path::new("/t")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_file() && wanted(name) {
            put(host, name, &std::fs::read(&path).unwrap());
        }
    }
}

fn put(host: &Host, name: &str, bytes: &[u8]) {
    host.disk.create(&Path::new("/t").join(name)).unwrap().write_all_at(bytes, 0).unwrap();
}

const SAME: [&str; 5] = ["pa", "ea", "random", "byte_ordered", "order_preserving"];

#[test]
fn files_of_cassandra_6_and_of_other_partitioners_hold_what_those_of_5_do() {
    let host = real::host();
    let reference = open_alone(&host, &fixtures("others/oa")).unwrap();
    let expected = partitions(&[render::dump(&reference)]);
    assert_eq!(expected.len(), 12);
    for name in SAME {
        let folder = fixtures("others").join(name);
        let table = open_alone(&host, &folder).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(partitions(&[render::dump(&table)]), expected, "{name}");
        let verified = table.verify(&*host.disk, &folder).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verified.partitions, 12, "{name}");
    }
}

#[test]
fn a_scrub_writes_the_partitions_of_any_partitioner_in_our_order() {
    let host = real::host();
    let expected = partitions(&[render::dump(&open_alone(&host, &fixtures("others/oa")).unwrap())]);
    for name in SAME {
        let (_host, done, tables) = scrubbed(&fixtures("others").join(name), false);
        let dumps: Vec<String> = tables.iter().map(render::dump).collect();
        assert_eq!(partitions(&dumps), expected, "{name}: {done:?}");
        assert_eq!((done.partitions, done.losses), (12, 0), "{name}: {done:?}");
    }
}

#[test]
fn a_table_of_another_partitioner_is_refused_where_rows_are_looked_up_with_the_way_to_take_it() {
    let host = real::host();
    let folder = fixtures("others/random");
    let options = helenus_sstable::table::OpenOptions {
        schema: Arc::new(render::schema_in(&host, &folder)),
        buffers: BufferPool::offline(),
    };
    let descriptor = render::only_table(&host, &folder);
    let refused = SsTable::open(&*host.disk, &folder, descriptor, options).err().unwrap().to_string();
    assert!(
        refused.contains("RandomPartitioner") && refused.contains("helenus sstable scrub --output"),
        "{refused}"
    );
}

#[test]
fn rows_whose_expiry_overflowed_survive_a_scrub_and_are_written_again_if_wanted() {
    for number in 1..=4 {
        let folder = fixtures(&format!("others/overflowed/table{number}"));
        let host = real::host();
        let before = render::dump(&open_alone(&host, &folder).unwrap());
        // The invalid time, as in Cassandra 5.0: 2106-02-07T06:28:14Z.
        assert!(before.contains("/4294967294"), "{before}");
        let rows = |dump: &str| dump.lines().filter(|line| line.starts_with('R')).count();
        for reinsert in [false, true] {
            let (_host, done, tables) = scrubbed(&folder, reinsert);
            let [table] = &tables[..] else { panic!("{done:?}") };
            let after = render::dump(table);
            assert_eq!(rows(&after), rows(&before), "{done:?}");
            assert_eq!(done.rows_reinserted, if reinsert { rows(&before) as u64 } else { 0 }, "{done:?}");
            assert!(!after.contains("4294967294") && after.contains("/2147483646"), "{after}");
            // A repaired cell is a microsecond younger than the tombstone that a compaction may have made of it.
            let timestamps = |dump: &str| -> Vec<i64> {
                let expiring = dump.split_whitespace().filter_map(|word| word.split_once("/630720000/"));
                expiring
                    .map(|(before, _)| before.rsplit([' ', 'L']).next().unwrap_or(before).parse().unwrap())
                    .collect()
            };
            let moved = |at: &i64| at + i64::from(reinsert);
            assert_eq!(
                timestamps(&after),
                timestamps(&before).iter().map(moved).collect::<Vec<_>>(),
                "{after}"
            );
        }
    }
}

/// Random numbers from a seed, which a failed test prints.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % bound
    }
}

/// Names of other files in folders with SSTables; `{}` is the name of an SSTable's file.
const JUNK: [&str; 20] = [
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    "manifest.json",
    "schema.cql",
    "{}~",
    ".{}.swp",
    "#{}#",
    "{}.tmp",
    "{}.bak",
    "._{}",
    ".{}.Xy12ab",
    "Copy of {}",
    "{} (1)",
    "{}.gz",
    ".nfs000000000001",
    "core",
    "-Data.db",
    "x-y-Data.db",
    "README",
];

/// Folders with one SSTable each, of every version.
fn folders() -> Vec<PathBuf> {
    let list = |folder: PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut found: Vec<PathBuf> = list(fixtures("versions")).into_iter().flat_map(list).collect();
    found.extend(SAME.map(|name| fixtures("others").join(name)));
    found.sort();
    found
}

#[test]
fn components_that_can_be_done_without_may_be_missing_and_other_programs_files_are_none() {
    let seed = std::env::var("HELENUS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(34_u64);
    let cases = std::env::var("HELENUS_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300_usize);
    let mut draw = Draw(seed);
    let (folders, real) = (folders(), real::host());
    for case in 0..cases {
        let folder = &folders[draw.below(folders.len())];
        let what = format!("seed {seed}, case {case}: {}", folder.display());
        let descriptor = render::only_table(&real, folder);
        let mut gone: Vec<Component> = Component::ALL.into_iter().filter(|part| !part.is_needed()).collect();
        gone.retain(|_| draw.below(2) == 0);
        let host = memory::host();
        copy(folder, &host, |name| {
            Descriptor::parse(name).is_some_and(|(_, part)| !gone.iter().any(|gone| gone.name() == part))
        });
        for _ in 0..draw.below(6) {
            let of = descriptor.file_name(Component::ALL[draw.below(Component::ALL.len())]);
            let name = JUNK[draw.below(JUNK.len())].replace("{}", &of);
            if !host.disk.exists(&Path::new("/t").join(&name)) {
                put(&host, &name, b"junk");
            }
            let path = Path::new("/t").join(&name);
            assert!(refusal(&path).is_none(), "{what}: {name}");
            assert!(
                Descriptor::parse(&name).is_none_or(|(_, part)| Component::parse(part).is_none()),
                "{what}: {name}"
            );
        }
        let place = SsTableFiles { disk: &*host.disk, folder: Path::new("/t"), descriptor };
        assert_eq!(missing_components(place).unwrap(), Vec::<String>::new(), "{what}: without {gone:?}");
        let expected = open_alone(&real, folder).map(|table| render::dump(&table));
        let Ok(expected) = expected else { continue };
        let table = open_one(&host, Path::new("/t"), descriptor)
            .unwrap_or_else(|error| panic!("{what}: without {gone:?}: {error}"));
        assert_eq!(render::dump(&table), expected, "{what}: without {gone:?}");
        table
            .verify(&*host.disk, Path::new("/t"))
            .unwrap_or_else(|error| panic!("{what}: without {gone:?}: {error}"));
    }
}

/// The bytes of an estimator of random size, or random bytes.
fn estimator(draw: &mut Draw) -> Vec<u8> {
    let mut bytes = (-2_i32).to_be_bytes().to_vec();
    match draw.below(4) {
        0 => bytes = (0..draw.below(40)).map(|_| draw.below(256) as u8).collect(),
        1 => bytes.extend((0..draw.below(20)).map(|_| draw.below(256) as u8)),
        form => {
            let p = 4 + draw.below(15);
            let words = (1_usize << p) / 6 + 1;
            bytes.extend([p as u8, 25, u8::from(form == 3)]);
            if form == 3 {
                bytes.extend([3, 5, 6, 7]);
            } else {
                let mut size = words * 4;
                while size >= 0x80 {
                    bytes.push(size as u8 | 0x80);
                    size >>= 7;
                }
                bytes.push(size as u8);
                bytes.extend((0..words * 4).map(|_| draw.below(64) as u8));
            }
        }
    }
    bytes
}

#[test]
fn an_estimator_of_any_size_or_of_none_stands_in_no_readers_way() {
    let seed = std::env::var("HELENUS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(35_u64);
    let mut draw = Draw(seed);
    let (real, mut cases) = (real::host(), 0);
    for folder in folders() {
        let descriptor = render::only_table(&real, &folder);
        if descriptor.version.has_statistics_checksums() {
            continue;
        }
        let file = descriptor.file_name(Component::Statistics);
        let whole = std::fs::read(folder.join(&file)).unwrap();
        let number = |at: usize| u32::from_be_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
        // The number of parts, then type and offset of each: validation, compaction, stats, header.
        let offsets: Vec<usize> = (0..4).map(|part| number(8 + part * 8)).collect();
        let what = format!("seed {seed}: {}", folder.display());
        assert_eq!((number(0), number(12)), (4, 1), "{what}");
        let Ok(expected) = open_alone(&real, &folder).map(|table| render::dump(&table)) else { continue };
        for _ in 0..6 {
            let counted = estimator(&mut draw);
            let part = [&(counted.len() as u32).to_be_bytes(), &*counted].concat();
            let longer = offsets[1] + part.len();
            let mut changed = whole[..offsets[1]].to_vec();
            for (number, offset) in offsets.iter().enumerate().skip(2) {
                let moved = (offset + longer - offsets[2]) as u32;
                changed[8 + number * 8..12 + number * 8].copy_from_slice(&moved.to_be_bytes());
            }
            changed.extend_from_slice(&part);
            changed.extend_from_slice(&whole[offsets[2]..]);
            let host = memory::host();
            copy(&folder, &host, |name| name != file);
            put(&host, &file, &changed);
            let table = open_one(&host, Path::new("/t"), descriptor)
                .unwrap_or_else(|error| panic!("{what}: {counted:02x?}: {error}"));
            assert_eq!(render::dump(&table), expected, "{what}");
            cases += 1;
        }
    }
    assert!(cases > 100, "{cases}");
}
