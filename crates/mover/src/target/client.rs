//! A client of the target: its cluster, the statements prepared there, and how batches are sent.
//!
//! Every write has its own timestamp, so sending it twice is the same as once. A request without an answer, or with an error that
//! may pass, is sent again until the move stops; nothing is left out.

use super::batch::Batch;
use super::encode;
use super::pace::Pace;
use super::refused::row_of;
use crate::error::MoveError;
use crate::messages::MoveOrder;
use crate::source::{StatementKind, TableTexts};
use helenus_cluster::{CallError, Cluster, ClusterError, ClusterOptions, Login, Node, Statement};
use helenus_host::Clock;
use helenus_model::schema::Table;
use helenus_model::types::quote_identifier;
use helenus_tls::{ClientOptions, ReadFile, ServerTrust, TlsClient};
use helenus_wire::native::{Consistency, ErrorCode, Flags, Opcode};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long the nodes may take to agree on a schema, before they are asked again.
pub(crate) const AGREEMENT: Duration = Duration::from_secs(60);

/// The first and the longest pause before a request is sent again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long a request without an answer may still be run: a node drops it after `native_transport_timeout` (12 s) from its queue,
/// or after `counter_write_request_timeout` (5 s) on its way to the leader.
pub(crate) const SETTLE: Duration = Duration::from_secs(17);
/// The same for TRUNCATE, which has `truncate_request_timeout` (60 s).
pub(crate) const SETTLE_TRUNCATE: Duration = Duration::from_secs(72);

/// How long a request that failed so may still be run there, if an unanswered one may be for `settle`; `None`: it is not run any more.
pub(crate) fn may_be_run(error: &ClusterError, settle: Duration) -> Option<Duration> {
    match error {
        ClusterError::NoNode { .. } => None,
        ClusterError::Call(error) => error.was_sent().then_some(settle),
        ClusterError::Server(error) if error.detail.code() == ErrorCode::Unavailable => None,
        // A node that answers with an error has given up waiting; its own time is over.
        ClusterError::Server(_) => Some(settle / 4),
        _ => Some(settle),
    }
}
/// Times that a node may answer that it has failed, before the row that it fails with is named and its table stops: nearly two minutes,
/// with the pauses. A time-out and a node that is down are waited for without end.
const FAILURES: u32 = 24;
/// The same for a row that is sent alone, after its batch was refused.
const FAILURES_ALONE: u32 = 4;

/// Whether a node has answered that it failed.
fn is_failure(error: &ClusterError) -> bool {
    let code = error.server().map(|error| error.detail.code());
    matches!(code, Some(ErrorCode::Server | ErrorCode::WriteFailure))
}

/// A cluster that takes tables.
pub(crate) struct Target {
    pub(crate) cluster: Cluster,
    pub(crate) pace: Pace,
    /// Requests that were sent again.
    pub(crate) repeated: AtomicU64,
    pub(crate) last_error: Mutex<Option<String>>,
    /// What is left of a TTL is told at each attempt.
    clock: Arc<dyn Clock>,
    /// Until when a request that has failed may still be run there.
    doubt_until: Mutex<Option<tokio::time::Instant>>,
    /// Statements that read, by text.
    reads: Mutex<HashMap<String, Arc<Statement>>>,
    /// True once the move is to stop.
    pub(crate) stop: watch::Receiver<bool>,
}

/// The statements of a table at the target.
pub(crate) struct TableTarget {
    pub(crate) texts: TableTexts,
    table: Arc<Table>,
    prepared: Mutex<HashMap<StatementKind, Arc<Statement>>>,
}

impl TableTarget {
    /// For a table here, and as the target has it (`forms::as_there`).
    pub(crate) fn new(table: &Arc<Table>, as_there: &Arc<Table>) -> Arc<TableTarget> {
        let (table, texts) = (Arc::clone(table), TableTexts::new(as_there));
        Arc::new(TableTarget { texts, table, prepared: Mutex::default() })
    }

    /// The table here.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The table with the form that it has at the target: what its statements can name.
    pub(crate) fn as_there(&self) -> &Arc<Table> {
        self.texts.table()
    }
}

