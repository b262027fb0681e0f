//! Measures how fast rows are written, scanned and sliced: `cargo run --profile optimized --example timing [ROWS
//! [ROW_INDEX_BLOCK_BYTES]]`. Prints rows per second and microseconds per slice.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

#[path = "../tests/render/mod.rs"]
mod render;

use helenus_host::{Host, memory};
use helenus_model::byte_comparable::clustering_bound;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::Slice;
use helenus_model::partitions::PartitionKey;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::token::KeyHash;
use helenus_model::types::CqlType;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::data::KeyRange;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::table::{OpenOptions, SpareReaders, SsTable};
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

/// Seconds that this thread has run on a processor, so that other work on the machine does not count.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn table() -> Table {
    let columns = [
        Column::new("k", ColumnKind::PartitionKey, CqlType::Text),
        Column::new("c", ColumnKind::Clustering, CqlType::Text),
        Column::new("v", ColumnKind::Regular, CqlType::Blob),
    ];
    Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns)
}

fn clustering(number: u64) -> [u8; 10] {
    let mut text = *b"0000000000";
    let mut rest = number;
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

fn row(table: &Table, number: u64, into: &mut RowBuf) {
    into.clear();
    let clustering = clustering(number);
    helenus_model::byte_comparable::clustering_key([Some(&clustering[..])], &table.clustering, &mut into.key)
        .unwrap();
    let span = into.push_bytes(&clustering);
    into.clustering.push(span);
    let mut value = [0_u8; 25];
    let mut seed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for byte in &mut value {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (seed >> 56) as u8;
    }
    let value = into.push_bytes(&value);
    let timestamp_us = 1_700_000_000_000_000 + number as i64;
    into.liveness = Liveness::at(timestamp_us);
    let column = table.regulars[0].id;
    into.cells.push(Cell {
        column,
        ttl_s: 0,
        timestamp_us,
        local_deletion_s: NO_EXPIRY,
        path: Span::NULL,
        value,
    });
}

fn write(host: &Host, folder: &Path, table: &Arc<Table>, rows: u64) -> Descriptor {
    host.disk.create_dir_all(folder).unwrap();
    let encoding = EncodingStats { timestamp_us_min: 1_700_000_000_000_000, ..EncodingStats::NONE };
    let descriptor = Descriptor::new(SsTableId::Sequence(1));
    let mut options = WriterOptions::of_table(table.clone(), 1, encoding);
    if let Some(bytes) = std::env::args().nth(2) {
        options.row_index_block_bytes = bytes.parse().unwrap();
    }
    let mut writer = SsTableWriter::create(host.disk.clone(), folder, descriptor, options).unwrap();
    writer.begin_partition(b"key", &KeyHash::of(b"key"), DeletionTime::LIVE, None).unwrap();
    let mut buffer = RowBuf::default();
    for number in 0..rows {
        row(table, number, &mut buffer);
        writer.add(Unfiltered::Row(buffer.view())).unwrap();
    }
    writer.end_partition().unwrap();
    writer.finish().unwrap();
    descriptor
}

fn main() {
    let rows: u64 = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().unwrap());
    let host = memory::host();
    let (folder, schema) = (Path::new("/t"), Arc::new(table()));
    let start = cpu_s();
    let descriptor = write(&host, folder, &schema, rows);
    println!("write          {:>8.2} M rows/s", rows as f64 / (cpu_s() - start) / 1e6);
    let options = OpenOptions { schema: schema.clone(), buffers: BufferPool::new(4 << 30) };
    let table = SsTable::open(&*host.disk, folder, descriptor, options).unwrap();
    for what in ["scan, cold", "scan, cached", "scan, cached"] {
        let mut cx = render::cx();
        let start = cpu_s();
        let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
        let mut count = 0;
        while scan.next_partition(&mut cx).unwrap() {
            while scan.advance(&mut cx).unwrap() {
                black_box(scan.current());
                count += 1;
            }
        }
        assert_eq!(count, rows);
        println!("{what:14} {:>8.2} M rows/s", rows as f64 / (cpu_s() - start) / 1e6);
    }
    for reversed in [false, true] {
        for length in [1, 100] {
            slices(&table, &schema, (rows, length), reversed);
        }
    }
}

fn slices(table: &Arc<SsTable>, schema: &Table, (rows, length): (u64, u64), reversed: bool) {
    const COUNT: u64 = 20_000;
    let mut cx: ReadContext = render::cx();
    let key = PartitionKey::new(b"key".to_vec());
    let mut seed = 1_u64;
    let bound = |number| {
        let mut out = Vec::new();
        clustering_bound([Some(&clustering(number)[..])], &schema.clustering, true, &mut out).unwrap();
        out
    };
    let starts: Vec<u64> = (0..COUNT)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 20) % (rows - length)
        })
        .collect();
    let slices: Vec<Slice> =
        starts.iter().map(|start| Slice { start: bound(*start), end: bound(start + length) }).collect();
    let mut readers = SpareReaders::default();
    let start = cpu_s();
    for slice in &slices {
        let mut reader = readers.find(table, &key, false, &mut cx).unwrap().unwrap();
        reader.set_keys(false);
        reader.seek_slice(slice, reversed);
        let mut count = 0;
        while reader.advance(&mut cx).unwrap() {
            black_box(reader.current());
            count += 1;
        }
        readers.close(reader);
        assert_eq!(count, length);
    }
    let each = (cpu_s() - start) / COUNT as f64;
    println!("slice of {length}, {} {:.2} us", if reversed { "reversed" } else { "forward" }, each * 1e6);
    println!("  {:?}", cx.touched);
}
