//! The tables that statements see instead of super column families.

use crate::error::{CqlError, Result};
use crate::syntax::ast::{Relation, RelationKind};
use helenus_model::schema::{Column, ColumnKind, Keyspace, Table};
use helenus_model::types::CqlType;
use std::sync::Arc;

/// The name of the map that holds a super column's columns (`SUPER_COLUMN_MAP_COLUMN`).
const MAP: &str = "";

/// Whether a table is a super column family, or the view of one.
pub(crate) fn is_super(table: &Table) -> bool {
    table.flags.iter().any(|flag| flag == "super")
}

/// Whether a table is the view of a super column family without declared columns: its rows are entries of stored rows.
#[inline]
pub(crate) fn is_of_entries(table: &Table) -> bool {
    table.clustering.len() == 2 && is_super(table)
}

/// Rejects an INSERT or UPDATE that does not give both an entry's key and its value (`prepareInsertOperations`,
/// `prepareUpdateOperations`).
///
/// # Errors
/// There is no value, or the column of the entry's key is not named.
pub(crate) fn check_entry(table: &Table, has_value: bool, names: impl FnOnce(&Column) -> bool) -> Result<()> {
    let [_, entry] = &table.clustering[..] else { return Ok(()) };
    if !is_of_entries(table) || has_value && names(entry) {
        return Ok(());
    }
    let what = if has_value { "key" } else { "value" };
    Err(CqlError::Invalid(format!("Column {what} is mandatory for SuperColumn tables")))
}

/// Rejects a read that restricts the entry's key but not its super column (`StatementRestrictions`).
///
/// # Errors
/// The entry's key is restricted alone.
pub(crate) fn check_relations(table: &Table, relations: &[Relation<'_>]) -> Result<()> {
    let [name, entry] = &table.clustering[..] else { return Ok(()) };
    let asks = |column: &Column| {
        relations.iter().any(|relation| match &relation.kind {
            RelationKind::Column { column: asked, .. } => asked.as_str() == &*column.name,
            _ => false,
        })
    };
    if is_of_entries(table) && asks(entry) && !asks(name) {
        return Err(CqlError::Invalid("Filtering is not supported on SuperColumn tables".into()));
    }
    Ok(())
}

/// The views of a keyspace's super column families.
pub(crate) fn shown(keyspace: &Keyspace) -> Vec<Arc<Table>> {
    keyspace
        .tables
        .values()
        .filter(|table| is_super(table))
        .filter_map(|table| view(table))
        .map(Arc::new)
        .collect()
}

fn view(table: &Table) -> Option<Table> {
    let map = table.regulars.iter().find(|column| &*column.name == MAP)?;
    let [clustering] = &table.clustering[..] else { return None };
    let mut view = table.clone();
    if table.regulars.len() > 1 {
        view.regulars.retain(|column| column.id != map.id);
        return Some(view);
    }
    let CqlType::Map { key, value, .. } = &map.ty else { return None };
    // `columnNameGenerator`: the name with number 1 is never used, even if no column has it.
    let mut taken: Vec<&str> = table.columns().map(|column| &*column.name).collect();
    taken.push("column1");
    let entry = free_name("column", 2, &taken);
    taken.push(&entry);
    let held = free_name("value", 0, &taken);
    view.clustering = vec![
        clustering.clone(),
        Column { position: 1, ..column(&entry, ColumnKind::Clustering, (**key).clone()) },
    ];
    view.regulars = vec![Column { id: map.id, ..column(&held, ColumnKind::Regular, (**value).clone()) }];
    Some(view)
}

fn column(name: &str, kind: ColumnKind, ty: CqlType) -> Column {
    Column { name: name.into(), kind, position: 0, ty, reversed: false, id: Table::UNNUMBERED }
}

/// The word with the first number, from `first` on, whose name is not taken; number 0 is left out of the name.
fn free_name(word: &str, first: usize, taken: &[&str]) -> String {
    let name = |number: usize| if number == 0 { word.to_owned() } else { format!("{word}{number}") };
    let mut number = first;
    while taken.contains(&&*name(number)) {
        number += 1;
    }
    name(number)
}
