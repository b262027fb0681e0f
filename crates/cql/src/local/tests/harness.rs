//! A backend on a simulated machine, and helpers for tests.

use crate::backend::{Answer, Backend, BoundValue, Identity, Outcome, Request, ResultColumns, RowsOut};
use crate::error::CqlError;
use crate::local::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;
use helenus_model::types::to_cql_literal;
use std::sync::Arc;

pub(super) struct Session {
    pub(super) machine: Machine,
    pub(super) backend: Arc<LocalBackend>,
    pub(super) keyspace: Option<String>,
    /// Warnings of the last statement.
    pub(super) warnings: Vec<String>,
}

impl Session {
    pub(super) fn new(seed: u64) -> Session {
        Session::on(Machine::new(seed))
    }

    pub(super) fn on(machine: Machine) -> Session {
        Session::open(machine, LocalOptions::default())
    }

    pub(super) fn with_options(options: LocalOptions) -> Session {
        Session::open(Machine::new(7), options)
    }

    fn open(machine: Machine, options: LocalOptions) -> Session {
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let backend = LocalBackend::new(database, options);
        Session { machine, backend, keyspace: None, warnings: Vec::new() }
    }

    /// A session with a keyspace `ks` in which these statements were run.
    pub(super) fn with(statements: &[&str]) -> Session {
        let mut session = Session::new(7);
        session
            .ok("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.ok("USE ks");
        statements.iter().for_each(|statement| session.ok(statement));
        session
    }

    pub(super) fn run(&mut self, query: &str) -> Result<Vec<Vec<String>>, CqlError> {
        self.run_with(query, &[])
    }

    pub(super) fn run_with(
        &mut self,
        query: &str,
        values: &[BoundValue<'_>],
    ) -> Result<Vec<Vec<String>>, CqlError> {
        let identity = Identity::default();
        let keyspace = self.keyspace.clone();
        let request = request(&identity, keyspace.as_deref(), values);
        let mut rows = Rows::default();
        let answer = self.backend.query(query, &request, &mut rows)?;
        self.settle(answer);
        Ok(rows.rows)
    }

    /// Prepares and executes a statement.
    pub(super) fn execute(
        &mut self,
        query: &str,
        values: &[BoundValue<'_>],
    ) -> Result<Vec<Vec<String>>, CqlError> {
        let identity = Identity::default();
        let keyspace = self.keyspace.clone();
        let id = self.backend.prepare(query, keyspace.as_deref(), &identity)?.id;
        let prepared = self.backend.prepared(&id)?.unwrap();
        let request = request(&identity, keyspace.as_deref(), values);
        let mut rows = Rows::default();
        let answer = self.backend.execute(&prepared, &request, &mut rows)?;
        self.settle(answer);
        Ok(rows.rows)
    }

    pub(super) fn settle(&mut self, answer: Answer) {
        self.warnings = answer.warnings;
        match answer.outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
            Outcome::UsedKeyspace(keyspace) => self.keyspace = Some(keyspace.to_string()),
            Outcome::Rows { ticket, .. } => ticket.into_iter().for_each(|ticket| ticket.wait().unwrap()),
        }
    }

    pub(super) fn ok(&mut self, query: &str) {
        self.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    }

    pub(super) fn error(&mut self, query: &str) -> String {
        self.run(query).err().unwrap_or_else(|| panic!("{query} was taken")).to_string()
    }

    /// The rows of a query as one text: columns separated by commas, rows by semicolons.
    pub(super) fn rows(&mut self, query: &str) -> String {
        let rows = self.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.iter().map(|row| row.join(",")).collect::<Vec<_>>().join(";")
    }

    /// The session after a power failure of the machine.
    pub(super) fn crashed(self) -> Session {
        let machine = self.machine.crash();
        let keyspace = self.keyspace.clone();
        Session { keyspace, ..Session::on(machine) }
    }
}

pub(super) fn request<'a>(
    identity: &'a Identity,
    keyspace: Option<&'a str>,
    values: &'a [BoundValue<'a>],
) -> Request<'a> {
    Request { keyspace, ..Request::plain(identity, values) }
}

/// Collects rows as literals.
#[derive(Default)]
pub(super) struct Rows {
    columns: Option<Arc<ResultColumns>>,
    row: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    pub(super) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }
}

impl RowsOut for Rows {
    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        self.columns = Some(columns.clone());
    }

    fn cell(&mut self, value: Option<&[u8]>) {
        let columns = self.columns.as_ref().expect("columns come before cells");
        self.row.push(to_cql_literal(&columns.columns[self.row.len()].ty, value));
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.row.clear();
    }
}

/// The protocol's code of an error.
pub(super) fn code(error: &CqlError) -> &'static str {
    match error {
        CqlError::WouldBlock => "would block",
        CqlError::Cancelled => "cancelled",
        CqlError::Protocol(_) => "000A",
        CqlError::Syntax(_) => "2000",
        CqlError::Invalid(_) => "2200",
        CqlError::Config(_) => "2300",
        CqlError::AlreadyExists { .. } => "2400",
        CqlError::Unprepared(_) => "2500",
        CqlError::BadCredentials(_) => "0100",
        CqlError::Unauthorized(_) | CqlError::SessionEnded(_) => "2100",
        CqlError::Overloaded(_) => "1001",
        CqlError::ReadTimeout { .. } => "1200",
        CqlError::WriteTimeout { .. } => "1100",
        CqlError::Truncate(_) => "1003",
        CqlError::ReadFailure { .. } | CqlError::TooManyTombstones { .. } => "1300",
        CqlError::WriteFailure { .. } => "1500",
        CqlError::FunctionFailure { .. } => "1400",
        CqlError::Server(_) => "0000",
    }
}
