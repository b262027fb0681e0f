//! The tables that a schema change touches.
//!
//! `Database::change_schema` makes it once; everything after that works on its tables alone. So the work of a change
//! grows with what it changes. What is left for the other tables of a changed keyspace is one comparison of pointers.

use helenus_model::schema::{Keyspace, Schema, Table, TableId};
use std::collections::HashMap;
use std::sync::Arc;

/// The difference of two schemas in tables. A changed table is in both lists.
#[derive(Default)]
pub(crate) struct SchemaDelta {
    /// Tables that the old schema has alone, in its order.
    pub(crate) gone: Vec<Arc<Table>>,
    /// Tables that the new schema has alone, in its order.
    pub(crate) come: Vec<Arc<Table>>,
}

impl SchemaDelta {
    pub(crate) fn between(old: &Schema, new: &Schema) -> SchemaDelta {
        let only_in = |of: &Schema, other: &Schema| {
            let mut tables = Vec::new();
            for (name, keyspace) in &of.keyspaces {
                let beside: Option<&Arc<Keyspace>> = other.keyspaces.get(name);
                if beside.is_some_and(|beside| Arc::ptr_eq(beside, keyspace)) {
                    continue;
                }
                let beside = beside.map(|beside| &beside.tables);
                tables.extend(keyspace.tables.iter().filter_map(|(name, table)| {
                    let same = beside.and_then(|beside| beside.get(name));
                    (!same.is_some_and(|same| Arc::ptr_eq(same, table))).then(|| table.clone())
                }));
            }
            tables
        };
        SchemaDelta { gone: only_in(old, new), come: only_in(new, old) }
    }

    /// The tables that are gone, by id.
    pub(crate) fn gone_by_id(&self) -> HashMap<TableId, &Arc<Table>> {
        self.gone.iter().map(|table| (table.id, table)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::schema::{Column, ColumnKind};
    use helenus_model::types::CqlType;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    fn table(number: usize, columns: usize) -> Arc<Table> {
        let key = Column::new("k", ColumnKind::PartitionKey, CqlType::Text);
        let regular = |at: usize| Column::new(&format!("v{at}"), ColumnKind::Regular, CqlType::Text);
        let columns: Vec<Column> = std::iter::once(key).chain((0..columns).map(regular)).collect();
        let name = format!("t{number}");
        Arc::new(Table::new(("ks", &name), TableId(Uuid::from_u128(number as u128)), columns))
    }

    fn schema(tables: usize) -> Schema {
        let mut schema = Schema { keyspaces: BTreeMap::new(), version: Uuid::nil(), epoch: 0 };
        for name in ["ks", "other"] {
            let keyspace = Keyspace {
                name: name.into(),
                durable_writes: true,
                replication: BTreeMap::new(),
                tables: (0..tables).map(|at| table(at, 2)).map(|t| (t.name.clone(), t)).collect(),
                types: BTreeMap::new(),
            };
            schema.keyspaces.insert(name.into(), Arc::new(keyspace));
        }
        schema
    }

    /// The schema with a table made, changed or dropped.
    fn changed(schema: &Schema, change: impl FnOnce(&mut Keyspace)) -> Schema {
        let mut next = schema.clone();
        let mut keyspace = Keyspace::clone(&next.keyspaces["ks"]);
        change(&mut keyspace);
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        next
    }

    #[test]
    fn a_change_of_one_table_touches_one_table_of_any_number() {
        for count in [400, 1600] {
            let before = schema(count);
            let put = |keyspace: &mut Keyspace, table: Arc<Table>| {
                keyspace.tables.insert(table.name.clone(), table);
            };
            let made = SchemaDelta::between(&before, &changed(&before, |ks| put(ks, table(count, 1))));
            let altered = SchemaDelta::between(&before, &changed(&before, |ks| put(ks, table(7, 5))));
            let dropped = SchemaDelta::between(&before, &changed(&before, |ks| _ = ks.tables.remove("t7")));
            let sizes = |delta: &SchemaDelta| (delta.gone.len(), delta.come.len());
            assert_eq!([sizes(&made), sizes(&altered), sizes(&dropped)], [(0, 1), (1, 1), (1, 0)]);
        }
    }
}
