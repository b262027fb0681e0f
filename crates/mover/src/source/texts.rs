//! The statements of a table, and the columns that each of them binds.
//!
//! Every statement binds its timestamp. Those that write values bind a TTL too, 0 for none, because a table may have
//! `default_time_to_live`. INSERT and UPDATE name all columns, and a write leaves unset what it does not write: so a table needs
//! few statements, whatever its rows have.

use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, quote_identifier};
use std::fmt::Write;
use std::sync::Arc;

/// A statement of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatementKind {
    /// INSERT of a row with its marker. Values: key, all regular columns but lists (whole collections), timestamp, TTL.
    Insert,
    /// UPDATE of regular columns but lists (maps and sets: elements to add; user types: field by field). Values: timestamp,
    /// TTL, columns, key.
    Update,
    /// The same for static columns; the key is that of the partition.
    UpdateStatic,
    /// UPDATE that removes elements of one set or map. Values: timestamp, a set of elements or keys, key.
    Remove(ColumnId),
    /// DELETE of one column of several cells. Values: timestamp, key.
    DeleteColumn(ColumnId),
    /// UPDATE that appends elements to one list. Values: timestamp, TTL, list, key.
    Append(ColumnId),
    /// DELETE of a row. Values: timestamp, key.
    DeleteRow,
    /// DELETE of rows in a range. Values: timestamp, partition key, the prefix, the lower and the upper bound.
    DeleteRange(RangeShape),
    /// DELETE of a partition. Values: timestamp, partition key.
    DeletePartition,
    /// INSERT of a row of a compact table whose clustering ends early. Values: partition key, this many clustering values, timestamp,
    /// TTL.
    InsertPrefix(u16),
    /// UPDATE of such a row. Values: timestamp, TTL, columns, partition key, this many clustering values.
    UpdatePrefix(u16),
}

/// The form of a range: rows with a common prefix, between bounds of the next clustering column in clustering order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RangeShape {
    /// Clustering columns of the prefix.
    pub prefix: u16,
    /// Whether there is a lower bound, and whether it is inclusive.
    pub lower: Option<bool>,
    /// Whether there is an upper bound, and whether it is inclusive.
    pub upper: Option<bool>,
}

/// The statements of a table.
#[derive(Clone, Debug)]
pub struct TableTexts {
    table: Arc<Table>,
}

/// Whether a column is a list of several cells.
pub(super) fn is_list(ty: &CqlType) -> bool {
    matches!(ty, CqlType::List { frozen: false, .. })
}

/// The columns that INSERT and UPDATE name: all but lists, and but those that a compact table hides from statements.
pub(crate) fn written_columns(table: &Table, is_static: bool) -> impl Iterator<Item = &Column> {
    let columns = if is_static { &table.statics } else { &table.regulars };
    columns.iter().filter(|column| !is_list(&column.ty) && !table.is_hidden(column))
}

/// The hidden column of a compact table of which all columns are keys. Its cell, which has no value, is the row: an INSERT of the keys
/// writes it (`UpdateStatement.addUpdateForKey`), and no statement names it.
pub(crate) fn hidden_value(table: &Table) -> Option<&Column> {
    let is_value = |column: &&Column| column.ty == CqlType::Empty && table.is_hidden(column);
    table.regulars.iter().find(is_value).filter(|_| !table.is_static_compact())
}

