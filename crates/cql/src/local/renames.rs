//! Renames a keyspace, or a keyspace and its only table, in a schema.

use helenus_model::schema::{Column, DroppedColumn, Index, Keyspace, Table};
use helenus_model::types::{CqlType, UserType};
use std::collections::BTreeMap;
use std::sync::Arc;

/// New names of a keyspace and its only table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renames {
    /// The new name of the keyspace.
    pub keyspace: Option<String>,
    /// The new name of the table; only if there is one table.
    pub table: Option<String>,
}

impl Renames {
    /// The new name of a keyspace.
    pub fn keyspace_of(&self, keyspace: &str) -> Arc<str> {
        self.keyspace.as_deref().unwrap_or(keyspace).into()
    }

    /// The new name of a table.
    pub fn table_of(&self, table: &str) -> Arc<str> {
        self.table.as_deref().unwrap_or(table).into()
    }

    /// A keyspace with its types and tables under their new names.
    pub(super) fn apply(&self, keyspace: &Keyspace) -> Keyspace {
        let name = self.keyspace_of(&keyspace.name);
        let ty = |(own, ty): (&Arc<str>, &Arc<UserType>)| (own.clone(), Arc::new(self.user_type(ty, &name)));
        let table = |table: &Arc<Table>| {
            let table = self.table(table, &name);
            (table.name.clone(), Arc::new(table))
        };
        Keyspace {
            types: keyspace.types.iter().map(ty).collect(),
            tables: keyspace.tables.values().map(table).collect(),
            name: name.clone(),
            ..keyspace.clone()
        }
    }

    fn table(&self, table: &Table, keyspace: &Arc<str>) -> Table {
        let columns = |of: &[Column]| -> Vec<Column> {
            of.iter()
                .map(|column| Column { ty: in_keyspace(&column.ty, keyspace), ..column.clone() })
                .collect()
        };
        let dropped = |(name, column): (&Arc<str>, &DroppedColumn)| {
            (name.clone(), DroppedColumn { ty: in_keyspace(&column.ty, keyspace), ..column.clone() })
        };
        let name = self.table_of(&table.name);
        Table {
            keyspace: keyspace.clone(),
            partition_key: columns(&table.partition_key),
            clustering: columns(&table.clustering),
            statics: columns(&table.statics),
            regulars: columns(&table.regulars),
            dropped: table.dropped.iter().map(dropped).collect(),
            indexes: indexes(table, &name),
            name,
            ..table.clone()
        }
    }

    fn user_type(&self, ty: &UserType, keyspace: &Arc<str>) -> UserType {
        let field = |(name, ty): &(Arc<str>, CqlType)| (name.clone(), in_keyspace(ty, keyspace));
        UserType { keyspace: keyspace.clone(), fields: ty.fields.iter().map(field).collect(), ..ty.clone() }
    }
}

/// The indexes of a renamed table: index names are unique in a keyspace, so they are renamed with the table.
fn indexes(table: &Table, name: &Arc<str>) -> BTreeMap<Arc<str>, Arc<Index>> {
    if *name == table.name {
        return table.indexes.clone();
    }
    let renamed = |index: &Arc<Index>| {
        let rest = index.name.strip_prefix(&*table.name).and_then(|rest| rest.strip_prefix('_'));
        let new: Arc<str> = format!("{name}_{}", rest.unwrap_or(&index.name)).into();
        (new.clone(), Arc::new(Index { name: new, ..Index::clone(index) }))
    };
    table.indexes.values().map(renamed).collect()
}

/// The type with its user-defined parts moved to this keyspace.
fn in_keyspace(ty: &CqlType, keyspace: &Arc<str>) -> CqlType {
    let inner = |ty: &Arc<CqlType>| Arc::new(in_keyspace(ty, keyspace));
    match ty {
        CqlType::List { element, frozen } => CqlType::List { element: inner(element), frozen: *frozen },
        CqlType::Set { element, frozen } => CqlType::Set { element: inner(element), frozen: *frozen },
        CqlType::Map { key, value, frozen } => {
            CqlType::Map { key: inner(key), value: inner(value), frozen: *frozen }
        }
        CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(|ty| in_keyspace(ty, keyspace)).collect()),
        CqlType::Vector { element, dimension } => {
            CqlType::Vector { element: inner(element), dimension: *dimension }
        }
        CqlType::Udt(udt) => {
            let field = |(name, ty): &(Arc<str>, CqlType)| (name.clone(), in_keyspace(ty, keyspace));
            let fields = udt.fields.iter().map(field).collect();
            CqlType::Udt(Arc::new(UserType { keyspace: keyspace.clone(), fields, ..UserType::clone(udt) }))
        }
        other => other.clone(),
    }
}
