//! The statements that make the source's keyspaces, types, tables and indexes at the target.
//!
//! They are those of DESCRIBE, without what the target may not know: `cdc` (its nodes may refuse it) and options that are newer
//! than it. What is there already must have the same columns.

use crate::error::MoveError;
use crate::messages::MoveOrder;
use helenus_cluster::{Cluster, ClusterError};
use helenus_cql::LocalBackend;
use helenus_cql::syntax::split_statements;
use helenus_model::schema::{ColumnKind, Keyspace, Schema, Table};
use helenus_model::types::quote_identifier;
use helenus_wire::native::{Consistency, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Copies of each row in a data center, if the order does not say.
const COPIES: usize = 3;

/// Options of tables, and the first version that knows them.
const NEWER_OPTIONS: [(&str, (u32, u32)); 5] = [
    ("additional_write_policy", (4, 0)),
    ("read_repair", (4, 0)),
    ("memtable", (4, 1)),
    ("allow_auto_snapshot", (5, 0)),
    ("incremental_backups", (5, 0)),
];

/// What is to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Statements, in order.
    pub(crate) to_run: Vec<String>,
    /// Why tables cannot be made or written.
    pub(crate) problems: Vec<String>,
    /// What is otherwise than at the source.
    pub(crate) notes: Vec<String>,
}

/// A column at the target.
type TargetColumn = (String, String, i32, String);

/// Compares the schemas.
///
/// # Errors
/// The target's schema cannot be read.
pub(crate) async fn statements(
    cluster: &Cluster,
    (schema, names): (&Schema, &[(String, String)]),
    order: &MoveOrder,
) -> Result<Wanted, MoveError> {
    let mut wanted = Wanted::default();
    let version = major_minor(&cluster.topology().oldest_release());
    let keyspaces: BTreeSet<&str> = names.iter().map(|(keyspace, _)| &**keyspace).collect();
    for name in keyspaces {
        let Some(keyspace) = schema.keyspaces.get(name) else { continue };
        let is_there = has_keyspace(cluster, name).await?;
        let there = columns(cluster, name).await?;
        let mut of_move = Keyspace::clone(keyspace);
        of_move
            .tables
            .retain(|table, _| names.iter().any(|(of, name)| *of == *keyspace.name && **name == **table));
        match is_there {
            true => wanted.notes.push(format!("keyspace {name} is there: its replication stays as it is")),
            false => wanted.to_run.push(keyspace_text(cluster, &of_move, order)),
        }
        let present = of_move.tables.clone();
        of_move.tables.clear();
        for (table, definition) in present {
            match there.get(&*table) {
                Some(found) => wanted.problems.extend(differences(&definition, found)),
                None => {
                    let mut definition = Table::clone(&definition);
                    definition.options.cdc = false;
                    of_move.tables.insert(table, Arc::new(definition));
                }
            }
        }
        let text = LocalBackend::schema_text(&[&of_move]);
        let statements = split_statements(&text).into_iter();
        let statements = statements.filter(|text| !text.starts_with("CREATE KEYSPACE"));
        wanted.to_run.extend(statements.map(|text| for_version(text, version)));
        if version < (5, 0) && of_move.tables.values().any(|table| is_unified(table)) {
            wanted.problems.push(format!(
                "keyspace {name}: the target's version has no UnifiedCompactionStrategy; ALTER its tables here to another \
                 compaction, or make them at the target first"
            ));
        }
    }
    Ok(wanted)
}

fn is_unified(table: &Table) -> bool {
    table.options.compaction.get("class").is_some_and(|class| class.ends_with("UnifiedCompactionStrategy"))
}

/// How many copies of a row the target will have, if it makes the keyspace.
pub(crate) fn copies(nodes: &BTreeMap<String, usize>, keyspace: &str, order: &MoveOrder) -> u64 {
    let of_order = order.replication.get(keyspace).map(|map| {
        let values = map.split(',').filter_map(|pair| Some(pair.rsplit_once(':')?.1));
        // With transient copies, as in 3/1, the first number counts all.
        let factor = |text: &str| text.trim_matches([' ', '\'', '}']).split('/').next()?.parse::<u64>().ok();
        values.filter_map(factor).sum()
    });
    of_order.unwrap_or_else(|| nodes.values().map(|count| (*count).min(COPIES) as u64).sum())
}

