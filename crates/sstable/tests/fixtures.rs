//! Tests that every element of Cassandra 5.0.6's files is read as by Cassandra itself.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;

use helenus_host::real;
use helenus_model::cell::ColumnId;
use helenus_model::schema::DroppedColumn;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn assert_same(found: &str, expected: &str, what: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{what}, line {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{what}");
}

#[test]
fn cassandras_tables_read_as_cassandra_reads_them() {
    let host = real::host();
    let names = ["simple", "mixed", "wide", "many", "types", "dropped", "counts", "compactless"];
    for name in names {
        let folder = fixture(name);
        let table = render::open(&host, &folder, render::schema_in(&host, &folder));
        let expected = std::fs::read_to_string(folder.join("rows.txt")).unwrap();
        assert_same(&render::dump(&table), &expected, name);
        let verified = table.verify(&*host.disk, &folder).unwrap();
        assert_eq!(
            verified.partitions,
            expected.lines().filter(|line| line.starts_with("P ")).count() as u64
        );
        assert_eq!(verified.rows, expected.lines().filter(|line| line.starts_with("R ")).count() as u64);
        assert_eq!(verified.markers, expected.lines().filter(|line| line.starts_with("M ")).count() as u64);
    }
}

#[test]
fn a_dropped_column_is_passed_over_and_rows_of_it_alone_are_gone() {
    let host = real::host();
    let folder = fixture("dropped");
    let mut schema = render::schema_in(&host, &folder);
    let at = schema.regulars.iter().position(|column| &*column.name == "b").unwrap();
    let column = schema.regulars.remove(at);
    let drop = |dropped_us| DroppedColumn {
        name: column.name.clone(),
        ty: column.ty.clone(),
        kind: column.kind,
        dropped_us,
    };
    schema.dropped.insert(column.name.clone(), drop(80_000_000));
    let table = render::open(&host, &folder, schema.clone());
    let expected = std::fs::read_to_string(folder.join("rows.txt")).unwrap();
    let is_kept = |line: &&str| {
        !line.starts_with("  C b") && !line.starts_with("  X b") && !line.starts_with("R x00000064")
    };
    let expected: String = expected.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    assert_same(&render::dump(&table), &expected, "dropped");

    // A column with this name exists again: cells from before the drop stay hidden.
    let mut again = column.clone();
    again.id = ColumnId(9);
    schema.regulars.push(again);
    schema.dropped.insert(column.name.clone(), drop(70_000_004));
    let table = render::open(&host, &folder, schema);
    let dump = render::dump(&table);
    assert!(!dump.contains("C b 70000004/") && dump.contains("C b 70000005/"));
}

#[test]
fn an_unknown_column_is_refused() {
    let host = real::host();
    let folder = fixture("dropped");
    let mut schema = render::schema_in(&host, &folder);
    schema.regulars.retain(|column| &*column.name != "b");
    let options = helenus_sstable::table::OpenOptions {
        schema: std::sync::Arc::new(schema),
        buffers: helenus_sstable::buffer::BufferPool::none(),
    };
    let descriptor = render::only_table(&host, &folder);
    let refused = helenus_sstable::table::SsTable::open(&*host.disk, &folder, descriptor, options);
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("column b is not in the table"), "{message}");
}
