//! The dispatcher of the admin socket: runs each request of a tool.

use std::sync::Arc;
use std::time::Duration;

use helenus_cql::LocalBackend;
use helenus_cql::audit::EventType;
use helenus_engine::Database;
use helenus_engine::import::SourceDisk;
use helenus_host::contain;
use helenus_model::schema::Table;
use helenus_model::types::parse_key_text;
use tokio::sync::Mutex;

use super::answer::{AdminAnswer, Flushed, Job, Outcome};
use super::changes::answer_changes;
use super::compactions::CompactionRequests;
use super::exports::export;
use super::jobs::{Jobs, Work, imported, panicked, request_of, verify};
use super::networks::networks;
use super::request::{AdminRequest, ChangesOrder, LogLevelChoice, TableSelection, TimeoutKind};
use super::serve::ServerInfo;
use super::snapshots::NextExpiry;
use super::{collect_metrics, snapshots};
use crate::backup::restore;
use crate::history::Recorder;
use crate::thread_pool::{NO_THREAD, ThreadPool, Turn};

/// The interval and number of checks of a longer operation before its progress is sent to the tool.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: u32 = 20;

/// The same for events of a table. Each look syncs the log if it has unsynced records.
const CHANGES_LOOK: Duration = Duration::from_millis(50);
const CHANGES_LOOKS: u32 = 40;

/// The keyspace of the tables of roles and rights.
const ACCESS_KEYSPACE: &str = "system_auth";

/// Kinds of jobs. One job of a kind runs at a time.
const TAKING_IN: &str = "import or restore";
const VERIFYING: &str = "verify";

/// Everything that is needed to answer requests.
pub(super) struct Dispatcher {
    pub(super) database: Arc<Database>,
    pub(super) backend: Arc<LocalBackend>,
    pub(super) facts: ServerInfo,
    pub(super) started_ns: u64,
    /// Answers requests for other parts of the program.
    threads: Arc<ThreadPool>,
    compactions: CompactionRequests,
    jobs: Jobs,
    next_expiry: NextExpiry,
    pub(super) history: Recorder,
}

impl Dispatcher {
    pub(super) fn new(
        backend: &Arc<LocalBackend>,
        facts: ServerInfo,
        threads: &Arc<ThreadPool>,
        started_ns: u64,
    ) -> Dispatcher {
        Dispatcher {
            history: Recorder::new(backend.database(), facts.directory.clone()),
            database: Arc::clone(backend.database()),
            backend: Arc::clone(backend),
            facts,
            started_ns,
            threads: Arc::clone(threads),
            compactions: CompactionRequests::default(),
            jobs: Jobs::default(),
            next_expiry: NextExpiry::default(),
        }
    }

    /// Answers a request. For the progress of a compaction or job, waits a while for it to end.
    pub(super) async fn answer(&self, request: &AdminRequest) -> AdminAnswer {
        let followed = match request {
            AdminRequest::Compaction { .. } | AdminRequest::Job { .. } => LOOKS,
            _ => 0,
        };
        for _ in 0..followed {
            match self.try_answer(request) {
                Ok(AdminAnswer::Compaction(found)) if !found.is_over => {}
                Ok(AdminAnswer::Job(Job { outcome: None, .. })) => {}
                over => return over.unwrap_or_else(AdminAnswer::Error),
            }
            tokio::time::sleep(LOOK).await;
        }
        self.try_answer(request).unwrap_or_else(AdminAnswer::Error)
    }

    /// Answers once there are events, or after a while. It takes its turn at each look.
    pub(super) async fn wait_for_changes(&self, mut order: ChangesOrder, turn: &Mutex<()>) -> AdminAnswer {
        for _ in 0..CHANGES_LOOKS {
            let in_turn = turn.lock().await;
            match self.try_answer(&AdminRequest::Changes(order.clone())) {
                Ok(AdminAnswer::Changes(found)) if found.events.is_empty() => {
                    order.from = Some(found.next);
                    // The consumer is there now, and has acknowledged nothing more.
                    order.consumer = None;
                }
                over => return over.unwrap_or_else(AdminAnswer::Error),
            }
            drop(in_turn);
            tokio::time::sleep(CHANGES_LOOK).await;
        }
        self.try_answer(&AdminRequest::Changes(order)).unwrap_or_else(AdminAnswer::Error)
    }

