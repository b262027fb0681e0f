//! Computes the difference of two schemas: as a mutation of `system_schema`, and as the change events for clients.

use super::definitions::{BUILT_TABLE, SYSTEM_SCHEMA};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::schema::{Column, ColumnKind, Keyspace, Schema, Table};
use helenus_model::types::{self, CqlType};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A change of one keyspace, table or type, as events and results report it to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The kind of change.
    pub kind: SchemaChangeKind,
    /// Its keyspace.
    pub keyspace: Arc<str>,
    /// The table or type; `None` for the keyspace itself.
    pub name: Option<Arc<str>>,
    /// Whether `name` is a type.
    pub is_type: bool,
}

/// Kinds of schema changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChangeKind {
    /// It is new.
    Created,
    /// It is different.
    Updated,
    /// It is gone.
    Dropped,
}

/// The mutation that turns `old` into `new`, and the list of changes.
pub fn changes_between(old: &Schema, new: &Schema, timestamp_us: i64) -> (Mutation, Vec<SchemaChange>) {
    let mut writer = Writer {
        timestamp_us,
        system: new.keyspaces.get(SYSTEM_SCHEMA).cloned(),
        built: new.table("system", BUILT_TABLE).cloned(),
        updates: BTreeMap::new(),
        changes: Vec::new(),
    };
    let names: std::collections::BTreeSet<_> = old.keyspaces.keys().chain(new.keyspaces.keys()).collect();
    for name in names {
        match (old.keyspaces.get(name), new.keyspaces.get(name)) {
            (Some(before), Some(after)) if Arc::ptr_eq(before, after) => {}
            (before, Some(after)) => writer.keyspace(before.map(|k| &**k), after),
            (Some(before), None) => writer.drop_keyspace(before),
            (None, None) => {}
        }
    }
    let updates = writer.updates.into_values().collect();
    (Mutation { updates }, writer.changes)
}

struct Writer {
    timestamp_us: i64,
    system: Option<Arc<Keyspace>>,
    /// The table that records which indexes are built.
    built: Option<Arc<Table>>,
    updates: BTreeMap<(String, Arc<str>), PartitionUpdate>,
    changes: Vec<SchemaChange>,
}

type Values<'a> = Vec<(&'a str, Vec<u8>)>;

impl Writer {
    fn keyspace(&mut self, before: Option<&Keyspace>, after: &Keyspace) {
        let same = before
            .is_some_and(|b| b.durable_writes == after.durable_writes && b.replication == after.replication);
        if !same {
            let values = vec![
                ("durable_writes", vec![u8::from(after.durable_writes)]),
                ("replication", text_map(&after.replication)),
            ];
            self.put("keyspaces", &after.name, &[], values);
            self.tell(before.is_some(), &after.name, None, false);
        }
        let none = BTreeMap::new();
        let types = before.map_or(&none, |b| &b.types);
        for name in types.keys().filter(|name| !after.types.contains_key(*name)) {
            self.delete_row("types", &after.name, name);
            self.dropped(&after.name, Some(name), true);
        }
        for (name, ty) in &after.types {
            if types.get(name) != Some(ty) {
                let texts = |texts: Vec<String>| pack_texts(texts.iter().map(String::as_str));
                let values = vec![
                    ("field_names", texts(ty.fields.iter().map(|(name, _)| name.to_string()).collect())),
                    ("field_types", texts(ty.fields.iter().map(|(_, ty)| type_text(ty, after)).collect())),
                ];
                self.put("types", &after.name, &[name], values);
                self.tell(types.contains_key(name), &after.name, Some(name), true);
            }
        }
        let none = BTreeMap::new();
        let tables = before.map_or(&none, |b| &b.tables);
        for (name, table) in tables.iter().filter(|(name, _)| !after.tables.contains_key(*name)) {
            self.drop_table(&after.name, name);
            table.indexes.keys().for_each(|index| self.forget_built(&after.name, index));
            self.dropped(&after.name, Some(name), false);
        }
        for (name, table) in &after.tables {
            match tables.get(name) {
                Some(before) if Arc::ptr_eq(before, table) || before == table => {}
                // The table was dropped and created again within one change: nothing of the old one may remain.
                Some(before) if before.id != table.id => {
                    self.table(None, table, after);
                    self.tell(true, &after.name, Some(name), false);
                }
                before => {
                    self.table(before.map(|b| &**b), table, after);
                    self.tell(before.is_some(), &after.name, Some(name), false);
                }
            }
        }
    }

