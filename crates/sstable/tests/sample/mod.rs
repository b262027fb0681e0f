//! A table in memory, for tests that damage its files: partitions of one row, and two wide ones with a range deletion,
//! in any version that is written.

#![allow(dead_code, reason = "each test program uses a part of it")]

use super::render;
use helenus_host::{Host, memory};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::partitions::{KeyRange, PartitionKey};
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::CqlType;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::table::{OpenOptions, PartitionReader, SsTable};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use helenus_sstable::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub const FOLDER: &str = "/t";
pub const VERSIONS: [Version; 4] = [Version::Da, Version::Oa, Version::Nb, Version::Me];

/// A table with its components in memory, and its content.
pub struct Sample {
    pub schema: Arc<Table>,
    pub descriptor: Descriptor,
    pub files: Vec<(String, Vec<u8>)>,
    /// The content, one element on each line. `partitions` has the lines of each partition by its key.
    pub lines: Vec<String>,
    pub partitions: BTreeMap<Vec<u8>, Vec<String>>,
}

pub fn schema() -> Table {
    let columns = [
        Column::new("k", ColumnKind::PartitionKey, CqlType::Blob),
        Column::new("c", ColumnKind::Clustering, CqlType::Int),
        Column::new("v", ColumnKind::Regular, CqlType::Blob),
    ];
    Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns)
}

/// 300 partitions, two of them wide, with a range deletion.
pub fn write(version: Version, compressed: bool, page_checksums: bool) -> Sample {
    let host = memory::host();
    let schema = Arc::new(schema());
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let mut options = WriterOptions::of_table(schema.clone(), 300, EncodingStats::NONE).for_version(version);
    options.page_checksums = page_checksums;
    options.row_index_block_bytes = 1000;
    options.compression.chunk_bytes = 4096;
    if !compressed {
        options.compression.class = None;
    }
    let descriptor = Descriptor { version, id: SsTableId::Sequence(1) };
    let mut writer =
        SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
    let mut keys: Vec<PartitionKey> =
        (0..300_u32).map(|key| PartitionKey::new(key.to_be_bytes().to_vec())).collect();
    keys.sort_by(|a, b| a.decorated.cmp(&b.decorated));
    for (number, key) in keys.iter().enumerate() {
        writer.begin_partition(&key.bytes, &key.hash, DeletionTime::LIVE, None).unwrap();
        let rows = if number % 150 == 70 { 400 } else { 1 };
        for row in 0..rows {
            if rows > 1 && (row == 50 || row == 300) {
                writer.add(Unfiltered::Marker(marker(&schema, row).view())).unwrap();
            }
            writer.add(Unfiltered::Row(self::row(&schema, row, number).view())).unwrap();
        }
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap();
    let files = files_of(&host);
    let mut sample = Sample { schema, descriptor, files, lines: Vec::new(), partitions: BTreeMap::new() };
    let table = sample.open(&host).unwrap();
    let (lines, end) = scanned(&table);
    end.unwrap();
    for key in &keys {
        let (lines, end) = found(&table, key);
        assert!(end.unwrap());
        sample.partitions.insert(key.bytes.to_vec(), lines);
    }
    sample.lines = lines;
    sample
}

pub fn ordered(schema: &Table, row: i32, bound: Option<bool>) -> Vec<u8> {
    let mut out = Vec::new();
    let value = row.to_be_bytes();
    let values = [Some(value.as_slice())];
    match bound {
        None => helenus_model::byte_comparable::clustering_key(values, &schema.clustering, &mut out),
        Some(before) => {
            helenus_model::byte_comparable::clustering_bound(values, &schema.clustering, before, &mut out)
        }
    }
    .unwrap();
    out
}

pub fn row(schema: &Table, number: i32, seed: usize) -> RowBuf {
    let mut row = RowBuf { key: ordered(schema, number, None), ..RowBuf::default() };
    let span = row.push_bytes(&number.to_be_bytes());
    row.clustering.push(span);
    row.liveness = Liveness::at(1_700_000_000_000_000 + i64::from(number));
    let noise: Vec<u8> = (0..20 + number % 60).map(|at| (at * 31 + seed as i32 * 7) as u8).collect();
    let value = row.push_bytes(&noise);
    row.cells.push(Cell {
        column: schema.regulars[0].id,
        ttl_s: 0,
        timestamp_us: row.liveness.timestamp_us,
        local_deletion_s: NO_EXPIRY,
        path: Span::NULL,
        value,
    });
    row
}

/// Opens a range deletion before row 50 and closes it before row 300.
pub fn marker(schema: &Table, row: i32) -> MarkerBuf {
    let deletion = DeletionTime { timestamp_us: 5, local_s: 1_700_000_000 };
    let (close, open) =
        if row == 50 { (DeletionTime::LIVE, deletion) } else { (deletion, DeletionTime::LIVE) };
    MarkerBuf {
        key: ordered(schema, row, Some(true)),
        before: true,
        close,
        open,
        clustering: vec![Span { start: 0, len: 4 }],
        data: row.to_be_bytes().to_vec(),
    }
}

impl Sample {
    pub fn open(&self, host: &Host) -> Result<Arc<SsTable>> {
        let options = OpenOptions { schema: self.schema.clone(), buffers: BufferPool::none() };
        SsTable::open(&*host.disk, Path::new(FOLDER), self.descriptor, options)
    }

    /// A host with the table's files, of which `name` has another content.
    pub fn with(&self, name: &str, bytes: &[u8]) -> Host {
        host_with(&self.files, name, bytes)
    }

    /// The table, in which the file `name` has another content.
    pub fn damaged(&self, name: &str, bytes: &[u8]) -> Result<Arc<SsTable>> {
        self.open(&self.with(name, bytes))
    }
}

/// The files of the table's folder.
pub fn files_of(host: &Host) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for path in host.disk.list(Path::new(FOLDER)).unwrap() {
        let file = host.disk.open(&path).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        files.push((path.file_name().unwrap().to_str().unwrap().to_owned(), bytes));
    }
    files
}