    /// Answers a request for another part of the program, while other tools are answered.
    pub(super) async fn ask_further(&self, tool: &str, request: String) -> AdminAnswer {
        let Some(part) = self.facts.further.get(tool).cloned() else {
            return AdminAnswer::Error(format!("this server has no {tool}"));
        };
        // A part may start tasks of the runtime.
        let runtime = tokio::runtime::Handle::current();
        let answer = move |turn: Turn| match turn {
            Turn::Run => {
                let _entered = runtime.enter();
                contain(|| part.answer(&request)).unwrap_or_else(|text| Err(panicked(&text)))
            }
            Turn::Refuse => Err(NO_THREAD.to_owned()),
        };
        match self.threads.run(answer).await {
            Some(Ok(answer)) => AdminAnswer::Further(answer),
            Some(Err(text)) => AdminAnswer::Error(text),
            None => AdminAnswer::Error(panicked("its thread")),
        }
    }

    /// A request that panics fails alone; the panic hook has logged the panic.
    fn try_answer(&self, request: &AdminRequest) -> Result<AdminAnswer, String> {
        contain(|| self.run(request)).unwrap_or_else(|text| Err(panicked(&text)))
    }

    fn run(&self, request: &AdminRequest) -> Result<AdminAnswer, String> {
        match request {
            AdminRequest::Status => Ok(AdminAnswer::Status(collect_metrics::status(self))),
            AdminRequest::Node => Ok(AdminAnswer::Node(collect_metrics::node(self))),
            AdminRequest::Tables { which } => {
                Ok(AdminAnswer::Tables(collect_metrics::tables(self, &self.tables(which)?)?))
            }
            AdminRequest::Growth => Ok(AdminAnswer::Growth(collect_metrics::growth(self))),
            AdminRequest::Pools => Ok(AdminAnswer::Pools(collect_metrics::pools(self))),
            AdminRequest::Memory => Ok(AdminAnswer::Memory(collect_metrics::memory(self))),
            AdminRequest::DiskUsage => {
                self.needs_files("show the space of")?;
                collect_metrics::disk_usage(self).map(AdminAnswer::DiskUsage)
            }
            AdminRequest::Compactions => Ok(AdminAnswer::Compactions(collect_metrics::compactions(self))),
            AdminRequest::CompactionHistory => Ok(AdminAnswer::History(collect_metrics::history(self))),
            AdminRequest::FilesOfKey { keyspace, table, key, hex } => {
                let table = self.table(keyspace, table)?;
                let key = key_of(&table, key, *hex)?;
                self.database
                    .inspect()
                    .files_of_key(&table, &key)
                    .map(AdminAnswer::Files)
                    .map_err(|error| error.to_string())
            }
            AdminRequest::TopPartitions { which } => {
                Ok(AdminAnswer::TopPartitions(collect_metrics::top_partitions(self, &self.tables(which)?)))
            }
            AdminRequest::Flush { which } => self.flush(which),
            AdminRequest::Compact { which } => {
                let ask = |ids| self.database.compact(ids);
                self.look(self.compactions.ask(&self.database, &self.tables(which)?, ask))
            }
            AdminRequest::Rewrite { which, current } => {
                let ask = |ids| self.database.rewrite(ids, *current);
                self.look(self.compactions.ask(&self.database, &self.tables(which)?, ask))
            }
            AdminRequest::Compaction { number } => self.look(*number),
            AdminRequest::SetCompactionThroughput { mib } => {
                self.database.compactions().set_bytes_per_s(u64::from(*mib) << 20);
                Ok(AdminAnswer::Done)
            }
            AdminRequest::AutoCompaction { which, set } => self.auto_compaction(which, *set),
            AdminRequest::Job { number } => self.jobs.look(*number).map(AdminAnswer::Job),
            AdminRequest::Export { keyspace, table } => {
                self.needs_files("export")?;
                export(&self.database, keyspace.as_deref(), table.as_deref()).map(AdminAnswer::Exported)
            }
            AdminRequest::Snapshot { name, of, flush, ttl_s } => {
                self.needs_files("take a snapshot of")?;
                let taken = snapshots::take(self, (name, of), *flush, *ttl_s)?;
                self.next_expiry.note(&taken);
                Ok(AdminAnswer::Snapshots(taken))
            }
            AdminRequest::Snapshots => {
                self.remove_expired_snapshots();
                snapshots::list(&self.database).map(AdminAnswer::Snapshots)
            }
            AdminRequest::ClearSnapshots { name, keyspaces, before_ms } => {
                snapshots::clear(&self.database, name.as_deref(), keyspaces, *before_ms)
                    .map(AdminAnswer::Snapshots)
            }
            AdminRequest::RebuildIndexes { keyspace, table, indexes } => {
                self.rebuild_indexes(&*self.table(keyspace, table)?, indexes)
            }
            AdminRequest::CompactKeys { keyspace, table, keys } => {
                let table = self.table(keyspace, table)?;
                let keys = keys.iter().map(|key| key_of(&table, key, false)).collect::<Result<_, _>>()?;
                let ask = |ids: Vec<_>| self.database.compact_keys(ids, keys);
                self.look(self.compactions.ask(&self.database, &[table], ask))
            }
            AdminRequest::TraceProbability { set } => self.trace_probability(*set),
            AdminRequest::Timeout { kind, set_ms } => self.timeout(*kind, *set_ms),
            AdminRequest::LogLevel { set } => self.log_level(set.as_ref()),
            AdminRequest::DataPaths => {
                self.needs_files("show the folders of")?;
                let tables = self.tables(&TableSelection::default())?;
                let line = |table: &Arc<Table>| {
                    let folder = self.database.inspect().folder(table)?;
                    Some((table.keyspace.to_string(), table.name.to_string(), folder))
                };
                Ok(AdminAnswer::DataPaths(tables.iter().filter_map(line).collect()))
            }
            AdminRequest::Clients => Ok(AdminAnswer::Clients(self.facts.control.clients())),
            AdminRequest::ClearClients => {
                self.facts.control.clear_clients();
                Ok(AdminAnswer::Done)
            }
            AdminRequest::ServeClients { serve: true } => {
                self.facts.control.resume().map(|()| AdminAnswer::Done)
            }
            AdminRequest::ServeClients { serve: false } => {
                self.facts.control.pause().map(|()| AdminAnswer::Done)
            }
            AdminRequest::ReloadSettings => self.facts.control.reload().map(AdminAnswer::Reloaded),
            AdminRequest::ReloadTls => self.facts.control.reload_tls().map(|()| AdminAnswer::Done),
            AdminRequest::EnableAuditLog(overrides) => {
                self.facts.control.enable_audit(overrides).map(|()| AdminAnswer::Done)
            }
            AdminRequest::DisableAuditLog => {
                self.facts.control.disable_audit();
                Ok(AdminAnswer::Done)
            }
            AdminRequest::AuditLog => Ok(AdminAnswer::AuditLog(self.facts.control.audit())),
            AdminRequest::CidrGroups { .. }
            | AdminRequest::UpdateCidrGroup { .. }
            | AdminRequest::DropCidrGroup { .. }
            | AdminRequest::CidrGroupsOfAddress { .. }
            | AdminRequest::ReloadCidrGroups
            | AdminRequest::InvalidateCidrPermissions { .. }
            | AdminRequest::CidrFilteringStats => {
                let answer = networks(&self.backend, request)?;
                self.audit(request);
                Ok(answer)
            }
            AdminRequest::ResetClock => {
                let reset = self.database.clock().reset();
                reset.map(|before| AdminAnswer::Clock(before.into())).map_err(|error| error.to_string())
            }
            AdminRequest::SetPassword { role, password } => {
                self.backend.set_lost_password(role, &password.0).map_err(|error| error.to_string())?;
                self.audit(request);
                Ok(AdminAnswer::Done)
            }
            AdminRequest::Drain => {
                self.facts.control.close();
                self.database.drain().map(|()| AdminAnswer::Done).map_err(|error| error.to_string())
            }
            AdminRequest::Changes(_)
            | AdminRequest::AcknowledgeChanges { .. }
            | AdminRequest::ChangeConsumers
            | AdminRequest::DropChangeConsumer { .. } => answer_changes(&self.database, request),
            AdminRequest::Further { .. } => Err("this request does not wait for its turn".to_owned()),
            AdminRequest::Verify { .. }
            | AdminRequest::Import(_)
            | AdminRequest::Refresh { .. }
            | AdminRequest::Restore(_) => self.send(request),
        }
    }

