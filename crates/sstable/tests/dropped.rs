//! Tests files with rows that contain only cells of a dropped column. The files are sound, although reads do not return
//! these rows.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;
mod sample;

use helenus_host::{Host, memory};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, NO_EXPIRY};
use helenus_model::partitions::PartitionKey;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, ColumnKind, DroppedColumn, Table, TableId};
use helenus_model::types::CqlType;
use helenus_model::unfiltered::Unfiltered;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::table::{OpenOptions, SsTable, Verified};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use sample::{FOLDER, VERSIONS};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// For each partition: the number of rows, and those that also have a column that is not dropped.
const PARTITIONS: [(i32, Range<i32>); 6] =
    [(400, 0..0), (400, 150..160), (400, 0..1), (400, 399..400), (1, 0..0), (3, 1..2)];

fn schema() -> Table {
    let columns = [
        Column::new("k", ColumnKind::PartitionKey, CqlType::Blob),
        Column::new("c", ColumnKind::Clustering, CqlType::Int),
        Column::new("v", ColumnKind::Regular, CqlType::Blob),
        Column::new("w", ColumnKind::Regular, CqlType::Blob),
    ];
    Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns)
}

fn row(table: &Table, number: i32, columns: &[&str]) -> RowBuf {
    let mut row = RowBuf { key: sample::ordered(table, number, None), ..RowBuf::default() };
    let span = row.push_bytes(&number.to_be_bytes());
    row.clustering.push(span);
    for column in columns {
        let column = table.regulars.iter().find(|of| &*of.name == *column).unwrap().id;
        let value = row.push_bytes(&[number as u8; 60]);
        let (timestamp_us, local_deletion_s) = (1_000, NO_EXPIRY);
        row.cells.push(Cell { column, ttl_s: 0, timestamp_us, local_deletion_s, path: Span::NULL, value });
    }
    row
}

fn write(host: &Host, version: Version) -> (Arc<Table>, Descriptor) {
    let table = Arc::new(schema());
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let mut options = WriterOptions::of_table(table.clone(), 10, EncodingStats::NONE).for_version(version);
    options.row_index_block_bytes = 1000;
    let descriptor = Descriptor { version, id: SsTableId::Sequence(1) };
    let mut writer =
        SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
    let mut partitions: Vec<_> = PARTITIONS
        .iter()
        .enumerate()
        .map(|(number, rows)| (PartitionKey::new(vec![number as u8]), rows))
        .collect();
    partitions.sort_by(|a, b| a.0.decorated.cmp(&b.0.decorated));
    for (key, (rows, shown)) in partitions {
        writer.begin_partition(&key.bytes, &key.hash, DeletionTime::LIVE, None).unwrap();
        for number in 0..*rows {
            // A range deletion over rows of both kinds, which is open at the start of some index blocks.
            if *rows == 400 && (number == 50 || number == 300) {
                writer.add(Unfiltered::Marker(sample::marker(&table, number).view())).unwrap();
            }
            let columns: &[&str] = if shown.contains(&number) { &["v", "w"] } else { &["w"] };
            writer.add(Unfiltered::Row(row(&table, number, columns).view())).unwrap();
        }
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap();
    (table, descriptor)
}

fn verify(host: &Host, schema: Table, descriptor: Descriptor) -> Verified {
    let options = OpenOptions { schema: Arc::new(schema), buffers: BufferPool::none() };
    let table = SsTable::open(&*host.disk, Path::new(FOLDER), descriptor, options).unwrap();
    let (lines, end) = sample::scanned(&table);
    end.unwrap();
    let verified = table.verify(&*host.disk, Path::new(FOLDER)).unwrap();
    // `verify` counts what a scan returns: partitions, rows and markers.
    assert_eq!(lines.len() as u64, verified.partitions + verified.rows + verified.markers);
    verified
}

#[test]
fn rows_of_a_dropped_column_alone_are_no_damage() {
    for version in VERSIONS {
        let host = memory::host();
        let (table, descriptor) = write(&host, version);
        let all = verify(&host, (*table).clone(), descriptor);
        assert_eq!((all.partitions, all.rows, all.markers), (6, 1604, 8), "{version:?}");

        let column = table.regulars.iter().find(|column| &*column.name == "w").unwrap().clone();
        let drop = DroppedColumn {
            name: column.name.clone(),
            ty: column.ty.clone(),
            kind: column.kind,
            dropped_us: 2_000,
        };
        let mut dropped = (*table).clone();
        dropped.dropped.insert(column.name.clone(), drop);
        // A column with this name exists again: cells from before the drop stay hidden.
        let back = verify(&host, dropped.clone(), descriptor);
        dropped.regulars.retain(|of| of.id != column.id);
        let gone = verify(&host, dropped, descriptor);
        for verified in [back, gone] {
            assert_eq!((verified.partitions, verified.rows, verified.markers), (6, 13, 8), "{version:?}");
        }
    }
}