/// A host with these files, of which `name` has another content.
pub fn host_with(files: &[(String, Vec<u8>)], name: &str, bytes: &[u8]) -> Host {
    let host = memory::host();
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    for (file, sample) in files {
        let bytes = if file == name { bytes } else { sample };
        host.disk.create(&Path::new(FOLDER).join(file)).unwrap().write_all_at(bytes, 0).unwrap();
    }
    host
}

/// The rows that a scan returns, and its result.
pub fn scanned(table: &Arc<SsTable>) -> (Vec<String>, Result<()>) {
    let mut cx = render::cx();
    let mut lines = Vec::new();
    let mut scan = match table.scan(&KeyRange::all(), &mut cx) {
        Ok(scan) => scan,
        Err(error) => return (lines, Err(error)),
    };
    loop {
        match scan.next_partition(&mut cx) {
            Ok(true) => {
                lines.push(format!("{} {:?}", render::hex(scan.key()), scan.deletion()));
                if let Some(row) = scan.static_row() {
                    let mut line = String::new();
                    render::element(table.schema(), Unfiltered::Row(row), &mut line);
                    lines.push(line);
                }
            }
            Ok(false) => return (lines, Ok(())),
            Err(error) => return (lines, Err(error)),
        }
        if let Err(error) = rest(&mut scan, table, &mut lines) {
            return (lines, Err(error));
        }
    }
}

/// The rows of a partition, read forward and then backward, and whether it was found.
pub fn found(table: &Arc<SsTable>, key: &PartitionKey) -> (Vec<String>, Result<bool>) {
    let mut cx = render::cx();
    let mut lines = Vec::new();
    let mut reader = match PartitionReader::find(table, key, true, &mut cx) {
        Ok(Some(reader)) => reader,
        Ok(None) => return (lines, Ok(false)),
        Err(error) => return (lines, Err(error)),
    };
    for reversed in [false, true] {
        reader.select(Arc::new(ClusteringFilter::Slices(vec![Slice::all()])), reversed);
        if let Err(error) = rest(&mut reader, table, &mut lines) {
            return (lines, Err(error));
        }
    }
    (lines, Ok(true))
}

pub fn rest<S>(source: &mut S, table: &SsTable, lines: &mut Vec<String>) -> Result<()>
where
    S: Source<helenus_sstable::block::ReadContext, Error = Error>,
{
    let mut cx = render::cx();
    // The limit ends reads that damage sends in circles.
    let most = lines.len() + 5000;
    while source.advance(&mut cx)? {
        let mut line = String::new();
        render::element(table.schema(), source.current(), &mut line);
        lines.push(line);
        assert!(lines.len() < most, "a read does not end");
    }
    Ok(())
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Calls `each` with each file cut at every 4 KiB and with some flipped bits: the file's name, the bytes, and a
/// description. The environment variables `FLIPS` and `FLIP_SEED` change number and choice of the bits.
pub fn each_damage(sample: &Sample, flips: u64, each: impl FnMut(&str, &[u8], &str)) {
    each_damage_of(&sample.files, flips, each);
}

/// The same for any files.
pub fn each_damage_of(files: &[(String, Vec<u8>)], flips: u64, mut each: impl FnMut(&str, &[u8], &str)) {
    let flips = setting("FLIPS").unwrap_or(flips);
    let mut state = 88_172_645_463_325_252_u64 ^ setting("FLIP_SEED").unwrap_or(0);
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (name, bytes) in files {
        let cuts = (0..bytes.len()).step_by(4096).chain([bytes.len().saturating_sub(1)]);
        for cut in cuts {
            each(name, &bytes[..cut], &format!("{name} cut at {cut}"));
        }
        if bytes.is_empty() {
            continue;
        }
        for _ in 0..flips {
            let (at, bit) = ((next() % bytes.len() as u64) as usize, next() % 8);
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            each(name, &damaged, &format!("{name} bit {bit} of byte {at}"));
        }
    }
}
