//! The statements that make the source's keyspaces, types, tables and indexes at the target.
//!
//! They are those of DESCRIBE, without what the target may not know: `cdc` (its nodes may refuse it) and options that are newer
//! than it. What is there already must have the same columns, with the same masks.

use crate::attempts::ask;
use crate::definitions::{self, Both, TargetTable};
use crate::error::MoveError;
use crate::forms;
use crate::masks::{self, Masks};
use crate::messages::MoveOrder;
use crate::obstacles::of_map;
use crate::problems::{Problem, Scope};
use crate::versions::{is_known, major_minor};
use helenus_cluster::{Cluster, ClusterError, Replication};
use helenus_cql::LocalBackend;
use helenus_cql::syntax::split_statements;
use helenus_model::schema::{ColumnKind, DroppedColumn, Keyspace, Schema, Table};
use helenus_model::types::{CqlType, Elements, quote_identifier};
use helenus_wire::native::{Consistency, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Copies of each row in a data center, if the order does not say.
const COPIES: usize = 3;

/// What is to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Statements, in order.
    pub(crate) to_run: Vec<String>,
    /// Drops of columns of tables that are there, which were dropped here. A move that was killed may have made such a table; an operator may
    /// have added the column since, so they run only while the table has no rows.
    pub(crate) drops: Vec<String>,
    /// Tables that are at the target already.
    pub(crate) present: Vec<Arc<Table>>,
    /// Why tables cannot be made or written.
    pub(crate) problems: Vec<Problem>,
    /// What is otherwise than at the source.
    pub(crate) notes: Vec<String>,
    /// Columns and fields that the target alone has: a move leaves them, and a rollback would lose their values.
    pub(crate) only_there: Vec<Problem>,
}

/// A column at the target.
type TargetColumn = (String, String, i32, String);
/// The fields of a user type with their types, in order.
pub(crate) type Fields = Vec<(String, String)>;

/// Compares the schemas, and the definitions of tables that are there already: the statements make them equal.
///
/// # Errors
/// The target's schema cannot be read.
pub(crate) async fn statements(
    cluster: &Cluster,
    (schema, names): (&Schema, &[(String, String)]),
    order: &MoveOrder,
) -> Result<Wanted, MoveError> {
    let mut wanted = missing(cluster, (schema, names), order).await?;
    let mut of_keyspace: Option<(Arc<str>, BTreeMap<String, TargetTable>, Masks)> = None;
    for table in &wanted.present {
        let name = &table.keyspace;
        // Tables come keyspace by keyspace.
        if of_keyspace.as_ref().is_none_or(|(read, ..)| read != name) {
            let of = (&**name, None);
            let there = (definitions::there(cluster, of).await?, masks::there(cluster, of).await?);
            of_keyspace = Some((Arc::clone(name), there.0, there.1));
        }
        let (Some((_, there, masked)), Some(keyspace)) = (&of_keyspace, schema.keyspaces.get(name)) else {
            continue;
        };
        let of_masks = masks::differences(table, masked).into_iter();
        wanted.problems.extend(of_masks.map(|text| Problem::of_table(table, text)));
        let Some(there) = there.get(&*table.name) else { continue };
        let carried = definitions::Items::new();
        let both = Both { keyspace, table, there, masks: &Masks::new(), carried: &carried };
        for statement in differences_of(&both, table) {
            // Each table of a keyspace asks for what is of the keyspace.
            if !wanted.to_run.contains(&statement) {
                wanted.to_run.push(statement);
            }
        }
    }
    Ok(wanted)
}

/// The statements that make the options and indexes of a table there those of the table here. Masks are compared, and never made at a start.
fn differences_of(both: &Both<'_>, table: &Table) -> Vec<String> {
    let without_masks = Table { masks: BTreeMap::new(), ..table.clone() };
    let both = Both { table: &without_masks, ..*both };
    definitions::differences(&both).into_iter().flat_map(|difference| difference.statements).collect()
}