/// The options by which the target of an order is reached after a cut, for clients that do not log in: by the role that is theirs, if there
/// is one.
///
/// # Errors
/// A file of TLS or of a password cannot be used.
pub fn options_for_clients(order: &MoveOrder) -> Result<ClusterOptions, MoveError> {
    let mut options = options(order)?;
    if let Some(clients) = &order.clients {
        let password = password_in(&clients.password_file)?;
        options.login = Some(Login { user: clients.user.clone(), password });
    }
    Ok(options)
}

/// The options by which the target of an order is reached.
///
/// # Errors
/// A file of TLS or of a password cannot be used.
pub fn options(order: &MoveOrder) -> Result<ClusterOptions, MoveError> {
    let mut options = ClusterOptions::new(order.to.clone());
    options.local_dc.clone_from(&order.local_dc);
    options.login = match (&order.login, &order.password_file) {
        (None, _) => None,
        (Some((user, _)), Some(file)) => Some(Login { user: user.clone(), password: password_in(file)? }),
        (Some((user, password)), None) => Some(Login { user: user.clone(), password: password.clone() }),
    };
    options.driver_name = "helenus move".to_owned();
    if let Some(files) = &order.tls {
        let trust = match (&files.cafile, files.insecure) {
            (_, true) => ServerTrust::Anybody,
            (None, false) => ServerTrust::Machine,
            (Some(file), false) => ServerTrust::File(file.clone()),
        };
        let read: ReadFile = Arc::new(bytes_of);
        let client = ClientOptions { trust, certificate: files.cert.clone(), key: files.key.clone() };
        let client = TlsClient::new(client, &read);
        options.tls = Some(client.map_err(|error| MoveError::Refused(vec![error.to_string()]))?);
    }
    Ok(options)
}

fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = helenus_host::real::host().disk.open(path)?;
    let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// The password in the first line of a file.
fn password_in(file: &str) -> Result<String, MoveError> {
    let refused = |reason: String| {
        MoveError::Refused(vec![format!(
            "the password file {file}: {reason}; the user that runs the server must be able to read it until the move has ended"
        )])
    };
    let bytes = bytes_of(Path::new(file)).map_err(|error| refused(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8".to_owned()))?;
    match text.lines().next().unwrap_or_default() {
        "" => Err(refused("its first line is empty".to_owned())),
        password => Ok(password.to_owned()),
    }
}

/// The pauses between the attempts of one thing.
pub(crate) struct Retry<'t> {
    target: &'t Target,
    pause: Duration,
    /// Whether what is tried only reads: nothing of it is in doubt.
    is_read: bool,
    /// Whether a node has refused it as invalid.
    was_refused: bool,
}

impl Retry<'_> {
    /// The answer to something that is asked again and again; `None` after a failure that passes, and a pause.
    ///
    /// # Errors
    /// The move stops; an error that does not pass.
    pub(crate) async fn answer<T>(&mut self, answer: Result<T, MoveError>) -> Result<Option<T>, MoveError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(MoveError::Target(error)) => self.after(error).await.map(|()| None),
            Err(error) => Err(error),
        }
    }

    /// Waits after a failure, if trying again may help.
    ///
    /// # Errors
    /// The move stops; an error that does not pass.
    pub(crate) async fn after(&mut self, error: ClusterError) -> Result<(), MoveError> {
        match self.may_pass(&error).await? {
            true => self.wait(&error).await,
            false => {
                self.note(&error);
                Err(error.into())
            }
        }
    }

    /// The same after the failure of a read, which leaves nothing in doubt.
    ///
    /// # Errors
    /// As `after`.
    pub(crate) async fn after_read(&mut self, error: ClusterError) -> Result<(), MoveError> {
        let is_read = std::mem::replace(&mut self.is_read, true);
        let waited = self.after(error).await;
        self.is_read = is_read;
        waited
    }

    /// Waits after a failure that may pass.
    ///
    /// # Errors
    /// The move stops.
    async fn wait(&mut self, error: &ClusterError) -> Result<(), MoveError> {
        self.note(error);
        self.target.repeated.fetch_add(1, Ordering::Relaxed);
        self.target.pause(self.pause).await?;
        self.pause = (self.pause * 2).min(PAUSES.1);
        Ok(())
    }

    fn note(&self, error: &ClusterError) {
        match self.is_read {
            true => *self.target.last_error.lock() = Some(error.to_string()),
            false => self.target.note(error),
        }
    }

    /// Whether trying again may help after a failure. A node that is behind with the schema, as one that was down while a table was made,
    /// refuses what the others take: so the first refusal waits until the nodes agree, and the next one is for good.
    ///
    /// # Errors
    /// The move stops.
    async fn may_pass(&mut self, error: &ClusterError) -> Result<bool, MoveError> {
        if !error.is_invalid() || self.was_refused {
            return Ok(error.may_repeat(true));
        }
        self.was_refused = true;
        let target = self.target;
        // Nodes that never agree do not hide what is wrong with a statement.
        let agreed = async { Ok(target.cluster.wait_for_agreement(AGREEMENT).await) };
        let _ = target.unless_stopped(agreed).await?;
        Ok(true)
    }
}

