//! Makes the keyspace, the types, the table and the indexes of a table of the cluster here, by the cluster's own DESCRIBE.
//!
//! A keyspace gets one copy here. What is here already stays as it is; a table that is must have the same columns.

use super::layout::{self, ColumnRow};
use crate::attempts::ask;
use crate::error::MoveError;
use crate::forms;
use crate::schema::{Fields, fields, shown, types};
use helenus_cluster::{Cluster, ClusterError};
use helenus_cql::LocalBackend;
use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
use helenus_model::schema::{ColumnKind, Table};
use helenus_model::types::quote_identifier;
use helenus_wire::native::{Consistency, ErrorCode, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A table of the cluster.
pub(super) type Name = (String, String);

/// The tables that names of keyspaces and tables stand for.
///
/// # Errors
/// A name that the cluster does not have.
pub(super) async fn tables(cluster: &Cluster, names: &[String]) -> Result<Vec<Name>, MoveError> {
    let mut found = Vec::new();
    for name in names {
        let (keyspace, table) = match name.split_once('.') {
            Some((keyspace, table)) => (keyspace, Some(table)),
            None => (&**name, None),
        };
        let text = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
        let rows = texts(cluster, text, &[Value::Bytes(keyspace.as_bytes())]).await?;
        let of_name = rows.iter().filter_map(|row| row.first());
        let before = found.len();
        for of in of_name.filter(|of| table.is_none_or(|table| table == **of)) {
            found.push((keyspace.to_owned(), of.clone()));
        }
        if found.len() == before {
            let kind = if table.is_some() { "table" } else { "keyspace with tables" };
            return Err(MoveError::Table(format!("the cluster has no {kind} {name}")));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Makes a table, unless it is here. Returns it.
///
/// # Errors
/// The cluster does not describe it; a statement fails here; the table is here with other columns.
pub(super) async fn make(
    cluster: &Cluster,
    backend: &Arc<LocalBackend>,
    (keyspace, name): &Name,
    notes: &mut Vec<String>,
) -> Result<Arc<Table>, MoveError> {
    let present = || backend.database().schema().table(keyspace, name).cloned();
    check_types(cluster, backend, (keyspace, name)).await?;
    if let Some(table) = present() {
        check(cluster, &table).await?;
        return Ok(table);
    }
    let quoted = quote_identifier(keyspace);
    let statements = describe(cluster, &format!("KEYSPACE {quoted}")).await?;
    run(
        backend,
        &format!(
            "CREATE KEYSPACE IF NOT EXISTS {quoted} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ),
    )?;
    let has_type = |name: &str| {
        let schema = backend.database().schema();
        schema.keyspaces.get(&**keyspace).is_some_and(|keyspace| keyspace.types.contains_key(name))
    };
    for (_, name, text) in statements.iter().filter(|(kind, ..)| kind == "type") {
        if !has_type(name.trim_matches('"')) {
            run(backend, text)?;
        }
    }
    for (kind, what, text) in describe(cluster, &format!("TABLE {quoted}.{}", quote_identifier(name))).await?
    {
        match &*kind {
            // It would keep the log here for a reader that is there.
            "table" => {
                let columns = columns(cluster, keyspace, name).await?;
                let text = match layout::is_needed(&text, &columns) {
                    true => {
                        let flags = forms::flags(cluster, (keyspace, name)).await?.unwrap_or_default();
                        layout::create_text((keyspace, name), &columns, &flags, &text)
                    }
                    false => text.replace("AND cdc = true", "AND cdc = false"),
                };
                run(backend, &text)?;
            }
            "index" => {
                if let Err(error) = run(backend, &text) {
                    notes.push(format!("{keyspace}.{name}: the index {what} is not made: {error}"));
                }
            }
            kind => notes.push(format!("{keyspace}.{name}: the {kind} {what} is left out")),
        }
    }
    present().ok_or_else(|| MoveError::Table(format!("{keyspace}.{name} was not made here")))
}

/// The columns of a table there.
async fn columns(cluster: &Cluster, keyspace: &str, name: &str) -> Result<Vec<ColumnRow>, MoveError> {
    let text = "SELECT column_name, kind, type, clustering_order, position FROM system_schema.columns WHERE keyspace_name = ? AND \
                table_name = ?";
    let values = [Value::Bytes(keyspace.as_bytes()), Value::Bytes(name.as_bytes())];
    let answer = ask(cluster, text, &values, Consistency::LocalOne).await?;
    let mut found = Vec::new();
    for row in answer.rows()?.iter() {
        let row = row.map_err(ClusterError::from)?;
        let cells: Vec<&[u8]> = row.cells().map(Option::unwrap_or_default).collect();
        let [name, kind, ty, order, position] = cells[..] else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let position = position.first_chunk().map_or(-1, |bytes| i32::from_be_bytes(*bytes));
        found.push(ColumnRow {
            name: text(name),
            kind: text(kind),
            ty: text(ty),
            position,
            order: text(order),
        });
    }
    Ok(found)
}

/// Kind, name and text of what DESCRIBE answers.
async fn describe(cluster: &Cluster, what: &str) -> Result<Vec<(String, String, String)>, MoveError> {
    let rows = texts(cluster, &format!("DESCRIBE {what}"), &[]).await.map_err(|error| match &error {
        MoveError::Target(of) if is_not_understood(of) => MoveError::Table(format!(
            "{error}; the cluster ({}) does not describe its schema (Cassandra does since 4.0): make the tables here first",
            cluster.topology().oldest_release()
        )),
        _ => error,
    })?;
    let part = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
    Ok(rows.iter().map(|row| (part(row, 1), part(row, 2), part(row, 3))).collect())
}

/// Whether a node has no such statement.
fn is_not_understood(error: &ClusterError) -> bool {
    error.is_invalid() || error.server().is_some_and(|error| error.detail.code() == ErrorCode::Syntax)
}

/// The rows of a query as texts.
async fn texts(cluster: &Cluster, text: &str, values: &[Value<'_>]) -> Result<Vec<Vec<String>>, MoveError> {
    let answer = ask(cluster, text, values, Consistency::LocalOne).await?;
    let mut found = Vec::new();
    for row in answer.rows()?.iter() {
        let row = row.map_err(ClusterError::from)?;
        let text = |cell: Option<&[u8]>| String::from_utf8_lossy(cell.unwrap_or_default()).into_owned();
        found.push(row.cells().map(text).collect());
    }
    Ok(found)
}

/// Runs a statement here.
fn run(backend: &LocalBackend, text: &str) -> Result<(), MoveError> {
    let identity = Identity::server();
    let answer = backend.query(text, &Request::plain(&identity, &[]), &mut NoRows);
    let failed = |error: &dyn std::fmt::Display| {
        let first = text.lines().next().unwrap_or_default();
        MoveError::Table(format!("{error}; in {first} ..; make it here in another way first"))
    };
    match answer.map_err(|error| failed(&error))?.outcome {
        Outcome::SchemaChanged(_, ticket) | Outcome::Done(ticket) => {
            ticket.wait().map_err(|error| failed(&error))
        }
        _ => Ok(()),
    }
}

/// Compares the user types of a table with those of the same names here. Values are stored by the positions of fields: a type here begins with
/// the fields that it has there.
async fn check_types(
    cluster: &Cluster,
    backend: &Arc<LocalBackend>,
    (keyspace, name): (&str, &str),
) -> Result<(), MoveError> {
    let schema = backend.database().schema();
    let Some(of_keyspace) = schema.keyspaces.get(keyspace).filter(|keyspace| !keyspace.types.is_empty())
    else {
        return Ok(());
    };
    let there = types(cluster, keyspace).await?;
    let columns = columns(cluster, keyspace, name).await?;
    for name in named_types(columns.iter().map(|column| &*column.ty), &there) {
        let (Some(of_cluster), Some(here)) = (there.get(&name), of_keyspace.types.get(&*name)) else {
            continue;
        };
        let here = fields(&here.fields);
        if !here.starts_with(of_cluster) {
            return Err(MoveError::Table(format!(
                "the type {keyspace}.{name} is ({}) here and ({}) at the cluster, and values are stored by the positions of fields: ALTER TYPE \
                 .. ADD what it lacks here, drop it here with what uses it, or pull into another directory",
                shown(&here),
                shown(of_cluster)
            )));
        }
    }
    Ok(())
}

/// The user types that these types name, and those within them.
fn named_types<'t>(
    names: impl Iterator<Item = &'t str>,
    types: &'t BTreeMap<String, Fields>,
) -> BTreeSet<String> {
    let (mut found, mut to_read) = (BTreeSet::new(), names.collect::<Vec<_>>());
    while let Some(text) = to_read.pop() {
        let words = text.split(['<', '>', ',']).map(|word| word.trim().trim_matches('"'));
        for (name, fields) in words.filter_map(|word| types.get_key_value(word)) {
            if found.insert(name.clone()) {
                to_read.extend(fields.iter().map(|(_, ty)| &**ty));
            }
        }
    }
    found
}

/// Compares the columns of a table that is here.
async fn check(cluster: &Cluster, table: &Table) -> Result<(), MoveError> {
    let text = "SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?";
    let values = [Value::Bytes(table.keyspace.as_bytes()), Value::Bytes(table.name.as_bytes())];
    let rows = texts(cluster, text, &values).await?;
    let there: BTreeMap<&str, String> = rows
        .iter()
        .filter_map(|row| match &row[..] {
            [name, kind, ty] => Some((&**name, format!("{kind} {ty}"))),
            _ => None,
        })
        .collect();
    let kind = |kind: ColumnKind| match kind {
        ColumnKind::PartitionKey => "partition_key",
        ColumnKind::Clustering => "clustering",
        ColumnKind::Static => "static",
        ColumnKind::Regular => "regular",
    };
    let here: BTreeMap<&str, String> = table
        .columns()
        .map(|column| (&*column.name, format!("{} {}", kind(column.kind), column.ty)))
        .collect();
    for name in here.keys().chain(there.keys()) {
        let (one, other) = (here.get(name), there.get(name));
        if one != other {
            let shown = |side: Option<&String>| side.map_or("not there".to_owned(), String::clone);
            return Err(MoveError::Table(format!(
                "{}.{} is here already with other columns: {name} is {} here and {} at the cluster; drop or alter the table \
                 here, or pull into another directory",
                table.keyspace,
                table.name,
                shown(one),
                shown(other)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_within_types() {
        let field = |ty: &str| vec![("f".to_owned(), ty.to_owned())];
        let types = [
            ("a", field("frozen<map<text, frozen<\"B\">>>")),
            ("B", field("int")),
            ("c", field("frozen<a>")),
            ("int2", field("int")),
        ];
        let types = types.map(|(name, fields)| (name.to_owned(), fields)).into();
        let named = |text: &str| named_types([text].into_iter(), &types).into_iter().collect::<Vec<_>>();
        assert_eq!(named("int"), Vec::<String>::new());
        assert_eq!(named("list<frozen<a>>"), ["B", "a"]);
        assert_eq!(named("frozen<tuple<int, frozen<c>>>"), ["B", "a", "c"]);
    }
}