    /// Starts the job of a request.
    fn send(&self, request: &AdminRequest) -> Result<AdminAnswer, String> {
        let (backend, disk) = (Arc::clone(&self.backend), self.source_disk());
        let writing = match request {
            AdminRequest::Import(order) if order.dry_run => None,
            AdminRequest::Import(_) => Some("an import"),
            AdminRequest::Refresh { .. } => Some("a refresh"),
            AdminRequest::Restore(_) => Some("a restore"),
            _ => None,
        };
        let writing = writing.map(|what| self.facts.control.begin_writing(what)).transpose()?;
        let (what, work): (_, Work) = match request {
            AdminRequest::Verify { which } => {
                let tables = self.tables(which)?;
                (VERIFYING, Box::new(move |progress| verify(&backend, &tables, progress)))
            }
            AdminRequest::Import(order) => {
                let request = request_of(order, &disk)?;
                let work = move |progress: &_| match backend.import(&disk, &request, progress) {
                    Ok(report) => Ok(Outcome::Imported(imported(report))),
                    Err(error) => Err(error.to_string()),
                };
                (TAKING_IN, Box::new(work))
            }
            AdminRequest::Refresh { keyspace, table } => {
                self.needs_files("refresh")?;
                let table = self.table(keyspace, table)?;
                self.audit(request);
                let work = move |progress: &_| match backend.refresh(&table, progress) {
                    Ok(report) => Ok(Outcome::Imported(imported(report))),
                    Err(error) => Err(error.to_string()),
                };
                (TAKING_IN, Box::new(work))
            }
            AdminRequest::Restore(order) => {
                let (order, directory) = (order.clone(), self.facts.directory.clone());
                let work = move |progress: &_| {
                    restore(&backend, (&disk, directory.as_deref()), &order, progress).map(Outcome::Restored)
                };
                (TAKING_IN, Box::new(work))
            }
            _ => return Err("this is no job".to_owned()),
        };
        let work: Work = Box::new(move |progress| {
            let done = work(progress);
            drop(writing);
            done
        });
        let number = self.jobs.begin(&*self.database.host().tasks, what, work)?;
        self.jobs.look(number).map(AdminAnswer::Job)
    }

