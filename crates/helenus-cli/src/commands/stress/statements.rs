//! The tables of single rows, and the texts of statements on them: CQL 3 with markers or with values as digits, and CQL
//! 2, which writes quoted texts where CQL 3 writes `0x`.

use super::content::{COLUMNS, KEY, VALUE};
use crate::commands::client::{BlockingClient, Text};
use anyhow::Result;
use std::fmt::Display;

/// Names of the columns.
pub(super) const NAMES: [&str; COLUMNS] = ["C0", "C1", "C2", "C3", "C4"];
/// The index of the indexed column, in the table with an index.
pub(super) const INDEXED: usize = 1;

/// The name of the table of rows, with or without an index.
pub(super) fn table(indexed: bool) -> &'static str {
    if indexed { "indexed1" } else { "standard1" }
}

/// The name of the table of counters.
pub(super) fn counters() -> &'static str {
    "counter1"
}

/// Creates a table if it does not exist.
fn make(caller: &mut BlockingClient, name: impl Display, ty: &str) -> Result<()> {
    let storage = if caller.sees_compact_tables_alone() { " WITH COMPACT STORAGE" } else { "" };
    let columns = each(", ", |name| format!("\"{name}\" {ty}"));
    caller.run(&format!("CREATE TABLE IF NOT EXISTS {name} (key blob PRIMARY KEY, {columns}){storage}"))
}

/// Creates the table if it does not exist, with an index on `C1` if requested.
pub(super) fn make_table(caller: &mut BlockingClient, keyspace: &str, indexed: bool) -> Result<()> {
    let table = table(indexed);
    make(caller, format_args!("{keyspace}.{table}"), "blob")?;
    if indexed {
        let index = format!("CREATE INDEX IF NOT EXISTS {table}_c1 ON {keyspace}.{table} (\"C{INDEXED}\")");
        caller.run(&index)?;
    }
    Ok(())
}

/// Creates the table of counters if it does not exist.
pub(super) fn make_counters(caller: &mut BlockingClient, keyspace: &str) -> Result<()> {
    make(caller, format_args!("{keyspace}.{}", counters()), "counter")
}

/// Joins a text for each column.
fn each(between: &str, text: impl Fn(&str) -> String) -> String {
    NAMES.map(text).join(between)
}

/// The quoted column names.
fn columns() -> String {
    each(", ", |name| format!("\"{name}\""))
}

/// INSERT of a row: the key, then the values.
pub(super) fn insert(keyspace: &str, table: &str) -> String {
    format!("INSERT INTO {keyspace}.{table} (key, {}) VALUES (?, ?, ?, ?, ?, ?)", columns())
}

/// The same statement with values in the text.
pub(super) fn insert_text(keyspace: &str, table: &str) -> Text {
    let mut text = Text::default();
    text.push(format_args!("INSERT INTO {keyspace}.{table} (key, {}) VALUES (0x", columns())).hex(KEY);
    for _ in NAMES {
        text.push(", 0x").hex(VALUE);
    }
    text.push(")");
    text
}

/// UPDATE of a row: the values, then the key.
pub(super) fn update(keyspace: &str, table: &str) -> String {
    format!("UPDATE {keyspace}.{table} SET {} WHERE key = ?", each(", ", |name| format!("\"{name}\" = ?")))
}

/// The same statement with values in the text.
pub(super) fn update_text(keyspace: &str, table: &str) -> Text {
    let mut text = Text::default();
    text.push(format_args!("UPDATE {keyspace}.{table} SET"));
    for (at, name) in NAMES.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        text.push(format_args!("{comma} \"{name}\"=0x")).hex(VALUE);
    }
    text.push(" WHERE key=0x").hex(KEY);
    text
}

/// UPDATE in CQL 2: the values, then the key.
pub(super) fn first_update(table: &str) -> Text {
    let mut text = Text::default();
    text.push(format_args!("UPDATE {table} USING CONSISTENCY ONE SET"));
    for (at, name) in NAMES.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        text.push(format_args!("{comma} {name}='")).hex(VALUE).push("'");
    }
    text.push(" WHERE KEY='").hex(KEY).push("'");
    text
}

/// SELECT of a row by its key.
pub(super) fn select(keyspace: &str, table: &str) -> String {
    format!("SELECT {} FROM {keyspace}.{table} WHERE key = ?", columns())
}

/// The same statement with the key in the text.
pub(super) fn select_text(keyspace: &str, table: &str) -> Text {
    let mut text = Text::default();
    text.push(format_args!("SELECT {} FROM {keyspace}.{table} WHERE key=0x", columns())).hex(KEY);
    text
}

/// The same statement in CQL 2: five columns from the beginning of the row.
pub(super) fn first_select(table: &str) -> Text {
    let mut text = Text::default();
    text.push(format_args!("SELECT FIRST {COLUMNS} ''..'' FROM {table} USING CONSISTENCY ONE WHERE KEY='"));
    text.hex(KEY).push("'");
    text
}

/// SELECT of a row by the value of the indexed column.
pub(super) fn find(keyspace: &str, table: &str) -> String {
    format!("SELECT {} FROM {keyspace}.{table} WHERE \"C{INDEXED}\" = ?", columns())
}

/// The same statement with the value in the text.
pub(super) fn find_text(keyspace: &str, table: &str) -> Text {
    let mut text = Text::default();
    text.push(format_args!("SELECT {} FROM {keyspace}.{table} WHERE \"C{INDEXED}\"=0x", columns()));
    text.hex(VALUE);
    text
}

/// The same statement in CQL 2.
pub(super) fn first_find(table: &str) -> Text {
    let mut text = Text::default();
    text.push(format_args!("SELECT FIRST {COLUMNS} ''..'' FROM {table} WHERE C{INDEXED}='"));
    text.hex(VALUE).push("'");
    text
}

/// `name = name + 1` for each name.
fn ones(names: &[&str]) -> String {
    let one = |name: &&str| format!("\"{name}\" = \"{name}\" + 1");
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// UPDATE that adds 1 to counters of a row.
pub(super) fn count(keyspace: &str, names: &[&str]) -> String {
    format!("UPDATE {keyspace}.{} SET {} WHERE key = ?", counters(), ones(names))
}

/// The same statement with the key in the text.
pub(super) fn count_text(keyspace: &str, names: &[&str]) -> Text {
    let mut text = Text::default();
    text.push(format_args!("UPDATE {keyspace}.{} SET {} WHERE key=0x", counters(), ones(names))).hex(KEY);
    text
}

/// The same statement in CQL 2.
pub(super) fn first_count(names: &[&str]) -> Text {
    let one = |name: &&str| format!("{name}={name}+1");
    let ones = names.iter().map(one).collect::<Vec<_>>().join(", ");
    let mut text = Text::default();
    text.push(format_args!("UPDATE {} USING CONSISTENCY ONE SET {ones} WHERE KEY='", counters()));
    text.hex(KEY).push("'");
    text
}
