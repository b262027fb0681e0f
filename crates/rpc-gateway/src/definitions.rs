//! The statements that make the table of a column family at the cluster, and change it.
//!
//! Such a table is what DROP COMPACT STORAGE leaves of the family: `families` shows it as the same family again. COMPACT STORAGE itself is
//! not used, because statements do not see all columns of a static family that has it, and a cluster may refuse it
//! (`compact_tables_enabled`).

use crate::families::{Layout, family_of};
use crate::texts::{list, table_name};
use helenus_cql::CqlError;
use helenus_model::schema::{CLASS_OPTION, Column, Index, IndexKind, TARGET_OPTION, Table};
use helenus_model::types::quote_identifier;
use helenus_rpc::FamilyChange;

/// The statements of a change.
///
/// # Errors
/// The family cannot be one of a cluster.
pub(crate) fn statements(change: &FamilyChange<'_>) -> Result<Vec<String>, CqlError> {
    match change {
        FamilyChange::New { table, options } => create(table, options),
        FamilyChange::Other { before, after, options } => alter((before, after), options),
    }
}

fn create(table: &Table, options: &str) -> Result<Vec<String>, CqlError> {
    if table.is_super() {
        return Err(CqlError::Invalid(format!(
            "column family {} cannot be made at the cluster: it would have super columns, which CQL cannot express; use a CompositeType \
             of both comparators",
            table.name
        )));
    }
    let flags = vec!["compound".to_owned()];
    if let Err(why) = family_of(&Table { flags, ..table.clone() }) {
        return Err(CqlError::Invalid(format!(
            "column family {} cannot be made at the cluster: {why}",
            table.name
        )));
    }
    let plain = |column: &Column| format!("{} {}", quote_identifier(&column.name), column.ty);
    let mut parts: Vec<String> = table.partition_key.iter().chain(&table.clustering).map(plain).collect();
    parts.extend(table.statics.iter().map(|column| format!("{} static", plain(column))));
    parts.extend(table.regulars.iter().map(plain));
    parts.push(format!("PRIMARY KEY (({}), {})", list(&table.partition_key), list(&table.clustering)));
    let order = table.clustering.iter().map(|column| {
        let direction = if column.reversed { "DESC" } else { "ASC" };
        format!("{} {direction}", quote_identifier(&column.name))
    });
    let order: Vec<String> = order.collect();
    let mut out = vec![format!(
        "CREATE TABLE {} ({}) WITH CLUSTERING ORDER BY ({}) AND {options}",
        table_name(table),
        parts.join(", "),
        order.join(", ")
    )];
    out.extend(table.indexes.values().map(|index| create_index(table, index)));
    Ok(out)
}

