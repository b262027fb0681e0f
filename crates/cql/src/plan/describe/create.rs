//! The statements that make things of the schema again (`TableMetadata.toCqlString` and its like).

use crate::plan::select::is_virtual_keyspace;
use helenus_model::schema::{
    CLASS_OPTION, Column, ColumnKind, Index, IndexKind, Keyspace, TARGET_OPTION, Table, TableOptions,
};
use helenus_model::types::{CqlType, UserType, quote_identifier, to_cql_literal};
use std::borrow::Cow;
use std::fmt::Write as _;

const LOCATORS: &str = "org.apache.cassandra.locator.";

/// CREATE KEYSPACE.
pub(super) fn keyspace(keyspace: &Keyspace) -> String {
    let name = quote_identifier(&keyspace.name);
    if is_virtual_keyspace(&keyspace.name) {
        return format!(
            "/*\nWarning: Keyspace {name} is a virtual keyspace and cannot be recreated with CQL.\nStructure, for reference:\nVIRTUAL KEYSPACE {name};\n*/"
        );
    }
    let class =
        keyspace.replication.get("class").map_or("", |class| class.strip_prefix(LOCATORS).unwrap_or(class));
    let mut replication = format!("{{'class': {}", quoted(class));
    for (key, value) in keyspace.replication.iter().filter(|(key, _)| *key != "class") {
        _ = write!(replication, ", {}: {}", quoted(key), quoted(value));
    }
    // Two spaces, as Cassandra writes it.
    format!(
        "CREATE KEYSPACE {name} WITH replication = {replication}}}  AND durable_writes = {};",
        keyspace.durable_writes
    )
}

/// CREATE TYPE.
pub(super) fn user_type(ty: &UserType) -> String {
    let fields: Vec<String> =
        ty.fields.iter().map(|(name, ty)| format!("    {} {ty}", quote_identifier(name))).collect();
    format!(
        "CREATE TYPE {}.{} (\n{}\n);",
        quote_identifier(&ty.keyspace),
        quote_identifier(&ty.name),
        fields.join(",\n")
    )
}

/// CREATE TABLE. `internals`: with its id, and what brings its dropped columns back.
pub(super) fn table(table: &Table, internals: bool) -> String {
    let is_virtual = is_virtual_keyspace(&table.keyspace);
    let name = full_name(table);
    let mut out = String::new();
    if is_virtual {
        _ = write!(
            out,
            "/*\nWarning: Table {name} is a virtual table and cannot be recreated with CQL.\nStructure, for reference:\n"
        );
    }
    _ = writeln!(out, "{} TABLE {name} (", if is_virtual { "VIRTUAL" } else { "CREATE" });
    columns(table, internals, &mut out);
    out.push_str(") WITH ");
    if internals {
        _ = write!(out, "ID = {}\n    AND ", table.id.0);
    }
    if !table.clustering.is_empty() {
        let order = |column: &Column| {
            format!("{} {}", quote_identifier(&column.name), if column.reversed { "DESC" } else { "ASC" })
        };
        let order: Vec<String> = table.clustering.iter().map(order).collect();
        _ = write!(out, "CLUSTERING ORDER BY ({})\n    AND ", order.join(", "));
    }
    if is_virtual {
        _ = write!(out, "comment = {};\n*/", quoted(&table.options.comment));
    } else {
        out.push_str(&options(&table.options).join("\n    AND "));
        out.push(';');
    }
    if internals {
        dropped(table, &mut out);
    }
    out
}

/// CREATE INDEX.
pub(super) fn index(table: &Table, index: &Index) -> String {
    let custom = if index.kind == IndexKind::Custom { "CUSTOM " } else { "" };
    let (name, target) = (quote_identifier(&index.name), index.target());
    let mut out = format!("CREATE {custom}INDEX {name} ON {} ({target})", full_name(table));
    if index.kind == IndexKind::Custom {
        let class = index.options.get(CLASS_OPTION).map_or("", String::as_str);
        _ = write!(out, " USING {}", quoted(class));
        let own = index.options.iter().filter(|(key, _)| *key != CLASS_OPTION && *key != TARGET_OPTION);
        let own: Vec<String> =
            own.map(|(key, value)| format!("{}: {}", quoted(key), quoted(value))).collect();
        if !own.is_empty() {
            _ = write!(out, " WITH OPTIONS = {{{}}}", own.join(", "));
        }
    }
    out.push(';');
    out
}

fn full_name(table: &Table) -> String {
    format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name))
}

