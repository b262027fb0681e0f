//! Whether a table could be brought back: each statement that a rollback uses is prepared, at the target and here, and none is run.

use crate::attempts::Attempts;
use crate::error::MoveError;
use crate::forms;
use crate::remote::{LocalWriter, RemoteTable, Rows};
use crate::source::{StatementKind, written_columns};
use helenus_cluster::{Cluster, ClusterError};
use helenus_cql::LocalBackend;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, quote_identifier};
use std::sync::Arc;

/// The reads of a rollback.
const READS: [(bool, bool); 3] = [(false, true), (true, true), (true, false)];

/// Why a table could not be brought back, if it could not.
///
/// # Errors
/// The target does not answer.
pub(crate) async fn way_back(
    backend: &LocalBackend,
    cluster: &Cluster,
    table: &Arc<Table>,
) -> Result<Result<(), String>, MoveError> {
    let of_remote = RemoteTable::new(table, &forms::as_there(cluster, table).await?, cluster);
    for (from, until) in READS {
        let text = of_remote.texts.text(&Rows::Range { from, until, condition: None });
        let mut attempts = Attempts::new();
        while let Err(error) = cluster.prepare(&text, None).await {
            match attempts.after(error) {
                Ok(pause) => tokio::time::sleep(pause).await,
                Err(ClusterError::Server(error)) => return Ok(Err(format!("the target: {}", error.message))),
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut writer = LocalWriter::new(backend, table);
    let checked =
        if table.is_counter() { check_counters(backend, table) } else { writer.check(&kinds(table)) };
    Ok(checked.map_err(|error| error.to_string()))
}

/// The statements that may be run here. Rows that a compact table hides are written without (`hidden_rows`).
fn kinds(table: &Table) -> Vec<StatementKind> {
    let is_list = |column: &Column| matches!(column.ty, CqlType::List { frozen: false, .. });
    let mut kinds = Vec::new();
    if !table.is_static_compact() {
        kinds.push(StatementKind::Insert);
        if !table.clustering.is_empty() || table.statics.is_empty() {
            kinds.push(StatementKind::DeleteRow);
        }
        let has_values = written_columns(table, false).next().is_some();
        kinds.extend(has_values.then_some(StatementKind::Update));
        if table.is_compact() {
            // Rows whose clustering ends early.
            for values in (1..table.clustering.len()).map(|values| values as u16) {
                kinds.push(StatementKind::InsertPrefix(values));
                kinds.extend(has_values.then_some(StatementKind::UpdatePrefix(values)));
            }
        }
    }
    if written_columns(table, true).next().is_some() {
        kinds.push(StatementKind::UpdateStatic);
    }
    let columns = table.regulars.iter().chain(&table.statics);
    for column in columns.filter(|column| !table.is_hidden(column) && column.ty.is_multi_cell()) {
        kinds.push(StatementKind::DeleteColumn(column.id));
        match is_list(column) {
            true => kinds.push(StatementKind::Append(column.id)),
            false if !matches!(column.ty, CqlType::Udt(_)) => kinds.push(StatementKind::Remove(column.id)),
            false => {}
        }
    }
    kinds
}

/// Counters are added to, and deleted alone or with their row (`counters_back`).
fn check_counters(backend: &LocalBackend, table: &Table) -> Result<(), MoveError> {
    use helenus_cql::backend::{Backend, Identity};
    let of = format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
    let identity = Identity::server();
    for (columns, clustering) in [(&table.regulars, &table.clustering[..]), (&table.statics, &[][..])] {
        let keys = table.partition_key.iter().chain(clustering);
        let keys: Vec<_> = keys.map(|column| format!("{} = ?", quote_identifier(&column.name))).collect();
        let key = keys.join(" AND ");
        let columns: Vec<&Column> = columns.iter().filter(|column| !table.is_hidden(column)).collect();
        let is_row = !columns.is_empty() && clustering.len() == table.clustering.len();
        let mut texts: Vec<String> =
            is_row.then(|| format!("DELETE FROM {of} WHERE {key}")).into_iter().collect();
        for column in columns {
            let name = quote_identifier(&column.name);
            texts.push(format!("UPDATE {of} SET {name} = {name} + ? WHERE {key}"));
            texts.push(format!("DELETE {name} FROM {of} WHERE {key}"));
        }
        for text in texts {
            let prepared = backend.prepare(&text, None, &identity);
            prepared.map_err(|error| MoveError::Table(format!("{error}; in {text}")))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_cql::LocalOptions;
    use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
    use helenus_engine::{Database, DatabaseOptions};
    use helenus_host::sim::Machine;

    #[test]
    fn every_form_of_a_table_that_can_be_written_here_can_come_back() {
        let machine = Machine::new(1);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let backend = LocalBackend::new(database, LocalOptions::default());
        let run = |text: &str| {
            let answer = backend.query(text, &Request::plain(&Identity::default(), &[]), &mut NoRows);
            match answer.unwrap_or_else(|error| panic!("{text}: {error}")).outcome {
                Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
                _ => panic!("{text}"),
            }
        };
        run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        run("CREATE TYPE ks.place (street text, number int)");
        let forms = [
            "(k int PRIMARY KEY, a int)",
            "(k int PRIMARY KEY)",
            "(k int, c int, PRIMARY KEY (k, c))",
            "(k int, c int, s int static, PRIMARY KEY (k, c))",
            "(k int, c int, s list<int> static, m map<int, int>, e set<int>, l list<text>, u place, f frozen<place>, PRIMARY KEY (k, c))",
            "(k int PRIMARY KEY, l list<int>)",
            "(k int PRIMARY KEY, a counter)",
            "(k int, c int, a counter, s counter static, PRIMARY KEY (k, c))",
            "(k int PRIMARY KEY, a int, b text) WITH COMPACT STORAGE",
            "(k int PRIMARY KEY, a counter, b counter) WITH COMPACT STORAGE",
            "(k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
            "(k int, c int, d int, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
            "(k int, c int, a int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
            "(k int, c int, d text, e int, a int, PRIMARY KEY (k, c, d, e)) WITH COMPACT STORAGE",
            "(k int, c int, a counter, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
            "(k int, c int, value 'org.apache.cassandra.db.marshal.EmptyType', PRIMARY KEY (k, c))",
        ];
        for (at, form) in forms.iter().enumerate() {
            run(&format!("CREATE TABLE ks.t{at} {form}"));
            let table = backend.database().schema().table("ks", &format!("t{at}")).cloned().unwrap();
            let checked = match table.is_counter() {
                true => check_counters(&backend, &table),
                false => LocalWriter::new(&backend, &table).check(&kinds(&table)),
            };
            assert!(checked.is_ok(), "{form}: {checked:?}");
        }
    }
}
