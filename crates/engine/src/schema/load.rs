//! Reads the schema from its tables.

use super::definitions::SYSTEM_SCHEMA;
use super::type_text::parse_type;
use crate::error::{Error, Result};
use helenus_model::schema::{
    Column, ColumnKind, ColumnMask, DroppedColumn, Index, IndexKind, Keyspace, MaskArgument, Schema, Table,
    TableId, TableOptions,
};
use helenus_model::types::Elements;
use helenus_model::types::{CqlType, UserType};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// A row of a schema table: values by column name, including key columns.
pub(crate) type SchemaRow = BTreeMap<Arc<str>, Vec<u8>>;

/// Adds the user keyspaces to a schema. `read` returns all rows of one `system_schema` table.
pub(crate) fn load_schema(
    mut schema: Schema,
    read: &mut dyn FnMut(&Arc<Table>) -> Result<Vec<SchemaRow>>,
) -> Result<Schema> {
    let Some(system) = schema.keyspaces.get(SYSTEM_SCHEMA).cloned() else { return Ok(schema) };
    let mut rows = |name: &str| match system.tables.get(name) {
        Some(table) => read(table),
        None => Ok(Vec::new()),
    };
    let mut keyspaces = BTreeMap::new();
    for row in rows("keyspaces")? {
        let row = Fields { table: "keyspaces", row: &row };
        let name: Arc<str> = row.text("keyspace_name")?.into();
        if super::is_system_keyspace(&name) {
            let system = schema.keyspaces.get_mut(&name);
            if let Some(system) = system.filter(|_| super::is_replicated_system_keyspace(&name)) {
                let system = Arc::make_mut(system);
                system.durable_writes = row.bool("durable_writes").unwrap_or(true);
                system.replication = row.text_map("replication");
            }
            continue;
        }
        let keyspace = Keyspace {
            name: name.clone(),
            durable_writes: row.bool("durable_writes").unwrap_or(true),
            replication: row.text_map("replication"),
            tables: BTreeMap::new(),
            types: BTreeMap::new(),
        };
        keyspaces.insert(name, keyspace);
    }
    load_types(&mut keyspaces, rows("types")?)?;
    let mut tables = load_tables(&keyspaces, rows("tables")?)?;
    load_columns(&keyspaces, &mut tables, &rows("columns")?)?;
    load_dropped(&keyspaces, &mut tables, &rows("dropped_columns")?)?;
    load_indexes(&keyspaces, &mut tables, &rows("indexes")?)?;
    load_masks(&keyspaces, &mut tables, &rows("column_masks")?)?;
    for ((keyspace, name), mut table) in tables {
        for key in [&mut table.partition_key, &mut table.clustering] {
            key.sort_by_key(|column| column.position);
        }
        table.arrange();
        if let Some(keyspace) = keyspaces.get_mut(&keyspace) {
            keyspace.tables.insert(name, Arc::new(table));
        }
    }
    schema.keyspaces.extend(keyspaces.into_iter().map(|(name, keyspace)| (name, Arc::new(keyspace))));
    Ok(schema)
}

type Keyspaces = BTreeMap<Arc<str>, Keyspace>;
type Tables = BTreeMap<(Arc<str>, Arc<str>), Table>;