impl TableTexts {
    /// The statements of this table.
    pub fn new(table: &Arc<Table>) -> TableTexts {
        TableTexts { table: table.clone() }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The text of a statement.
    pub fn text(&self, kind: StatementKind) -> String {
        let table = &*self.table;
        let name = format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
        let stamped = "USING TIMESTAMP ?";
        match kind {
            StatementKind::Insert => {
                let columns = keys(table).chain(written_columns(table, false));
                let names: Vec<_> = columns.map(|column| quote_identifier(&column.name)).collect();
                let marks = vec!["?"; names.len()].join(", ");
                format!("INSERT INTO {name} ({}) VALUES ({marks}) {stamped} AND TTL ?", names.join(", "))
            }
            StatementKind::Update => {
                let set = assignments(written_columns(table, false));
                format!("UPDATE {name} {stamped} AND TTL ? SET {set} WHERE {}", equal(keys(table)))
            }
            StatementKind::InsertPrefix(values) => {
                let names: Vec<_> =
                    prefix(table, values).map(|column| quote_identifier(&column.name)).collect();
                let marks = vec!["?"; names.len()].join(", ");
                format!("INSERT INTO {name} ({}) VALUES ({marks}) {stamped} AND TTL ?", names.join(", "))
            }
            StatementKind::UpdatePrefix(values) => {
                let set = assignments(written_columns(table, false));
                format!("UPDATE {name} {stamped} AND TTL ? SET {set} WHERE {}", equal(prefix(table, values)))
            }
            StatementKind::UpdateStatic => {
                let set = assignments(written_columns(table, true));
                format!("UPDATE {name} {stamped} AND TTL ? SET {set} WHERE {}", self.of_partition())
            }
            StatementKind::Remove(column) => {
                let (column, key) = self.column_and_key(column);
                format!("UPDATE {name} {stamped} SET {column} = {column} - ? WHERE {key}")
            }
            StatementKind::DeleteColumn(column) => {
                let (column, key) = self.column_and_key(column);
                format!("DELETE {column} FROM {name} {stamped} WHERE {key}")
            }
            StatementKind::Append(column) => {
                let (column, key) = self.column_and_key(column);
                format!("UPDATE {name} {stamped} AND TTL ? SET {column} = {column} + ? WHERE {key}")
            }
            StatementKind::DeleteRow => format!("DELETE FROM {name} {stamped} WHERE {}", equal(keys(table))),
            StatementKind::DeleteRange(shape) => {
                format!("DELETE FROM {name} {stamped} WHERE {}", self.range(shape))
            }
            StatementKind::DeletePartition => {
                format!("DELETE FROM {name} {stamped} WHERE {}", self.of_partition())
            }
        }
    }

    /// The condition of a DELETE of a range or partition; its values are those of the statement without the timestamp.
    pub fn condition(&self, kind: StatementKind) -> String {
        match kind {
            StatementKind::DeleteRange(shape) => self.range(shape),
            StatementKind::DeletePartition => self.of_partition(),
            _ => equal(keys(&self.table)),
        }
    }

    /// Whether a statement is one of those that write a list, which must be run in order.
    pub fn is_of_list(&self, kind: StatementKind) -> bool {
        match kind {
            StatementKind::Append(_) => true,
            StatementKind::DeleteColumn(column) => {
                self.table.column_by_id(column).is_some_and(|column| is_list(&column.ty))
            }
            _ => false,
        }
    }

    fn of_partition(&self) -> String {
        equal(self.table.partition_key.iter())
    }

    /// The name of a column, and the condition for the row or static row that it is in.
    fn column_and_key(&self, id: ColumnId) -> (String, String) {
        let table = &*self.table;
        let is_static = table.statics.iter().any(|column| column.id == id);
        let name = table.column_by_id(id).map(|column| quote_identifier(&column.name).into_owned());
        let key = if is_static { self.of_partition() } else { equal(keys(table)) };
        (name.unwrap_or_default(), key)
    }

    fn range(&self, shape: RangeShape) -> String {
        let prefix = usize::from(shape.prefix);
        let clustering = &self.table.clustering;
        let mut text = equal(self.table.partition_key.iter().chain(clustering.iter().take(prefix)));
        let Some(next) = clustering.get(prefix) else { return text };
        let name = quote_identifier(&next.name);
        // The bounds are in clustering order; a column in descending order compares the other way round.
        let after = if next.reversed { '<' } else { '>' };
        let before = if next.reversed { '>' } else { '<' };
        for (bound, sign) in [(shape.lower, after), (shape.upper, before)] {
            if let Some(is_inclusive) = bound {
                let equals = if is_inclusive { "=" } else { "" };
                let _ = write!(text, " AND {name} {sign}{equals} ?");
            }
        }
        text
    }
}

fn keys(table: &Table) -> impl Iterator<Item = &Column> {
    table.partition_key.iter().chain(&table.clustering)
}

/// The partition key and the first clustering columns.
fn prefix(table: &Table, values: u16) -> impl Iterator<Item = &Column> {
    table.partition_key.iter().chain(table.clustering.iter().take(usize::from(values)))
}

fn equal<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    let of_one: Vec<_> = columns.map(|column| format!("{} = ?", quote_identifier(&column.name))).collect();
    of_one.join(" AND ")
}

/// The assignments of UPDATE, in the order of the columns. A user type of several cells has one for each field.
fn assignments<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    let mut parts = Vec::new();
    for column in columns {
        let name = quote_identifier(&column.name);
        match &column.ty {
            CqlType::Udt(udt) if !udt.frozen => {
                parts.extend(
                    udt.fields.iter().map(|(field, _)| format!("{name}.{} = ?", quote_identifier(field))),
                );
            }
            ty if ty.is_multi_cell() => parts.push(format!("{name} = {name} + ?")),
            _ => parts.push(format!("{name} = ?")),
        }
    }
    parts.join(", ")
}
