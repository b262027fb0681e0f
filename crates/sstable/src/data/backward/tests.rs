//! Tests with files in which elements contain wrong distances to the elements before.

use crate::block::ReadContext;
use crate::buffer::BufferPool;
use crate::checksum::crc32;
use crate::component::Component;
use crate::compression::BlockCrcs;
use crate::data::RowLayout;
use crate::data::decode::HeadKind;
use crate::names::{Descriptor, SsTableId};
use crate::statistics::EncodingStats;
use crate::table::PartitionReader;
use crate::table::{OpenOptions, SsTable};
use crate::writer::{SsTableWriter, WriterOptions};
use helenus_host::{Host, memory};
use helenus_model::byte_comparable::{clustering_bound, clustering_key};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, Slice};
use helenus_model::partitions::PartitionKey;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::CqlType;
use helenus_model::unfiltered::{Source, Unfiltered};
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "/t";
const ROWS: i32 = 300;

fn schema() -> Arc<Table> {
    let kinds = [("k", ColumnKind::PartitionKey), ("c", ColumnKind::Clustering), ("v", ColumnKind::Regular)];
    let columns = kinds.map(|(name, kind)| Column::new(name, kind, CqlType::Int));
    Arc::new(Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns))
}

fn key() -> PartitionKey {
    PartitionKey::new(vec![0, 0, 0, 7])
}

fn written(host: &Host, schema: &Arc<Table>) {
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let mut options = WriterOptions::of_table(schema.clone(), 1, EncodingStats::NONE);
    options.row_index_block_bytes = 200;
    options.compression.class = None;
    let descriptor = Descriptor::new(SsTableId::Sequence(1));
    let mut writer =
        SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
    writer.begin_partition(&key().bytes, &key().hash, DeletionTime::LIVE, None).unwrap();
    for number in 0..ROWS {
        let mut row = RowBuf { liveness: Liveness::at(5), ..RowBuf::default() };
        let value = number.to_be_bytes();
        clustering_key([Some(&value[..])], &schema.clustering, &mut row.key).unwrap();
        let span = row.push_bytes(&value);
        row.clustering.push(span);
        let (column, path) = (schema.regulars[0].id, Span::NULL);
        row.cells.push(Cell {
            column,
            ttl_s: 0,
            timestamp_us: 5,
            local_deletion_s: NO_EXPIRY,
            path,
            value: span,
        });
        writer.add(Unfiltered::Row(row.view())).unwrap();
    }
    writer.end_partition().unwrap();
    writer.finish().unwrap();
}

fn opened(host: &Host, schema: &Arc<Table>) -> Arc<SsTable> {
    let options = OpenOptions { schema: schema.clone(), buffers: BufferPool::none() };
    let descriptor = Descriptor::new(SsTableId::Sequence(1));
    SsTable::open(&*host.disk, Path::new(FOLDER), descriptor, options).unwrap()
}

/// Rewrites the distance that every row contains, and the checksums. `lie` gets the row's number and the right
/// distance.
fn lied(host: &Host, layout: &RowLayout, rows_start: usize, lie: impl Fn(i32, u8) -> u8) {
    let path =
        |component| Path::new(FOLDER).join(Descriptor::new(SsTableId::Sequence(1)).file_name(component));
    let file = host.disk.open(&path(Component::Data)).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let (mut at, mut number) = (rows_start, 0);
    loop {
        let head = layout.extent(&bytes, at).unwrap();
        if head.kind == HeadKind::End {
            break;
        }
        // The head ends with the distance, which has one byte here.
        assert_eq!(u64::from(bytes[head.body - 1]), head.back);
        bytes[head.body - 1] = lie(number, bytes[head.body - 1]) & 0x7F;
        (at, number) = (head.end, number + 1);
    }
    assert_eq!(number, ROWS);
    let rewrite = |component, bytes: &[u8]| {
        host.disk.remove(&path(component)).unwrap();
        host.disk.create(&path(component)).unwrap().write_all_at(bytes, 0).unwrap();
    };
    rewrite(Component::Data, &bytes);
    let block_bytes = 16 << 10;
    let crcs = bytes.chunks(block_bytes).map(crc32).collect();
    rewrite(Component::Crc, &BlockCrcs { block_bytes, crcs }.to_bytes());
}

fn reversed(table: &Arc<SsTable>, slice: &Slice, with_keys: bool) -> Vec<i32> {
    let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
    let mut reader = PartitionReader::find(table, &key(), false, &mut cx).unwrap().unwrap();
    reader.seek_slice(slice, true);
    reader.set_keys(with_keys);
    let mut found = Vec::new();
    while reader.advance(&mut cx).unwrap() {
        let Unfiltered::Row(row) = reader.current() else { panic!("a marker where none was written") };
        found.push(i32::from_be_bytes(row.clustering(0).unwrap().try_into().unwrap()));
    }
    found
}

#[test]
fn rows_come_back_to_front_whatever_the_file_says_of_their_sizes() {
    let bound = |schema: &Table, number: i32, before| {
        let mut out = Vec::new();
        clustering_bound([Some(&number.to_be_bytes()[..])], &schema.clustering, before, &mut out).unwrap();
        out
    };
    let lies: [&dyn Fn(i32, u8) -> u8; 6] = [
        &|_, size| size,
        &|_, _| 0,
        &|_, size| size + 1,
        &|_, size| size.wrapping_mul(2),
        &|number, size| if number % 7 == 3 { size - 1 } else { size },
        &|number, size| if number == 150 { 120 } else { size },
    ];
    for (which, lie) in lies.iter().enumerate() {
        let (host, schema) = (memory::host(), schema());
        written(&host, &schema);
        let table = opened(&host, &schema);
        // The rows begin after the key's length, the key, and a live deletion of one byte.
        lied(&host, table.layout(), 2 + 4 + 1, lie);
        let table = opened(&host, &schema);
        let slices = [
            (BEFORE_ALL.to_vec(), AFTER_ALL.to_vec(), 0..ROWS),
            (BEFORE_ALL.to_vec(), bound(&schema, 200, true), 0..200),
            (bound(&schema, 13, true), bound(&schema, 290, false), 13..291),
        ];
        for (start, end, rows) in slices {
            let expected: Vec<i32> = rows.rev().collect();
            let slice = Slice { start, end };
            assert_eq!(reversed(&table, &slice, false), expected, "lie {which}");
            assert_eq!(reversed(&table, &slice, true), expected, "lie {which}, with keys");
        }
    }
}