/// The statements that make what the target does not have. What it has is compared by its columns.
///
/// # Errors
/// The target's schema cannot be read.
pub(crate) async fn missing(
    cluster: &Cluster,
    (schema, names): (&Schema, &[(String, String)]),
    order: &MoveOrder,
) -> Result<Wanted, MoveError> {
    let mut wanted = Wanted::default();
    let version = major_minor(&cluster.topology().oldest_release());
    let keyspaces: BTreeSet<&str> = names.iter().map(|(keyspace, _)| &**keyspace).collect();
    let only = match names {
        [(_, table)] => Some(&**table),
        _ => None,
    };
    for name in keyspaces {
        let Some(keyspace) = schema.keyspaces.get(name) else { continue };
        let is_there = has_keyspace(cluster, name).await?;
        let there = columns(cluster, (name, only)).await?;
        let types = types(cluster, name).await?;
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
                Some(found) => {
                    let problem = |text: String| Problem::of_table(&definition, text);
                    wanted.problems.extend(differences(&definition, found).into_iter().map(problem));
                    wanted.drops.extend(drops(&definition, found));
                    wanted.only_there.extend(only_there(&definition, found).into_iter().map(problem));
                    wanted.present.push(definition);
                }
                None => {
                    let mut definition = forms::as_made(&definition);
                    definition.options.cdc = false;
                    of_move.tables.insert(table, Arc::new(definition));
                }
            }
        }
        let mut alters = Vec::new();
        for (ty, fields) in of_move.types.iter().filter_map(|(name, ty)| Some((ty, types.get(&**name)?))) {
            compare_fields((&of_move.name, &ty.name, &ty.fields), fields, (&mut alters, &mut wanted));
        }
        of_move.types.retain(|name, _| !types.contains_key(&**name));
        let text = LocalBackend::schema_text(&[&of_move]);
        let statements = split_statements(&text).into_iter();
        let statements = statements.filter(|text| !text.starts_with("CREATE KEYSPACE"));
        let statements = statements.map(|text| for_version(text, version));
        let (types, others): (Vec<_>, Vec<_>) = statements.partition(|text| text.starts_with("CREATE TYPE"));
        // An added field may be of a type that is made.
        wanted.to_run.extend(types.into_iter().chain(alters).chain(others));
        let unified = of_move.tables.values().filter(|table| version < (5, 0) && is_unified(table));
        wanted.problems.extend(unified.map(|table| {
            let text = format!(
                "{name}.{}: the target's version has no UnifiedCompactionStrategy; ALTER TABLE here WITH another compaction, or make the \
                 table at the target first",
                table.name
            );
            Problem::of_table(table, text)
        }));
    }
    Ok(wanted)
}

fn is_unified(table: &Table) -> bool {
    table.options.compaction.get("class").is_some_and(|class| class.ends_with("UnifiedCompactionStrategy"))
}

/// How many copies of a row the target will have, if it makes the keyspace.
pub(crate) fn copies(nodes: &BTreeMap<String, usize>, keyspace: &str, order: &MoveOrder) -> u64 {
    let of_order = order.replication.get(keyspace).and_then(|map| of_map(map, nodes).ok());
    let copies = match of_order {
        Some(Replication::Simple(factor)) => factor,
        Some(Replication::ByDatacenter(factors)) => factors.values().sum(),
        Some(Replication::Anywhere) => nodes.values().sum(),
        None => nodes.values().map(|count| (*count).min(COPIES)).sum(),
    };
    copies as u64
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
    let answer = ask(cluster, text, &[Value::Bytes(name.as_bytes())], Consistency::One).await?;
    Ok(answer.rows()?.iter().next().is_some())
}

