//! The components of SSTables. A table is written once, soundly, by the database; each input takes the place of one of its
//! components, and the page checksums go: nothing stands before the decoder then.

use helenus_cql::backend::{Backend, Identity, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::{Host, memory};
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::partitions::KeyRange;
use helenus_model::schema::{CompressionParams, Table};
use helenus_model::unfiltered::Source;
use helenus_sstable::block::ReadContext;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::checksum::{Crc32, crc32};
use helenus_sstable::component::Component;
use helenus_sstable::compression::BlockCrcs;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::page_checksums::PageChecksumTable;
use helenus_sstable::statistics::Statistics;
use helenus_sstable::table::{OpenOptions, PartitionReader, SsTable};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// Statements that make what is decoded: a table of every shape, plain and compressed.
pub(super) const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE ks.u (a int, b text)",
    "CREATE TABLE ks.plain (k int, c text, d int, s text static, v text, m map<text, int>, l list<int>, f frozen<u>, u u, \
     PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC) AND compression = {'enabled': false}",
    "CREATE TABLE ks.packed (k int, c text, d int, s text static, v text, m map<text, int>, l list<int>, f frozen<u>, u u, \
     PRIMARY KEY (k, c, d)) WITH CLUSTERING ORDER BY (c ASC, d DESC) AND compression = {'class': 'LZ4Compressor', \
     'chunk_length_in_kb': 4}",
];

struct NoRows;

impl RowsOut for NoRows {
    fn columns(&mut self, _: &Arc<ResultColumns>) {}
    fn cell(&mut self, _: Option<&[u8]>) {}
    fn end_row(&mut self) {}
    fn bytes(&self) -> usize {
        0
    }
    fn clear(&mut self) {}
}

/// Runs the schema's statements, then writes rows of each kind into its tables.
pub(super) fn fill(database: &Arc<Database>, schema: &[&str], rows: usize) {
    let backend = LocalBackend::new(database.clone(), LocalOptions::default());
    let identity = Identity::default();
    let run = |text: &str| {
        let request = Request { keyspace: Some("ks"), ..Request::plain(&identity, &[]) };
        let answer =
            backend.query(text, &request, &mut NoRows).unwrap_or_else(|error| panic!("{text}: {error}"));
        if let Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) = answer.outcome {
            ticket.wait().unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    };
    schema.iter().for_each(|text| run(text));
    for table in ["plain", "packed"] {
        if !schema.iter().any(|text| text.contains(&format!("ks.{table} "))) {
            continue;
        }
        for row in 0..rows {
            let key = row % 3;
            run(&format!(
                "INSERT INTO ks.{table} (k, c, d, v, m, l, f, u) VALUES ({key}, 'c{}', {row}, '{}', {{'a': {row}}}, [1, 2], {{a: \
                 1, b: 'x'}}, {{a: {row}}}) USING TTL {}",
                row % 7,
                "v".repeat(row * 5 % 900),
                row % 2 * 10_000,
            ));
        }
        run(&format!("INSERT INTO ks.{table} (k, s) VALUES (1, 'static')"));
        run(&format!("DELETE FROM ks.{table} WHERE k = 1 AND c > 'c2' AND c < 'c4'"));
        run(&format!("DELETE v, m FROM ks.{table} WHERE k = 0 AND c = 'c0' AND d = 0"));
        run(&format!("DELETE FROM ks.{table} WHERE k = 9"));
    }
}

/// A file whole.
pub(super) fn whole_file(host: &Host, path: &Path) -> Option<Vec<u8>> {
    let file = host.disk.open(path).ok()?;
    let mut bytes = vec![0; usize::try_from(file.size().ok()?).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes)
}

