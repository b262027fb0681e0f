//! ALTER TABLE.

use super::change::DdlSettings;
use super::create_table::{check_count, invalid};
use super::dropped_type::reads_cells_of;
use super::index::dependents;
use super::mask;
use super::options::{check_names, table_options};
use super::properties::Properties;
use crate::analysis::{Resolver, undefined_column};
use crate::error::{CqlError, Result};
use crate::syntax::ast::{AlterTable, ColumnDef, Ident, Mask, TableChange};
use helenus_model::schema::{Column, ColumnKind, DroppedColumn, Keyspace, Schema, Table};
use helenus_model::types::{CqlType, quote_identifier};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// ALTER TABLE. `now_us` is the time of the drop for dropped columns, if the statement gives none.
pub(super) fn alter(
    statement: &AlterTable<'_>,
    keyspace: &str,
    schema: &mut Schema,
    (settings, now_us): (&DdlSettings, i64),
) -> Result<()> {
    if matches!(statement.change, TableChange::Mask { mask: Some(_), .. }) {
        mask::ensure_enabled(settings.masks_columns)?;
    }
    let before = schema.clone();
    let name = statement.name.name.as_str();
    let found = schema.keyspaces.get_mut(keyspace).and_then(|keyspace| {
        let table = keyspace.tables.get(name).cloned();
        table.map(|table| (keyspace, table))
    });
    let Some((present, table)) = found else {
        if statement.if_exists {
            return Ok(());
        }
        return invalid(format!("Table '{keyspace}.{name}' doesn't exist"));
    };
    let mut changed = Table::clone(&table);
    match &statement.change {
        TableChange::Retype(..) => return invalid("Altering column types is no longer supported"),
        TableChange::Mask { column, if_exists, mask } => {
            set_mask(column, *if_exists, mask.as_ref(), (&mut changed, &before))?;
        }
        TableChange::Add { if_not_exists, columns } => {
            let mut names: HashSet<Arc<str>> = changed.columns().map(|column| column.name.clone()).collect();
            let types = Resolver::new(present);
            for column in columns {
                if names.contains(column.name.as_str()) && *if_not_exists {
                    continue;
                }
                add(column, (&names, &types, &before), &mut changed)?;
                names.insert(column.name.as_str().into());
                check_count(usize::from(changed.next_column_id) + names.len(), name)?;
            }
            changed.arrange();
        }
        TableChange::Drop { if_exists, columns, timestamp_us } => {
            let mut gone = HashSet::new();
            for column in columns {
                drop(column, *if_exists, timestamp_us.unwrap_or(now_us), (&mut changed, &mut gone))?;
            }
            changed.statics.retain(|column| !gone.contains(&column.name));
            changed.regulars.retain(|column| !gone.contains(&column.name));
        }
        TableChange::Rename { if_exists, names } => {
            let last: HashMap<&str, &Ident<'_>> =
                names.iter().map(|(from, to)| (from.as_str(), to)).collect();
            for (from, to) in names {
                // A column that is renamed twice gets the last name.
                if last.get(from.as_str()).is_some_and(|last| *last == to) {
                    rename(from, to, *if_exists, &mut changed)?;
                }
            }
        }
        TableChange::DropCompactStorage => {
            drop_compact_storage(settings.drops_compact_storage, &mut changed)?;
        }
        TableChange::Properties(properties) => {
            let properties = Properties::new(properties);
            check_names(&properties)?;
            if properties.has("id") {
                return Err(CqlError::Config("Cannot alter table id.".into()));
            }
            changed.options = table_options(&properties, &table.options)?;
            if table.is_counter() && changed.options.default_time_to_live_s > 0 {
                return invalid("Cannot set default_time_to_live on a table with counters");
            }
        }
    }
    let mut next = Keyspace::clone(present);
    next.tables.insert(changed.name.clone(), Arc::new(changed));
    *present = Arc::new(next);
    Ok(())
}

/// `ALTER column MASKED WITH ..` and `DROP MASKED`.
fn set_mask(
    column: &Ident<'_>,
    if_exists: bool,
    given: Option<&Mask<'_>>,
    (table, schema): (&mut Table, &Schema),
) -> Result<()> {
    let name = column.as_str();
    let Some(column) = table.column(name) else {
        return if if_exists {
            Ok(())
        } else {
            invalid(format!("Column with name '{name}' doesn't exist on table '{}'", table.name))
        };
    };
    let (name, ty) = (column.name.clone(), column.ty.clone());
    match given {
        None => table.masks.remove(&name),
        Some(given) => {
            let mask = mask::prepare(given, (&name, &ty), (&table.keyspace, &table.name), schema)?;
            table.masks.insert(name, mask)
        }
    };
    Ok(())
}

