//! For tests: a target that answers each statement by a script, and the context of a move to it, with a database on this machine's disk.

use crate::context::Context;
use crate::drain::Drain;
use crate::error::MoveError;
use crate::messages::MoveOrder;
use crate::row_locks::RowLocks;
use crate::state::{MoveState, StateFile, TableState};
use crate::target::{TableTarget, Target};
use crate::threads::Threads;
use crate::waiting::Waiting;
use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request as LocalRequest};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::real;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use helenus_wire::native::{
    ColumnSource, ColumnSpec, Consistency, Direction, EnvelopeReader, ErrorCode, ErrorMessage, Outgoing,
    Prepared, Put, QueryParameters, Request, ResponseHead, RowsMetadata, RowsWriter, StatementRef, Version,
    decode_request,
};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// A statement that the target was asked to run, or to prepare.
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) values: Vec<Option<Vec<u8>>>,
    pub(crate) consistency: Consistency,
    pub(crate) is_prepare: bool,
}

impl Asked {
    pub(crate) fn is_run_of(&self, begin: &str) -> bool {
        !self.is_prepare && self.text.starts_with(begin)
    }
}

/// What the target answers.
pub(crate) enum Answer {
    Void,
    /// The columns, and the cells of each row.
    Rows(Vec<(&'static str, CqlType)>, Vec<Vec<Option<Vec<u8>>>>),
    Error(ErrorMessage),
}

/// Answers a statement. `None`: as a node without tables of users does, which takes every write.
type Script = Arc<Mutex<dyn FnMut(&Asked) -> Option<Answer> + Send>>;
/// The texts of prepared statements, by their ids, on all connections.
type Texts = Arc<Mutex<HashMap<[u8; 16], String>>>;

/// A move to a target that answers by a script. Its tables are those of the keyspace `ks`.
pub(crate) struct ScriptedMove {
    pub(crate) context: Arc<Context>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) order: MoveOrder,
    pub(crate) folder: tempfile::TempDir,
}

impl ScriptedMove {
    pub(crate) async fn new(
        create: &[&str],
        script: impl FnMut(&Asked) -> Option<Answer> + Send + 'static,
    ) -> ScriptedMove {
        let address = listen(Arc::new(Mutex::new(script))).await;
        let text = format!(
            r#"{{"to":["{address}"],"local_dc":null,"login":null,"tls":null,"what":[],"replication":{{}},"rows_per_second":0,
                "target_p99_ms":1000,"ranges_at_once":4}}"#
        );
        let order: MoveOrder = serde_json::from_str(&text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (stop, stopped) = watch::channel(false);
        let target = Target::connect(&order, stopped).await.unwrap();
        let options = DatabaseOptions::new(folder.path());
        let (database, _) = Database::open(real::host(), options).unwrap();
        let backend = LocalBackend::new(database, LocalOptions::default());
        create.iter().for_each(|text| run(&backend, text));
        let schema = backend.database().schema();
        let tables = schema.keyspaces.get("ks").map(|of| of.tables.values().cloned().collect::<Vec<_>>());
        let state = |table: &Arc<Table>| TableState {
            target_id: Some("there".to_owned()),
            ..TableState::new(table, 1)
        };
        let tables: Vec<TableState> = tables.unwrap_or_default().iter().map(state).collect();
        let waiting = vec![Waiting::default(); tables.len()];
        let context = Arc::new(Context {
            threads: Threads::new(backend.database().host()),
            file: StateFile::of(Arc::clone(&backend.database().host().disk), folder.path()),
            backend,
            target,
            ranges: Semaphore::new(4),
            counter_ranges: Semaphore::new(4),
            drain: Drain::new(tables.len()),
            state: Arc::new(Mutex::new(MoveState {
                order: order.clone(),
                runs: 1,
                has_schema: true,
                tables,
                roles_made: BTreeSet::new(),
                cut: None,
                has_brought: false,
                is_ended: false,
            })),
            waiting: Arc::new(Mutex::new(waiting)),
            locks: RowLocks::default(),
            defining: tokio::sync::Mutex::default(),
            differences: Mutex::default(),
            reason: Arc::default(),
            made: AtomicUsize::default(),
            saved: Mutex::new(tokio::time::Instant::now()),
            repairs: Default::default(),
        });
        ScriptedMove { context, stop, order, folder }
    }

