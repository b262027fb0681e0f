//! Answers on the admin socket: one thread, one request after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::LocalBackend;
use helenus_engine::Database;
use helenus_engine::import::SourceDisk;
use helenus_host::{Host, Next, TaskHandle, Worker};
use helenus_model::schema::Table;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::compactions::{AskedCompactions, running};
use super::exports::export;
use super::imports::OrderedImports;
use super::protocol::{AdminAnswer, AdminRequest, Flushed, ServerStatus, TableLine};
use super::socket::{AdminError, bind, may_use};

/// The longest request, bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// How often, and how many times, a compaction is looked at before a tool is told that it is still under way.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: u32 = 20;

/// What the admin socket tells besides the engine's figures.
pub struct Facts {
    /// Version of the program.
    pub version: &'static str,
    /// Where clients connect.
    pub listening: std::net::SocketAddr,
    /// Where clients of the old RPC interface connect, if it is served.
    pub rpc: Option<std::net::SocketAddr>,
    /// Where the data is; none in memory.
    pub directory: Option<PathBuf>,
    /// How writes are synced; none in memory.
    pub sync: Option<&'static str>,
    /// Clients connected at this moment.
    pub connections: Box<dyn Fn() -> usize + Send + Sync>,
}

/// A running admin socket.
pub struct AdminServer {
    path: PathBuf,
    stop: watch::Sender<bool>,
    thread: Arc<dyn TaskHandle>,
}

