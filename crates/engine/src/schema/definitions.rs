//! Definitions of the system keyspaces' tables, as in Cassandra 5.0.9.
//!
//! `tests/conformance/record_system_tables.py` recorded `system_tables.txt` from a running node, and describes its
//! fields. Ids follow Cassandra's rule: the name-based (MD5) UUID of keyspace and table name.

use helenus_model::schema::{Column, ColumnKind, Keyspace, Schema, Table, TableId, TableOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Name of the keyspace that contains the schema.
pub(super) const SYSTEM_SCHEMA: &str = "system_schema";

/// Name of the table of keyspace `system` that records which indexes are built.
pub(crate) const BUILT_TABLE: &str = "IndexInfo";

/// The definitions, one table in each line.
const TABLES: &str = include_str!("system_tables.txt");

/// Replication of the system keyspaces in a new directory, as in Cassandra: class and factor.
const KEYSPACES: [(&str, &str, Option<&str>); 5] = [
    ("system", "LocalStrategy", None),
    (SYSTEM_SCHEMA, "LocalStrategy", None),
    ("system_auth", "SimpleStrategy", Some("1")),
    ("system_distributed", "SimpleStrategy", Some("3")),
    ("system_traces", "SimpleStrategy", Some("2")),
];

/// Whether a keyspace belongs to the server. Users may read it; `is_replicated_system_keyspace` describes what they may
/// change.
pub fn is_system_keyspace(name: &str) -> bool {
    is_replicated_system_keyspace(name)
        || matches!(name, "system" | "system_schema" | "system_views" | "system_virtual_schema")
}

/// Whether a keyspace belongs to the server and would be replicated in a cluster: users may change its replication and
/// its rows, but not its tables.
pub fn is_replicated_system_keyspace(name: &str) -> bool {
    matches!(name, "system_auth" | "system_distributed" | "system_traces")
}

/// The schema of a new directory.
pub(crate) fn system_schema() -> Schema {
    let keyspaces =
        system_keyspaces().into_iter().map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace)));
    Schema { keyspaces: keyspaces.collect(), version: Uuid::from_u128(1), epoch: 0 }
}

/// The system keyspaces with their tables.
pub fn system_keyspaces() -> Vec<Keyspace> {
    let mut keyspaces: Vec<Keyspace> = KEYSPACES
        .iter()
        .map(|(name, class, factor)| {
            let class = ("class".to_owned(), format!("org.apache.cassandra.locator.{class}"));
            let factor = factor.map(|factor| ("replication_factor".to_owned(), factor.to_owned()));
            Keyspace {
                name: (*name).into(),
                durable_writes: true,
                replication: std::iter::once(class).chain(factor).collect(),
                tables: BTreeMap::new(),
                types: BTreeMap::new(),
            }
        })
        .collect();
    for table in TABLES.lines().filter_map(table) {
        if let Some(keyspace) = keyspaces.iter_mut().find(|keyspace| keyspace.name == table.keyspace) {
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
        }
    }
    keyspaces
}

/// Parses the table of one line.
fn table(line: &str) -> Option<Table> {
    let mut fields = line.split('\t');
    let mut field = || fields.next();
    let (keyspace, name, comment) = (field()?, field()?, field()?);
    let (partition_columns, clustering_columns): (usize, usize) =
        (field()?.parse().ok()?, field()?.parse().ok()?);
    let mut columns = Vec::new();
    for (index, column) in field()?.split(';').enumerate() {
        let (column, ty) = column.split_once(' ')?;
        let kind = match index {
            _ if index < partition_columns => ColumnKind::PartitionKey,
            _ if index < partition_columns + clustering_columns => ColumnKind::Clustering,
            _ => ColumnKind::Regular,
        };
        columns.push(Column::new(column, kind, super::parse_type(ty, "system", &BTreeMap::new())?));
    }
    let mut table = Table::new((keyspace, name), TableId(name_based_id(keyspace, name)), columns);
    table.options = options(comment, field()?)?;
    Some(table)
}

/// Parses options of the form `name=value`; those of compaction are `compaction.name=value`.
fn options(comment: &str, text: &str) -> Option<TableOptions> {
    let mut options = TableOptions { comment: comment.into(), ..TableOptions::default() };
    let mut compaction = BTreeMap::from(
        [("class", "SizeTieredCompactionStrategy"), ("max_threshold", "32"), ("min_threshold", "4")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    for option in text.split(' ') {
        let (name, value) = option.split_once('=')?;
        match name {
            "gc_grace_seconds" => options.gc_grace_seconds = value.parse().ok()?,
            "memtable_flush_period_in_ms" => options.memtable_flush_period_in_ms = value.parse().ok()?,
            "default_time_to_live" => options.default_time_to_live_s = value.parse().ok()?,
            _ => _ = compaction.insert(name.strip_prefix("compaction.")?.to_owned(), value.to_owned()),
        }
    }
    if let Some(class) = compaction.get_mut("class") {
        class.insert_str(0, "org.apache.cassandra.db.compaction.");
    }
    options.compaction = compaction;
    Some(options)
}

/// `UUID.nameUUIDFromBytes` of keyspace and table name.
fn name_based_id(keyspace: &str, table: &str) -> Uuid {
    let mut name = keyspace.as_bytes().to_vec();
    name.extend_from_slice(table.as_bytes());
    let mut digest = md5::compute(&name).0;
    digest[6] = (digest[6] & 0x0F) | 0x30;
    digest[8] = (digest[8] & 0x3F) | 0x80;
    Uuid::from_bytes(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_a_cassandra_node() {
        let expected = [
            ("system_schema", "tables", "afddfb9d-bc1e-3068-8056-eed6c302ba09"),
            ("system_schema", "columns", "24101c25-a2ae-3af7-87c1-b40ee1aca33f"),
            ("system", "local", "7ad54392-bcdd-35a6-8417-4e047860b377"),
            ("system_traces", "events", "8826e8e9-e16a-3728-8753-3bc1fc713c25"),
        ];
        for (keyspace, table, id) in expected {
            let found = system_keyspaces().into_iter().find(|ks| &*ks.name == keyspace).unwrap();
            assert_eq!(found.tables[table].id.0.to_string(), id, "{keyspace}.{table}");
        }
    }

    #[test]
    fn every_line_is_a_table_with_all_its_columns() {
        let keyspaces = system_keyspaces();
        let tables = keyspaces.iter().map(|keyspace| keyspace.tables.len()).sum::<usize>();
        assert_eq!(tables, TABLES.lines().count());
        for line in TABLES.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let keyspace = keyspaces.iter().find(|keyspace| &*keyspace.name == fields[0]).unwrap();
            let columns = keyspace.tables[fields[1]].columns().count();
            assert_eq!(columns, fields[5].split(';').count(), "{line}");
        }
    }
}