    fn drop_keyspace(&mut self, keyspace: &Keyspace) {
        let Some(system) = self.system.clone() else { return };
        for table in system.tables.values() {
            let deletion = self.deletion();
            self.changes_of(table, &keyspace.name).delete_partition(deletion);
        }
        if let Some(built) = self.built.clone() {
            let deletion = self.deletion();
            self.changes_of(&built, &keyspace.name).delete_partition(deletion);
        }
        self.dropped(&keyspace.name, None, false);
    }

    fn table(&mut self, before: Option<&Table>, table: &Table, keyspace: &Keyspace) {
        self.put("tables", &table.keyspace, &[&table.name], table_values(before, table));
        for column in table.columns() {
            if before.and_then(|b| b.column(&column.name)) != Some(column) {
                let values = column_values(column, keyspace);
                self.put("columns", &table.keyspace, &[&table.name, &column.name], values);
            }
        }
        for column in before.into_iter().flat_map(Table::columns) {
            if table.column(&column.name).is_none() {
                self.delete_of_table("columns", table, &column.name);
            }
        }
        self.masks(before, table);
        let none = BTreeMap::new();
        let known = before.map_or(&none, |before| &before.indexes);
        for (name, index) in &table.indexes {
            if known.get(name) != Some(index) {
                let values = vec![
                    ("kind", index.kind.as_str().as_bytes().to_vec()),
                    ("options", text_map(&index.options)),
                ];
                self.put("indexes", &table.keyspace, &[&table.name, name], values);
            }
        }
        for name in known.keys().filter(|name| !table.indexes.contains_key(*name)) {
            self.delete_of_table("indexes", table, name);
            self.forget_built(&table.keyspace, name);
        }
        for (name, dropped) in &table.dropped {
            if before.and_then(|b| b.dropped.get(name)) != Some(dropped) {
                let values = vec![
                    ("dropped_time", (dropped.dropped_us / 1000).to_be_bytes().to_vec()),
                    ("kind", kind_text(dropped.kind).as_bytes().to_vec()),
                    ("type", type_text(&dropped.ty, keyspace).into_bytes()),
                ];
                self.put("dropped_columns", &table.keyspace, &[&table.name, name], values);
            }
        }
    }

    fn masks(&mut self, before: Option<&Table>, table: &Table) {
        let none = BTreeMap::new();
        let known = before.map_or(&none, |before| &before.masks);
        for (column, mask) in table.masks.iter().filter(|(column, mask)| known.get(*column) != Some(*mask)) {
            let arguments = || mask.arguments.iter();
            let types: Vec<String> = arguments().map(|argument| argument.ty.to_string()).collect();
            let values = arguments().map(|argument| argument.value.as_deref().unwrap_or_default());
            let nulls: Vec<[u8; 1]> =
                arguments().map(|argument| [u8::from(argument.value.is_none())]).collect();
            let mut packed_nulls = Vec::new();
            types::pack(nulls.len(), nulls.iter().map(|null| Some(&null[..])), &mut packed_nulls);
            let values = vec![
                ("function_keyspace", mask.keyspace.as_bytes().to_vec()),
                ("function_name", mask.function.as_bytes().to_vec()),
                ("function_argument_types", pack_texts(types.iter().map(String::as_str))),
                ("function_argument_values", pack_texts(values)),
                ("function_argument_nulls", packed_nulls),
            ];
            self.put("column_masks", &table.keyspace, &[&table.name, column], values);
        }
        for column in known.keys().filter(|column| !table.masks.contains_key(*column)) {
            self.delete_of_table("column_masks", table, column);
        }
    }

    fn drop_table(&mut self, keyspace: &Arc<str>, name: &Arc<str>) {
        self.delete_row("tables", keyspace, name);
        let deletion = self.deletion();
        for of_table in ["columns", "dropped_columns", "indexes", "triggers", "column_masks"] {
            let Some(table) = self.system_table(of_table) else { continue };
            let prefix = [Some(name.as_bytes())];
            self.changes_of(&table, keyspace).delete_range((&prefix, true), (&prefix, false), deletion);
        }
    }

