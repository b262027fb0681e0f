//! Reads rows of a cluster: a range of tokens page after page, or one row.
//!
//! A page has about `PAGE_BYTES`, by the size of the rows before it, because a node counts rows only. Rows whose answer is too long to be
//! taken are asked for again in smaller pages, down to one row. With protocol v5 a read says
//! by which time TTLs are counted, so that an expiry is exact; before, it is that of the node's clock.

use super::decode::Decoder;
use super::portions::RowsOrError;
use super::range::TokenRange;
use super::row::SeenRow;
use super::texts::{ReadTexts, Rows};
use crate::attempts::Attempts;
use crate::error::MoveError;
use crate::source::{RowName, Values};
use helenus_cluster::{CallError, Cluster, ClusterError, Statement};
use helenus_engine::Database;
use helenus_model::schema::Table;
use helenus_model::token::Token;
use helenus_wire::native::{Consistency, QueryParameters, Value};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Bytes of a page, about.
const PAGE_BYTES: usize = 512 << 10;
/// Rows of a page: the first of a table, and the most. The least is 1.
const PAGE_ROWS: (i32, i32) = (16, 5_000);
/// By how much a page has fewer rows than one whose answer was too long.
const SMALLER: i32 = 8;
/// A cluster that is read.
pub(crate) struct Remote {
    pub(crate) cluster: Cluster,
    /// Has the clock by which TTLs are counted.
    database: Arc<Database>,
    consistency: Consistency,
    /// True once reading is to stop.
    stop: watch::Receiver<bool>,
    /// Rows a second at most; 0 for no limit. And when the next row may be read.
    rows_per_second: u64,
    next: Mutex<Instant>,
}

/// A table of it.
pub(crate) struct RemoteTable {
    pub(crate) texts: ReadTexts,
    statements: Mutex<HashMap<Rows, Arc<Statement>>>,
    /// Rows of the next page, by those that were read last, of whatever range.
    page_rows: AtomicI32,
}

impl RemoteTable {
    /// For a table here, and as the cluster has it (`forms::as_there`).
    pub(crate) fn new(table: &Arc<Table>, as_there: &Arc<Table>, cluster: &Cluster) -> RemoteTable {
        let release = cluster.topology().oldest_release();
        let mut numbers = release.split(['.', '-', '~']).map(|part| part.parse().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        RemoteTable {
            texts: ReadTexts::new(table, as_there, version),
            statements: Mutex::default(),
            page_rows: AtomicI32::new(PAGE_ROWS.0),
        }
    }
}

impl Remote {
    pub(crate) fn new(
        cluster: &Cluster,
        database: &Arc<Database>,
        consistency: Consistency,
        stop: watch::Receiver<bool>,
    ) -> Remote {
        Remote {
            cluster: cluster.clone(),
            database: Arc::clone(database),
            consistency,
            stop,
            rows_per_second: 0,
            next: Mutex::new(tokio::time::Instant::now()),
        }
    }

    /// With a limit in rows a second.
    pub(crate) fn limited(self, rows_per_second: u64) -> Remote {
        Remote { rows_per_second, ..self }
    }

    /// Reads a range into a channel, until the channel is closed. Rows come in the order of the ring and of the clustering.
    ///
    /// # Errors
    /// The cluster cannot be read; reading was stopped.
    pub(crate) async fn read_range(
        &self,
        table: &RemoteTable,
        range: TokenRange,
        condition: Option<String>,
        out: &mpsc::Sender<RowsOrError>,
    ) -> Result<(), MoveError> {
        let rows = Rows::Range { from: range.from.is_some(), until: range.until.is_some(), condition };
        let bounds = [range.from, range.until].map(|bound| bound.map(i64::to_be_bytes));
        let bounds: Vec<Value<'_>> = bounds.iter().flatten().map(|bound| Value::Bytes(bound)).collect();
        self.read_pages((table, &rows), range.from.map(Token), &bounds, out).await
    }

