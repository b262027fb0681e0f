//! Runs statements on the database here, as the server itself.

use super::hidden_rows::{is_hidden, mutation};
use super::row::SeenRow;
use crate::error::MoveError;
use crate::source::{PART_BYTES, StatementKind, TableTexts, Values, Write, in_parts};
use helenus_cql::LocalBackend;
use helenus_cql::backend::{Backend, BoundValue, Identity, NoRows, Outcome, Prepared, Request};
use helenus_engine::Ticket;
use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, Table};
use helenus_model::types::quote_identifier;
use std::collections::HashMap;
use std::sync::Arc;

/// Writes of a table that are run here. It waits for the disk.
pub(crate) struct LocalWriter<'w> {
    backend: &'w LocalBackend,
    texts: TableTexts,
    identity: Identity,
    prepared: HashMap<StatementKind, Arc<Prepared>>,
    tickets: Vec<Ticket>,
    /// Whether writes are only checked.
    is_trial: bool,
}

impl<'w> LocalWriter<'w> {
    pub(crate) fn new(backend: &'w LocalBackend, table: &Arc<Table>) -> LocalWriter<'w> {
        LocalWriter {
            backend,
            texts: TableTexts::new(table),
            identity: Identity::server(),
            prepared: HashMap::new(),
            tickets: Vec::new(),
            is_trial: false,
        }
    }

    /// One that checks its writes and writes nothing.
    pub(crate) fn trial(self, is_trial: bool) -> LocalWriter<'w> {
        LocalWriter { is_trial, ..self }
    }

    /// Prepares statements, which shows whether the database takes them.
    ///
    /// # Errors
    /// It does not take one.
    pub(crate) fn check(&mut self, kinds: &[StatementKind]) -> Result<(), MoveError> {
        kinds.iter().try_for_each(|kind| self.prepared(*kind).map(drop))
    }

    /// Runs writes in order.
    ///
    /// # Errors
    /// The database refuses one.
    pub(crate) fn run(&mut self, writes: &[Write]) -> Result<(), MoveError> {
        let table = Arc::clone(self.texts.table());
        for write in writes {
            match write.bytes() > PART_BYTES && !is_hidden(&table, write) {
                true => self.run_parts(&in_parts(&table, write, PART_BYTES))?,
                false => self.run_parts(std::slice::from_ref(write))?,
            }
        }
        Ok(())
    }

    fn run_parts(&mut self, writes: &[Write]) -> Result<(), MoveError> {
        let database = self.backend.database();
        for write in writes {
            if is_hidden(self.texts.table(), write) {
                let mutation = mutation(self.texts.table(), write, database.now_s());
                match mutation {
                    Some(mutation) if self.is_trial => database.check_write(&mutation)?,
                    Some(mutation) => self.tickets.push(database.write(&mutation)?),
                    None => {}
                }
                continue;
            }
            let prepared = self.prepared(write.kind)?;
            let values = write.values.iter().map(|value| match value {
                Ok(bytes) => BoundValue::Bytes(bytes),
                Err(true) => BoundValue::Unset,
                Err(false) => BoundValue::Null,
            });
            let values: Vec<BoundValue<'_>> = values.collect();
            let request = Request { is_trial: self.is_trial, ..Request::plain(&self.identity, &values) };
            let answer = self.backend.execute(&prepared, &request, &mut NoRows);
            if let Outcome::Done(ticket) = answer.map_err(|error| self.failed(write.kind, &error))?.outcome {
                self.tickets.push(ticket);
            }
        }
        Ok(())
    }

    /// Adds to the counters of a row until they are those of another row of the same name. A counter that the other does not have
    /// becomes 0.
    ///
    /// # Errors
    /// The database refuses it.
    pub(crate) fn add_up(&mut self, here: Option<&SeenRow>, wanted: &SeenRow) -> Result<(), MoveError> {
        let sum = |row: Option<&SeenRow>, column: ColumnId| {
            let cell = row.and_then(|row| row.cells.iter().find(|cell| cell.column == column));
            cell.and_then(|cell| Some(i64::from_be_bytes(*cell.value.first_chunk()?))).unwrap_or(0)
        };
        let table = Arc::clone(self.texts.table());
        let (name, is_static) = (wanted.name(), wanted.clustering.is_none());
        for column in if is_static { &table.statics } else { &table.regulars } {
            let by = sum(Some(wanted), column.id).wrapping_sub(sum(here, column.id));
            let has = |row: &SeenRow| row.cells.iter().any(|cell| cell.column == column.id);
            // A counter of 0 is there, too.
            if by == 0 && (here.is_some_and(has) || !has(wanted)) {
                continue;
            }
            let text = add_text(&table, column, is_static);
            let failed = |error: &dyn std::fmt::Display| MoveError::Table(format!("{error}; in {text}"));
            let mut key = Values::default();
            let named = name.put(&table, &mut key);
            named.map_err(|error| failed(&error))?;
            let by = by.to_be_bytes();
            let mut values = vec![BoundValue::Bytes(&by)];
            values.extend(key.iter().map(|value| value.map_or(BoundValue::Null, BoundValue::Bytes)));
            let request = Request::plain(&self.identity, &values);
            let answer = self.backend.query(&text, &request, &mut NoRows).map_err(|error| failed(&error))?;
            if let Outcome::Done(ticket) = answer.outcome {
                self.tickets.push(ticket);
            }
        }
        Ok(())
    }

    /// Waits until all writes are as durable as clients' are.
    ///
    /// # Errors
    /// The commit log failed.
    pub(crate) fn finish(self) -> Result<(), MoveError> {
        self.tickets.into_iter().try_for_each(|ticket| Ok(ticket.wait()?))
    }

    fn prepared(&mut self, kind: StatementKind) -> Result<Arc<Prepared>, MoveError> {
        if let Some(known) = self.prepared.get(&kind) {
            return Ok(Arc::clone(known));
        }
        let prepared = self.backend.prepare(&self.texts.text(kind), None, &self.identity);
        let prepared = prepared.map_err(|error| self.failed(kind, &error))?;
        self.prepared.insert(kind, Arc::clone(&prepared));
        Ok(prepared)
    }

    fn failed(&self, kind: StatementKind, error: &dyn std::fmt::Display) -> MoveError {
        MoveError::Table(format!("{error}; in {}", self.texts.text(kind)))
    }
}

/// The statement that adds to a counter.
fn add_text(table: &Table, column: &Column, is_static: bool) -> String {
    let clustering = if is_static { &[][..] } else { &table.clustering };
    let keys = table.partition_key.iter().chain(clustering);
    let keys: Vec<_> = keys.map(|column| format!("{} = ?", quote_identifier(&column.name))).collect();
    let (of, name) = (quote_identifier(&table.keyspace), quote_identifier(&column.name));
    let table = quote_identifier(&table.name);
    format!("UPDATE {of}.{table} SET {name} = {name} + ? WHERE {}", keys.join(" AND "))
}