/// The columns of a keyspace's tables at the target, by table and name. `only`: of this table alone.
async fn columns(
    cluster: &Cluster,
    (keyspace, only): (&str, Option<&str>),
) -> Result<BTreeMap<String, BTreeMap<String, TargetColumn>>, ClusterError> {
    let text = format!(
        "SELECT table_name, column_name, kind, type, position, clustering_order FROM system_schema.columns WHERE keyspace_name = ?{}",
        definitions::of_one(only)
    );
    let names = [Some(keyspace), only].into_iter().flatten();
    let names: Vec<Value<'_>> = names.map(|name| Value::Bytes(name.as_bytes())).collect();
    let answer = ask(cluster, &text, &names, Consistency::One).await?;
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

/// The fields of a keyspace's user types at the target, by type.
pub(crate) async fn types(
    cluster: &Cluster,
    keyspace: &str,
) -> Result<BTreeMap<String, Fields>, ClusterError> {
    let text = "SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name = ?";
    let answer = ask(cluster, text, &[Value::Bytes(keyspace.as_bytes())], Consistency::One).await?;
    let mut types = BTreeMap::new();
    for row in answer.rows()?.iter() {
        let row = row?;
        let cells: Vec<&[u8]> = row.cells().map(Option::unwrap_or_default).collect();
        let [name, fields, of_fields] = cells[..] else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let of_fields = Elements::of_list(of_fields).flatten().map(text);
        let fields = Elements::of_list(fields).flatten().map(text).zip(of_fields);
        types.insert(text(name), fields.collect());
    }
    Ok(types)
}

/// The fields of a user type here.
pub(crate) fn fields(here: &[(Arc<str>, CqlType)]) -> Fields {
    here.iter().map(|(field, ty)| (field.to_string(), ty.to_string())).collect()
}

/// Fields as CQL writes them.
pub(crate) fn shown(fields: &Fields) -> String {
    fields.iter().map(|(field, ty)| format!("{field} {ty}")).collect::<Vec<_>>().join(", ")
}

/// Compares the fields of a user type, whose values are stored by position: one side's must begin with the other's. Those that were added
/// here are added there.
fn compare_fields(
    (keyspace, name, here): (&str, &str, &[(Arc<str>, CqlType)]),
    there: &Fields,
    (alters, wanted): (&mut Vec<String>, &mut Wanted),
) {
    let of = Scope::Type(keyspace.to_owned(), name.to_owned());
    let name = format!("{}.{}", quote_identifier(keyspace), quote_identifier(name));
    let of_here = fields(here);
    if let Some(added) = of_here.strip_prefix(&there[..]) {
        let add = |(field, ty): &(String, String)| {
            format!("ALTER TYPE {name} ADD {} {ty}", quote_identifier(field))
        };
        alters.extend(added.iter().map(add));
    } else if let Some(added) = there.strip_prefix(&of_here[..]) {
        let problem = |(field, _): &(String, String)| {
            let text = format!(
                "the type {name} has a field {field} at the target alone, and its values would be lost"
            );
            Problem { of: of.clone(), text }
        };
        wanted.only_there.extend(added.iter().map(problem));
    } else {
        let text = format!(
            "the type {name} is ({}) here and ({}) at the target, and values are stored by the positions of fields: drop what uses it \
             there, and the type",
            shown(&of_here),
            shown(there)
        );
        wanted.problems.push(Problem { of, text });
    }
}

/// The columns that the target's table alone has, a line each.
fn only_there(table: &Table, there: &BTreeMap<String, TargetColumn>) -> Vec<String> {
    let name = format!("{}.{}", table.keyspace, table.name);
    let added = there.keys().filter(|column| table.column(column).is_none());
    let line = |column: &String| {
        format!(
            "{name}: the target alone has a column {column}, and its values would be lost: ALTER TABLE {name} DROP it there if they are not \
             wanted"
        )
    };
    added.map(line).collect()
}

/// Drops the columns that were dropped here: a table is made with them, so that the target knows when they were.
fn drops(table: &Table, there: &BTreeMap<String, TargetColumn>) -> Vec<String> {
    let gone = table.dropped.iter().filter(|(name, _)| table.column(name).is_none());
    let gone = gone.filter(|(name, _)| there.contains_key(&***name));
    let of = format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
    let drop = |(name, column): (&Arc<str>, &DroppedColumn)| {
        format!("ALTER TABLE {of} DROP {} USING TIMESTAMP {}", quote_identifier(name), column.dropped_us)
    };
    gone.map(drop).collect()
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

/// A statement without the options that a version does not know.
fn for_version(text: &str, version: (u32, u32)) -> String {
    let is_kept = |line: &&str| {
        let option = line.trim_start().strip_prefix("AND ").unwrap_or_default();
        let name = option.split([' ', '=']).next().unwrap_or_default();
        is_known(name, version)
    };
    text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_compared_in_their_order() {
        let fields = |names: &[&str]| -> Vec<(Arc<str>, CqlType)> {
            names.iter().map(|name| (Arc::from(*name), CqlType::Int)).collect()
        };
        let compared = |here: &[&str], there: &[&str]| {
            let there: Fields = there.iter().map(|name| ((*name).to_owned(), "int".to_owned())).collect();
            let (mut alters, mut wanted) = (Vec::new(), Wanted::default());
            compare_fields(("ks", "t", &fields(here)), &there, (&mut alters, &mut wanted));
            (alters, wanted.only_there.len(), wanted.problems.len())
        };
        assert_eq!(compared(&["a", "b"], &["a", "b"]), (vec![], 0, 0));
        let added = vec!["ALTER TYPE ks.t ADD b int".to_owned(), "ALTER TYPE ks.t ADD \"C\" int".to_owned()];
        assert_eq!(compared(&["a", "b", "C"], &["a"]), (added, 0, 0));
        assert_eq!(compared(&["a"], &["a", "b", "c"]), (vec![], 2, 0));
        assert_eq!(compared(&["a", "b"], &["b", "a"]), (vec![], 0, 1));
        assert_eq!(compared(&["a", "b"], &["a", "c"]), (vec![], 0, 1));
    }

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
    }
}
