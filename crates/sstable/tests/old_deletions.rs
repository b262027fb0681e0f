//! Partition deletions with times that the written version has no form for: the files are sound, and every version says the
//! same of rows and static rows.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]
#![allow(dead_code, reason = "a part of the helpers is used")]

mod render;

use helenus_host::memory;
use helenus_model::byte_comparable::{clustering_key, end_bound};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::partitions::{KeyRange, PartitionKey};
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::CqlType;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::deletion_time::INVALID_LOCAL_S;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "/t";

fn schema(clustered: bool) -> Table {
    let mut columns = vec![
        Column::new("k", ColumnKind::PartitionKey, CqlType::Blob),
        Column::new("v", ColumnKind::Regular, CqlType::Blob),
    ];
    if clustered {
        columns.push(Column::new("c", ColumnKind::Clustering, CqlType::Int));
        columns.push(Column::new("s", ColumnKind::Static, CqlType::Blob));
    }
    Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns)
}

fn row(schema: &Table, c: i32, bytes: usize) -> RowBuf {
    let mut row = RowBuf { liveness: Liveness::at(100), ..RowBuf::default() };
    if schema.clustering.is_empty() {
        clustering_key([], &schema.clustering, &mut row.key).unwrap();
    } else {
        let value = c.to_be_bytes();
        clustering_key([Some(&value[..])], &schema.clustering, &mut row.key).unwrap();
        let span = row.push_bytes(&value);
        row.clustering.push(span);
    }
    let value = row.push_bytes(&vec![7; bytes]);
    let column = schema.column("v").unwrap().id;
    let cell =
        Cell { column, ttl_s: 0, timestamp_us: 100, local_deletion_s: NO_EXPIRY, path: Span::NULL, value };
    row.cells.push(cell);
    row
}

/// A marker before or behind everything.
fn edge(before: bool, close: DeletionTime, open: DeletionTime) -> MarkerBuf {
    let mut marker = MarkerBuf { before, close, open, ..MarkerBuf::default() };
    end_bound(before, &mut marker.key);
    marker
}

#[test]
fn files_with_them_are_sound_and_say_what_the_deletion_says() {
    let at = |timestamp_us, local_s| DeletionTime { timestamp_us, local_s };
    let live = DeletionTime::LIVE;
    let stronger = at(50, 1_600_000_000);
    let deletions =
        [at(-5, 1_600_000_000), at(i64::MIN + 1, 0), at(7, INVALID_LOCAL_S), at(-1, INVALID_LOCAL_S)];
    for (version, clustered) in
        [(Version::Da, true), (Version::Da, false), (Version::Oa, true), (Version::Oa, false)]
    {
        let host = memory::host();
        host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
        let schema = Arc::new(schema(clustered));
        let options = WriterOptions::of_table(schema.clone(), 8, EncodingStats::NONE).for_version(version);
        let descriptor = Descriptor { version, id: SsTableId::Sequence(1) };
        let mut writer =
            SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
        // Without rows, with one, with many of several index blocks, and with a range of its own over everything.
        let mut keys: Vec<(PartitionKey, DeletionTime, usize)> = (0..deletions.len() * 4)
            .map(|n| (PartitionKey::new(vec![n as u8]), deletions[n / 4], n % 4))
            .collect();
        keys.sort_by(|a, b| a.0.decorated.cmp(&b.0.decorated));
        for (key, deletion, shape) in &keys {
            writer.begin_partition(&key.bytes, &key.hash, *deletion, None).unwrap();
            let has_range = *shape == 3 && clustered;
            if has_range {
                writer.add(Unfiltered::Marker(edge(true, live, stronger).view())).unwrap();
            }
            let rows = [0, 1, 400, 3][*shape].min(if clustered { 400 } else { 1 });
            for c in 0..rows {
                writer.add(Unfiltered::Row(row(&schema, c, 300).view())).unwrap();
            }
            if has_range {
                writer.add(Unfiltered::Marker(edge(false, stronger, live).view())).unwrap();
            }
            writer.end_partition().unwrap();
        }
        writer.finish().unwrap();
        let table = render::open(&host, Path::new(FOLDER), Table::clone(&schema));
        let verified = table.verify(&*host.disk, Path::new(FOLDER)).unwrap();
        assert_eq!(verified.partitions, keys.len() as u64);
        let mut cx = render::cx();
        let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
        for (key, deletion, shape) in &keys {
            assert!(scan.next_partition(&mut cx).unwrap() && scan.key() == key.bytes);
            assert!(scan.deletion().is_live());
            if clustered {
                assert_eq!(scan.static_row().map(|row| row.row.deletion), Some(*deletion));
            }
            let (mut rows, mut open) = (0, live);
            while scan.advance(&mut cx).unwrap() {
                match scan.current() {
                    Unfiltered::Marker(marker) => {
                        assert_eq!(marker.marker.close, open);
                        open = marker.marker.open;
                    }
                    Unfiltered::Row(row) => {
                        let covering = if clustered { open } else { row.row.deletion };
                        let expected =
                            if *shape == 3 && clustered { stronger.max(*deletion) } else { *deletion };
                        assert_eq!(covering, expected);
                        rows += 1;
                    }
                }
            }
            assert!(open.is_live());
            assert_eq!(rows > 0, *shape > 0 || !clustered, "{version} {clustered} {deletion:?} {shape}");
        }
        assert!(!scan.next_partition(&mut cx).unwrap());
    }
}
