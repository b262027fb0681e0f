//! A backend with canned answers. The first word of a query selects the answer:
//!
//! `rows N M`: N rows of one blob of M bytes. `disk ...`: the same, but the read has to wait for the disk. `write`:
//! done at once. `wait`: done when the test opens the gate. `use K`. `create`: a schema change with its event. `error
//! NAME`. `asked WAY N M`: as `rows`, but asks for memory; WAY is `plain`, `warned`, `paged` or `held` until the test opens the
//! gate. `warn`: one row and two warnings; `write`, `wait` and `create` followed by `warn W` give the warning W.
//! Anything else is a syntax error.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use helenus_cql::CqlError;
use helenus_cql::backend::*;
use helenus_engine::{Listeners, Listening, SchemaChange, SchemaChangeKind, Ticket};
use helenus_model::schema::Schema;
use helenus_model::types::CqlType;
use helenus_server::native::{Limits, NativeServer};
use parking_lot::Mutex;

#[derive(Default)]
pub struct Canned {
    written: Listeners<dyn Fn() + Send + Sync>,
    changed: Listeners<dyn Fn(&SchemaChange) + Send + Sync>,
    /// Makes the tickets of `wait` ready.
    pub gate: Arc<AtomicBool>,
    /// Number of `write_out` calls.
    pub written_out: AtomicUsize,
    /// Lets `disk` reads proceed.
    pub disk: Arc<AtomicBool>,
    /// Number of times that the table of `rows` was altered.
    pub altered: AtomicUsize,
    /// Clients log in; with the token `wrong` they fail, with `late` too, and their answer waits for an hour. Logins wait for `disk`.
    pub has_logins: AtomicBool,
    /// Number of logins that were checked.
    pub logins: AtomicUsize,
    /// The addresses from which they came, the last one last.
    pub login_clients: Mutex<Vec<SocketAddr>>,
    prepared: Mutex<HashMap<StatementId, Arc<Prepared>>>,
}

impl Canned {
    pub fn open_gate(&self) {
        self.gate.store(true, Ordering::Release);
        self.written.each(|listener| listener());
    }

    fn column() -> ResultColumn {
        ResultColumn { keyspace: "ks".into(), table: "t".into(), name: "v".into(), ty: CqlType::Blob }
    }

    /// The columns of rows. Their id changes when the test alters the table.
    fn columns(&self) -> Arc<ResultColumns> {
        let id = [7 + self.altered.load(Ordering::Acquire) as u8; 16];
        Arc::new(ResultColumns { columns: vec![Canned::column()], id })
    }

    fn rows(&self, count: usize, size: usize, out: &mut dyn RowsOut) -> Arc<ResultColumns> {
        let columns = self.columns();
        out.columns(&columns);
        let value = vec![0xAB; size];
        for _ in 0..count {
            out.cell(Some(&value));
            out.end_row();
        }
        columns
    }
}

/// The word after `warn`, if `warn` is next.
fn warnings<'a>(mut words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let warned = words.next().filter(|word| *word == "warn").and_then(|_| words.next());
    warned.map(str::to_owned).into_iter().collect()
}

fn done<'a>(ticket: Ticket, words: impl Iterator<Item = &'a str>) -> Result<Answer, CqlError> {
    Ok(Answer { outcome: Outcome::Done(ticket), warnings: warnings(words) })
}

fn number(word: Option<&str>) -> usize {
    word.and_then(|word| word.parse().ok()).unwrap_or(1)
}

impl Backend for Canned {
    fn schema(&self) -> Arc<Schema> {
        unreachable!("no door asks for the schema")
    }

    fn schema_epoch(&self) -> u64 {
        0
    }

    fn prepare(&self, query: &str, keyspace: Option<&str>, _: &Identity) -> Result<Arc<Prepared>, CqlError> {
        let mut id = [b'.'; 16];
        id.iter_mut().zip(query.bytes()).for_each(|(place, byte)| *place = byte);
        let mut prepared = Prepared::elsewhere(id, query, vec![Canned::column()]);
        prepared.keyspace = keyspace.map(Arc::from);
        prepared.is_qualified = !query.ends_with("unqualified");
        prepared.partition_key_markers = vec![0];
        prepared.columns = query.starts_with("rows").then(|| self.columns());
        let prepared = Arc::new(prepared);
        self.prepared.lock().insert(id, Arc::clone(&prepared));
        Ok(prepared)
    }

    fn prepared(&self, id: &StatementId) -> Result<Option<Arc<Prepared>>, CqlError> {
        Ok(self.prepared.lock().get(id).cloned())
    }

    fn record_trace(&self, _: &Trace<'_>) -> Result<(), CqlError> {
        Ok(())
    }

