//! The form in which a cluster has a table: which of a compact table's columns statements can name there.
//!
//! `ALTER TABLE .. DROP COMPACT STORAGE` changes the flags of a table and no column (`AlterTableStatement.DropCompactStorage`), so both sides may have the same columns
//! and hide others. What is read and written there follows the form that the table has there; rows here are read in the form here.

use crate::attempts::ask;
use helenus_cluster::{Cluster, ClusterError};
use helenus_model::schema::{IndexKind, Table};
use helenus_model::types::Elements;
use helenus_wire::native::{Consistency, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The table here, with the flags that it has at the cluster.
///
/// # Errors
/// The cluster's schema cannot be read.
pub(crate) async fn as_there(cluster: &Cluster, table: &Arc<Table>) -> Result<Arc<Table>, ClusterError> {
    let found = flags(cluster, (&table.keyspace, &table.name)).await?;
    let here: BTreeSet<&String> = table.flags.iter().collect();
    Ok(match found {
        Some(flags) if flags.iter().collect::<BTreeSet<_>>() != here => {
            Arc::new(Table { flags, ..Table::clone(table) })
        }
        _ => Arc::clone(table),
    })
}

/// The table as it is made at a target: its indexes of kind KEYS as ordinary ones, because Cassandra makes no others on such a column
/// (`CreateIndexStatement`) and takes KEYS for the name of a class.
pub(crate) fn as_made(table: &Table) -> Table {
    let mut made = Table::clone(table);
    for index in made.indexes.values_mut().filter(|index| index.kind == IndexKind::Keys) {
        Arc::make_mut(index).kind = IndexKind::Composites;
    }
    made
}

/// The table as statements would name it after DROP COMPACT STORAGE, if it hides rows; else as it is. `LocalWriter` writes the hidden rows
/// that such statements name.
pub(crate) fn opened(table: &Arc<Table>) -> Arc<Table> {
    if !table.is_static_compact() {
        return Arc::clone(table);
    }
    let mut flags = vec!["compound".to_owned()];
    flags.extend(table.is_counter().then(|| "counter".to_owned()));
    Arc::new(Table { flags, ..Table::clone(table) })
}

/// The flags of a table at a cluster; `None` if it is not there.
///
/// # Errors
/// The cluster's schema cannot be read.
pub(crate) async fn flags(
    cluster: &Cluster,
    (keyspace, name): (&str, &str),
) -> Result<Option<Vec<String>>, ClusterError> {
    let text = "SELECT flags FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
    let values = [Value::Bytes(keyspace.as_bytes()), Value::Bytes(name.as_bytes())];
    let answer = ask(cluster, text, &values, Consistency::LocalOne).await?;
    let rows = answer.rows()?;
    let Some(row) = rows.iter().next() else { return Ok(None) };
    let row = row?;
    let set = row.cells().next().flatten();
    let words = Elements::of_list(set.unwrap_or_default()).flatten();
    Ok(Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_target::{Answer, ScriptedMove};
    use helenus_model::types::CqlType;
    use helenus_wire::native::{ErrorCode, ErrorMessage};

    #[tokio::test]
    async fn a_node_that_fails_for_a_moment_is_asked_again_for_the_form_of_a_table() {
        let create = [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, a int)",
        ];
        let mut failures = vec![ErrorCode::Unauthorized, ErrorCode::Overloaded, ErrorCode::IsBootstrapping];
        let of = ScriptedMove::new(&create, move |asked| {
            asked.text.starts_with("SELECT flags").then(|| match failures.pop() {
                Some(code) => Answer::Error(ErrorMessage::plain(code, "no")),
                None => Answer::Rows(
                    vec![("flags", CqlType::Set { element: Arc::new(CqlType::Text), frozen: false })],
                    Vec::new(),
                ),
            })
        });
        let of = of.await;
        let (cluster, table) = (&of.context.target.cluster, of.table("t"));
        // What does not pass is not asked again.
        let error = as_there(cluster, &table).await.unwrap_err();
        assert_eq!(error.server().map(|error| error.detail.code()), Some(ErrorCode::Unauthorized));
        assert!(Arc::ptr_eq(&as_there(cluster, &table).await.unwrap(), &table));
    }
}