    /// Reads all rows of a SELECT into a channel.
    ///
    /// # Errors
    /// As `read_range`.
    pub(crate) async fn read_pages(
        &self,
        (table, rows): (&RemoteTable, &Rows),
        near: Option<Token>,
        values: &[Value<'_>],
        out: &mpsc::Sender<RowsOrError>,
    ) -> Result<(), MoveError> {
        let mut decoder = Decoder::new(&table.texts);
        let (mut most, mut state): (i32, Option<Vec<u8>>) = (PAGE_ROWS.1, None);
        loop {
            let page_rows = table.page_rows.load(Ordering::Relaxed).min(most);
            let now_s = self.database.now_s();
            let parameters = QueryParameters {
                consistency: self.consistency,
                values: helenus_wire::native::Values::positional(values),
                page_size: Some(page_rows),
                paging_state: state.as_deref(),
                now_in_seconds: i32::try_from(now_s).ok(),
                ..QueryParameters::default()
            };
            let answer = match self.ask((table, rows), near, &parameters).await {
                Err(MoveError::Target(ClusterError::Call(CallError::TooLong { .. }))) if page_rows > 1 => {
                    most = (page_rows / SMALLER).max(1);
                    continue;
                }
                answer => answer?,
            };
            let found = answer.rows()?;
            let seen = decoder.page(&found, now_s)?;
            self.wait(found.row_count).await?;
            if !seen.is_empty() && out.send(Ok(seen)).await.is_err() {
                return Ok(());
            }
            if let Some(bytes_of_row) = answer.body.len().checked_div(found.row_count) {
                let fitting = i32::try_from(PAGE_BYTES / bytes_of_row.max(1)).unwrap_or(PAGE_ROWS.1);
                table.page_rows.store(fitting.clamp(1, PAGE_ROWS.1), Ordering::Relaxed);
                most = most.saturating_mul(2);
            }
            match found.metadata.paging_state {
                Some(next) => state = Some(next.to_vec()),
                None => return Ok(()),
            }
        }
    }

    /// Reads one row, or a static row; `None` if it is not there.
    ///
    /// # Errors
    /// As `read_range`.
    pub(crate) async fn read_row(
        &self,
        table: &RemoteTable,
        name: &RowName,
    ) -> Result<Option<SeenRow>, MoveError> {
        let of = table.texts.table();
        let mut key = Values::default();
        let named = name.put(of, &mut key);
        named.map_err(|error| MoveError::Row { table: format!("{}.{}", of.keyspace, of.name), error })?;
        let values: Vec<Value<'_>> =
            key.iter().map(|value| value.map_or(Value::Null, Value::Bytes)).collect();
        let now_s = self.database.now_s();
        let parameters = QueryParameters {
            consistency: self.consistency,
            values: helenus_wire::native::Values::positional(&values),
            now_in_seconds: i32::try_from(now_s).ok(),
            ..QueryParameters::default()
        };
        let rows = match (&name.clustering, name.prefix(of)) {
            (None, _) => Rows::Static,
            (Some(_), None) => Rows::One,
            (Some(_), Some(values)) => Rows::Prefix(values),
        };
        let answer = self.ask((table, &rows), Some(Token::of_key(&name.key)), &parameters).await?;
        let seen = Decoder::new(&table.texts).page(&answer.rows()?, now_s)?;
        Ok(seen.into_iter().find(|row| row.clustering == name.clustering))
    }

    /// Prepares a SELECT, which shows whether the cluster takes it.
    ///
    /// # Errors
    /// It does not.
    pub(crate) async fn statement(
        &self,
        table: &RemoteTable,
        rows: &Rows,
    ) -> Result<Arc<Statement>, ClusterError> {
        if let Some(known) = table.statements.lock().get(rows) {
            return Ok(Arc::clone(known));
        }
        let statement = self.cluster.prepare(&table.texts.text(rows), None).await?;
        table.statements.lock().insert(rows.clone(), Arc::clone(&statement));
        Ok(statement)
    }

    /// Runs a SELECT, at a node that holds a token if one is given, and again after errors that pass.
    async fn ask(
        &self,
        (table, rows): (&RemoteTable, &Rows),
        near: Option<Token>,
        parameters: &QueryParameters<'_>,
    ) -> Result<helenus_cluster::OwnedAnswer, MoveError> {
        let keyspace = &*table.texts.table().keyspace;
        let mut attempts = Attempts::new();
        loop {
            let asked = async {
                let statement = self.statement(table, rows).await?;
                let node = self.cluster.pick(near.map(|token| (keyspace, token)));
                let node = node.ok_or(ClusterError::NoNode { reason: None })?;
                self.cluster.execute_at(&node, &statement, parameters).await
            };
            match asked.await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.pause(attempts.after(error)?).await?,
            }
        }
    }

    /// Waits until so many more rows may be read.
    async fn wait(&self, rows: usize) -> Result<(), MoveError> {
        if *self.stop.borrow() {
            return Err(MoveError::Stopped);
        }
        let Some(ns) = (rows as u64 * 1_000_000_000).checked_div(self.rows_per_second) else { return Ok(()) };
        let until = {
            let mut next = self.next.lock();
            let begin = (*next).max(tokio::time::Instant::now());
            *next = begin + Duration::from_nanos(ns);
            begin
        };
        self.pause(until.duration_since(tokio::time::Instant::now())).await
    }

    async fn pause(&self, pause: Duration) -> Result<(), MoveError> {
        let mut stop = self.stop.clone();
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            _ = stop.wait_for(|stop| *stop) => Err(MoveError::Stopped),
        }
    }
}