    fn query(&self, query: &str, request: &Request<'_>, out: &mut dyn RowsOut) -> Result<Answer, CqlError> {
        let mut words = query.split(' ');
        let rows = |columns, warnings: Vec<String>, paging_state| {
            Ok(Answer { outcome: Outcome::Rows { columns, paging_state, ticket: None }, warnings })
        };
        match words.next().unwrap_or_default() {
            "rows" => {
                let columns = self.rows(number(words.next()), number(words.next()), out);
                let more = request.page_size.map(|rows| rows.to_be_bytes().to_vec());
                rows(columns, vec![], more)
            }
            "asked" => {
                let way = words.next().unwrap_or_default();
                let (count, size) = (number(words.next()), number(words.next()));
                let columns = self.columns();
                out.columns(&columns);
                helenus_host::account::grow(size)?;
                let value = vec![0xAB; size];
                for _ in 0..count {
                    out.make_room(size)?;
                    out.cell(Some(&value));
                    out.end_row();
                }
                drop(value);
                let ticket = (way == "held").then(|| Ticket::when(Arc::clone(&self.gate), Arc::default()));
                let paging_state = (way == "paged").then(|| vec![1; 20]);
                let warnings = if way == "warned" { vec!["careful".into()] } else { vec![] };
                Ok(Answer { outcome: Outcome::Rows { columns, paging_state, ticket }, warnings })
            }
            "disk" if !request.may_block => {
                self.rows(1, 1, out); // the read finds out after its first row
                Err(CqlError::WouldBlock)
            }
            "disk" => {
                let is_cancelled = || request.cancelled.is_some_and(|flag| flag.load(Ordering::Acquire));
                while !self.disk.load(Ordering::Acquire) {
                    if is_cancelled() {
                        return Err(CqlError::Cancelled);
                    }
                    std::thread::yield_now();
                }
                rows(self.rows(number(words.next()), number(words.next()), out), vec![], None)
            }
            "warn" => rows(self.rows(1, 4, out), vec!["careful".into(), "slow".into()], None),
            "write" => done(Ticket::ready(), words),
            "wait" => done(Ticket::when(Arc::clone(&self.gate), Arc::default()), words),
            "use" => Ok(Outcome::UsedKeyspace(words.next().unwrap_or_default().into()).into()),
            "keyspace" => Err(CqlError::Invalid(request.keyspace.unwrap_or("none").to_owned())),
            "create" => {
                let change = SchemaChange {
                    kind: SchemaChangeKind::Created,
                    keyspace: "ks".into(),
                    name: Some("t".into()),
                    is_type: false,
                };
                self.changed.each(|listener| listener(&change));
                let outcome = Outcome::SchemaChanged(Some(change), Ticket::ready());
                Ok(Answer { outcome, warnings: warnings(words) })
            }
            "error" => Err(match words.next().unwrap_or_default() {
                "config" => CqlError::Config("c".into()),
                "exists" => {
                    CqlError::AlreadyExists { keyspace: "ks".into(), table: "t".into(), message: "m".into() }
                }
                "unprepared" => CqlError::Unprepared([3; 16]),
                "unauthorized" => CqlError::Unauthorized("u".into()),
                "overloaded" => CqlError::Overloaded("o".into()),
                "read" => CqlError::ReadTimeout { consistency: 1 },
                "write" => CqlError::WriteTimeout { consistency: 6 },
                "server" => CqlError::Server("s".into()),
                "protocol" => CqlError::Protocol("p".into()),
                "truncate" => CqlError::Truncate("t".into()),
                "syntax" => helenus_cql::syntax::parse("SELEC").expect_err("no statement").into(),
                "readfailure" => CqlError::ReadFailure { consistency: 1, reason: "f".into() },
                "writefailure" => CqlError::WriteFailure { consistency: 1, reason: "f".into() },
                _ => CqlError::Invalid("i".into()),
            }),
            "panic" => panic!("on purpose, by a test"),
            other => Err(CqlError::Invalid(format!("no canned answer to {other}"))),
        }
    }

    fn execute(
        &self,
        statement: &Prepared,
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer, CqlError> {
        self.query(&statement.query, request, out)
    }

    fn batch(&self, batch: &Batch<'_>, _: &Request<'_>, _: &mut dyn RowsOut) -> Result<Answer, CqlError> {
        for entry in &batch.entries {
            let (BatchEntry::Query(text, values), Values::Positional([BoundValue::Bytes(value)])) = (
                entry,
                match entry {
                    BatchEntry::Query(_, values) | BatchEntry::Prepared(_, values) => *values,
                },
            ) else {
                return Err(CqlError::Invalid("not what was sent".into()));
            };
            if text.as_bytes() != *value || !matches!(values, Values::Positional(_)) {
                return Err(CqlError::Invalid("values of another statement".into()));
            }
        }
        Ok(Outcome::Done(Ticket::ready()).into())
    }

    fn on_schema_change(&self, listener: Box<dyn Fn(&SchemaChange) + Send + Sync>) -> Listening {
        self.changed.add(listener)
    }

    fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening {
        self.written.add(listener)
    }

    fn authenticator(&self) -> Option<&'static str> {
        self.has_logins.load(Ordering::Acquire).then_some("org.apache.cassandra.auth.PasswordAuthenticator")
    }

    fn log_in(&self, proof: &LoginProof<'_>) -> Result<Identity, LoginRefused> {
        self.login_clients.lock().extend(proof.client);
        self.logins.fetch_add(1, Ordering::AcqRel);
        while !self.disk.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        match proof.token {
            b"wrong" => Err(CqlError::BadCredentials("wrong".into()).into()),
            b"late" => {
                let error = CqlError::BadCredentials("late".into());
                Err(LoginRefused { error, wait: Duration::from_secs(3600) })
            }
            _ => Ok(Identity::of_role("a")),
        }
    }

    fn write_out(&self) -> Result<(), CqlError> {
        self.written_out.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A server with canned answers on a free port.
pub struct Server {
    pub canned: Arc<Canned>,
    pub native: NativeServer,
}

impl Server {
    pub fn start() -> Server {
        Server::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Limits)) -> Server {
        let canned = Arc::new(Canned::default());
        let mut limits = Limits::for_memory(1 << 30, 2);
        change(&mut limits);
        let backend: Arc<dyn Backend> = canned.clone();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let native =
            NativeServer::start(&helenus_host::real::host(), backend, address, limits).expect("a free port");
        Server { canned, native }
    }

    pub fn address(&self) -> SocketAddr {
        self.native.address()
    }
}