impl AdminServer {
    /// Binds the socket and answers from then on.
    ///
    /// # Errors
    /// When the socket cannot be bound for its owner alone.
    pub fn start(
        host: &Host,
        backend: &Arc<LocalBackend>,
        path: &Path,
        facts: Facts,
    ) -> Result<AdminServer, AdminError> {
        let listener = bind(path)?;
        listener.set_nonblocking(true).map_err(AdminError::io("open", path))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(AdminError::io("serve", path))?;
        let (stop, stopped) = watch::channel(false);
        let started_ns = host.clock.monotonic_ns();
        let (database, backend) = (Arc::clone(backend.database()), Arc::clone(backend));
        let (compactions, imports) = (AskedCompactions::default(), OrderedImports::default());
        let desk = Desk { database, backend, facts, compactions, imports, started_ns };
        let work = Work { runtime, listener, desk, stopped };
        let thread = host.tasks.start("admin", Box::new(AdminThread { work: Some(work) }));
        Ok(AdminServer { path: path.to_owned(), stop, thread })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends it and removes the socket.
    pub fn stop(&self) {
        let _thread_may_be_gone = self.stop.send(true);
        self.thread.join();
        let _may_be_gone = rustix::fs::unlink(&self.path);
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Work {
    runtime: tokio::runtime::Runtime,
    listener: std::os::unix::net::UnixListener,
    desk: Desk,
    stopped: watch::Receiver<bool>,
}

struct AdminThread {
    work: Option<Work>,
}

impl Worker for AdminThread {
    fn step(&mut self) -> Next {
        if let Some(Work { runtime, listener, desk, mut stopped }) = self.work.take() {
            runtime.block_on(async {
                let Ok(listener) = UnixListener::from_std(listener) else { return };
                loop {
                    let accepted = tokio::select! {
                        accepted = listener.accept() => accepted,
                        _ = stopped.changed() => return,
                    };
                    let Ok((stream, _)) = accepted else { continue };
                    if !stream.peer_cred().is_ok_and(|peer| may_use(peer.uid())) {
                        continue;
                    }
                    tokio::select! {
                        _ended = desk.serve(stream) => {}
                        _ = stopped.changed() => return,
                    }
                }
            });
        }
        Next::Done
    }
}

struct Desk {
    database: Arc<Database>,
    backend: Arc<LocalBackend>,
    facts: Facts,
    compactions: AskedCompactions,
    imports: OrderedImports,
    started_ns: u64,
}

impl Desk {
    /// Answers line after line until the tool leaves.
    async fn serve(&self, stream: UnixStream) -> std::io::Result<()> {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        loop {
            let mut line = String::new();
            let mut bounded = (&mut read).take(LINE_BYTES_MAX);
            if bounded.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let answer = match serde_json::from_str(&line) {
                Ok(request) => self.answer(&request).await,
                Err(error) => AdminAnswer::Error(format!("not a request: {error}")),
            };
            let mut text = serde_json::to_string(&answer).unwrap_or_default();
            text.push('\n');
            write.write_all(text.as_bytes()).await?;
        }
    }

    async fn answer(&self, request: &AdminRequest) -> AdminAnswer {
        match request {
            AdminRequest::Status => AdminAnswer::Status(self.status()),
            AdminRequest::Compact { keyspace, table } => {
                match self.tables(keyspace.as_deref(), table.as_deref()) {
                    Ok(tables) => self.look(self.compactions.ask(&self.database, &tables)),
                    Err(text) => AdminAnswer::Error(text),
                }
            }
            AdminRequest::Compaction { number } => {
                for _ in 0..LOOKS {
                    match self.look(*number) {
                        AdminAnswer::Compaction(found) if !found.is_over => tokio::time::sleep(LOOK).await,
                        over => return over,
                    }
                }
                self.look(*number)
            }
            AdminRequest::Import(order) => {
                match self.imports.order(&self.backend, &self.source_disk(), order) {
                    Ok(number) => self.look_at_import(number),
                    Err(text) => AdminAnswer::Error(text),
                }
            }
            AdminRequest::Importing { number } => {
                for _ in 0..LOOKS {
                    match self.look_at_import(*number) {
                        AdminAnswer::Import(found) if !found.is_over => tokio::time::sleep(LOOK).await,
                        over => return over,
                    }
                }
                self.look_at_import(*number)
            }
            AdminRequest::Export { .. } if self.facts.directory.is_none() => AdminAnswer::Error(
                "a server in memory has no files to export; start one with --data and import there"
                    .to_owned(),
            ),
            AdminRequest::Export { keyspace, table } => {
                match export(&self.database, keyspace.as_deref(), table.as_deref()) {
                    Ok(exported) => AdminAnswer::Exported(exported),
                    Err(text) => AdminAnswer::Error(text),
                }
            }
            AdminRequest::Flush { keyspace, table } => {
                match self.flush(keyspace.as_deref(), table.as_deref()) {
                    Ok(sstables) => AdminAnswer::Flushed(Flushed { sstables }),
                    Err(text) => AdminAnswer::Error(text),
                }
            }
        }
    }

    /// The disk that tools mean: the database's, or the machine's where that is in memory.
    fn source_disk(&self) -> SourceDisk {
        match self.facts.directory {
            Some(_) => Arc::clone(&self.database.host().disk),
            None => helenus_host::real::host().disk,
        }
    }

    fn look_at_import(&self, number: u64) -> AdminAnswer {
        match self.imports.look(number) {
            Ok(import) => AdminAnswer::Import(import),
            Err(text) => AdminAnswer::Error(text),
        }
    }

    fn flush(&self, keyspace: Option<&str>, table: Option<&str>) -> Result<u64, String> {
        if keyspace.is_none() {
            return self.database.flush_all().map_err(|error| error.to_string());
        }
        let mut written = 0;
        for table in self.tables(keyspace, table)? {
            written += self.database.flush(table.id).map_err(|error| error.to_string())?;
        }
        Ok(written)
    }

    /// The tables that a request names: all, those of a keyspace, one.
    fn tables(&self, keyspace: Option<&str>, table: Option<&str>) -> Result<Vec<Arc<Table>>, String> {
        let schema = self.database.schema();
        let Some(keyspace) = keyspace else {
            let keyspaces = schema.keyspaces.values();
            return Ok(keyspaces.flat_map(|keyspace| keyspace.tables.values().cloned()).collect());
        };
        let found = schema.keyspaces.get(keyspace);
        let found = found.ok_or_else(|| format!("keyspace {keyspace} does not exist"))?;
        match table {
            None => Ok(found.tables.values().cloned().collect()),
            Some(table) => {
                let found = found.tables.get(table);
                Ok(vec![found.ok_or_else(|| format!("table {keyspace}.{table} does not exist"))?.clone()])
            }
        }
    }

    fn look(&self, number: u64) -> AdminAnswer {
        match self.compactions.look(&self.database, number) {
            Ok(compaction) => AdminAnswer::Compaction(compaction),
            Err(text) => AdminAnswer::Error(text),
        }
    }

    fn status(&self) -> ServerStatus {
        let status = self.database.status();
        let now_ns = self.database.host().clock.monotonic_ns();
        let line = |table: helenus_engine::TableStatus| TableLine {
            keyspace: table.keyspace,
            table: table.table,
            sstables: table.sstables,
            pending_compactions: table.pending_compactions,
            disk_bytes: table.disk_bytes,
            memtable_bytes: table.memtable_bytes,
            memtable_rows: table.memtable_rows,
        };
        ServerStatus {
            version: self.facts.version.to_owned(),
            pid: std::process::id(),
            uptime_s: now_ns.saturating_sub(self.started_ns) / 1_000_000_000,
            host_id: status.host_id.to_string(),
            listening: self.facts.listening.to_string(),
            rpc: self.facts.rpc.map(|address| address.to_string()),
            directory: self.facts.directory.as_ref().map(|path| path.display().to_string()),
            sync: self.facts.sync.map(str::to_owned),
            connections: (self.facts.connections)() as u64,
            memtable_bytes: status.memtable_bytes,
            cache_bytes: status.cache_bytes,
            log_segments: status.log_segments,
            flush_failure: status.flush_failure,
            compactions: status.compactions.into_iter().map(running).collect(),
            compaction_failure: status.compaction_failure,
            tables: status.tables.into_iter().map(line).collect(),
        }
    }
}
