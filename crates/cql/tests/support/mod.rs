//! A backend on a simulated machine for tests: statements in, rows out.

#![allow(dead_code, reason = "each test binary uses a part")]

pub mod cells;
pub mod collected;
pub mod conformance;

pub use collected::Collected;

use helenus_cql::backend::{
    Backend, BoundValue, Identity, Outcome, Prepared, Request, ResultColumns, RowsOut, Values,
};
use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions, Ticket};
use helenus_host::sim::Machine;
use std::sync::Arc;

/// The keyspace of every request.
pub const KEYSPACE: &str = "cqlsel_conformance";

/// Rows and what came with them.
pub struct Answer {
    pub columns: Arc<ResultColumns>,
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    pub warnings: Vec<String>,
    pub paging_state: Option<Vec<u8>>,
}

/// A backend over a database of its own machine.
pub struct Server {
    machine: Machine,
    backend: Arc<LocalBackend>,
    identity: Identity,
}

impl Server {
    pub fn open(seed: u64) -> Server {
        Server::over(Machine::new(seed), &DatabaseOptions::new("/db"))
    }

    /// The same on a machine that may have run one before.
    pub fn over(machine: Machine, options: &DatabaseOptions) -> Server {
        Server::with_options(machine, options, LocalOptions::default())
    }

    /// The same with options of statements.
    pub fn with_options(machine: Machine, options: &DatabaseOptions, local: LocalOptions) -> Server {
        let (database, _) = Database::open(machine.host(), options.clone()).expect("the database opens");
        let backend = LocalBackend::new(database, local);
        Server { machine, backend, identity: Identity::default() }
    }

    fn request<'a>(&'a self, page: Option<(u32, Option<&'a [u8]>)>) -> Request<'a> {
        Request {
            keyspace: Some(KEYSPACE),
            page_size: page.map(|(size, _)| size),
            paging_state: page.and_then(|(_, state)| state),
            ..Request::plain(&self.identity, &[])
        }
    }

    pub fn run(&self, query: &str) {
        self.try_run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    }

    pub fn try_run(&self, query: &str) -> Result<(), CqlError> {
        let mut out = Collected::default();
        match self.backend.query(query, &self.request(None), &mut out)?.outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().expect("written"),
            _ => {}
        }
        Ok(())
    }

    pub fn select(&self, query: &str, page: Option<(u32, Option<&[u8]>)>) -> Result<Answer, CqlError> {
        let mut out = Collected::default();
        let answer = self.backend.query(query, &self.request(page), &mut out)?;
        let warnings = answer.warnings;
        match answer.outcome {
            Outcome::Rows { columns, paging_state, .. } => {
                Ok(Answer { columns, rows: out.into_rows(), warnings, paging_state })
            }
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => {
                ticket.wait().expect("written");
                let columns = Arc::new(ResultColumns { columns: Vec::new(), id: [0; 16] });
                Ok(Answer { columns, rows: Vec::new(), warnings, paging_state: None })
            }
            _ => panic!("{query}: no rows"),
        }
    }

    /// Runs a statement as the server does: first on the event loop, without waiting, and after `WouldBlock` on the disk
    /// pool. The answer counts once the ticket is ready.
    pub fn begin(&self, query: &str) -> Result<(Answer, Ticket), CqlError> {
        let mut out = Collected::default();
        let mut request = Request { may_block: false, ..self.request(None) };
        let mut answer = self.backend.query(query, &request, &mut out);
        if matches!(answer, Err(CqlError::WouldBlock)) {
            out.clear();
            request.may_block = true;
            answer = self.backend.query(query, &request, &mut out);
        }
        let helenus_cql::backend::Answer { outcome, warnings } = answer?;
        let none = || Arc::new(ResultColumns { columns: Vec::new(), id: [0; 16] });
        let (columns, ticket) = match outcome {
            Outcome::Rows { columns, ticket, .. } => (columns, ticket.unwrap_or_else(Ticket::ready)),
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => (none(), ticket),
            Outcome::UsedKeyspace(_) => (none(), Ticket::ready()),
        };
        Ok((Answer { columns, rows: out.into_rows(), warnings, paging_state: None }, ticket))
    }

    /// The same, and waits for the ticket.
    pub fn ask(&self, query: &str) -> Result<Answer, CqlError> {
        let (answer, ticket) = self.begin(query)?;
        ticket.wait()?;
        Ok(answer)
    }

    /// What it asks.
    pub fn backend(&self) -> &LocalBackend {
        &self.backend
    }

    /// The machine it runs on.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Prepares a statement.
    pub fn prepare(&self, query: &str) -> Arc<Prepared> {
        self.backend
            .prepare(query, Some(KEYSPACE), &self.identity)
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// Runs a SELECT with values.
    pub fn bound(
        &self,
        query: &str,
        values: &[BoundValue<'_>],
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, CqlError> {
        let statement = self.prepare(query);
        let mut out = Collected::default();
        let request = Request { values: Values::Positional(values), ..self.request(None) };
        self.backend.execute(&statement, &request, &mut out)?;
        Ok(out.into_rows())
    }

    /// Ends the machine's tasks.
    pub fn end(&self) {
        self.machine.end_tasks();
    }

    /// All rows, asked for in pages.
    pub fn paged(&self, query: &str, size: u32) -> Vec<Vec<Option<Vec<u8>>>> {
        let mut rows = Vec::new();
        let mut state: Option<Vec<u8>> = None;
        loop {
            let page =
                self.select(query, Some((size, state.as_deref()))).unwrap_or_else(|e| panic!("{query}: {e}"));
            assert!(page.rows.len() <= size as usize, "{query}: a page of {}", page.rows.len());
            rows.extend(page.rows);
            state = page.paging_state;
            if state.is_none() {
                return rows;
            }
        }
    }

    pub fn flush(&self) {
        let database = self.backend.database();
        let schema = database.schema();
        for table in schema.keyspaces[KEYSPACE].tables.values() {
            database.flush(table.id).expect("flushed");
        }
    }
}

/// Runs a statement on a backend and waits until it is written.
pub fn run_on(backend: &LocalBackend, query: &str) {
    try_run_on(backend, query).unwrap_or_else(|error| panic!("{query}: {error}"));
}

/// The same, for a statement that may be refused.
pub fn try_run_on(backend: &LocalBackend, query: &str) -> Result<(), CqlError> {
    let identity = Identity::default();
    let request = Request { keyspace: None, ..Request::plain(&identity, &[]) };
    match backend.query(query, &request, &mut Collected::default())?.outcome {
        Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().expect("written"),
        _ => {}
    }
    Ok(())
}

/// The rows of a SELECT on a backend. One by an index that is being built is asked again.
pub fn rows_of(backend: &LocalBackend, query: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    try_rows_of(backend, query).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// The same, or what is wrong.
pub fn try_rows_of(backend: &LocalBackend, query: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>, CqlError> {
    let identity = Identity::default();
    let request = Request { keyspace: None, ..Request::plain(&identity, &[]) };
    loop {
        let mut out = Collected::default();
        match backend.query(query, &request, &mut out) {
            Ok(_) => return Ok(out.into_rows()),
            Err(error) if error.to_string().contains("is not yet available") => std::thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}