/// Loads types, which may use one another: repeatedly loads those whose parts are known.
fn load_types(keyspaces: &mut Keyspaces, rows: Vec<SchemaRow>) -> Result<()> {
    let mut waiting = rows;
    loop {
        let before = waiting.len();
        let mut left = Vec::new();
        for row in waiting {
            let fields = Fields { table: "types", row: &row };
            let (keyspace, name) = (fields.text("keyspace_name")?, fields.text("type_name")?);
            let Some(keyspace) = keyspaces.get_mut(&*keyspace) else { continue };
            let types: Option<Vec<CqlType>> = fields
                .texts("field_types")
                .iter()
                .map(|text| parse_type(text, &keyspace.name, &keyspace.types))
                .collect();
            match types {
                None => left.push(row),
                Some(types) => {
                    let names = fields.texts("field_names").into_iter().map(Arc::from);
                    let ty = UserType {
                        keyspace: keyspace.name.clone(),
                        name: name.as_str().into(),
                        fields: names.zip(types).collect(),
                        frozen: false,
                    };
                    keyspace.types.insert(ty.name.clone(), Arc::new(ty));
                }
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        if left.len() == before {
            let fields = Fields { table: "types", row: &left[0] };
            return Err(fields.damaged("field_types"));
        }
        waiting = left;
    }
}

fn load_tables(keyspaces: &Keyspaces, rows: Vec<SchemaRow>) -> Result<Tables> {
    let mut tables = Tables::new();
    for row in rows {
        let row = Fields { table: "tables", row: &row };
        let (keyspace, name) = (row.text("keyspace_name")?, row.text("table_name")?);
        let Some(keyspace) = keyspaces.get(&*keyspace) else { continue };
        let id = row.get("id").and_then(|id| Uuid::from_slice(id).ok()).ok_or_else(|| row.damaged("id"))?;
        let table = Table {
            options: table_options(&row),
            flags: row.texts("flags"),
            ..Table::new((&keyspace.name, &name), TableId(id), [])
        };
        tables.insert((keyspace.name.clone(), table.name.clone()), table);
    }
    Ok(tables)
}

fn table_options(row: &Fields<'_>) -> TableOptions {
    let default = TableOptions::default();
    let text = |name, default| row.text(name).unwrap_or(default);
    let int = |name, default| row.int(name).unwrap_or(default);
    TableOptions {
        additional_write_policy: text("additional_write_policy", default.additional_write_policy),
        allow_auto_snapshot: row.bool("allow_auto_snapshot").unwrap_or(true),
        bloom_filter_fp_chance: row
            .double("bloom_filter_fp_chance")
            .unwrap_or(default.bloom_filter_fp_chance),
        caching: row.text_map("caching"),
        cdc: row.bool("cdc").unwrap_or(false),
        comment: text("comment", String::new()),
        compaction: row.text_map("compaction"),
        compression: row.text_map("compression"),
        crc_check_chance: row.double("crc_check_chance").unwrap_or(1.0),
        default_time_to_live_s: int("default_time_to_live", 0),
        extensions: row.blob_map("extensions"),
        gc_grace_seconds: int("gc_grace_seconds", default.gc_grace_seconds),
        incremental_backups: row.bool("incremental_backups").unwrap_or(true),
        max_index_interval: int("max_index_interval", default.max_index_interval),
        memtable: row.text("memtable").ok(),
        memtable_flush_period_in_ms: int("memtable_flush_period_in_ms", 0),
        min_index_interval: int("min_index_interval", default.min_index_interval),
        read_repair: text("read_repair", default.read_repair),
        speculative_retry: text("speculative_retry", default.speculative_retry),
    }
}

fn load_columns(keyspaces: &Keyspaces, tables: &mut Tables, rows: &[SchemaRow]) -> Result<()> {
    for row in rows {
        let row = Fields { table: "columns", row };
        let Some((keyspace, table)) = row.find_table(keyspaces, tables)? else { continue };
        let kind = row.kind()?;
        let column = Column {
            name: row.text("column_name")?.into(),
            kind,
            position: row.int("position").unwrap_or(0).max(0) as usize,
            ty: row.ty(keyspace)?,
            reversed: row.text("clustering_order").is_ok_and(|order| order.eq_ignore_ascii_case("desc")),
            id: Table::UNNUMBERED,
        };
        match kind {
            ColumnKind::PartitionKey => table.partition_key.push(column),
            ColumnKind::Clustering => table.clustering.push(column),
            ColumnKind::Static => table.statics.push(column),
            ColumnKind::Regular => table.regulars.push(column),
        }
    }
    Ok(())
}

fn load_dropped(keyspaces: &Keyspaces, tables: &mut Tables, rows: &[SchemaRow]) -> Result<()> {
    for row in rows {
        let row = Fields { table: "dropped_columns", row };
        let Some((keyspace, table)) = row.find_table(keyspaces, tables)? else { continue };
        let dropped_ms = row.get("dropped_time").and_then(|value| value.first_chunk::<8>());
        let dropped_ms = i64::from_be_bytes(*dropped_ms.ok_or_else(|| row.damaged("dropped_time"))?);
        let name: Arc<str> = row.text("column_name")?.into();
        // Cassandra 3.0 and 3.11 have no such column. Like Cassandra 5, this takes their static columns for regular
        // ones.
        let kind = if row.get("kind").is_some() { row.kind()? } else { ColumnKind::Regular };
        let dropped = DroppedColumn {
            name: name.clone(),
            ty: row.ty(keyspace)?,
            kind,
            // The column stores milliseconds: everything written in the millisecond of the drop counts as written
            // before it.
            dropped_us: dropped_ms.saturating_mul(1000).saturating_add(999),
        };
        table.dropped.insert(name, dropped);
    }
    Ok(())
}

fn load_masks(keyspaces: &Keyspaces, tables: &mut Tables, rows: &[SchemaRow]) -> Result<()> {
    for row in rows {
        let row = Fields { table: "column_masks", row };
        let Some((keyspace, table)) = row.find_table(keyspaces, tables)? else { continue };
        let (types, values) = (row.texts("function_argument_types"), row.texts("function_argument_values"));
        let nulls: Vec<bool> = Elements::of_list(row.get("function_argument_nulls").unwrap_or_default())
            .map(|null| null == Some(&[1][..]))
            .collect();
        if types.len() != values.len() || types.len() != nulls.len() {
            return Err(row.damaged("function_argument_types"));
        }
        let mut arguments = Vec::new();
        for ((ty, value), is_null) in types.iter().zip(values).zip(nulls) {
            let ty = parse_type(ty, &keyspace.name, &keyspace.types)
                .ok_or_else(|| row.damaged("function_argument_types"))?;
            arguments.push(MaskArgument { ty, value: (!is_null).then_some(value) });
        }
        let mask = ColumnMask {
            keyspace: row.text("function_keyspace")?.into(),
            function: row.text("function_name")?.into(),
            arguments,
        };
        table.masks.insert(row.text("column_name")?.into(), mask);
    }
    Ok(())
}

fn load_indexes(keyspaces: &Keyspaces, tables: &mut Tables, rows: &[SchemaRow]) -> Result<()> {
    for row in rows {
        let row = Fields { table: "indexes", row };
        let Some((_, table)) = row.find_table(keyspaces, tables)? else { continue };
        let name: Arc<str> = row.text("index_name")?.into();
        let kind = IndexKind::of_name(&row.text("kind")?).ok_or_else(|| row.damaged("kind"))?;
        let made_us = row.get(WRITE_TIME).and_then(|value| value.first_chunk::<8>());
        let made_us = made_us.map_or(0, |value| i64::from_be_bytes(*value));
        let id = index_id(table.id, &name, made_us);
        let index = Index { name: name.clone(), id, kind, options: row.text_map("options") };
        table.indexes.insert(name, Arc::new(index));
    }
    Ok(())
}

/// The id of an index's hidden table, made from its table, its name, and the timestamp of its schema row. So an index
/// created again under the same name does not find the entries of the old one.
pub fn index_id(table: TableId, name: &str, made_us: i64) -> TableId {
    let mut bytes = table.0.as_bytes().to_vec();
    bytes.extend_from_slice(&made_us.to_be_bytes());
    bytes.extend_from_slice(name.as_bytes());
    TableId(uuid::Builder::from_md5_bytes(md5::compute(&bytes).0).into_uuid())
}

/// The key of a `SchemaRow` for the row's timestamp: no column has this name.
pub(crate) const WRITE_TIME: &str = "writetime()";

/// A row with typed access by column name.
struct Fields<'a> {
    table: &'static str,
    row: &'a SchemaRow,
}

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&[u8]> {
        self.row.get(name).map(Vec::as_slice)
    }

    fn damaged(&self, column: &str) -> Error {
        let part =
            |name| self.row.get(name).map(|value: &Vec<u8>| String::from_utf8_lossy(value).into_owned());
        Error::SchemaDamaged {
            table: self.table,
            column: column.to_string(),
            keyspace: part("keyspace_name").unwrap_or_default(),
            name: part("table_name").or_else(|| part("type_name")).unwrap_or_default(),
        }
    }

    fn text(&self, name: &str) -> Result<String> {
        let bytes = self.get(name).ok_or_else(|| self.damaged(name))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.damaged(name))
    }

    fn bool(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(<[u8]>::first).map(|byte| *byte != 0)
    }

    fn int(&self, name: &str) -> Option<i32> {
        self.get(name)?.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
    }

    fn double(&self, name: &str) -> Option<f64> {
        self.get(name)?.first_chunk::<8>().map(|bytes| f64::from_be_bytes(*bytes))
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let elements = Elements::of_list(self.get(name).unwrap_or_default());
        elements.flatten().map(|value| String::from_utf8_lossy(value).into_owned()).collect()
    }

    fn blob_map(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let values: Vec<Vec<u8>> =
            Elements::of_map(self.get(name).unwrap_or_default()).flatten().map(<[u8]>::to_vec).collect();
        let pair = |pair: &[Vec<u8>]| match pair {
            [key, value] => Some((String::from_utf8_lossy(key).into_owned(), value.clone())),
            _ => None,
        };
        values.chunks(2).filter_map(pair).collect()
    }

    fn text_map(&self, name: &str) -> BTreeMap<String, String> {
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        self.blob_map(name).into_iter().map(|(key, value)| (key, text(value))).collect()
    }

    fn kind(&self) -> Result<ColumnKind> {
        Ok(match &*self.text("kind")? {
            "partition_key" => ColumnKind::PartitionKey,
            "clustering" => ColumnKind::Clustering,
            "static" => ColumnKind::Static,
            "regular" => ColumnKind::Regular,
            _ => return Err(self.damaged("kind")),
        })
    }

    fn ty(&self, keyspace: &Keyspace) -> Result<CqlType> {
        let text = self.text("type")?;
        parse_type(&text, &keyspace.name, &keyspace.types).ok_or_else(|| self.damaged("type"))
    }

    fn find_table<'k, 't>(
        &self,
        keyspaces: &'k Keyspaces,
        tables: &'t mut Tables,
    ) -> Result<Option<(&'k Keyspace, &'t mut Table)>> {
        let Some(keyspace) = keyspaces.get(&*self.text("keyspace_name")?) else { return Ok(None) };
        let table = tables.get_mut(&(keyspace.name.clone(), self.text("table_name")?.into()));
        Ok(table.map(|table| (keyspace, table)))
    }
}
