//! A server that answers from memory without running statements: the lower bound for benchmarks of the server.
//!
//! `cargo run --profile optimized -p helenus-server --example canned [IP:PORT]`.
//! Statements are prepared, and schema statements
//! run, on a database in memory, so that any client can connect. An INSERT, UPDATE, DELETE or BATCH is answered without
//! being run, and a SELECT is answered with the rows of its first execution. What remains is the cost of sockets,
//! frames and translation.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use helenus_cql::backend::*;
use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions, Listening, SchemaChange, Ticket};
use helenus_model::schema::Schema;
use helenus_server::native::{Limits, NativeServer};
use parking_lot::RwLock;

/// The rows of one SELECT, cell by cell.
struct Rows {
    columns: Arc<ResultColumns>,
    cells: Vec<Option<Vec<u8>>>,
}

struct Canned {
    local: Arc<LocalBackend>,
    answers: RwLock<HashMap<StatementId, Arc<Rows>>>,
}

/// Records the cells of an answer.
#[derive(Default)]
struct Recorder {
    cells: Vec<Option<Vec<u8>>>,
}

impl RowsOut for Recorder {
    fn columns(&mut self, _: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.cells.push(value.map(<[u8]>::to_vec));
    }

    fn end_row(&mut self) {}

    fn bytes(&self) -> usize {
        self.cells.iter().flatten().map(Vec::len).sum()
    }

    fn clear(&mut self) {
        self.cells.clear();
    }
}

impl Rows {
    fn play(&self, out: &mut dyn RowsOut) -> Answer {
        out.columns(&self.columns);
        for row in self.cells.chunks(self.columns.columns.len().max(1)) {
            row.iter().for_each(|cell| out.cell(cell.as_deref()));
            out.end_row();
        }
        let columns = Arc::clone(&self.columns);
        Outcome::Rows { columns, paging_state: None, ticket: None }.into()
    }
}

impl Backend for Canned {
    fn schema(&self) -> Arc<Schema> {
        self.local.schema()
    }

    fn schema_epoch(&self) -> u64 {
        self.local.schema_epoch()
    }

    fn prepare(
        &self,
        query: &str,
        keyspace: Option<&str>,
        who: &Identity,
    ) -> Result<Arc<Prepared>, CqlError> {
        self.local.prepare(query, keyspace, who)
    }

    fn prepared(&self, id: &StatementId) -> Result<Option<Arc<Prepared>>, CqlError> {
        self.local.prepared(id)
    }

    fn query(&self, query: &str, request: &Request<'_>, out: &mut dyn RowsOut) -> Result<Answer, CqlError> {
        self.local.query(query, request, out)
    }

    fn execute(
        &self,
        statement: &Prepared,
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer, CqlError> {
        if statement.columns.is_none() {
            return Ok(Outcome::Done(Ticket::ready()).into());
        }
        if let Some(rows) = self.answers.read().get(&statement.id) {
            return Ok(rows.play(out));
        }
        let mut recorder = Recorder::default();
        let request = Request { may_block: true, ..request.clone() };
        let answer = self.local.execute(statement, &request, &mut recorder)?;
        let Outcome::Rows { columns, .. } = answer.outcome else { return Ok(answer) };
        let rows = Arc::new(Rows { columns, cells: recorder.cells });
        self.answers.write().insert(statement.id, Arc::clone(&rows));
        Ok(rows.play(out))
    }

    fn batch(&self, _: &Batch<'_>, _: &Request<'_>, _: &mut dyn RowsOut) -> Result<Answer, CqlError> {
        Ok(Outcome::Done(Ticket::ready()).into())
    }

    fn on_schema_change(&self, listener: Box<dyn Fn(&SchemaChange) + Send + Sync>) -> Listening {
        self.local.on_schema_change(listener)
    }

    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening {
        self.local.on_written(listener)
    }

    fn record_trace(&self, trace: &Trace<'_>) -> Result<(), CqlError> {
        self.local.record_trace(trace)
    }

    fn write_out(&self) -> Result<(), CqlError> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:9042").parse()?;
    let host = helenus_host::memory::host();
    let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/memory") };
    let (database, _) = Database::open(host.clone(), options)?;
    let local = LocalBackend::new(database, LocalOptions::default());
    let backend = Arc::new(Canned { local, answers: RwLock::default() });
    let limits = Limits::for_memory(helenus_host::real::memory_bytes() / 4, helenus_host::real::cores());
    let server = NativeServer::start(&host, backend, address, limits)?;
    println!("canned answers on {}; Ctrl-C ends it", server.address());
    loop {
        std::thread::park();
    }
}