/// The replication of a keyspace that is made.
fn keyspace_text(cluster: &Cluster, keyspace: &Keyspace, order: &MoveOrder) -> String {
    let replication = order.replication.get(&*keyspace.name).cloned().unwrap_or_else(|| {
        let mut nodes: BTreeMap<String, usize> = BTreeMap::new();
        for node in &cluster.topology().nodes {
            *nodes.entry(node.datacenter.clone()).or_default() += 1;
        }
        let copies = |(name, count): (&String, &usize)| format!("'{name}': {}", (*count).min(COPIES));
        let copies: Vec<String> = nodes.iter().map(copies).collect();
        format!("{{'class': 'NetworkTopologyStrategy', {}}}", copies.join(", "))
    });
    format!(
        "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {replication} AND durable_writes = {}",
        quote_identifier(&keyspace.name),
        keyspace.durable_writes
    )
}

/// Whether a keyspace is at the target.
async fn has_keyspace(cluster: &Cluster, name: &str) -> Result<bool, ClusterError> {
    let text = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let answer = cluster.query(text, &[Value::Bytes(name.as_bytes())], Consistency::One).await?;
    Ok(answer.rows()?.iter().next().is_some())
}

/// The columns of a keyspace's tables at the target, by table and name.
async fn columns(
    cluster: &Cluster,
    keyspace: &str,
) -> Result<BTreeMap<String, BTreeMap<String, TargetColumn>>, ClusterError> {
    let text = "SELECT table_name, column_name, kind, type, position, clustering_order FROM system_schema.columns \
                WHERE keyspace_name = ?";
    let answer = cluster.query(text, &[Value::Bytes(keyspace.as_bytes())], Consistency::One).await?;
    let mut tables: BTreeMap<String, BTreeMap<String, TargetColumn>> = BTreeMap::new();
    for row in answer.rows()?.iter() {
        let row = row?;
        let cells: Vec<&[u8]> = row.cells().map(Option::unwrap_or_default).collect();
        let [table, name, kind, ty, position, order] = cells[..] else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let position = position.first_chunk().map_or(-1, |bytes| i32::from_be_bytes(*bytes));
        let column = (text(kind), text(ty), position, text(order));
        tables.entry(text(table)).or_default().insert(text(name), column);
    }
    Ok(tables)
}

/// What is different between a table and the one at the target, a line each.
fn differences(table: &Table, there: &BTreeMap<String, TargetColumn>) -> Vec<String> {
    let name = format!("{}.{}", table.keyspace, table.name);
    let mut lines = Vec::new();
    for column in table.columns() {
        let (kind, position, order) = match column.kind {
            ColumnKind::PartitionKey => ("partition_key", column.position as i32, "none"),
            ColumnKind::Clustering => {
                ("clustering", column.position as i32, if column.reversed { "desc" } else { "asc" })
            }
            ColumnKind::Static => ("static", -1, "none"),
            ColumnKind::Regular => ("regular", -1, "none"),
        };
        let wanted = (kind.to_owned(), column.ty.to_string(), position, order.to_owned());
        let shown = |(kind, ty, position, order): &TargetColumn| match *position {
            -1 => format!("{kind} {ty}"),
            position => format!("{kind} {ty}, position {position}, order {order}"),
        };
        match there.get(&*column.name) {
            None => lines.push(format!(
                "{name}: the target has no column {}; ALTER TABLE {name} ADD it there, or drop the table there",
                column.name
            )),
            Some(found) if *found != wanted => lines.push(format!(
                "{name}: column {} is {} here and {} at the target; drop the table there, or move to another keyspace",
                column.name,
                shown(&wanted),
                shown(found)
            )),
            Some(_) => {}
        }
    }
    lines
}

/// The first two numbers of a version.
pub(crate) fn major_minor(version: &str) -> (u32, u32) {
    let mut numbers = version.split(['.', '-', '~']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// A statement without the options that a version does not know.
fn for_version(text: &str, version: (u32, u32)) -> String {
    let is_known = |line: &&str| {
        let option = line.trim_start().strip_prefix("AND ").unwrap_or_default();
        let name = option.split([' ', '=']).next().unwrap_or_default();
        !NEWER_OPTIONS.iter().any(|(newer, since)| *newer == name && version < *since)
    };
    text.lines().filter(is_known).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_target_is_not_given_options_that_it_does_not_know() {
        let text = "CREATE TABLE ks.t (a int PRIMARY KEY) WITH bloom_filter_fp_chance = 0.01\n    AND memtable = 'default'\n    \
                    AND comment = ''\n    AND incremental_backups = true";
        assert_eq!(for_version(text, (5, 0)), text);
        let old = for_version(text, (4, 0));
        assert!(
            !old.contains("memtable") && !old.contains("incremental") && old.contains("comment"),
            "{old}"
        );
        assert_eq!(major_minor("5.0.9"), (5, 0));
        assert_eq!(major_minor("4.1-beta1"), (4, 1));
    }
}
