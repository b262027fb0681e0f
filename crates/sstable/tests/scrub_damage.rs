//! Tests what a scrub may lose: nothing for damage of any component but Data.db, and of Data.db nothing outside of the
//! checksummed block that is damaged.
//!
//! The files are those of all Cassandra versions in the fixtures, which have no checksums of indexes. Small components
//! are damaged at every byte, larger ones at drawn bytes; `FLIPS` and `FLIP_SEED` change number and choice.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;
mod sample;

use helenus_host::{Host, memory, real};
use helenus_model::partitions::KeyRange;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::scrub::{Loss, SORTED_BYTES_DEFAULT, Scrubbed, Scrubbing, scrub};
use helenus_sstable::table::SsTable;
use helenus_sstable::version::{Format, Version};
use sample::{FOLDER, host_with, scanned};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const OUT: &str = "/out";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// An SSTable of the fixtures: its files, and what is in it.
struct Fixture {
    name: String,
    descriptor: Descriptor,
    files: Vec<(String, Vec<u8>)>,
    /// Its content in order, a line for each front, static row, row and marker.
    lines: Vec<String>,
    /// Each row, by its partition and text.
    rows: BTreeMap<String, RowPlace>,
}

/// Where a row and the front of its partition lie in the data.
struct RowPlace {
    row: Range<u64>,
    front: Range<u64>,
}

fn files_in(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    let named = |path: PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())
    };
    let mut files: Vec<_> = files.map(named).filter(|(name, _)| Descriptor::parse(name).is_some()).collect();
    files.sort();
    files
}

fn open(host: &Host, folder: &str, descriptor: Descriptor) -> helenus_sstable::Result<Arc<SsTable>> {
    let place = (Path::new(folder), descriptor);
    SsTable::open_without_schema(&*host.disk, place, ("ks", "t"), BufferPool::offline())
}

impl Fixture {
    fn read(folder: &Path) -> Fixture {
        let files = files_in(folder);
        let descriptor = render::only_table(&real::host(), folder);
        let table = open(&host_with(&files, "", b""), FOLDER, descriptor).unwrap();
        let (lines, end) = scanned(&table);
        end.unwrap();
        let name = folder.strip_prefix(fixtures()).unwrap().display().to_string();
        let rows = rows_of(&table);
        Fixture { name, descriptor, files, lines, rows }
    }

    fn component(&self, component: Component) -> Option<&(String, Vec<u8>)> {
        let name = self.descriptor.file_name(component);
        self.files.iter().find(|(file, _)| *file == name)
    }

    /// Scrubs it with other bytes in one component, and returns what came out.
    fn scrubbed(&self, component: Component, bytes: &[u8]) -> (Scrubbed, Vec<Loss>, Vec<Arc<SsTable>>) {
        let host = host_with(&self.files, &self.descriptor.file_name(component), bytes);
        scrubbed(&host, self.descriptor, SORTED_BYTES_DEFAULT).unwrap()
    }

    /// Checks that damage of a component other than Data.db costs nothing.
    fn check_whole(&self, component: Component, bytes: &[u8], what: &str) {
        let what = format!("{}: {component} {what}", self.name);
        let (_, losses, tables) = self.scrubbed(component, bytes);
        assert!(losses.is_empty(), "{what}: {losses:?}");
        let [table] = &tables[..] else { panic!("{what}: {} SSTables", tables.len()) };
        let (lines, end) = scanned(table);
        end.unwrap();
        if let Some((now, before)) = lines.iter().zip(&self.lines).find(|(now, before)| now != before) {
            panic!("{what}: {now} instead of {before}");
        }
        assert_eq!(lines.len(), self.lines.len(), "{what}");
    }
}

