//! Chooses how a CREATE TABLE describes a table: by its columns, by COMPACT STORAGE, or by extensions if CQL cannot
//! express it, as for many column families made through Thrift. `ddl::layout` reads the extensions.
//!
//! Cassandra describes compact tables in a comment, from which they cannot be created again. These statements can be
//! run, here and, except for super column families, in Cassandra.

use crate::analysis::{Resolver, references_duration};
use crate::plan::ddl::{compact_flags, complete_compact, reads_cells_of};
use crate::syntax::parse_type;
use helenus_model::schema::{
    Column, ColumnKind, DROPPED_COLUMN_EXTENSION, DroppedColumn, FLAGS_EXTENSION, Keyspace, Table,
    UNNAMED_COLUMN_EXTENSION,
};
use helenus_model::types::CqlType;
use std::collections::BTreeMap;

/// The form of one table's statement.
pub(super) struct Layout<'t> {
    table: &'t Table,
    resolver: Resolver<'t>,
    form: Form,
    /// The name that stands for the column without a name, if there is one.
    stand_in: String,
    /// The columns that the statement declares and a following ALTER TABLE drops, and possibly adds again.
    pub(super) dropped: Vec<&'t DroppedColumn>,
    /// The dropped columns that an extension describes.
    told: Vec<&'t DroppedColumn>,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The columns describe the table completely.
    Columns,
    /// `WITH COMPACT STORAGE`, which adds columns that are not declared.
    CompactStorage,
    /// All columns are declared, and an extension contains the flags.
    Flags,
}

impl<'t> Layout<'t> {
    /// The layout of a table, with its dropped columns if `internals`.
    pub(super) fn new(keyspace: &'t Keyspace, table: &'t Table, internals: bool) -> Layout<'t> {
        let dropped = || table.dropped.values().filter(|_| internals);
        let gone: Vec<&DroppedColumn> = dropped()
            .filter(|column| !column.name.is_empty() && table.column(&column.name).is_none())
            .collect();
        let form = form(table, &gone);
        let is_altered = |column: &&DroppedColumn| {
            let is_gone = table.column(&column.name).is_none();
            !column.name.is_empty()
                && match form {
                    Form::Columns => {
                        table.column(&column.name).is_none_or(|again| is_addable(column, again, table))
                    }
                    // No columns can be added to a compact table.
                    Form::CompactStorage => is_gone,
                    // The table has one regular column, unless it is a super column family.
                    Form::Flags => is_gone && (column.kind == ColumnKind::Static || table.is_super()),
                }
        };
        let (altered, told) = dropped().partition(is_altered);
        let is_free = |name: &String| {
            let is_taken = |column: &DroppedColumn| *column.name == **name;
            table.column(name).is_none() && !table.dropped.values().any(is_taken)
        };
        let names =
            std::iter::once("value".to_owned()).chain((1_u32..).map(|number| format!("value{number}")));
        let stand_in = names.into_iter().find(is_free).unwrap_or_default();
        Layout { table, resolver: Resolver::new(keyspace), form, stand_in, dropped: altered, told }
    }

    /// Whether the statement is one WITH COMPACT STORAGE.
    pub(super) fn is_compact_storage(&self) -> bool {
        self.form == Form::CompactStorage
    }

    /// The columns that the statement declares, except those that are dropped after it; each with whether it is
    /// declared static.
    pub(super) fn columns(&self) -> impl Iterator<Item = (&'t Column, bool)> {
        let (table, form) = (self.table, self.form);
        let columns =
            table.columns().filter(move |column| form != Form::CompactStorage || !table.is_hidden(column));
        columns.map(move |column| (column, column.kind == ColumnKind::Static && form != Form::CompactStorage))
    }

    /// Whether a dropped column is declared static.
    pub(super) fn is_static(&self, column: &DroppedColumn) -> bool {
        column.kind == ColumnKind::Static && self.form != Form::CompactStorage
    }

    /// The clustering columns that the statement names.
    pub(super) fn clustering(&self) -> &'t [Column] {
        let table = self.table;
        if self.form == Form::CompactStorage && table.is_static_compact() { &[] } else { &table.clustering }
    }

    /// The name of a column in the statement.
    pub(super) fn name<'n>(&'n self, column: &'n str) -> &'n str {
        if column.is_empty() { &self.stand_in } else { column }
    }

    /// A type as the statement writes it: by its class name if its CQL name denotes another type or none.
    pub(super) fn ty(&self, ty: &CqlType) -> String {
        let text = ty.to_string();
        let read = parse_type(&text).ok().and_then(|written| self.resolver.resolved(&written).ok());
        if read.is_some_and(|read| read.is_stored_as(ty)) { text } else { format!("'{}'", ty.class_name()) }
    }

    /// The extensions that the statement adds to those of the table, as texts.
    pub(super) fn extensions(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        if self.form == Form::Flags {
            found.insert(FLAGS_EXTENSION.to_owned(), self.table.flags.join(", "));
        }
        if self.table.columns().any(|column| column.name.is_empty()) {
            found.insert(UNNAMED_COLUMN_EXTENSION.to_owned(), self.stand_in.clone());
        }
        for column in &self.told {
            let kind = if column.kind == ColumnKind::Static { "static" } else { "regular" };
            let value = format!("{} {kind} {}", column.dropped_us, self.ty(&column.ty));
            found.insert(format!("{DROPPED_COLUMN_EXTENSION}{}", column.name), value);
        }
        found
    }
}

