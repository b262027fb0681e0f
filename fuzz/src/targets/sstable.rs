//! The components of SSTables. A table is written once, soundly, by the database; each input takes the place of one of its
//! components, and the page checksums go: nothing stands before the decoder then.

use helenus_cql::backend::{Backend, Identity, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::{Host, memory};
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::partitions::KeyRange;
use helenus_model::schema::Table;
use helenus_model::unfiltered::Source;
use helenus_sstable::block::{NoCache, ReadContext};
use helenus_sstable::component::Component;
use helenus_sstable::data::PartitionReader;
use helenus_sstable::names::Descriptor;
use helenus_sstable::statistics::Statistics;
use helenus_sstable::table::{OpenOptions, SsTable};
use helenus_sstable::version::Version;
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
struct Sound {
    schema: Arc<Table>,
    descriptor: Descriptor,
    folder: PathBuf,
    files: Vec<(Component, Vec<u8>)>,
}

static SOUND: LazyLock<[Sound; 2]> = LazyLock::new(|| {
    let host = memory::host();
    let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/db") };
    let (database, _) = Database::open(host.clone(), options).unwrap_or_else(|error| panic!("{error}"));
    fill(&database, &SCHEMA, 300);
    database.flush_all().unwrap_or_else(|error| panic!("{error}"));
    ["plain", "packed"].map(|name| {
        let schema =
            database.schema().table("ks", name).cloned().unwrap_or_else(|| panic!("no table {name}"));
        let folder = host.disk.list(Path::new("/db/data/ks")).unwrap_or_default();
        let is_of_table = |path: &&PathBuf| path.to_string_lossy().contains(&format!("/{name}-"));
        let folder = folder.iter().find(is_of_table).unwrap_or_else(|| panic!("no folder of {name}")).clone();
        let mut found = None;
        for path in host.disk.list(&folder).unwrap_or_default() {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some((descriptor, component)) = Descriptor::parse(name)
                && component == Component::Data.name()
            {
                found = Some(descriptor);
            }
        }
        let descriptor = found.unwrap_or_else(|| panic!("no SSTable of {name}"));
        // Without the checksums that would tell damage before any decoder sees it.
        let wanted = Component::ALL.iter().filter(|component| {
            !matches!(component, Component::PageChecksums | Component::Crc | Component::Digest)
        });
        let read = |component: &Component| {
            Some((*component, whole_file(&host, &descriptor.path(&folder, *component))?))
        };
        let files = wanted.filter_map(read).collect();
        Sound { schema, descriptor, folder, files }
    })
});

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
        let options =
            OpenOptions { schema: sound.schema.clone(), cache: Arc::new(NoCache), file_numbers: [1, 2, 3] };
        if let Ok(table) = SsTable::open(&*host.disk, &sound.folder, sound.descriptor, options) {
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
    data, run_data, Data;
    filter, run_filter, Filter;
}

pub(super) fn statistics() -> Vec<Vec<u8>> {
    corpus(Component::Statistics)
}

pub(super) fn run_statistics(input: &[u8]) {
    if Statistics::read(input, Version::Da, Path::new("da-1-bti-Statistics.db")).is_ok() {
        run(Component::Statistics, input);
    }
}