fn scrubbed(
    host: &Host,
    descriptor: Descriptor,
    sorted_bytes: usize,
) -> helenus_sstable::Result<(Scrubbed, Vec<Loss>, Vec<Arc<SsTable>>)> {
    host.disk.create_dir_all(Path::new(OUT)).unwrap();
    let written = |version: &Version| version.is_written();
    let next = |version: &Version| *version >= descriptor.version && version.is_written();
    let version = Version::all().find(next).or_else(|| Version::all().filter(written).last()).unwrap();
    let (mut number, mut losses) = (100, Vec::new());
    let how = Scrubbing {
        folder: Path::new(OUT),
        names: ("ks", "t"),
        known: None,
        version,
        validate: true,
        skip_corrupted: true,
        reinsert_overflowed: false,
        page_checksums: false,
        sorted_bytes,
        next: &mut || {
            number += 1;
            Ok(Descriptor { version, id: SsTableId::Sequence(number) })
        },
        lost: &mut |loss| losses.push(loss.clone()),
        progress: &mut |_, _| {},
    };
    let done = scrub(&host.disk, (Path::new(FOLDER), descriptor), how)?;
    let tables = done.written.iter().map(|descriptor| {
        let table = open(host, OUT, *descriptor).unwrap();
        table.verify(&*host.disk, Path::new(OUT)).unwrap();
        table
    });
    let tables = tables.collect();
    Ok((done, losses, tables))
}

fn rows_of(table: &Arc<SsTable>) -> BTreeMap<String, RowPlace> {
    let mut cx = render::cx();
    let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
    let mut rows = BTreeMap::new();
    while scan.next_partition(&mut cx).unwrap() {
        let front = scan.start()..scan.position();
        let key = render::hex(scan.key());
        loop {
            let at = scan.position();
            if !scan.advance(&mut cx).unwrap() {
                break;
            }
            if let Unfiltered::Row(_) = scan.current() {
                let mut line = key.clone();
                render::element(table.schema(), scan.current(), &mut line);
                rows.insert(line, RowPlace { row: at..scan.position(), front: front.clone() });
            }
        }
    }
    rows
}

/// The fixtures of every version, with at most one SSTable each.
fn all() -> Vec<Fixture> {
    let list = |folder: PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut folders: Vec<PathBuf> = list(fixtures().join("versions")).into_iter().flat_map(list).collect();
    folders.extend(["simple", "wide", "mixed", "many", "types", "counts"].map(|name| fixtures().join(name)));
    folders.extend(list(fixtures().join("cassandra-3.0")));
    folders.sort();
    let all: Vec<Fixture> = folders.iter().map(|folder| Fixture::read(folder)).collect();
    assert!(all.len() > 40, "{}", all.len());
    all
}

/// Random numbers.
struct Draw(u64);

