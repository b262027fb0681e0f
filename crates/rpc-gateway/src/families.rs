//! Shows a table of the cluster as a column family, as it was one before COMPACT STORAGE was dropped.
//!
//! | table at the cluster | family |
//! |---|---|
//! | one clustering column, one regular one: `key, column1, value` | dynamic: a row is a column |
//! | several clustering columns, one regular one | composite |
//! | the same with one clustering column and static ones | static, with undeclared columns in rows |
//! | no clustering: `key, a, b` | static: each regular column is a declared one, and there are no others |
//!
//! The first three are what DROP COMPACT STORAGE leaves, and what `definitions` makes; the last is also what CREATE TABLE makes today.
//! A static family that still has COMPACT STORAGE is of the last kind too: statements do not see its undeclared columns.

use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::{CqlType, parse_text};

/// Flag of a table without clustering, beside those that Cassandra knows. Its columns are static ones in the family.
const COLUMNS: &str = "columns";

/// Names of the columns that a table without clustering lacks. CQL cannot make such names.
const NAME: &str = "\u{1}name";
const VALUE: &str = "\u{1}value";

/// Where a column family has its columns in the table of the cluster. The statements depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A column of the family is a row of the table.
    Rows,
    /// The declared columns are static columns of the table, all others are rows.
    RowsAndStatics,
    /// A partition has one row, and its columns are those of the family.
    Columns,
}

impl Layout {
    /// The layout of a family that `family_of` has made.
    pub(crate) fn of(family: &Table) -> Layout {
        match () {
            () if family.flags.iter().any(|flag| flag == COLUMNS) => Layout::Columns,
            () if family.is_static_compact() => Layout::RowsAndStatics,
            () => Layout::Rows,
        }
    }
}

/// Describes a table of the cluster as a column family, in the form that `rpc` has for those of this process.
///
/// # Errors
/// Why the table cannot be used as a column family.
pub(crate) fn family_of(table: &Table) -> Result<Table, String> {
    let cannot =
        |why: &str| Err(format!("table {} cannot be used by RPC: {why}; use CQL for it", table.name));
    if table.is_super() {
        return cannot("it has super columns");
    }
    let of_cells = || table.statics.iter().chain(&table.regulars);
    if let Some(column) = of_cells().find(|column| column.ty.is_multi_cell()) {
        return cannot(&format!("its column {} is a collection or a user-defined type", column.name));
    }
    let mut flags: Vec<String> = table.flags.iter().filter(|flag| *flag == "counter").cloned().collect();
    let mut family = table.clone();
    match (&table.clustering[..], &table.regulars[..], &table.statics[..]) {
        ([], regulars, _) => {
            family = of_columns(table, regulars, CqlType::Text);
            flags.push(COLUMNS.to_owned());
        }
        ([name], _, statics) if table.is_static_compact() => {
            family = of_columns(table, statics, name.ty.clone());
            flags.push(COLUMNS.to_owned());
        }
        ([_], [_], []) => flags.push("dense".to_owned()),
        ([name], [_], statics) => {
            if let Some(column) = statics.iter().find(|column| parse_text(&name.ty, &column.name).is_err()) {
                return cannot(&format!(
                    "its static column {} has a name that is no value of {}",
                    column.name, name.name
                ));
            }
        }
        ([first, rest @ ..], [_], []) => {
            if rest.iter().any(|column| column.reversed != first.reversed) {
                return cannot("its clustering columns are in different orders");
            }
            flags.extend(["dense".to_owned(), "compound".to_owned()]);
        }
        _ => return cannot("it has clustering, and not exactly one other column"),
    }
    family.flags = flags;
    Ok(family)
}

/// A family that has the declared columns alone.
fn of_columns(table: &Table, declared: &[Column], comparator: CqlType) -> Table {
    let ty = if table.is_counter() { CqlType::Counter } else { CqlType::Blob };
    let declared = declared.iter().map(|column| Column {
        kind: ColumnKind::Static,
        id: Table::UNNUMBERED,
        ..column.clone()
    });
    let hidden =
        [Column::new(NAME, ColumnKind::Clustering, comparator), Column::new(VALUE, ColumnKind::Regular, ty)];
    let columns = table.partition_key.iter().cloned().chain(declared).chain(hidden);
    let family = Table::new((&table.keyspace, &table.name), table.id, columns);
    Table { options: table.options.clone(), indexes: table.indexes.clone(), ..family }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::schema::TableId;

    fn table(columns: &[(&str, ColumnKind, CqlType)]) -> Table {
        let columns = columns.iter().map(|(name, kind, ty)| Column::new(name, *kind, ty.clone()));
        let table = Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns);
        Table { flags: vec!["compound".to_owned()], ..table }
    }

    #[test]
    fn tables_are_the_families_that_they_were() {
        use ColumnKind::{Clustering, PartitionKey, Regular, Static};
        let key = ("key", PartitionKey, CqlType::Blob);
        let name = ("column1", Clustering, CqlType::Text);
        let value = ("value", Regular, CqlType::Blob);
        let layout =
            |columns: &[_]| family_of(&table(columns)).map(|family| (Layout::of(&family), family.flags));
        let flags = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>();
        let found = layout(&[key.clone(), name.clone(), value.clone()]);
        assert_eq!(found, Ok((Layout::Rows, flags(&["dense"]))));
        let second = ("column2", Clustering, CqlType::BigInt);
        let found = layout(&[key.clone(), name.clone(), second.clone(), value.clone()]);
        assert_eq!(found, Ok((Layout::Rows, flags(&["dense", "compound"]))));
        let fixed = ("a", Static, CqlType::Int);
        let found = layout(&[key.clone(), name.clone(), value.clone(), fixed.clone()]);
        assert_eq!(found, Ok((Layout::RowsAndStatics, flags(&[]))));
        let found = layout(&[key.clone(), value.clone(), ("b", Regular, CqlType::Int)]);
        assert_eq!(found, Ok((Layout::Columns, flags(&["columns"]))));
        // A static family that has COMPACT STORAGE still, whose undeclared columns are hidden.
        let hidden = [key.clone(), name.clone(), value.clone(), fixed.clone()];
        let family = family_of(&Table { flags: Vec::new(), ..table(&hidden) }).unwrap();
        assert_eq!((Layout::of(&family), family.statics.len()), (Layout::Columns, 1));
        // Static columns are names of the clustering column's type.
        let bytes = ("column1", Clustering, CqlType::Blob);
        let in_hex = ("0aff", Static, CqlType::Int);
        let found = layout(&[key.clone(), bytes.clone(), value.clone(), in_hex]);
        assert_eq!(found, Ok((Layout::RowsAndStatics, flags(&[]))));
        let list = CqlType::List { element: std::sync::Arc::new(CqlType::Int), frozen: false };
        for (columns, why) in [
            (vec![key.clone(), name.clone(), value.clone(), ("b", Regular, CqlType::Int)], "exactly one"),
            (vec![key.clone(), name.clone(), second.clone(), value.clone(), fixed], "exactly one"),
            (vec![key.clone(), bytes, value, ("no hex", Static, CqlType::Int)], "no value of column1"),
            (vec![key, ("b", Regular, list)], "column b is a collection"),
        ] {
            let error = layout(&columns).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
