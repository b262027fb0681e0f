//! Writes the statements that create the objects of a schema again (`TableMetadata.toCqlString` and similar methods).

use super::layout::Layout;
use crate::plan::ddl::KEYS;
use crate::syntax::parse;
use crate::virtual_table::is_virtual_keyspace;
use helenus_model::schema::{
    CLASS_OPTION, Column, ColumnKind, Index, IndexKind, IndexPart, Keyspace, TARGET_OPTION, Table,
    TableOptions,
};
use helenus_model::types::{CqlType, UserType, quote_identifier, to_cql_literal};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const LOCATORS: &str = "org.apache.cassandra.locator.";

/// CREATE KEYSPACE.
pub(super) fn keyspace(keyspace: &Keyspace) -> String {
    let name = identifier(&keyspace.name);
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
    // Two spaces, as in Cassandra.
    format!(
        "CREATE KEYSPACE {name} WITH replication = {replication}}}  AND durable_writes = {};",
        keyspace.durable_writes
    )
}

/// CREATE TYPE.
pub(super) fn user_type(ty: &UserType) -> String {
    let fields: Vec<String> =
        ty.fields.iter().map(|(name, ty)| format!("    {} {ty}", identifier(name))).collect();
    format!("CREATE TYPE {}.{} (\n{}\n);", identifier(&ty.keyspace), identifier(&ty.name), fields.join(",\n"))
}

/// CREATE TABLE. `internals`: with its id, and with what restores its dropped columns.
pub(super) fn table(keyspace: &Keyspace, table: &Table, internals: bool) -> String {
    let is_virtual = is_virtual_keyspace(&table.keyspace);
    let name = full_name(table);
    let layout = Layout::new(keyspace, table, internals);
    let mut out = String::new();
    if is_virtual {
        _ = write!(
            out,
            "/*\nWarning: Table {name} is a virtual table and cannot be recreated with CQL.\nStructure, for reference:\n"
        );
    }
    _ = writeln!(out, "{} TABLE {name} (", if is_virtual { "VIRTUAL" } else { "CREATE" });
    columns(table, &layout, &mut out);
    out.push_str(") WITH ");
    if layout.is_compact_storage() {
        out.push_str("COMPACT STORAGE\n    AND ");
    }
    if internals {
        _ = write!(out, "ID = {}\n    AND ", table.id.0);
    }
    if !layout.clustering().is_empty() {
        let order = |column: &Column| {
            let name = identifier(layout.name(&column.name));
            format!("{name} {}", if column.reversed { "DESC" } else { "ASC" })
        };
        let order: Vec<String> = layout.clustering().iter().map(order).collect();
        _ = write!(out, "CLUSTERING ORDER BY ({})\n    AND ", order.join(", "));
    }
    if is_virtual {
        _ = write!(out, "comment = {};\n*/", quoted(&table.options.comment));
    } else {
        out.push_str(&options(&table.options, &layout).join("\n    AND "));
        out.push(';');
    }
    dropped(table, &layout, &mut out);
    out
}

/// CREATE INDEX.
pub(super) fn index(table: &Table, index: &Index) -> String {
    let custom = if index.kind == IndexKind::Custom { "CUSTOM " } else { "" };
    let (part, column) = index.part();
    let target = match (table.column(&column), part) {
        // An index on several columns.
        (None, _) => index.target().to_owned(),
        (Some(_), IndexPart::Simple) => identifier(&column).into_owned(),
        (Some(_), part) => format!("{part}({})", identifier(&column)),
    };
    let name = identifier(&index.name);
    let mut out = format!("CREATE {custom}INDEX {name} ON {} ({target})", full_name(table));
    if index.kind == IndexKind::Custom {
        let class = index.options.get(CLASS_OPTION).map_or("", String::as_str);
        _ = write!(out, " USING {}", quoted(class));
    }
    if index.kind == IndexKind::Keys {
        _ = write!(out, " USING {}", quoted(KEYS));
    }
    let own = index.options.iter().filter(|(key, _)| *key != CLASS_OPTION && *key != TARGET_OPTION);
    let own: Vec<String> = own.map(|(key, value)| format!("{}: {}", quoted(key), quoted(value))).collect();
    if !own.is_empty() && index.kind != IndexKind::Composites {
        _ = write!(out, " WITH OPTIONS = {{{}}}", own.join(", "));
    }
    out.push(';');
    out
}

/// A name as a statement can contain it. Cassandra does not quote `true` and durations such as `p1d`, and rejects them
/// unquoted.
fn identifier(name: &str) -> Cow<'_, str> {
    let quoted = quote_identifier(name);
    let is_word = |name: &str| parse(&format!("DROP TABLE {name}")).is_ok();
    if quoted == name && !is_word(name) { Cow::Owned(format!("\"{name}\"")) } else { quoted }
}