    /// Writes a request to the audit log if it changes roles or rights.
    fn audit(&self, request: &AdminRequest) {
        let (event, operation) = match request {
            AdminRequest::SetPassword { role, .. } => (EventType::AlterRole, format!("passwd {role}")),
            AdminRequest::UpdateCidrGroup { group, cidrs } => {
                (EventType::Update, format!("updatecidrgroup {group} {}", cidrs.join(" ")))
            }
            AdminRequest::DropCidrGroup { group } => (EventType::Delete, format!("dropcidrgroup {group}")),
            AdminRequest::Refresh { keyspace, table } if keyspace == ACCESS_KEYSPACE => {
                (EventType::Update, format!("refresh {keyspace} {table}"))
            }
            _ => return,
        };
        self.facts.control.audit_change(event, &operation);
    }

    fn needs_files(&self, verb: &str) -> Result<(), String> {
        match self.facts.directory {
            Some(_) => Ok(()),
            None => Err(format!(
                "a server in memory has no files to {verb}; start one with --data and import there"
            )),
        }
    }

    /// The disk that tools mean: the database's, or the machine's if the database is in memory.
    fn source_disk(&self) -> SourceDisk {
        match self.facts.directory {
            Some(_) => Arc::clone(&self.database.host().disk),
            None => helenus_host::real::host().disk,
        }
    }

    fn flush(&self, which: &TableSelection) -> Result<AdminAnswer, String> {
        let text = |error: helenus_engine::Error| error.to_string();
        let mut sstables = 0;
        if which.keyspace.is_none() {
            sstables = self.database.flush_all().map_err(text)?;
        } else {
            for table in self.tables(which)? {
                sstables += self.database.flush(table.id).map_err(text)?;
            }
        }
        Ok(AdminAnswer::Flushed(Flushed { sstables }))
    }

    fn auto_compaction(&self, which: &TableSelection, set: Option<bool>) -> Result<AdminAnswer, String> {
        let tables = self.tables(which)?;
        if let Some(automatic) = set {
            let ids: Vec<_> = tables.iter().map(|table| table.id).collect();
            self.database.compactions().set_automatic(&ids, automatic);
        }
        let line = |table: &Arc<Table>| {
            let is_automatic = self.database.compactions().is_automatic(table.id);
            (table.keyspace.to_string(), table.name.to_string(), is_automatic)
        };
        Ok(AdminAnswer::AutoCompaction(tables.iter().map(line).collect()))
    }

