//! Prints a table's content as text, in the format of `oracle/DumpRaw.java`, which prints what Cassandra reads.
#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]
#![allow(dead_code, reason = "each test program uses its part")]

use helenus_host::Host;
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::deletion::{DeletionTime, NO_EXPIRY};
use helenus_model::range_tombstone::MarkerView;
use helenus_model::row::RowView;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::{CqlType, ParsedClass, UserType, parse_class_name};
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::data::KeyRange;
use helenus_sstable::names::Descriptor;
use helenus_sstable::statistics::{Header, Statistics};
use helenus_sstable::table::{OpenOptions, Scan, SsTable};
use helenus_sstable::version::Version;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// A context that may wait for the disk, and fills the cache.
pub fn cx() -> ReadContext {
    ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() }
}

/// A schema that fits a file's header.
pub fn schema_of(header: &Header) -> Table {
    let key_types = match parse_class_name(&header.key_type).unwrap() {
        ParsedClass::Composite(types) => types,
        ParsedClass::Plain { ty, reversed } => vec![(ty, reversed)],
    };
    let clustering = header.clustering_types.iter().map(|name| match parse_class_name(name).unwrap() {
        ParsedClass::Plain { ty, reversed } => (ty, reversed),
        other => panic!("{other:?}"),
    });
    let others = |columns: &[helenus_sstable::statistics::HeaderColumn], kind| {
        let of = |c: &helenus_sstable::statistics::HeaderColumn| {
            let name = String::from_utf8(c.name.clone()).unwrap();
            Column::new(&name, kind, CqlType::from_class_name(&c.type_name).unwrap())
        };
        columns.iter().map(of).collect::<Vec<_>>()
    };
    let keys = |types: Vec<(CqlType, bool)>, prefix: &str, kind| {
        let of = |(i, (ty, reversed))| Column { reversed, ..Column::new(&format!("{prefix}{i}"), kind, ty) };
        types.into_iter().enumerate().map(of).collect::<Vec<_>>()
    };
    let mut columns = keys(key_types, "pk", ColumnKind::PartitionKey);
    columns.extend(keys(clustering.collect(), "ck", ColumnKind::Clustering));
    columns.extend(others(&header.statics, ColumnKind::Static));
    columns.extend(others(&header.regulars, ColumnKind::Regular));
    Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns)
}

/// The descriptor of the only table in a folder.
pub fn only_table(host: &Host, folder: &Path) -> Descriptor {
    let files = host.disk.list(folder).unwrap();
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    names.filter_map(Descriptor::parse).find(|(_, component)| *component == "Data.db").unwrap().0
}

/// The schema that the only table in a folder was written with.
pub fn schema_in(host: &Host, folder: &Path) -> Table {
    let descriptor = only_table(host, folder);
    let path = descriptor.path(folder, Component::Statistics);
    let file = host.disk.open(&path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let mut schema = schema_of(&Statistics::read(&bytes, descriptor.version, &path).unwrap().header);
    // Cassandra 3.0 does not write that user types are frozen.
    for column in schema.statics.iter_mut().chain(&mut schema.regulars) {
        if let (CqlType::Udt(udt), true) = (&column.ty, descriptor.version < Version::Mc) {
            column.ty = CqlType::Udt(Arc::new(UserType { frozen: true, ..UserType::clone(udt) }));
        }
        column.id = Table::UNNUMBERED;
    }
    schema.next_column_id = 0;
    schema.arrange();
    schema
}

/// Opens the only table in a folder.
pub fn open(host: &Host, folder: &Path, schema: Table) -> Arc<SsTable> {
    let options = OpenOptions { schema: Arc::new(schema), buffers: BufferPool::none() };
    SsTable::open(&*host.disk, folder, only_table(host, folder), options).unwrap()
}

/// All of a table as text.
pub fn dump(table: &Arc<SsTable>) -> String {
    let mut cx = cx();
    let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
    let mut out = String::new();
    while scan.next_partition(&mut cx).unwrap() {
        partition(&mut scan, table.schema(), &mut cx, &mut out);
    }
    out
}

/// Appends the current partition of a scan.
pub fn partition(scan: &mut Scan, schema: &Table, cx: &mut ReadContext, out: &mut String) {
    writeln!(out, "P {}{}", hex(scan.key()), deletion(scan.deletion())).unwrap();
    if let Some(static_row) = scan.static_row() {
        row("S", schema, static_row, out);
    }
    while scan.advance(cx).unwrap() {
        element(schema, scan.current(), out);
    }
}

/// Appends a row or marker.
pub fn element(schema: &Table, element: Unfiltered<'_>, out: &mut String) {
    match element {
        Unfiltered::Row(view) => row("R", schema, view, out),
        Unfiltered::Marker(view) => marker(view, out),
    }
}

fn row(tag: &str, schema: &Table, view: RowView<'_>, out: &mut String) {
    out.push_str(tag);
    values(&view.row.clustering, view.data, out);
    out.push_str(" L");
    let liveness = view.row.liveness;
    if !liveness.is_none() {
        write!(out, "{}/{}/{}", liveness.timestamp_us, liveness.ttl_s, time(liveness.expires_s)).unwrap();
    }
    writeln!(out, " D{}", deletion(view.row.deletion)).unwrap();
    let mut last = None;
    let ids =
        view.row.complex_deletions.iter().map(|(id, _)| *id).chain(view.row.cells.iter().map(|c| c.column));
    let mut ids: Vec<ColumnId> = ids.collect();
    ids.sort();
    for id in ids {
        if last.replace(id) == Some(id) {
            continue;
        }
        let name = &schema.column_by_id(id).unwrap().name;
        for (of, time) in &view.row.complex_deletions {
            if *of == id {
                writeln!(out, "  X {name}{}", deletion(*time)).unwrap();
            }
        }
        for cell in view.cells_of(id) {
            self::cell(name, cell, view, out);
        }
    }
}

fn cell(name: &str, cell: &Cell, view: RowView<'_>, out: &mut String) {
    let path = cell.path.get(view.data).map_or("~".to_owned(), |path| format!("x{}", hex(path)));
    let (timestamp, ttl, expires) = (cell.timestamp_us, cell.ttl_s, time(cell.local_deletion_s));
    writeln!(out, "  C {name} {timestamp}/{ttl}/{expires} {path} x{}", hex(view.value(cell))).unwrap();
}

fn marker(view: MarkerView<'_>, out: &mut String) {
    write!(out, "M {}", view.marker.kind().unwrap() as u8).unwrap();
    values(&view.marker.clustering, view.data, out);
    writeln!(out, " E{} B{}", deletion(view.marker.close), deletion(view.marker.open)).unwrap();
}

fn values(spans: &[Span], data: &[u8], out: &mut String) {
    for span in spans {
        match span.get(data) {
            None => out.push_str(" ~"),
            Some(value) => write!(out, " x{}", hex(value)).unwrap(),
        }
    }
}

fn deletion(time: DeletionTime) -> String {
    if time.is_live() { " -".to_owned() } else { format!(" {}/{}", time.timestamp_us, time.local_s) }
}

fn time(seconds: i64) -> String {
    if seconds == NO_EXPIRY { "-".to_owned() } else { seconds.to_string() }
}

/// Bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}