    /// Runs a statement here.
    pub(crate) fn run(&self, text: &str) {
        run(&self.context.backend, text);
    }

    /// A table of `ks` here.
    pub(crate) fn table(&self, name: &str) -> Arc<Table> {
        Arc::clone(self.context.database().schema().table("ks", name).unwrap())
    }

    /// The same with its statements at the target.
    pub(crate) fn target_of(&self, name: &str) -> Arc<TableTarget> {
        let table = self.table(name);
        TableTarget::new(&table, &table)
    }

    pub(crate) fn with_table<T>(&self, change: impl FnOnce(&mut TableState) -> T) -> T {
        self.context.with_table(0, change).unwrap()
    }

    /// Waits for tasks that all must succeed.
    pub(crate) async fn all(
        &self,
        tasks: impl IntoIterator<Item = impl Future<Output = Result<(), MoveError>>>,
    ) {
        let mut tasks: Vec<_> = tasks.into_iter().map(Box::pin).collect();
        std::future::poll_fn(|cx| {
            tasks.retain_mut(|task| match task.as_mut().poll(cx) {
                std::task::Poll::Ready(done) => {
                    done.unwrap();
                    false
                }
                std::task::Poll::Pending => true,
            });
            if tasks.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

fn run(backend: &LocalBackend, text: &str) {
    let identity = Identity::server();
    let answer = backend.query(text, &LocalRequest::plain(&identity, &[]), &mut NoRows);
    match answer.unwrap_or_else(|error| panic!("{text}: {error}")).outcome {
        Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
        _ => {}
    }
}

/// A node of version 4; its address.
async fn listen(script: Script) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let prepared = Texts::default();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, Arc::clone(&script), Arc::clone(&prepared)));
        }
    });
    address
}