fn create_index(table: &Table, index: &Index) -> String {
    let (custom, using) = match index.kind {
        IndexKind::Custom => {
            let class = index.options.get(CLASS_OPTION).map_or("", String::as_str);
            ("CUSTOM ", format!(" USING {}", quoted(class)))
        }
        IndexKind::Keys | IndexKind::Composites => ("", String::new()),
    };
    let own = index.options.iter().filter(|(name, _)| *name != CLASS_OPTION && *name != TARGET_OPTION);
    let own: Vec<String> = own.map(|(name, value)| format!("{}: {}", quoted(name), quoted(value))).collect();
    let options = match index.kind == IndexKind::Custom && !own.is_empty() {
        true => format!(" WITH OPTIONS = {{{}}}", own.join(", ")),
        false => String::new(),
    };
    let (name, table) = (quote_identifier(&index.name), table_name(table));
    format!("CREATE {custom}INDEX {name} ON {table} ({}){using}{options}", index.target())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn alter((before, after): (&Table, &Table), options: &str) -> Result<Vec<String>, CqlError> {
    let name = table_name(before);
    for column in after.statics.iter().chain(&after.regulars) {
        if let Some(present) = before.column(&column.name).filter(|present| present.ty != column.ty) {
            return Err(CqlError::Invalid(format!(
                "column {} of {} cannot be changed from {} to {}: Cassandra does not change the types of columns",
                column.name, before.name, present.ty, column.ty
            )));
        }
    }
    let mut out = vec![format!("ALTER TABLE {name} WITH {options}")];
    let is_kept = |index: &Index, others: &Table| {
        let other = others.indexes.get(&index.name);
        let is_custom = |index: &Index| index.kind == IndexKind::Custom;
        other.is_some_and(|other| other.options == index.options && is_custom(other) == is_custom(index))
    };
    for index in before.indexes.values().filter(|index| !is_kept(index, after) && is_declared(before, index))
    {
        let keyspace = quote_identifier(&before.keyspace);
        out.push(format!("DROP INDEX {keyspace}.{}", quote_identifier(&index.name)));
    }
    for column in before.statics.iter().filter(|column| after.column(&column.name).is_none()) {
        out.push(format!("ALTER TABLE {name} DROP {}", quote_identifier(&column.name)));
    }
    let is_static = if Layout::of(before) == Layout::Columns { "" } else { " static" };
    for column in after.statics.iter().filter(|column| before.column(&column.name).is_none()) {
        let column_name = quote_identifier(&column.name);
        out.push(format!("ALTER TABLE {name} ADD {column_name} {}{is_static}", column.ty));
    }
    let made = after.indexes.values().filter(|index| !is_kept(index, before));
    out.extend(made.map(|index| create_index(after, index)));
    Ok(out)
}

/// Whether an index is of a declared column: a definition names no other, and so does not drop any.
fn is_declared(table: &Table, index: &Index) -> bool {
    let (_, name) = index.part();
    table.statics.iter().any(|column| *column.name == *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::schema::{ColumnKind, TableId};
    use helenus_model::types::CqlType;
    use std::sync::Arc;

    fn column(name: &str, kind: ColumnKind, ty: CqlType) -> Column {
        Column::new(name, kind, ty)
    }

    fn family(statics: &[(&str, CqlType)]) -> Table {
        let columns = [
            column("Id", ColumnKind::PartitionKey, CqlType::Text),
            Column { reversed: true, ..column("column1", ColumnKind::Clustering, CqlType::Text) },
            column("value", ColumnKind::Regular, CqlType::Blob),
        ];
        let statics = statics.iter().map(|(name, ty)| column(name, ColumnKind::Static, ty.clone()));
        Table::new(("ks", "T"), TableId(uuid::Uuid::nil()), columns.into_iter().chain(statics))
    }

    fn index(name: &str, target: &str, kind: IndexKind, options: &[(&str, &str)]) -> Arc<Index> {
        let options = options.iter().copied().chain([(TARGET_OPTION, target)]);
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Arc::new(Index { name: name.into(), id: TableId(uuid::Uuid::nil()), kind, options })
    }

    #[test]
    fn a_family_becomes_a_table_without_compact_storage_and_its_indexes() {
        let mut table = family(&[("age", CqlType::BigInt)]);
        let sai = [(CLASS_OPTION, "sai"), ("it's", "so")];
        table.indexes.insert("a".into(), index("a", "age", IndexKind::Keys, &[]));
        table.indexes.insert("b".into(), index("b", "age", IndexKind::Custom, &sai));
        let made = statements(&FamilyChange::New { table: &table, options: "comment = ''" }).unwrap();
        assert_eq!(
            made,
            [
                "CREATE TABLE ks.\"T\" (\"Id\" text, column1 text, age bigint static, value blob, \
                 PRIMARY KEY ((\"Id\"), column1)) WITH CLUSTERING ORDER BY (column1 DESC) AND comment = ''",
                "CREATE INDEX a ON ks.\"T\" (age)",
                "CREATE CUSTOM INDEX b ON ks.\"T\" (age) USING 'sai' WITH OPTIONS = {'it''s': 'so'}",
            ]
        );
    }

    #[test]
    fn a_change_is_what_differs() {
        let mut before = family(&[("age", CqlType::BigInt), ("state", CqlType::Text)]);
        before.indexes.insert("a".into(), index("a", "age", IndexKind::Keys, &[]));
        before.indexes.insert("s".into(), index("s", "state", IndexKind::Keys, &[]));
        before.indexes.insert("v".into(), index("v", "value", IndexKind::Keys, &[]));
        let mut after = family(&[("age", CqlType::BigInt), ("new", CqlType::Int)]);
        after.indexes.insert("a".into(), index("a", "age", IndexKind::Composites, &[]));
        after.indexes.insert("n".into(), index("n", "new", IndexKind::Keys, &[]));
        let change =
            |before, after| statements(&FamilyChange::Other { before, after, options: "comment = 'c'" });
        assert_eq!(
            change(&before, &after).unwrap(),
            [
                "ALTER TABLE ks.\"T\" WITH comment = 'c'",
                "DROP INDEX ks.s",
                "ALTER TABLE ks.\"T\" DROP state",
                "ALTER TABLE ks.\"T\" ADD new int static",
                "CREATE INDEX n ON ks.\"T\" (new)",
            ]
        );
        let error = change(&before, &family(&[("age", CqlType::Blob)])).unwrap_err().to_string();
        assert!(error.contains("column age of T cannot be changed from bigint to blob"), "{error}");
    }
}
