//! `system_virtual_schema`: the schema of virtual keyspaces and tables, like `system_schema` for stored ones.

use super::registry::is_virtual_keyspace;
use super::table::{VirtualContext, VirtualRows, VirtualTable, virtual_definition};
use helenus_model::schema::{Column, ColumnKind, Keyspace, Table};
use helenus_model::types::CqlType;
use std::sync::Arc;

const KEYSPACE: &str = "system_virtual_schema";

#[derive(Clone, Copy)]
enum What {
    Keyspaces,
    Tables,
    Columns,
}

struct Described {
    table: Arc<Table>,
    what: What,
}

/// The three tables.
pub(super) fn tables() -> Vec<Arc<dyn VirtualTable>> {
    let keyspaces = virtual_definition(
        (KEYSPACE, "keyspaces"),
        "virtual keyspace definitions",
        (1, 0),
        &[("keyspace_name", CqlType::Text)],
    );
    let tables = virtual_definition(
        (KEYSPACE, "tables"),
        "virtual table definitions",
        (1, 1),
        &[("keyspace_name", CqlType::Text), ("table_name", CqlType::Text), ("comment", CqlType::Text)],
    );
    let columns = virtual_definition(
        (KEYSPACE, "columns"),
        "virtual column definitions",
        (1, 2),
        &[
            ("keyspace_name", CqlType::Text),
            ("table_name", CqlType::Text),
            ("column_name", CqlType::Text),
            ("clustering_order", CqlType::Text),
            ("column_name_bytes", CqlType::Blob),
            ("kind", CqlType::Text),
            ("position", CqlType::Int),
            ("type", CqlType::Text),
        ],
    );
    let all = [(keyspaces, What::Keyspaces), (tables, What::Tables), (columns, What::Columns)];
    all.into_iter()
        .map(|(table, what)| Arc::new(Described { table, what }) as Arc<dyn VirtualTable>)
        .collect()
}

impl VirtualTable for Described {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        let keyspaces = cx.schema.keyspaces.values().filter(|keyspace| is_virtual_keyspace(&keyspace.name));
        for keyspace in keyspaces {
            match self.what {
                What::Keyspaces => rows.row(&[("keyspace_name", bytes(&keyspace.name))]),
                What::Tables => keyspace.tables.values().for_each(|table| table_row(keyspace, table, rows)),
                What::Columns => {
                    for table in keyspace.tables.values() {
                        table.columns().for_each(|column| column_row(table, column, rows));
                    }
                }
            }
        }
    }
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn table_row(keyspace: &Keyspace, table: &Table, rows: &mut VirtualRows) {
    rows.row(&[
        ("keyspace_name", bytes(&keyspace.name)),
        ("table_name", bytes(&table.name)),
        ("comment", bytes(&table.options.comment)),
    ]);
}

fn column_row(table: &Table, column: &Column, rows: &mut VirtualRows) {
    let (kind, order, position) = match column.kind {
        ColumnKind::PartitionKey => ("partition_key", "none", column.position as i32),
        ColumnKind::Clustering if column.reversed => ("clustering", "desc", column.position as i32),
        ColumnKind::Clustering => ("clustering", "asc", column.position as i32),
        ColumnKind::Static => ("static", "none", -1),
        ColumnKind::Regular => ("regular", "none", -1),
    };
    rows.row(&[
        ("keyspace_name", bytes(&table.keyspace)),
        ("table_name", bytes(&table.name)),
        ("column_name", bytes(&column.name)),
        ("clustering_order", bytes(order)),
        ("column_name_bytes", bytes(&column.name)),
        ("kind", bytes(kind)),
        ("position", position.to_be_bytes().to_vec()),
        ("type", bytes(&column.ty.to_string())),
    ]);
}