impl Draw {
    fn new() -> Draw {
        let seed = std::env::var("FLIP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(49);
        Draw(88_172_645_463_325_252 ^ seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// The bytes to damage of a file: all, or as many as are wanted.
    fn places(&mut self, bytes: usize, most: usize) -> Vec<usize> {
        let most = std::env::var("FLIPS").ok().and_then(|flips| flips.parse().ok()).unwrap_or(most);
        if bytes <= most { (0..bytes).collect() } else { (0..most).map(|_| self.below(bytes)).collect() }
    }
}

fn flipped(bytes: &[u8], at: usize, bit: usize) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    damaged[at] ^= 1 << bit;
    damaged
}

#[test]
fn a_sound_file_of_any_maker_comes_out_as_it_went_in() {
    for fixture in all() {
        fixture.check_whole(Component::Toc, b"", "without names");
    }
}

#[test]
fn no_damage_of_an_index_a_filter_or_a_checksum_costs_a_row() {
    let mut draw = Draw::new();
    let mut cases = 0;
    for fixture in all() {
        for component in Component::all_of(fixture.descriptor.version) {
            // Nothing else says what rows look like, and before `na` no checksum protects it.
            if matches!(component, Component::Data | Component::Statistics) {
                continue;
            }
            let Some((_, bytes)) = fixture.component(component) else { continue };
            for at in draw.places(bytes.len(), 24) {
                let bit = draw.below(8);
                fixture.check_whole(component, &flipped(bytes, at, bit), &format!("bit {bit} of byte {at}"));
                cases += 1;
            }
            for len in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
                fixture.check_whole(component, &bytes[..len], &format!("cut at {len}"));
            }
        }
    }
    assert!(cases > 3000, "{cases}");
}

#[test]
fn a_flip_in_any_byte_of_an_index_file_gives_no_row_to_another_partition() {
    let mut draw = Draw::new();
    for (folder, component) in [
        ("versions/nb/wide", Component::Index),
        ("versions/nb/keys", Component::Index),
        ("versions/nb/mixed", Component::Index),
        ("versions/me/mixed", Component::Index),
        ("wide", Component::Rows),
        ("wide", Component::Partitions),
        ("mixed", Component::Rows),
        ("simple", Component::Partitions),
    ] {
        let fixture = Fixture::read(&fixtures().join(folder));
        let (_, bytes) = fixture.component(component).unwrap();
        for at in draw.places(bytes.len(), 1000) {
            let bit = draw.below(8);
            fixture.check_whole(component, &flipped(bytes, at, bit), &format!("bit {bit} of byte {at}"));
        }
    }
}

/// The part of the data that is in the damaged block of Data.db, before compression.
fn damaged_block(fixture: &Fixture, at: usize) -> Range<u64> {
    let host = host_with(&fixture.files, "", b"");
    let table = open(&host, FOLDER, fixture.descriptor).unwrap();
    let params = table.compression_params();
    let bytes = u64::from(params.chunk_bytes);
    let Some((_, info)) = fixture.component(Component::CompressionInfo) else {
        let number = at as u64 / bytes;
        return number * bytes..(number + 1) * bytes;
    };
    let count = table.uncompressed_bytes().div_ceil(bytes) as usize;
    let offsets = &info[info.len() - stored_chunks(info, fixture.descriptor.version) * 8..];
    let offset = |chunk: usize| u64::from_be_bytes(offsets[chunk * 8..chunk * 8 + 8].try_into().unwrap());
    let number = (0..count).rev().find(|chunk| offset(*chunk) <= at as u64).unwrap() as u64;
    number * bytes..(number + 1) * bytes
}

/// The number of chunks in a CompressionInfo.db.
fn stored_chunks(info: &[u8], version: Version) -> usize {
    let name = usize::from(u16::from_be_bytes([info[0], info[1]]));
    let mut at = 2 + name;
    let number = |at: usize| u32::from_be_bytes(info[at..at + 4].try_into().unwrap()) as usize;
    let options = number(at);
    at += 4;
    for _ in 0..options * 2 {
        at += 2 + usize::from(u16::from_be_bytes([info[at], info[at + 1]]));
    }
    at += if version.has_max_compressed_length() { 8 } else { 4 };
    number(at + 8)
}

#[test]
fn of_a_damaged_data_file_only_rows_of_the_damaged_block_are_lost_and_each_loss_is_said() {
    let mut draw = Draw::new();
    let (mut cases, mut with_loss) = (0, 0);
    for fixture in all() {
        let (_, bytes) = fixture.component(Component::Data).unwrap();
        for at in draw.places(bytes.len(), 16) {
            let bit = draw.below(8);
            let what = format!("{}: bit {bit} of byte {at} of Data.db", fixture.name);
            let (_, losses, tables) = fixture.scrubbed(Component::Data, &flipped(bytes, at, bit));
            let block = damaged_block(&fixture, at);
            let kept: BTreeSet<String> = tables.iter().flat_map(rows_of).map(|(row, _)| row).collect();
            let mut is_lost = false;
            for row in &kept {
                assert!(fixture.rows.contains_key(row), "{what}: a row that never was: {row}");
            }
            for (row, RowPlace { row: place, front }) in &fixture.rows {
                if kept.contains(row) {
                    continue;
                }
                is_lost = true;
                let meets = |place: &Range<u64>| place.start < block.end && block.start < place.end;
                // In format BTI only the front of a small partition has its key.
                let without_key = fixture.descriptor.version.format() == Format::Bti && meets(front);
                assert!(
                    meets(place) || without_key,
                    "{what}: lost at {place:?} outside of the block {block:?}: {row}; {losses:?}"
                );
            }
            assert!(!is_lost || !losses.is_empty(), "{what}: lost without a word");
            cases += 1;
            with_loss += u64::from(is_lost);
        }
    }
    assert!(cases > 500 && with_loss > 100, "{cases} {with_loss}");
}

#[test]
fn frozen_user_types_of_cassandra_3_0_are_read_without_a_schema_and_those_of_3_11_too() {
    let is_multi_cell = |folder: &str, column: &str| {
        let fixture = Fixture::read(&fixtures().join(folder));
        let host = host_with(&fixture.files, "", b"");
        let table = open(&host, FOLDER, fixture.descriptor).unwrap();
        table.verify(&*host.disk, Path::new(FOLDER)).unwrap();
        let schema = table.schema();
        let mut columns = schema.statics.iter().chain(&schema.regulars);
        columns.find(|found| &*found.name == column).unwrap().ty.is_multi_cell()
    };
    assert!(!is_multi_cell("cassandra-3.0/frozen_udts", "a"));
    assert!(!is_multi_cell("cassandra-3.0/frozen_udts", "s"));
    for version in ["mc", "md", "me"] {
        assert!(is_multi_cell(&format!("versions/{version}/udts"), "u"), "{version}");
        assert!(!is_multi_cell(&format!("versions/{version}/udts"), "f"), "{version}");
    }
    let fixture = Fixture::read(&fixtures().join("cassandra-3.0/frozen_udts"));
    let table = open(&host_with(&fixture.files, "", b""), FOLDER, fixture.descriptor).unwrap();
    let expected = std::fs::read_to_string(fixtures().join("cassandra-3.0/frozen_udts/rows.txt")).unwrap();
    assert_eq!(render::dump(&table), expected);
}

#[test]
fn the_reading_of_user_types_survives_damage_of_the_first_rows() {
    let fixture = Fixture::read(&fixtures().join("cassandra-3.0/frozen_udts"));
    // Without the CRC of its only chunk nothing of it can be read, and nothing may be taken for rows.
    let (_, bytes) = fixture.component(Component::Data).unwrap();
    let (done, losses, _) = fixture.scrubbed(Component::Data, &flipped(bytes, 10, 1));
    assert!(
        done.rows == 0 && !losses.is_empty() && done.bytes_lost == done.data_bytes,
        "{done:?} {losses:?}"
    );
}

#[test]
fn columns_with_the_names_that_tools_give_to_keys_are_read() {
    let folder = fixtures().join("cassandra-3.0/named");
    let fixture = Fixture::read(&folder);
    let host = host_with(&fixture.files, "", b"");
    let table = open(&host, FOLDER, fixture.descriptor).unwrap();
    let verified = table.verify(&*host.disk, Path::new(FOLDER)).unwrap();
    assert_eq!((verified.partitions, verified.rows, verified.markers), (2, 3, 2));
    let text = fixture.lines.join("\n");
    let expected = [
        "R L D -\n  C clustering 1000/0/- ~ x73\n",
        "C PartitionKey 1000/0/- ~ x70\n  C clustering1 1000/0/- ~ x00000004\n",
        "C PartitionKey 1001/0/- ~ x71\n  C clustering1 1001/0/- ~ x00000005\n",
        "C PartitionKey 1002/0/- ~ x72\n",
    ];
    for expected in expected {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

/// A sample whose rows descend where its header says that they ascend, as in files of a table whose order was lost.
fn descending(rows: i32) -> (Host, Descriptor) {
    use helenus_model::deletion::DeletionTime;
    use helenus_model::partitions::PartitionKey;
    use helenus_model::schema::{Column, ColumnKind, Table, TableId};
    use helenus_model::types::CqlType;
    use helenus_sstable::statistics::EncodingStats;
    use helenus_sstable::writer::{SsTableWriter, WriterOptions};

    let clustering = Column { reversed: true, ..Column::new("c", ColumnKind::Clustering, CqlType::Int) };
    let columns = [
        Column::new("k", ColumnKind::PartitionKey, CqlType::Blob),
        clustering,
        Column::new("v", ColumnKind::Regular, CqlType::Blob),
    ];
    let schema = Arc::new(Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns.to_vec()));
    let host = memory::host();
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let options = WriterOptions::of_table(schema.clone(), 1, EncodingStats::NONE).for_version(Version::Me);
    let descriptor = Descriptor { version: Version::Me, id: SsTableId::Sequence(1) };
    let mut writer =
        SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
    let key = PartitionKey::new(b"key".to_vec());
    writer.begin_partition(&key.bytes, &key.hash, DeletionTime::LIVE, None).unwrap();
    for number in (0..rows).rev() {
        let mut row = sample::row(&schema, number, 1);
        row.key = sample::ordered(&schema, number, None);
        writer.add(Unfiltered::Row(row.view())).unwrap();
    }
    writer.end_partition().unwrap();
    writer.finish().unwrap();
    // The header without the order. Before `na` nothing protects it; the type's name gets shorter by its wrapper, so the
    // type's length changes too.
    let path = descriptor.path(Path::new(FOLDER), Component::Statistics);
    let file = host.disk.open(&path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let (from, to) = (
        "org.apache.cassandra.db.marshal.ReversedType(org.apache.cassandra.db.marshal.Int32Type)",
        "org.apache.cassandra.db.marshal.Int32Type",
    );
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    assert_eq!(usize::from(bytes[at - 1]), from.len());
    bytes.splice(at - 1..at + from.len(), [&[to.len() as u8], to.as_bytes()].concat());
    host.disk.remove(&path).unwrap();
    host.disk.create(&path).unwrap().write_all_at(&bytes, 0).unwrap();
    // The index has the same wrong order, but is not asked for rows.
    (host, descriptor)
}

#[test]
fn rows_in_any_order_become_two_sstables_and_are_read_twice() {
    for (rows, sorted_bytes) in
        [(300, SORTED_BYTES_DEFAULT), (3000, SORTED_BYTES_DEFAULT), (3000, 40_000), (3000, 4000)]
    {
        let (host, descriptor) = descending(rows);
        let mut pieces = 0;
        let before = host.disk.list(Path::new(FOLDER)).unwrap().len();
        let (done, losses, tables) = scrubbed(&host, descriptor, sorted_bytes).unwrap();
        assert!(losses.is_empty(), "{losses:?}");
        assert_eq!((done.rows, done.rows_out_of_order), (rows as u64, rows as u64 - 1));
        assert_eq!(tables.len(), 2, "{rows} rows");
        let mut numbers: Vec<usize> = tables.iter().map(|table| rows_of(table).len()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, rows as usize - 1]);
        // Pieces are gone, and each row went through few of them.
        let files = host.disk.list(Path::new(OUT)).unwrap();
        for file in &files {
            let (descriptor, _) = Descriptor::parse(file.file_name().unwrap().to_str().unwrap()).unwrap();
            assert!(done.written.contains(&descriptor), "{}", file.display());
            if let SsTableId::Sequence(number) = descriptor.id {
                pieces = pieces.max(number);
            }
        }
        assert_eq!(host.disk.list(Path::new(FOLDER)).unwrap().len(), before);
        let most = if sorted_bytes == SORTED_BYTES_DEFAULT {
            102
        } else {
            102 + rows as u32 * 600 / sorted_bytes as u32
        };
        assert!(pieces <= most, "{rows} rows, {sorted_bytes} bytes: {} SSTables were written", pieces - 100);
    }
}