    fn rebuild_indexes(&self, table: &Table, indexes: &[String]) -> Result<AdminAnswer, String> {
        if let Some(missing) = indexes.iter().find(|name| !table.indexes.contains_key(name.as_str())) {
            let known: Vec<&str> = table.indexes.keys().map(|name| &**name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("{}.{} has no index {missing}; it has: {known}", table.keyspace, table.name));
        }
        self.database.rebuild_indexes(table).map(|()| AdminAnswer::Done).map_err(|error| error.to_string())
    }

    fn trace_probability(&self, set: Option<f64>) -> Result<AdminAnswer, String> {
        if let Some(probability) = set {
            if !(0.0..=1.0).contains(&probability) {
                return Err("Trace probability must be between 0 and 1".to_owned());
            }
            self.facts.control.set_trace_probability(probability);
        }
        Ok(AdminAnswer::Probability(self.facts.control.trace_probability()))
    }

    fn timeout(&self, kind: TimeoutKind, set_ms: Option<u64>) -> Result<AdminAnswer, String> {
        let doors = &self.facts.control;
        if let Some(ms) = set_ms {
            doors.set(kind.setting(), Some(&format!("{ms}ms")))?;
        }
        let shown = doors.setting(kind.setting());
        let ms = shown.strip_suffix("ms").and_then(|ms| ms.parse().ok());
        ms.map(AdminAnswer::TimeoutMs).ok_or_else(|| format!("{} is {shown}", kind.setting()))
    }

    fn log_level(&self, set: Option<&LogLevelChoice>) -> Result<AdminAnswer, String> {
        let doors = &self.facts.control;
        match set {
            Some(LogLevelChoice::AsStarted) => doors.set("log_level", None)?,
            Some(LogLevelChoice::Level(level)) => doors.set("log_level", Some(level))?,
            None => {}
        }
        Ok(AdminAnswer::LogLevel(doors.setting("log_level")))
    }

    /// Takes a sample of the server's figures once an hour.
    pub(super) fn record_history(&self) {
        let _shown_by_the_panic_hook = contain(|| self.history.record_when_due(&self.database));
    }

    /// Removes expired snapshots. A removal that fails is tried again at the next check.
    pub(super) fn remove_expired_snapshots(&self) {
        let _shown_by_the_panic_hook = contain(|| self.next_expiry.sweep(&self.database));
    }

    /// Finds a table by its names.
    fn table(&self, keyspace: &str, table: &str) -> Result<Arc<Table>, String> {
        let schema = self.database.schema();
        schema
            .table(keyspace, table)
            .cloned()
            .ok_or_else(|| format!("Unknown keyspace/cf pair ({keyspace}.{table})"))
    }

    /// The tables that a request names: all, those of a keyspace, or some of them.
    pub(super) fn tables(&self, which: &TableSelection) -> Result<Vec<Arc<Table>>, String> {
        let schema = self.database.schema();
        let Some(keyspace) = &which.keyspace else {
            let keyspaces = schema.keyspaces.values();
            return Ok(keyspaces.flat_map(|keyspace| keyspace.tables.values().cloned()).collect());
        };
        let found = schema.keyspaces.get(keyspace.as_str());
        let found = found.ok_or_else(|| format!("Keyspace [{keyspace}] does not exist."))?;
        if which.tables.is_empty() {
            return Ok(found.tables.values().cloned().collect());
        }
        let table = |name: &String| {
            let table = found.tables.get(name.as_str()).cloned();
            table.ok_or_else(|| format!("Unknown keyspace/cf pair ({keyspace}.{name})"))
        };
        which.tables.iter().map(table).collect()
    }

    fn look(&self, number: u64) -> Result<AdminAnswer, String> {
        self.compactions.look(&self.database, number).map(AdminAnswer::Compaction)
    }
}

/// Parses a partition key, given as text or as hexadecimal digits.
fn key_of(table: &Table, text: &str, hex: bool) -> Result<Vec<u8>, String> {
    let types: Vec<_> = table.partition_key.iter().map(|column| &column.ty).collect();
    if !hex {
        return parse_key_text(&types, text).map_err(|error| format!("{text}: {error}"));
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.ok_or_else(|| format!("{text}: not an even number of hexadecimal digits"))
}
