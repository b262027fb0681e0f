//! Reads as prepared CQL statements, run by the backend that the listeners call: binding and restrictions included.

use crate::content::{key, name};
use crate::reads::{Answer, Place};
use crate::tables::wide_key;
use anyhow::{Result, anyhow, ensure};
use helenus_cql::backend::{
    Backend, BoundValue, Identity, Outcome, Prepared, Request, ResultColumns, RowsOut,
};
use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::Database;
use helenus_model::schema::Table;
use std::sync::Arc;

/// The statements of the workloads.
pub struct Statements {
    backend: Arc<LocalBackend>,
    identity: Identity,
}

impl RowsOut for Answer {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.put(value.unwrap_or_default());
    }

    fn end_row(&mut self) {
        self.rows += 1;
        self.cut();
    }

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        Answer::clear(self);
    }
}

fn failed(error: CqlError) -> anyhow::Error {
    anyhow!("{error}")
}

impl Statements {
    /// Over a database.
    pub fn new(database: Arc<Database>) -> Statements {
        let backend = LocalBackend::new(database, LocalOptions::default());
        Statements { backend, identity: Identity::default() }
    }

    fn prepared(&self, query: &str) -> Result<Arc<Prepared>> {
        self.backend.prepare(query, None, &self.identity).map_err(failed)
    }

    /// Five columns by key.
    pub fn single(&self) -> Result<Arc<Prepared>> {
        self.prepared("SELECT \"C0\", \"C1\", \"C2\", \"C3\", \"C4\" FROM bench.single WHERE key = ?")
    }

    /// A slice from a name on.
    pub fn slice(&self, table: &Table, reversed: bool) -> Result<Arc<Prepared>> {
        let descending = table.clustering.iter().any(|column| column.reversed);
        let (comparison, order) = if descending != reversed { ("<=", "DESC") } else { (">=", "ASC") };
        self.prepared(&format!(
            "SELECT name, value FROM bench.{} WHERE key = ? AND name {comparison} ? ORDER BY name {order} LIMIT ?",
            table.name
        ))
    }

    /// Rows by name.
    pub fn names(&self, table: &Table) -> Result<Arc<Prepared>> {
        self.prepared(&format!("SELECT name, value FROM bench.{} WHERE key = ? AND name IN ?", table.name))
    }

    /// All rows of a table.
    pub fn scan(&self, table: &Table) -> Result<Arc<Prepared>> {
        self.prepared(&format!("SELECT name, value FROM bench.{}", table.name))
    }

    /// Runs `single` for a row.
    pub fn run_single(&self, statement: &Prepared, row: u64, answer: &mut Answer) -> Result<()> {
        self.run(statement, &[BoundValue::Bytes(&key(row))], answer)
    }

    /// Runs `slice`.
    pub fn run_slice(
        &self,
        statement: &Prepared,
        (width, place, limit): (u64, Place, u64),
        answer: &mut Answer,
    ) -> Result<()> {
        let limit = (limit as i32).to_be_bytes();
        let (key, name) = (wide_key(width), name(place.first));
        let values = [BoundValue::Bytes(&key), BoundValue::Bytes(&name), BoundValue::Bytes(&limit)];
        self.run(statement, &values, answer)
    }

    /// Runs `names`.
    pub fn run_names(
        &self,
        statement: &Prepared,
        (width, rows): (u64, impl Iterator<Item = u64>),
        answer: &mut Answer,
    ) -> Result<()> {
        let mut list = vec![0; 4];
        let mut count = 0_i32;
        for row in rows {
            let name = name(row);
            list.extend_from_slice(&(name.len() as i32).to_be_bytes());
            list.extend_from_slice(&name);
            count += 1;
        }
        list[..4].copy_from_slice(&count.to_be_bytes());
        self.run(statement, &[BoundValue::Bytes(&wide_key(width)), BoundValue::Bytes(&list)], answer)
    }

    /// Runs a statement that must end in one page.
    pub fn run(&self, statement: &Prepared, values: &[BoundValue<'_>], answer: &mut Answer) -> Result<()> {
        Answer::clear(answer);
        let request = Request::plain(&self.identity, values);
        let done = self.backend.execute(statement, &request, answer).map_err(failed)?;
        let is_whole = matches!(done.outcome, Outcome::Rows { paging_state: None, .. });
        ensure!(is_whole, "the statement gave no rows, or not all of them");
        Ok(())
    }
}