/// `DROP COMPACT STORAGE`: the columns that the table added implicitly become visible, and its rows become ordinary
/// rows.
fn drop_compact_storage(enabled: bool, table: &mut Table) -> Result<()> {
    if !enabled {
        return invalid("DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use.");
    }
    if !table.is_compact() {
        return invalid("Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
    }
    let counter = table.is_counter().then(|| "counter".to_owned());
    table.flags = std::iter::once("compound".to_owned()).chain(counter).collect();
    Ok(())
}

fn add(
    def: &ColumnDef<'_>,
    (names, types, schema): (&HashSet<Arc<str>>, &Resolver<'_>, &Schema),
    table: &mut Table,
) -> Result<()> {
    let name = def.name.as_str();
    let ty = types.resolved(&def.data_type)?;
    let mask = match &def.mask {
        None => None,
        Some(given) => Some(mask::prepare(given, (name, &ty), (&table.keyspace, &table.name), schema)?),
    };
    if names.contains(name) {
        return invalid(format!("Column with name '{name}' already exists"));
    }
    if table.is_compact() {
        return invalid("Cannot add new column to a COMPACT STORAGE table");
    }
    if def.is_static && table.clustering.is_empty() {
        return invalid(
            "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
        );
    }
    if let CqlType::Udt(udt) = &ty
        && !udt.frozen
        && udt.fields.iter().any(|(_, field)| field.is_multi_cell())
    {
        return invalid(format!(
            "Non-frozen UDTs with nested non-frozen collections are not supported for column {name}"
        ));
    }
    let kind = if def.is_static { ColumnKind::Static } else { ColumnKind::Regular };
    if let Some(dropped) = table.dropped.get(name) {
        if !reads_cells_of(&ty, &dropped.ty) {
            return invalid(format!(
                "Cannot add a column '{name}' of type {ty}, incompatible with previously dropped column '{name}' of \
                 type {}",
                dropped.ty
            ));
        }
        if dropped.kind != kind {
            let word = |kind| if kind == ColumnKind::Static { "STATIC" } else { "REGULAR" };
            return invalid(format!(
                "Cannot re-add previously dropped column '{name}' of kind {}, incompatible with previous kind {}",
                word(kind),
                word(dropped.kind)
            ));
        }
        if table.is_counter() {
            return invalid(format!("Cannot re-add previously dropped counter column {name}"));
        }
    }
    let text = |what: &str, other: &str| {
        let message = format!("Cannot have a {what} column (\"{name}\") in a {other} table");
        CqlError::Config(format!("{}.{}: {message}", table.keyspace, table.name))
    };
    match (ty == CqlType::Counter, table.is_counter()) {
        (true, false) => return Err(text("counter", "non counter")),
        (false, true) => return Err(text("non counter", "counter")),
        _ => {}
    }
    let column = Column { name: name.into(), kind, position: 0, ty, reversed: false, id: Table::UNNUMBERED };
    table.masks.extend(mask.map(|mask| (column.name.clone(), mask)));
    match kind {
        ColumnKind::Static => table.statics.push(column),
        _ => table.regulars.push(column),
    }
    Ok(())
}

/// Drops a column: its name is added to `gone`; the caller removes all of these columns at once.
fn drop(
    name: &Ident<'_>,
    if_exists: bool,
    dropped_us: i64,
    (table, gone): (&mut Table, &mut HashSet<Arc<str>>),
) -> Result<()> {
    let found = if gone.contains(name.as_str()) { None } else { table.column(name.as_str()).cloned() };
    let Some(column) = found else {
        if if_exists {
            return Ok(());
        }
        return invalid(format!("Column {} was not found in table '{}'", name.as_str(), full_name(table)));
    };
    if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        return invalid(format!("Cannot drop PRIMARY KEY column {}", column.name));
    }
    if let CqlType::Udt(udt) = &column.ty
        && !udt.frozen
    {
        return invalid(format!("Cannot drop non-frozen column {} of user type {}", column.name, column.ty));
    }
    if let Some(names) = dependents(table, &column.name) {
        return invalid(format!(
            "Cannot drop column {} because it has dependent secondary indexes ({names})",
            column.name
        ));
    }
    if table.compact_value().is_some_and(|value| value.name == column.name) {
        // Cassandra fails with this internal error: the table would have no value.
        return Err(CqlError::Server("java.lang.AssertionError".into()));
    }
    gone.insert(column.name.clone());
    table.masks.remove(&column.name);
    let (name, ty) = (column.name.clone(), column.ty.expand_user_types());
    let dropped = DroppedColumn { name, ty, kind: column.kind, dropped_us };
    table.dropped.insert(column.name, dropped);
    Ok(())
}

fn rename(from: &Ident<'_>, to: &Ident<'_>, _if_exists: bool, table: &mut Table) -> Result<()> {
    let (from, to) = (from.as_str(), to.as_str());
    // Cassandra's lookup of the column fails before IF EXISTS is considered.
    let column = table.column(from).filter(|column| !table.is_hidden(column));
    let Some(column) = column else { return Err(undefined_column(table, from)) };
    if !matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        return invalid(format!("Cannot rename non PRIMARY KEY column {from}"));
    }
    if table.column(to).is_some() {
        return invalid(format!(
            "Cannot rename column {from} to {to} in table '{}'; another column with that name already exists",
            full_name(table)
        ));
    }
    if let Some(names) = dependents(table, from) {
        return invalid(format!(
            "Can't rename column {from} because it has dependent secondary indexes ({names})"
        ));
    }
    for column in table.partition_key.iter_mut().chain(&mut table.clustering) {
        if &*column.name == from {
            column.name = to.into();
        }
    }
    if let Some(mask) = table.masks.remove(from) {
        table.masks.insert(to.into(), mask);
    }
    Ok(())
}

fn full_name(table: &Table) -> String {
    format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name))
}