fn columns(table: &Table, internals: bool, out: &mut String) {
    let has_single_key = table.partition_key.len() == 1 && table.clustering.is_empty();
    let is_readded = |column: &Column| internals && table.dropped.contains_key(&column.name);
    let mut lines: Vec<String> = Vec::new();
    for column in table.columns().filter(|column| !is_readded(column)) {
        let mut line = definition(&column.name, &column.ty, column.kind);
        line.push_str(&masked(table, &column.name));
        if has_single_key && column.kind == ColumnKind::PartitionKey {
            line.push_str(" PRIMARY KEY");
        }
        lines.push(line);
    }
    if internals {
        let dropped = table.dropped.values();
        lines.extend(dropped.map(|column| definition(&column.name, &column.ty, column.kind)));
    }
    if !has_single_key {
        let names = |columns: &[Column]| -> Vec<Cow<'_, str>> {
            columns.iter().map(|column| Cow::Owned(quote_identifier(&column.name).into_owned())).collect()
        };
        let partition = names(&table.partition_key).join(", ");
        let partition = if table.partition_key.len() > 1 { format!("({partition})") } else { partition };
        let mut key = vec![Cow::Owned(partition)];
        key.extend(names(&table.clustering));
        lines.push(format!("    PRIMARY KEY ({})", key.join(", ")));
    }
    out.push_str(&lines.join(",\n"));
    out.push('\n');
}

fn definition(name: &str, ty: &CqlType, kind: ColumnKind) -> String {
    let is_static = if kind == ColumnKind::Static { " static" } else { "" };
    format!("    {} {ty}{is_static}", quote_identifier(name))
}

/// What hides a column's values, if something does.
fn masked(table: &Table, column: &str) -> String {
    table.masks.get(column).map_or_else(String::new, |mask| format!(" MASKED WITH {mask}"))
}

fn options(options: &TableOptions) -> Vec<String> {
    let real = |value: f64| to_cql_literal(&CqlType::Double, Some(&value.to_be_bytes()));
    let map = |pairs: &mut dyn Iterator<Item = (&String, String)>| {
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("{}: {value}", quoted(key))).collect();
        format!("{{{}}}", pairs.join(", "))
    };
    let hex = |bytes: &[u8]| bytes.iter().fold("0x".to_owned(), |all, byte| all + &format!("{byte:02x}"));
    let texts = |pairs: &std::collections::BTreeMap<String, String>| {
        map(&mut pairs.iter().map(|(key, value)| (key, quoted(value))))
    };
    vec![
        format!("additional_write_policy = {}", quoted(&options.additional_write_policy)),
        format!("allow_auto_snapshot = {}", options.allow_auto_snapshot),
        format!("bloom_filter_fp_chance = {}", real(options.bloom_filter_fp_chance)),
        format!("caching = {}", texts(&options.caching)),
        format!("cdc = {}", options.cdc),
        format!("comment = {}", quoted(&options.comment)),
        format!("compaction = {}", texts(&options.compaction)),
        format!("compression = {}", texts(&options.compression)),
        format!("memtable = {}", quoted(options.memtable.as_deref().unwrap_or("default"))),
        format!("crc_check_chance = {}", real(options.crc_check_chance)),
        format!("default_time_to_live = {}", options.default_time_to_live_s),
        format!("extensions = {}", map(&mut options.extensions.iter().map(|(key, value)| (key, hex(value))))),
        format!("gc_grace_seconds = {}", options.gc_grace_seconds),
        format!("incremental_backups = {}", options.incremental_backups),
        format!("max_index_interval = {}", options.max_index_interval),
        format!("memtable_flush_period_in_ms = {}", options.memtable_flush_period_in_ms),
        format!("min_index_interval = {}", options.min_index_interval),
        format!("read_repair = {}", quoted(&options.read_repair)),
        format!("speculative_retry = {}", quoted(&options.speculative_retry)),
    ]
}

fn dropped(table: &Table, out: &mut String) {
    let name = full_name(table);
    for column in table.dropped.values() {
        let quoted = quote_identifier(&column.name);
        _ = write!(out, "\nALTER TABLE {name} DROP {quoted} USING TIMESTAMP {};", column.dropped_us);
        if let Some(again) = table.column(&column.name) {
            let definition = definition(&again.name, &again.ty, again.kind);
            let masked = masked(table, &again.name);
            _ = write!(out, "\nALTER TABLE {name} ADD {}{masked};", definition.trim_start());
        }
    }
}

/// Tells the user-defined types that stand in a type, not those within them.
pub(super) fn names_within<'t>(ty: &'t CqlType, tell: &mut impl FnMut(&'t str)) {
    match ty {
        CqlType::Udt(udt) => tell(&udt.name),
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            names_within(element, tell);
        }
        CqlType::Map { key, value, .. } => {
            names_within(key, tell);
            names_within(value, tell);
        }
        CqlType::Tuple(types) => types.iter().for_each(|ty| names_within(ty, tell)),
        _ => {}
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