    /// Deletes the record that an index is built, because the index is dropped.
    fn forget_built(&mut self, keyspace: &Arc<str>, index: &Arc<str>) {
        let Some(built) = self.built.clone() else { return };
        let deletion = self.deletion();
        let clustering = [Some(index.as_bytes())];
        let changes = self.changes_of(&built, keyspace);
        changes.row(clustering.into_iter(), (Liveness::NONE, deletion), &[], |_| {});
    }

    /// Deletes the row of a name within a table.
    fn delete_of_table(&mut self, of_table: &str, table: &Table, name: &Arc<str>) {
        let deletion = self.deletion();
        let Some(found) = self.system_table(of_table) else { return };
        let clustering = [Some(table.name.as_bytes()), Some(name.as_bytes())];
        let changes = self.changes_of(&found, &table.keyspace);
        changes.row(clustering.into_iter(), (Liveness::NONE, deletion), &[], |_| {});
    }

    fn delete_row(&mut self, of_table: &str, keyspace: &Arc<str>, name: &Arc<str>) {
        let deletion = self.deletion();
        let Some(table) = self.system_table(of_table) else { return };
        let clustering = [Some(name.as_bytes())];
        let changes = self.changes_of(&table, keyspace);
        changes.row(clustering.into_iter(), (Liveness::NONE, deletion), &[], |_| {});
    }

    /// Writes a complete row.
    fn put(&mut self, of_table: &str, keyspace: &Arc<str>, clustering: &[&Arc<str>], values: Values<'_>) {
        let Some(table) = self.system_table(of_table) else { return };
        let timestamp_us = self.timestamp_us;
        let mut cells: Vec<_> = values
            .into_iter()
            .filter_map(|(name, value)| table.column(name).map(|column| (column.id, value)))
            .collect();
        cells.sort_by_key(|(id, _)| *id);
        let clustering = clustering.iter().map(|value| Some(value.as_bytes()));
        let live = (Liveness::at(timestamp_us), DeletionTime::LIVE);
        self.changes_of(&table, keyspace).row(clustering, live, &[], |row| {
            for (column, value) in &cells {
                let cell = Cell {
                    column: *column,
                    ttl_s: 0,
                    timestamp_us,
                    local_deletion_s: NO_EXPIRY,
                    path: Span::NULL,
                    value: Span::EMPTY,
                };
                row.cell(&cell, None, value);
            }
        });
    }

    fn system_table(&self, name: &str) -> Option<Arc<Table>> {
        self.system.as_ref()?.tables.get(name).cloned()
    }

    fn changes_of(&mut self, table: &Arc<Table>, keyspace: &Arc<str>) -> &mut Changes {
        let update = self.updates.entry((table.name.to_string(), keyspace.clone()));
        let key = keyspace.as_bytes().to_vec();
        &mut update
            .or_insert_with(|| PartitionUpdate { table: table.clone(), key, changes: Changes::default() })
            .changes
    }

    /// A deletion of everything written before this change, but not of what it writes: its timestamp is one microsecond
    /// less.
    fn deletion(&self) -> DeletionTime {
        DeletionTime { timestamp_us: self.timestamp_us - 1, local_s: self.timestamp_us / 1_000_000 }
    }

    fn tell(&mut self, existed: bool, keyspace: &Arc<str>, name: Option<&Arc<str>>, is_type: bool) {
        let kind = if existed { SchemaChangeKind::Updated } else { SchemaChangeKind::Created };
        let change = SchemaChange { kind, keyspace: keyspace.clone(), name: name.cloned(), is_type };
        self.changes.push(change);
    }

    fn dropped(&mut self, keyspace: &Arc<str>, name: Option<&Arc<str>>, is_type: bool) {
        let kind = SchemaChangeKind::Dropped;
        self.changes.push(SchemaChange { kind, keyspace: keyspace.clone(), name: name.cloned(), is_type });
    }
}