fn full_name(table: &Table) -> String {
    format!("{}.{}", identifier(&table.keyspace), identifier(&table.name))
}

fn columns(table: &Table, layout: &Layout<'_>, out: &mut String) {
    let has_single_key = table.partition_key.len() == 1 && layout.clustering().is_empty();
    let is_dropped = |column: &Column| layout.dropped.iter().any(|dropped| dropped.name == column.name);
    let mut lines: Vec<String> = Vec::new();
    for (column, is_static) in layout.columns().filter(|(column, _)| !is_dropped(column)) {
        let mut line = format!("    {}", definition(layout, (&column.name, &column.ty), is_static));
        line.push_str(&masked(table, &column.name));
        if has_single_key && column.kind == ColumnKind::PartitionKey {
            line.push_str(" PRIMARY KEY");
        }
        lines.push(line);
    }
    for column in &layout.dropped {
        let is_static = layout.is_static(column);
        lines.push(format!("    {}", definition(layout, (&column.name, &column.ty), is_static)));
    }
    if !has_single_key {
        let names = |columns: &[Column]| -> Vec<String> {
            columns.iter().map(|column| identifier(layout.name(&column.name)).into_owned()).collect()
        };
        let partition = names(&table.partition_key).join(", ");
        let partition = if table.partition_key.len() > 1 { format!("({partition})") } else { partition };
        let mut key = vec![partition];
        key.extend(names(layout.clustering()));
        lines.push(format!("    PRIMARY KEY ({})", key.join(", ")));
    }
    out.push_str(&lines.join(",\n"));
    out.push('\n');
}

fn definition(layout: &Layout<'_>, (name, ty): (&str, &CqlType), is_static: bool) -> String {
    let is_static = if is_static { " static" } else { "" };
    format!("{} {}{is_static}", identifier(layout.name(name)), layout.ty(ty))
}

/// The mask of a column, if it has one.
fn masked(table: &Table, column: &str) -> String {
    table.masks.get(column).map_or_else(String::new, |mask| format!(" MASKED WITH {mask}"))
}

fn options(options: &TableOptions, layout: &Layout<'_>) -> Vec<String> {
    let real = |value: f64| to_cql_literal(&CqlType::Double, Some(&value.to_be_bytes()));
    let map = |pairs: &mut dyn Iterator<Item = (&str, String)>| {
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("{}: {value}", quoted(key))).collect();
        format!("{{{}}}", pairs.join(", "))
    };
    let hex = |bytes: &[u8]| bytes.iter().fold("0x".to_owned(), |all, byte| all + &format!("{byte:02x}"));
    let texts =
        |pairs: &BTreeMap<String, String>| map(&mut pairs.iter().map(|(key, value)| (&**key, quoted(value))));
    let mut extensions: BTreeMap<&str, String> =
        options.extensions.iter().map(|(key, value)| (&**key, hex(value))).collect();
    let of_layout = layout.extensions();
    extensions.extend(of_layout.iter().map(|(key, value)| (&**key, quoted(value))));
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
        format!("extensions = {}", map(&mut extensions.into_iter())),
        format!("gc_grace_seconds = {}", options.gc_grace_seconds),
        format!("incremental_backups = {}", options.incremental_backups),
        format!("max_index_interval = {}", options.max_index_interval),
        format!("memtable_flush_period_in_ms = {}", options.memtable_flush_period_in_ms),
        format!("min_index_interval = {}", options.min_index_interval),
        format!("read_repair = {}", quoted(&options.read_repair)),
        format!("speculative_retry = {}", quoted(&options.speculative_retry)),
    ]
}

/// The options of a table as they stand behind WITH, each as `name = value`.
pub(super) fn option_texts(keyspace: &Keyspace, table: &Table) -> Vec<String> {
    options(&table.options, &Layout::new(keyspace, table, true))
}

fn dropped(table: &Table, layout: &Layout<'_>, out: &mut String) {
    let name = full_name(table);
    for column in &layout.dropped {
        let quoted = identifier(&column.name);
        _ = write!(out, "\nALTER TABLE {name} DROP {quoted} USING TIMESTAMP {};", column.dropped_us);
        if let Some(again) = table.column(&column.name) {
            let is_static = again.kind == ColumnKind::Static;
            let definition = definition(layout, (&again.name, &again.ty), is_static);
            let masked = masked(table, &again.name);
            _ = write!(out, "\nALTER TABLE {name} ADD {definition}{masked};");
        }
    }
}

/// Calls `tell` with the user-defined types in a type, but not with those nested in them.
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