/// Makes a file.
pub(super) fn put(host: &Host, path: &Path, bytes: &[u8]) {
    let made = path.parent().map_or(Ok(()), |folder| host.disk.create_dir_all(folder));
    let written = made.and_then(|()| host.disk.create(path)?.write_all_at(bytes, 0));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A sound SSTable in memory.
pub(super) struct Sound {
    schema: Arc<Table>,
    pub(super) descriptor: Descriptor,
    pub(super) folder: PathBuf,
    pub(super) files: Vec<(Component, Vec<u8>)>,
}

pub(super) static SOUND: LazyLock<Vec<Sound>> = LazyLock::new(|| {
    let host = memory::host();
    let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/db") };
    let (database, _) = Database::open(host.clone(), options).unwrap_or_else(|error| panic!("{error}"));
    fill(&database, &SCHEMA, 300);
    database.flush_all().unwrap_or_else(|error| panic!("{error}"));
    let mut found = Vec::new();
    for name in ["plain", "packed"] {
        let schema =
            database.schema().table("ks", name).cloned().unwrap_or_else(|| panic!("no table {name}"));
        let folder = host.disk.list(Path::new("/db/data/ks")).unwrap_or_default();
        let is_of_table = |path: &&PathBuf| path.to_string_lossy().contains(&format!("/{name}-"));
        let folder = folder.iter().find(is_of_table).unwrap_or_else(|| panic!("no folder of {name}")).clone();
        let own = Sound::of(&host, &schema, &folder, descriptor_in(&host, &folder));
        found.extend([Version::Oa, Version::Me].map(|version| own.as_version(&host, version)));
        found.push(own);
    }
    found
});

fn descriptor_in(host: &Host, folder: &Path) -> Descriptor {
    let files = host.disk.list(folder).unwrap_or_default();
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    let mut data = names.filter_map(Descriptor::parse).filter(|(_, name)| *name == Component::Data.name());
    data.next().unwrap_or_else(|| panic!("no SSTable in {}", folder.display())).0
}

impl Sound {
    /// Without the checksums that would tell damage before any decoder sees it.
    fn of(host: &Host, schema: &Arc<Table>, folder: &Path, descriptor: Descriptor) -> Sound {
        let wanted = Component::ALL.into_iter().filter(|component| {
            !matches!(component, Component::PageChecksums | Component::Crc | Component::Digest)
        });
        let read = |component| Some((component, whole_file(host, &descriptor.path(folder, component))?));
        let files = wanted.filter_map(read).collect();
        Sound { schema: schema.clone(), descriptor, folder: folder.to_owned(), files }
    }

    fn open(&self, host: &Host) -> helenus_sstable::Result<Arc<SsTable>> {
        let options = OpenOptions { schema: self.schema.clone(), buffers: BufferPool::none() };
        SsTable::open(&*host.disk, &self.folder, self.descriptor, options)
    }

    /// The same rows as files of another version, with index blocks of few rows.
    fn as_version(&self, host: &Host, version: Version) -> Sound {
        let written = self.open(host).and_then(|table| self.write_as(host, version, &table));
        let descriptor = written.unwrap_or_else(|error| panic!("{version}: {error}"));
        Sound::of(host, &self.schema, &self.folder, descriptor)
    }

    fn write_as(
        &self,
        host: &Host,
        version: Version,
        table: &Arc<SsTable>,
    ) -> helenus_sstable::Result<Descriptor> {
        let encoding = table.statistics().header.encoding;
        let options = WriterOptions::of_table(self.schema.clone(), 10, encoding).for_version(version);
        let options =
            WriterOptions { row_index_block_bytes: 1000, compression: compression_of(table), ..options };
        let descriptor = Descriptor { version, id: SsTableId::Sequence(7) };
        let mut writer = SsTableWriter::create(host.disk.clone(), &self.folder, descriptor, options)?;
        let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
        let mut scan = table.scan(&KeyRange::all(), &mut cx)?;
        while scan.next_partition(&mut cx)? {
            let hash = helenus_model::token::KeyHash::of(scan.key());
            writer.begin_partition(scan.key(), &hash, scan.deletion(), scan.static_row())?;
            while scan.advance(&mut cx)? {
                writer.add(scan.current())?;
            }
            writer.end_partition()?;
        }
        writer.finish()?;
        Ok(descriptor)
    }
}

/// What every version can have of the table's own compression.
fn compression_of(table: &SsTable) -> CompressionParams {
    let max_compressed_bytes = i32::MAX as u32;
    CompressionParams { max_compressed_bytes, ..table.schema().options.compression_params() }
}

fn corpus(component: Component) -> Vec<Vec<u8>> {
    let files = SOUND.iter().flat_map(|sound| &sound.files);
    files.filter(|(kind, _)| *kind == component).map(|(_, bytes)| bytes.clone()).collect()
}

/// Opens each table with this in the place of a component, and reads all of it.
fn run(component: Component, input: &[u8]) {
    for sound in SOUND.iter() {
        if !sound.files.iter().any(|(kind, _)| *kind == component) {
            continue;
        }
        let host = memory::host();
        for (kind, bytes) in &sound.files {
            let bytes = if *kind == component { input } else { bytes.as_slice() };
            put(&host, &sound.descriptor.path(&sound.folder, *kind), bytes);
        }
        if let Ok(table) = sound.open(&host) {
            read_all(&table);
        }
    }
}

fn read_all(table: &Arc<SsTable>) {
    let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
    // More than there is: damage that leads in circles ends here, and is none of the decoders' business.
    let mut elements_left = 20_000;
    let all = Arc::new(ClusteringFilter::Slices(vec![Slice::all()]));
    let mut keys = Vec::new();
    if let Ok(mut scan) = table.scan(&KeyRange::all(), &mut cx) {
        while let Ok(true) = scan.next_partition(&mut cx) {
            keys.push((scan.key().to_vec(), scan.decorated().to_vec()));
            while let Ok(true) = scan.advance(&mut cx) {
                elements_left -= 1;
                if elements_left == 0 {
                    return;
                }
            }
            if keys.len() > 100 {
                break;
            }
        }
    }
    for (key, decorated) in keys {
        let hash = helenus_model::token::KeyHash::of(&key);
        let Ok(Some(position)) = table.find(&key, &hash, &decorated, &mut cx) else { continue };
        for reversed in [false, true] {
            let Ok(mut reader) = PartitionReader::open(table.clone(), &position, true, &mut cx) else {
                continue;
            };
            reader.select(all.clone(), reversed);
            while let Ok(true) = reader.advance(&mut cx) {
                elements_left -= 1;
                if elements_left == 0 {
                    return;
                }
            }
        }
    }
}

macro_rules! components {
    ($($corpus:ident, $run:ident, $component:ident;)*) => {
        $(
            pub(super) fn $corpus() -> Vec<Vec<u8>> {
                corpus(Component::$component)
            }

            pub(super) fn $run(input: &[u8]) {
                run(Component::$component, input);
            }
        )*
    };
}

components! {
    compression_info, run_compression_info, CompressionInfo;
    partitions, run_partitions, Partitions;
    rows, run_rows, Rows;
    index, run_index, Index;
    summary, run_summary, Summary;
    data, run_data, Data;
    filter, run_filter, Filter;
}

pub(super) fn statistics() -> Vec<Vec<u8>> {
    corpus(Component::Statistics)
}

pub(super) fn run_statistics(input: &[u8]) {
    read_statistics(input);
    let mut mended = input.to_vec();
    if mend_statistics(&mut mended).is_some() {
        read_statistics(&mended);
    }
}

fn read_statistics(input: &[u8]) {
    let mut versions = SOUND.iter().map(|sound| sound.descriptor.version);
    if versions.any(|version| Statistics::read(input, version, Path::new("Statistics.db")).is_ok()) {
        run(Component::Statistics, input);
    }
}

/// Makes the checksums of a file that has some right, so that what is behind them is reached (`statistics::component`).
fn mend_statistics(bytes: &mut [u8]) -> Option<()> {
    let number = |bytes: &[u8], at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
    let parts = number(bytes, 0)? as usize;
    let table = parts.checked_mul(8).filter(|bytes| *bytes < 256)?;
    let mut crc = Crc32::default();
    crc.update(bytes.get(..4)?);
    bytes.get_mut(4..8)?.copy_from_slice(&crc.value().to_be_bytes());
    crc.update(bytes.get(8..8 + table)?);
    bytes.get_mut(8 + table..12 + table)?.copy_from_slice(&crc.value().to_be_bytes());
    let mut ends: Vec<usize> =
        (1..parts).filter_map(|part| Some(number(bytes, 12 + part * 8)? as usize)).collect();
    ends.push(bytes.len());
    for (part, end) in ends.into_iter().enumerate() {
        let start = number(bytes, 12 + part * 8)? as usize;
        let crc = crc32(bytes.get(start..end.checked_sub(4)?)?);
        bytes.get_mut(end - 4..end)?.copy_from_slice(&crc.to_be_bytes());
    }
    Some(())
}

/// Length of the data file that the checksums are for.
const DATA_BYTES: u64 = 100_000;

pub(super) fn block_crcs() -> Vec<Vec<u8>> {
    let of = |block_bytes: usize| {
        let count = DATA_BYTES.div_ceil(block_bytes as u64) as u32;
        BlockCrcs { block_bytes, crcs: (0..count).collect() }.to_bytes()
    };
    [16_384, 65_536, 4096, 100_000].map(of).to_vec()
}

pub(super) fn run_block_crcs(input: &[u8]) {
    if let Ok(crcs) = BlockCrcs::parse(input, DATA_BYTES, Path::new("CRC.db")) {
        assert!(input.starts_with(&crcs.to_bytes()) || input.len() < 8);
    }
}

pub(super) fn page_checksums() -> Vec<Vec<u8>> {
    let mut table = PageChecksumTable::default();
    let none = table.to_bytes();
    table.add_bytes(Component::Partitions, &[7; 10_000]);
    table.add_bytes(Component::Rows, &[]);
    table.add_bytes(Component::Filter, &[1; 4096]);
    vec![none, table.to_bytes()]
}

pub(super) fn run_page_checksums(input: &[u8]) {
    let file = Path::new("PageChecksums.db");
    let mut input = input.to_vec();
    let _refused = PageChecksumTable::parse(&input, file);
    if let Some((content, crc)) = input.split_last_chunk_mut::<4>() {
        *crc = crc32(content).to_be_bytes();
    }
    if let Ok(table) = PageChecksumTable::parse(&input, file) {
        assert_eq!(table.to_bytes(), input);
    }
}
