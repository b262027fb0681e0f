//! A database in a temporary directory, and requests as the server serves them.

use helenus_cql::backend::{Backend, BoundValue, Identity, Outcome, Request, ResultColumns, RowsOut, Values};
use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions, MemoryShares};
use helenus_host::account::{
    self, Refusal, Scope, Share, WATCH_BYTES, Waits, set_limits, split, take_excess,
};
use std::sync::Arc;
use std::time::Duration;

/// The length from which the server asks for a body's copies before it decodes it (`native/job.rs`).
const LARGE_BODY_BYTES: usize = 64 << 10;
/// The most lines of a call stack that are shown.
const STACK_LINES: usize = 60;

/// Values by the names of their markers.
pub type Named<'a> = &'a [(&'a str, &'a [u8])];

pub struct Server {
    backend: Arc<LocalBackend>,
    identity: Identity,
    limit: usize,
    _folder: tempfile::TempDir,
}

/// An answer in one buffer that asks before it grows, as those of the protocol do.
#[derive(Default)]
struct Answered {
    bytes: Vec<u8>,
    rows: usize,
}

impl RowsOut for Answered {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(value.unwrap_or_default());
    }

    fn end_row(&mut self) {
        self.rows += 1;
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Refusal> {
        account::reserve(&mut self.bytes, bytes + 4096)
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn clear(&mut self) {
        *self = Answered::default();
    }
}

impl Server {
    pub fn start(limit: usize) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let shares = MemoryShares::of_limit(limit as u64);
        let fixed = shares.memtables as u64 + shares.cache;
        set_limits(split(limit as u64, fixed), Duration::from_millis(20));
        let options = DatabaseOptions { memory: shares, ..DatabaseOptions::new(folder.path()) };
        let (database, _) = Database::open(helenus_host::real::host(), options).unwrap();
        let options =
            LocalOptions { answer_bytes_max: 32 << 20, masks_columns: true, ..LocalOptions::default() };
        let backend = LocalBackend::new(database, options);
        let server = Server { backend, identity: Identity::default(), limit, _folder: folder };
        server.must(
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            &[],
        );
        server
    }

    /// Runs a statement that is part of the preparation.
    pub fn must(&self, query: &str, values: Named<'_>) {
        let mut found = Vec::new();
        if let Err(error) = self.run(query, values, None, &mut found) {
            panic!("{query}: {error}");
        }
        println!("{}", found.join("\n"));
    }

    /// Runs a statement and notes in `found` what it took without asking. Returns the bytes of its answer.
    pub fn run(
        &self,
        query: &str,
        values: Named<'_>,
        page_size: Option<u32>,
        found: &mut Vec<String>,
    ) -> Result<usize, CqlError> {
        let bytes: usize = values.iter().map(|(_, value)| value.len()).sum();
        let values: Vec<(&str, BoundValue<'_>)> =
            values.iter().map(|(name, value)| (*name, BoundValue::Bytes(value))).collect();
        let request = Request {
            keyspace: Some("k"),
            values: Values::Named(&values),
            page_size,
            may_block: false,
            ..Request::plain(&self.identity, &[])
        };
        let body = query.len() + bytes;
        take_excess();
        let scope = Scope::begin(Share::Requests, Waits::Never);
        let mut done = self.serve(body, query, &request);
        drop(scope);
        if matches!(done, Err(CqlError::WouldBlock)) {
            let mut scope = Scope::begin(Share::Requests, Waits::ForRoom);
            loop {
                done = self.serve(body, query, &Request { may_block: true, ..request.clone() });
                if !scope.should_retry() {
                    break;
                }
            }
        }
        let (excess, stack) = take_excess();
        if excess > WATCH_BYTES {
            let shown: String = query.chars().take(120).collect();
            let stack = stack.unwrap_or_default();
            let lines: Vec<&str> =
                stack.lines().filter(|line| line.contains("helenus_")).take(STACK_LINES).collect();
            let text =
                format!("{} KiB at {} MiB: {shown}\n{}", excess >> 10, self.limit >> 20, lines.join("\n"));
            found.push(text);
        }
        account::audit().unwrap();
        done
    }

    fn serve(&self, body: usize, query: &str, request: &Request<'_>) -> Result<usize, CqlError> {
        if body >= LARGE_BODY_BYTES {
            account::grow(2 * body)?;
        }
        let mut out = Answered::default();
        match self.backend.query(query, request, &mut out)?.outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait()?,
            _ => {}
        }
        Ok(out.bytes.len())
    }

    pub fn end(self) {
        self.backend.database().close().unwrap();
    }
}