impl Target {
    /// Connects to the target of an order.
    ///
    /// # Errors
    /// No node can be used; the move stops.
    pub(crate) async fn connect(order: &MoveOrder, stop: watch::Receiver<bool>) -> Result<Target, MoveError> {
        let options = options(order)?;
        let connecting = async { Ok(Cluster::connect(options).await?) };
        let cluster = unless_stopped(stop.clone(), connecting).await?;
        Ok(Target {
            cluster,
            pace: Pace::new(order.rows_per_second, order.target_p99_ms),
            repeated: AtomicU64::new(0),
            last_error: Mutex::default(),
            doubt_until: Mutex::default(),
            clock: helenus_host::real::host().clock,
            reads: Mutex::default(),
            stop,
        })
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Does this unless the move stops first.
    ///
    /// # Errors
    /// The move stops; those of `work`.
    pub(crate) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, MoveError>>,
    ) -> Result<T, MoveError> {
        unless_stopped(self.stop.clone(), work).await
    }

    /// Sends a batch until the target has acknowledged it: in parts, one after the other, if it is too large for a frame. A part that was
    /// acknowledged is not sent again. Each attempt takes a turn of the pace.
    ///
    /// # Errors
    /// The move stops; an error of the target that does not pass.
    pub(crate) async fn send(&self, batch: &Batch) -> Result<(), MoveError> {
        let mut rows = batch.rows;
        for part in batch.parts() {
            self.send_part(part.as_ref().unwrap_or(batch), std::mem::take(&mut rows)).await?;
        }
        Ok(())
    }

    /// `rows`: those that the pace counts.
    async fn send_part(&self, batch: &Batch, mut rows: u64) -> Result<(), MoveError> {
        let (mut retry, mut failures) = (self.retry(), 0);
        loop {
            // A turn is not kept through the pauses: batches whose replicas are down would keep all of them from the others.
            let turn = self.pace.turn(std::mem::take(&mut rows)).await;
            let sent = match self.node_of(batch) {
                Ok(node) => self.try_send_at(&node, batch).await,
                Err(error) => Err(error),
            };
            drop(turn);
            let error = match sent {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            failures = if is_failure(&error) { failures + 1 } else { 0 };
            let may_pass = retry.may_pass(&error).await?;
            if may_pass && failures < FAILURES {
                retry.wait(&error).await?;
                continue;
            }
            self.note(&error);
            return match error.server() {
                Some(_) => self.send_each(batch, error).await,
                None => Err(error.into()),
            };
        }
    }

    /// Sends the writes of a batch that was refused one by one: all but the one that is refused are done, and that one is named.
    async fn send_each(&self, batch: &Batch, refused: ClusterError) -> Result<(), MoveError> {
        let mut refused = (batch.writes.len() == 1).then_some(refused);
        for write in &batch.writes {
            let mut alone = batch.clone_head();
            alone.writes.push(write.clone());
            alone.count(0);
            let (mut retry, mut failures) = (self.retry(), 0);
            while let Err(found) = self.try_in_turn(&alone).await {
                failures = if is_failure(&found) { failures + 1 } else { 0 };
                if failures < FAILURES_ALONE && retry.may_pass(&found).await? {
                    retry.wait(&found).await?;
                    continue;
                }
                self.note(&found);
                let table = batch.table.table();
                return Err(MoveError::RowRefused {
                    table: format!("{}.{}", table.keyspace, table.name),
                    row: row_of(batch.table.as_there(), write),
                    error: Box::new(refused.take().unwrap_or(found)),
                });
            }
        }
        // Together they were too much, as for a limit of batches; each is there now.
        Ok(())
    }

    async fn try_in_turn(&self, batch: &Batch) -> Result<(), ClusterError> {
        let _turn = self.pace.turn(0).await;
        self.try_send(batch).await
    }

    /// The pauses between the attempts of one thing.
    pub(crate) fn retry(&self) -> Retry<'_> {
        Retry { target: self, pause: PAUSES.0, is_read: false, was_refused: false }
    }

