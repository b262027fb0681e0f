//! A client of the target: its cluster, the statements prepared there, and how batches are sent.
//!
//! Every write has its own timestamp, so sending it twice is the same as once. A request without an answer, or with an error that
//! may pass, is sent again until the move stops; nothing is left out.

use super::batch::Batch;
use super::encode;
use super::pace::Pace;
use crate::error::MoveError;
use crate::messages::MoveOrder;
use crate::source::{StatementKind, TableTexts};
use helenus_cluster::{CallError, Cluster, ClusterError, ClusterOptions, Login, Statement};
use helenus_host::Clock;
use helenus_model::schema::Table;
use helenus_tls::{ClientOptions, ReadFile, ServerTrust, TlsClient};
use helenus_wire::native::{Consistency, ErrorCode, Flags, Opcode};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The first and the longest pause before a request is sent again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A cluster that takes tables.
pub(crate) struct Target {
    pub(crate) cluster: Cluster,
    pub(crate) pace: Pace,
    /// Requests that were sent again.
    pub(crate) repeated: AtomicU64,
    pub(crate) last_error: Mutex<Option<String>>,
    /// What is left of a TTL is told at each attempt.
    clock: Arc<dyn Clock>,
    /// Statements that read, by text.
    reads: Mutex<HashMap<String, Arc<Statement>>>,
    /// True once the move is to stop.
    pub(crate) stop: watch::Receiver<bool>,
}

/// The statements of a table at the target.
pub(crate) struct TableTarget {
    pub(crate) texts: TableTexts,
    prepared: Mutex<HashMap<StatementKind, Arc<Statement>>>,
}

impl TableTarget {
    pub(crate) fn new(table: &Arc<Table>) -> Arc<TableTarget> {
        Arc::new(TableTarget { texts: TableTexts::new(table), prepared: Mutex::default() })
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        self.texts.table()
    }
}

/// The options by which the target of an order is reached.
///
/// # Errors
/// A file of TLS cannot be used.
pub fn options(order: &MoveOrder) -> Result<ClusterOptions, MoveError> {
    let mut options = ClusterOptions::new(order.to.clone());
    options.local_dc.clone_from(&order.local_dc);
    let login =
        |(user, password): &(String, String)| Login { user: user.clone(), password: password.clone() };
    options.login = order.login.as_ref().map(login);
    options.driver_name = "helenus move".to_owned();
    if let Some(files) = &order.tls {
        let trust = match (&files.cafile, files.insecure) {
            (_, true) => ServerTrust::Anybody,
            (None, false) => ServerTrust::Machine,
            (Some(file), false) => ServerTrust::File(file.clone()),
        };
        let disk = helenus_host::real::host().disk;
        let read: ReadFile = Arc::new(move |path| {
            let file = disk.open(path)?;
            let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        });
        let client = ClientOptions { trust, certificate: files.cert.clone(), key: files.key.clone() };
        let client = TlsClient::new(client, &read);
        options.tls = Some(client.map_err(|error| MoveError::Refused(vec![error.to_string()]))?);
    }
    Ok(options)
}

/// The pauses between the attempts of one thing.
pub(crate) struct Retry<'t> {
    target: &'t Target,
    pause: Duration,
}

impl Retry<'_> {
    /// Waits after a failure, if trying again may help.
    ///
    /// # Errors
    /// The move stops; an error that does not pass.
    pub(crate) async fn after(&mut self, error: ClusterError) -> Result<(), MoveError> {
        let target = self.target;
        *target.last_error.lock() = Some(error.to_string());
        if !error.may_repeat(true) {
            return Err(error.into());
        }
        target.repeated.fetch_add(1, Ordering::Relaxed);
        let mut stop = target.stop.clone();
        tokio::select! {
            () = tokio::time::sleep(self.pause) => {}
            _ = stop.wait_for(|stop| *stop) => return Err(MoveError::Stopped),
        }
        self.pause = (self.pause * 2).min(PAUSES.1);
        Ok(())
    }
}

impl Target {
    /// Connects to the target of an order.
    ///
    /// # Errors
    /// No node can be used.
    pub(crate) async fn connect(order: &MoveOrder, stop: watch::Receiver<bool>) -> Result<Target, MoveError> {
        let cluster = Cluster::connect(options(order)?).await?;
        Ok(Target {
            cluster,
            pace: Pace::new(order.rows_per_second, order.target_p99_ms),
            repeated: AtomicU64::new(0),
            last_error: Mutex::default(),
            clock: helenus_host::real::host().clock,
            reads: Mutex::default(),
            stop,
        })
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Sends a batch until the target has acknowledged it.
    ///
    /// # Errors
    /// The move stops; an error of the target that does not pass.
    pub(crate) async fn send(&self, batch: &Batch) -> Result<(), MoveError> {
        let mut retry = self.retry();
        loop {
            match self.try_send(batch).await {
                Ok(()) => return Ok(()),
                Err(error) => retry.after(error).await?,
            }
        }
    }

    /// The pauses between the attempts of one thing.
    pub(crate) fn retry(&self) -> Retry<'_> {
        Retry { target: self, pause: PAUSES.0 }
    }

    /// Runs a statement until it is done.
    ///
    /// # Errors
    /// As `send`.
    pub(crate) async fn run(&self, text: &str, consistency: Consistency) -> Result<(), MoveError> {
        let mut retry = self.retry();
        loop {
            match self.cluster.query(text, &[], consistency).await {
                Ok(_) => return Ok(()),
                Err(error) => retry.after(error).await?,
            }
        }
    }

    /// Sends a batch once.
    pub(crate) async fn try_send(&self, batch: &Batch) -> Result<(), ClusterError> {
        let mut statements = Vec::with_capacity(batch.writes.len());
        for write in &batch.writes {
            statements.push(self.statement(&batch.table, write.kind).await?);
        }
        let keyspace = &*batch.table.table().keyspace;
        let node = self.cluster.pick(Some((keyspace, batch.token)));
        let node = node.ok_or(ClusterError::NoNode { reason: None })?;
        let mut known = Vec::with_capacity(statements.len());
        for statement in &statements {
            known.push(match statement.at(node.address) {
                Some(known) => known,
                None => self.cluster.prepare_at(&node, statement).await?,
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