async fn serve(mut socket: TcpStream, script: Script, prepared: Texts) {
    let reader = EnvelopeReader { from: Direction::Request, connection: None, max_frame: 64 << 20 };
    let mut input = Vec::new();
    loop {
        let mut output = Vec::new();
        while let Some(envelope) = reader.read(&input).unwrap() {
            let (header, size) = (envelope.header, envelope.size());
            let head = ResponseHead::new(Version::V4, header.stream);
            let request = decode_request(header.version, header.opcode, header.flags, envelope.body).unwrap();
            let answer = answer(&request.request, header.version, (&script, &prepared));
            answer.put(&head, &mut output);
            input.drain(..size);
        }
        if socket.write_all(&output).await.is_err() || socket.read_buf(&mut input).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// An answer of the protocol.
enum Said {
    Ready,
    Supported,
    Prepared([u8; 16]),
    Answer(Answer),
}

impl Said {
    fn put(self, head: &ResponseHead<'_>, out: &mut Vec<u8>) {
        let mut say = |message: Outgoing<'_>| message.encode(head, None, out).unwrap();
        match self {
            Said::Ready => say(Outgoing::Ready),
            Said::Supported => say(Outgoing::Supported { cql_version: "3.4.7" }),
            Said::Prepared(id) => say(Outgoing::Prepared(&Prepared {
                id: &id,
                result_metadata_id: &[],
                variables: &[],
                partition_key: &[],
                result_columns: &[],
            })),
            Said::Answer(Answer::Void) => say(Outgoing::Void),
            Said::Answer(Answer::Error(error)) => say(Outgoing::Error(&error)),
            Said::Answer(Answer::Rows(columns, rows)) => {
                let spec = |(name, ty): (&str, CqlType)| ColumnSpec {
                    keyspace: "k".into(),
                    table: "t".into(),
                    name: name.into(),
                    ty,
                };
                let columns: Vec<ColumnSpec> = columns.into_iter().map(spec).collect();
                let metadata =
                    RowsMetadata { columns: ColumnSource::Specs(&columns), skip: false, changed_id: None };
                let mut writer = RowsWriter::begin(out, head, &metadata, None);
                for row in rows {
                    for cell in row {
                        match cell {
                            Some(bytes) => writer.cell(&bytes),
                            None => writer.null(),
                        }
                    }
                    writer.end_row();
                }
                writer.finish(None).unwrap();
            }
        }
    }
}

fn answer(request: &Request<'_>, version: Version, (script, prepared): (&Script, &Texts)) -> Said {
    let values = |parameters: &QueryParameters<'_>| -> Vec<Option<Vec<u8>>> {
        parameters.values.iter().map(|(_, value)| value.bytes().map(<[u8]>::to_vec)).collect()
    };
    let ask = |text: &str, values: Vec<Option<Vec<u8>>>, level: Option<Consistency>| {
        let (consistency, is_prepare) = (level.unwrap_or(Consistency::Any), level.is_none());
        script.lock()(&Asked { text: text.to_owned(), values, consistency, is_prepare })
    };
    let text_of = |id: &[u8]| {
        id.try_into().ok().and_then(|id: [u8; 16]| prepared.lock().get(&id).cloned()).unwrap_or_default()
    };
    match request {
        Request::Startup(_) if version > Version::V4 => {
            let text = "Invalid or unsupported protocol version (5)";
            Said::Answer(Answer::Error(ErrorMessage::plain(ErrorCode::Protocol, text)))
        }
        Request::Startup(_) | Request::Register(_) => Said::Ready,
        Request::Options => Said::Supported,
        Request::Prepare(prepare) => match ask(prepare.query, Vec::new(), None) {
            Some(answer) => Said::Answer(answer),
            None => {
                let mut prepared = prepared.lock();
                let known = prepared.iter().find(|(_, text)| *text == prepare.query).map(|(id, _)| *id);
                let id = known.unwrap_or((prepared.len() as u128).to_be_bytes());
                prepared.insert(id, prepare.query.to_owned());
                Said::Prepared(id)
            }
        },
        Request::Query(query) => {
            let answer = ask(query.query, values(&query.parameters), Some(query.parameters.consistency));
            Said::Answer(answer.unwrap_or_else(|| of_node(query.query)))
        }
        Request::Execute(execute) => {
            let text = text_of(execute.id);
            let answer = ask(&text, values(&execute.parameters), Some(execute.parameters.consistency));
            Said::Answer(answer.unwrap_or_else(|| of_node(&text)))
        }
        Request::Batch(batch) => {
            let mut said = Answer::Void;
            for statement in batch.statements.iter() {
                let text = match statement.statement {
                    StatementRef::Query(text) => text.to_owned(),
                    StatementRef::Prepared(id) => text_of(id),
                };
                let values = statement.values.iter().map(|(_, value)| value.bytes().map(<[u8]>::to_vec));
                match ask(&text, values.collect(), Some(batch.parameters.consistency)) {
                    None | Some(Answer::Void) => {}
                    Some(other) => said = other,
                }
            }
            Said::Answer(said)
        }
        _ => Said::Answer(Answer::Void),
    }
}

/// What a node says without a script.
fn of_node(text: &str) -> Answer {
    if text.contains("peers_v2") {
        return Answer::Error(ErrorMessage::plain(ErrorCode::Invalid, "unconfigured table peers_v2"));
    }
    if !text.starts_with("SELECT") {
        return Answer::Void;
    }
    if !text.contains("system.local") {
        return Answer::Rows(Vec::new(), Vec::new());
    }
    if text.contains("toUnixTimestamp") {
        let now_ms = real::host().clock.wall_us() / 1000;
        return Answer::Rows(
            vec![("now", CqlType::Timestamp)],
            vec![vec![Some(now_ms.to_be_bytes().to_vec())]],
        );
    }
    let mut tokens = Vec::new();
    tokens.put_int(1);
    tokens.put_bytes(b"42");
    let cells = [
        ("host_id", CqlType::Uuid, vec![7; 16]),
        ("schema_version", CqlType::Uuid, vec![7; 16]),
        ("rpc_address", CqlType::Inet, vec![127, 0, 0, 1]),
        ("data_center", CqlType::Text, b"east".to_vec()),
        ("release_version", CqlType::Text, b"5.0.9".to_vec()),
        ("partitioner", CqlType::Text, b"org.apache.cassandra.dht.Murmur3Partitioner".to_vec()),
        ("tokens", CqlType::Set { element: Arc::new(CqlType::Text), frozen: false }, tokens),
    ];
    let (columns, row) = cells.into_iter().map(|(name, ty, cell)| ((name, ty), Some(cell))).unzip();
    Answer::Rows(columns, vec![row])
}