/// The values of a table's row. `before`: the table as the row has it.
fn table_values<'t>(before: Option<&Table>, table: &'t Table) -> Values<'t> {
    let options = &table.options;
    let int = |value: i32| value.to_be_bytes().to_vec();
    let double = |value: f64| value.to_be_bytes().to_vec();
    let text = |value: &str| value.as_bytes().to_vec();
    let mut flags: Vec<&str> = table.flags.iter().map(String::as_str).collect();
    flags.sort_unstable();
    let mut values = vec![
        ("id", table.id.0.as_bytes().to_vec()),
        ("flags", pack_texts(flags.into_iter())),
        ("additional_write_policy", text(&options.additional_write_policy)),
        ("bloom_filter_fp_chance", double(options.bloom_filter_fp_chance)),
        ("caching", text_map(&options.caching)),
        ("comment", text(&options.comment)),
        ("compaction", text_map(&options.compaction)),
        ("compression", text_map(&options.compression)),
        ("crc_check_chance", double(options.crc_check_chance)),
        ("dclocal_read_repair_chance", double(0.0)),
        ("default_time_to_live", int(options.default_time_to_live_s)),
        ("extensions", blob_map(&options.extensions)),
        ("gc_grace_seconds", int(options.gc_grace_seconds)),
        ("max_index_interval", int(options.max_index_interval)),
        ("memtable_flush_period_in_ms", int(options.memtable_flush_period_in_ms)),
        ("min_index_interval", int(options.min_index_interval)),
        ("read_repair", text(&options.read_repair)),
        ("read_repair_chance", double(0.0)),
        ("speculative_retry", text(&options.speculative_retry)),
    ];
    // As in Cassandra, these options are written only if they differ from the default, now or before.
    let before = before.map(|before| &before.options);
    if options.cdc || before.is_some_and(|before| before.cdc) {
        values.push(("cdc", vec![u8::from(options.cdc)]));
    }
    if !options.incremental_backups || before.is_some_and(|before| !before.incremental_backups) {
        values.push(("incremental_backups", vec![u8::from(options.incremental_backups)]));
    }
    if !options.allow_auto_snapshot || before.is_some_and(|before| !before.allow_auto_snapshot) {
        values.push(("allow_auto_snapshot", vec![u8::from(options.allow_auto_snapshot)]));
    }
    if let Some(memtable) = &options.memtable {
        values.push(("memtable", text(memtable)));
    }
    values
}

fn type_text(ty: &CqlType, keyspace: &Keyspace) -> String {
    super::type_text::type_text(ty, &keyspace.name, &keyspace.types)
}

fn column_values<'c>(column: &'c Column, keyspace: &Keyspace) -> Values<'c> {
    let position: i32 = match column.kind {
        ColumnKind::PartitionKey | ColumnKind::Clustering => column.position as i32,
        ColumnKind::Static | ColumnKind::Regular => -1,
    };
    let order = match (column.kind, column.reversed) {
        (ColumnKind::Clustering, false) => "asc",
        (ColumnKind::Clustering, true) => "desc",
        _ => "none",
    };
    vec![
        ("clustering_order", order.as_bytes().to_vec()),
        ("column_name_bytes", column.name.as_bytes().to_vec()),
        ("kind", kind_text(column.kind).as_bytes().to_vec()),
        ("position", position.to_be_bytes().to_vec()),
        ("type", type_text(&column.ty, keyspace).into_bytes()),
    ]
}

pub(super) fn kind_text(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::PartitionKey => "partition_key",
        ColumnKind::Clustering => "clustering",
        ColumnKind::Static => "static",
        ColumnKind::Regular => "regular",
    }
}

fn pack_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let texts: Vec<&str> = texts.collect();
    let mut out = Vec::new();
    types::pack(texts.len(), texts.iter().map(|text| Some(text.as_bytes())), &mut out);
    out
}

fn text_map(map: &BTreeMap<String, String>) -> Vec<u8> {
    let mut out = Vec::new();
    let values = map.iter().flat_map(|(k, v)| [Some(k.as_bytes()), Some(v.as_bytes())]);
    types::pack(map.len(), values, &mut out);
    out
}

fn blob_map(map: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    let values = map.iter().flat_map(|(k, v)| [Some(k.as_bytes()), Some(&v[..])]);
    types::pack(map.len(), values, &mut out);
    out
}