/// Whether a dropped column can be added again with its current definition; Thrift does not check this.
fn is_addable(dropped: &DroppedColumn, again: &Column, table: &Table) -> bool {
    reads_cells_of(&again.ty, &dropped.ty) && dropped.kind == again.kind && !table.is_counter()
}

fn form(table: &Table, gone: &[&DroppedColumn]) -> Form {
    let has_counters = table.columns().any(|column| column.ty == CqlType::Counter);
    let of_columns = ["compound"].into_iter().chain(has_counters.then_some("counter"));
    if has_flags(table, of_columns) && is_taken(table, gone) {
        Form::Columns
    } else if is_of_compact_storage(table, gone) {
        Form::CompactStorage
    } else {
        Form::Flags
    }
}

/// Whether CREATE TABLE accepts these columns, without flags. `gone`: dropped columns that the statement declares too.
fn is_taken(table: &Table, gone: &[&DroppedColumn]) -> bool {
    let has_counters = table.columns().any(|column| column.ty == CqlType::Counter);
    let is_mixed = |ty: &CqlType| has_counters != (*ty == CqlType::Counter);
    let is_refused = |ty: &CqlType| *ty == CqlType::Counter || ty.is_multi_cell() || references_duration(ty);
    let mut keys = table.partition_key.iter().chain(&table.clustering);
    let mut values = table.statics.iter().chain(&table.regulars);
    !keys.any(|column| is_refused(&column.ty))
        && !values.any(|column| is_mixed(&column.ty))
        && !gone.iter().any(|column| is_mixed(&column.ty))
}

fn has_flags<'f>(table: &Table, expected: impl Iterator<Item = &'f str>) -> bool {
    let (mut found, mut expected): (Vec<&str>, Vec<&str>) =
        (table.flags.iter().map(String::as_str).collect(), expected.collect());
    found.sort_unstable();
    expected.sort_unstable();
    found == expected
}

/// Whether COMPACT STORAGE makes exactly this table from its visible columns. `gone`: dropped columns that the
/// statement declares too.
fn is_of_compact_storage(table: &Table, gone: &[&DroppedColumn]) -> bool {
    let is_static = table.is_static_compact();
    let mut shown = table.clone();
    shown.regulars.retain(|column| !table.is_hidden(column));
    shown.clustering.retain(|column| !table.is_hidden(column));
    if !table.is_compact() || table.is_super() || is_static == shown.statics.is_empty() {
        return false;
    }
    let is_unfit = |column: &Column| column.name.is_empty() || column.ty.is_multi_cell();
    let is_gone_unfit = gone.iter().any(|column| column.ty.is_multi_cell());
    if is_gone_unfit || shown.columns().any(is_unfit) || !is_taken(&shown, gone) {
        return false;
    }
    let has_counters = shown.columns().any(|column| column.ty == CqlType::Counter);
    if !has_flags(table, compact_flags(shown.clustering.len(), has_counters).iter().map(String::as_str)) {
        return false;
    }
    for column in gone {
        let (name, ty) = (column.name.clone(), column.ty.clone());
        let id = Table::UNNUMBERED;
        shown.statics.push(Column { name, kind: ColumnKind::Static, position: 0, ty, reversed: false, id });
    }
    complete_compact(&mut shown);
    same(&shown.clustering, &table.clustering) && same(&shown.regulars, &table.regulars)
}

fn same(made: &[Column], there: &[Column]) -> bool {
    let equal = |(a, b): (&Column, &Column)| a.name == b.name && a.ty == b.ty && a.reversed == b.reversed;
    made.len() == there.len() && made.iter().zip(there).all(equal)
}