    /// The same for something that only reads.
    pub(crate) fn retry_of_reads(&self) -> Retry<'_> {
        Retry { is_read: true, ..self.retry() }
    }

    /// Notes a failure: for the status, and because what failed may still be run.
    fn note(&self, error: &ClusterError) {
        *self.last_error.lock() = Some(error.to_string());
        self.doubt(may_be_run(error, SETTLE));
    }

    /// Requests that have no answer may still be run for this time.
    pub(crate) fn doubt(&self, settle: Option<Duration>) {
        let until = settle.map(|settle| tokio::time::Instant::now() + settle);
        let mut doubt_until = self.doubt_until.lock();
        *doubt_until = until.max(*doubt_until);
    }

    /// Waits until no request that has failed by now can be run any more: one that is run after a TRUNCATE would bring its rows back.
    ///
    /// # Errors
    /// The move stops.
    pub(crate) async fn settle(&self) -> Result<(), MoveError> {
        let now = tokio::time::Instant::now();
        // What fails from now on is of other tables, whose failures must not hold this one back.
        let until = *self.doubt_until.lock();
        match until.filter(|until| *until > now) {
            Some(until) => self.pause(until.duration_since(now)).await,
            None => Ok(()),
        }
    }

    /// Waits, unless the move stops.
    ///
    /// # Errors
    /// The move stops.
    pub(crate) async fn pause(&self, time: Duration) -> Result<(), MoveError> {
        let mut stop = self.stop.clone();
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            _ = stop.wait_for(|stop| *stop) => Err(MoveError::Stopped),
        }
    }

    /// Truncates a table there. No TRUNCATE without an answer, and no write that it is to take away, can be run afterwards.
    ///
    /// # Errors
    /// As `send`.
    pub(crate) async fn truncate(&self, table: &Table) -> Result<(), MoveError> {
        self.settle().await?;
        let (keyspace, name) = (quote_identifier(&table.keyspace), quote_identifier(&table.name));
        let text = format!("TRUNCATE {keyspace}.{name}");
        let mut retry = self.retry();
        loop {
            let Err(error) = self.cluster.query(&text, &[], Consistency::All).await else { return Ok(()) };
            let settle = may_be_run(&error, SETTLE_TRUNCATE);
            retry.after(error).await?;
            // The next one is the last: what is written after it stays.
            if let Some(settle) = settle {
                self.pause(settle).await?;
            }
        }
    }

    /// Runs a statement until it is done. It must be one that may be run twice; what a first run without an answer has made counts.
    ///
    /// # Errors
    /// As `send`.
    pub(crate) async fn run(&self, text: &str, consistency: Consistency) -> Result<(), MoveError> {
        let (mut retry, mut is_repeated) = (self.retry(), false);
        loop {
            match self.cluster.query(text, &[], consistency).await {
                Ok(_) => return Ok(()),
                Err(ClusterError::Server(error))
                    if is_repeated && error.detail.code() == ErrorCode::AlreadyExists =>
                {
                    return Ok(());
                }
                Err(error) => {
                    is_repeated |= may_be_run(&error, SETTLE).is_some();
                    retry.after(error).await?;
                }
            }
        }
    }

    /// Sends a batch once; in parts, one after the other, if it is too large for a frame. One node gets them all: it makes the ids of a
    /// list's elements from its clock, and by that of another node the second part might come before the first.
    pub(crate) async fn try_send(&self, batch: &Batch) -> Result<(), ClusterError> {
        let node = self.node_of(batch)?;
        for part in batch.parts() {
            self.try_send_at(&node, part.as_ref().unwrap_or(batch)).await?;
        }
        Ok(())
    }

    /// A node that has the partition of a batch.
    fn node_of(&self, batch: &Batch) -> Result<Arc<Node>, ClusterError> {
        let node = self.cluster.pick(Some((&batch.table.table().keyspace, batch.token)));
        node.ok_or(ClusterError::NoNode { reason: None })
    }

    async fn try_send_at(&self, node: &Arc<Node>, batch: &Batch) -> Result<(), ClusterError> {
        let mut statements = Vec::with_capacity(batch.writes.len());
        for write in &batch.writes {
            statements.push(self.statement(&batch.table, write.kind).await?);
        }
        let mut known = Vec::with_capacity(statements.len());
        for statement in &statements {
            known.push(match statement.at(node.address) {
                Some(known) => known,
                None => self.cluster.prepare_at(node, statement, self.cluster.until()).await?,
            });
        }
        let connection = node.connection().ok_or(ClusterError::NoNode { reason: node.error() })?;
        let mut body = Vec::with_capacity(64 + batch.bytes);
        let now_s = self.clock.wall_us().div_euclid(1_000_000);
        let opcode = match (&batch.writes[..], &known[..]) {
            ([write], [statement]) => {
                encode::execute((connection.version(), statement), write, now_s, &mut body);
                Opcode::Execute
            }
            _ => {
                encode::batch((connection.version(), &known), &batch.writes, now_s, &mut body);
                Opcode::Batch
            }
        };
        let begun = tokio::time::Instant::now();
        let answer = connection.call_raw(opcode, Flags::default(), &body).await;
        self.pace.note(begun.elapsed(), answer.is_ok());
        match answer?.result() {
            Ok(_) => Ok(()),
            Err(ClusterError::Server(error)) if error.detail.code() == ErrorCode::Unprepared => {
                statements.iter().for_each(|statement| statement.forget(node.address));
                // Nothing was done, so it is sent again.
                let reason = "a statement was forgotten there".to_owned();
                Err(ClusterError::Call(CallError::NotSent { node: node.address, reason }))
            }
            Err(error) => Err(error),
        }
    }

    /// A statement of a table, prepared at some node.
    pub(crate) async fn statement(
        &self,
        table: &TableTarget,
        kind: StatementKind,
    ) -> Result<Arc<Statement>, ClusterError> {
        if let Some(known) = table.prepared.lock().get(&kind) {
            return Ok(Arc::clone(known));
        }
        let statement = self.cluster.prepare(&table.texts.text(kind), None).await?;
        table.prepared.lock().insert(kind, Arc::clone(&statement));
        Ok(statement)
    }

    /// A statement that reads, prepared at some node.
    pub(crate) async fn read_statement(&self, text: &str) -> Result<Arc<Statement>, ClusterError> {
        if let Some(known) = self.reads.lock().get(text) {
            return Ok(Arc::clone(known));
        }
        let statement = self.cluster.prepare(text, None).await?;
        self.reads.lock().insert(text.to_owned(), Arc::clone(&statement));
        Ok(statement)
    }
}

/// Does this unless `stop` becomes true first.
///
/// # Errors
/// `Stopped`; those of `work`.
pub(crate) async fn unless_stopped<T>(
    mut stop: watch::Receiver<bool>,
    work: impl Future<Output = Result<T, MoveError>>,
) -> Result<T, MoveError> {
    tokio::select! {
        biased;
        // An error: the mover has gone.
        _ = stop.wait_for(|stop| *stop) => Err(MoveError::Stopped),
        done = work => done,
    }
}

#[cfg(test)]
mod tests;
