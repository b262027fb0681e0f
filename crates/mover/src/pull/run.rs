//! Copies: reads the parts of each table, masks, and writes here.

use super::mask::{Masks, masks};
use super::messages::{PullOrder, PullReport, PulledTable};
use super::parts::{Part, parts};
use super::schema;
use crate::error::MoveError;
use crate::forms;
use crate::remote::{LocalWriter, Remote, RemoteTable, SeenRow, last, new_row, portions, read_local};
use crate::target::{options, unless_stopped};
use crate::threads::Threads;
use helenus_cluster::Cluster;
use helenus_cql::LocalBackend;
use helenus_model::schema::Table;
use helenus_wire::native::Consistency;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Portions of rows that a reader may be ahead.
const AHEAD: usize = 2;

/// A table that is copied.
struct Job {
    backend: Arc<LocalBackend>,
    remote: Arc<Remote>,
    table: RemoteTable,
    /// The table as rows here are written: with those that a compact table hides.
    opened: Arc<Table>,
    masks: Masks,
    threads: Arc<Threads>,
    report: Arc<Mutex<PullReport>>,
    /// Its place in the report.
    place: usize,
    /// Dropped once nothing is written any more: a thread that writes goes on for a moment after a stop.
    _writing: Writing,
}

/// What allows the writing.
pub(super) type Writing = Arc<Mutex<Box<dyn Send>>>;

impl Job {
    fn with(&self, change: impl FnOnce(&mut PulledTable)) {
        if let Some(table) = self.report.lock().tables.get_mut(self.place) {
            change(table);
        }
    }
}

/// Copies what an order wants.
///
/// # Errors
/// The cluster cannot be read; the schema cannot be made; the copying was stopped.
pub(super) async fn pull(
    backend: &Arc<LocalBackend>,
    order: &PullOrder,
    report: &Arc<Mutex<PullReport>>,
    (stop, writing): (&watch::Receiver<bool>, &Writing),
) -> Result<(), MoveError> {
    let mut options = options(&order.cluster)?;
    options.driver_name = "helenus pull".to_owned();
    let connecting = async { Ok(Cluster::connect(options).await?) };
    let cluster = unless_stopped(stop.clone(), connecting).await?;
    if !cluster.topology().partitioner.ends_with("Murmur3Partitioner") {
        return Err(MoveError::Table(
            "the cluster needs Murmur3Partitioner, to be read by tokens".to_owned(),
        ));
    }
    let named = schema::tables(&cluster, &order.cluster.what);
    let names = unless_stopped(stop.clone(), named).await?;
    if names.len() > 1 && (!order.partitions.is_empty() || order.condition.is_some()) {
        return Err(MoveError::Table(
            "--partitions and --where need one table; pull one after the other".to_owned(),
        ));
    }
    let consistency =
        Consistency::from_code(order.consistency).map_err(|error| MoveError::Table(error.to_string()))?;
    let remote = Remote::new(&cluster, backend.database(), consistency, stop.clone());
    let remote = Arc::new(remote.limited(order.cluster.rows_per_second));
    let mut notes = Vec::new();
    let mut made = Vec::new();
    let mut failed: Vec<(String, MoveError)> = Vec::new();
    for name in &names {
        let making = schema::make(&cluster, backend, name, &mut notes);
        match unless_stopped(stop.clone(), making).await {
            Ok(table) => made.push(table),
            Err(error @ MoveError::Stopped) => return Err(error),
            Err(error) => failed.push((format!("{}.{}", name.0, name.1), error)),
        }
    }
    let random = Arc::clone(&backend.database().host().random);
    let failed_names: Vec<&str> = failed.iter().map(|(name, _)| &**name).collect();
    let mut masks = masks(order, (&made, &failed_names), &*random)?;
    let threads = Threads::new(backend.database().host());
    let mut jobs = Vec::new();
    for (place, table) in made.iter().enumerate() {
        let form = async { Ok(forms::as_there(&cluster, table).await?) };
        let as_there = unless_stopped(stop.clone(), form).await?;
        let of_remote = RemoteTable::new(table, &as_there, &cluster);
        let name = format!("{}.{}", table.keyspace, table.name);
        let without_times = of_remote.texts.without_times();
        if !without_times.is_empty() {
            notes.push(format!(
                "{name}: the cluster's version does not tell timestamps and TTLs of elements: those of {} get the newest timestamp of \
                 their row, and no TTL",
                without_times.join(", ")
            ));
        }
        if as_there.is_static_compact() {
            notes.push(format!(
                "{name}: a node shows only the declared columns of a table of this form; if it has others, ALTER TABLE {name} DROP COMPACT \
                 STORAGE there shows them"
            ));
        }
        let of_table = unless_stopped(stop.clone(), parts(&remote, &of_remote, order)).await?;
        let shown = PulledTable { table: name, parts: of_table.len(), ..PulledTable::default() };
        report.lock().tables.push(shown);
        let masks = masks.remove(&place).unwrap_or_default();
        let (backend, remote, report) = (Arc::clone(backend), Arc::clone(&remote), Arc::clone(report));
        let (threads, opened) = (Arc::clone(&threads), forms::opened(table));
        let _writing = Arc::clone(writing);
        let job = Job { backend, remote, opened, table: of_remote, masks, threads, report, place, _writing };
        jobs.push((Arc::new(job), of_table));
    }
    report.lock().notes = notes;
    let turns = Arc::new(Semaphore::new(order.cluster.ranges_at_once.max(1)));
    for (job, parts) in jobs {
        if let Err(error) = copy_all(&job, parts, &turns).await {
            if matches!(error, MoveError::Stopped) {
                return Err(error);
            }
            let table = job.table.texts.table();
            job.with(|shown| shown.error = Some(error.to_string()));
            failed.push((format!("{}.{}", table.keyspace, table.name), error));
        }
    }
    ended(&names, &failed, report)
}

/// Whether all tables were copied. Those that could not even be made join the report.
fn ended(
    names: &[schema::Name],
    failed: &[(String, MoveError)],
    report: &Mutex<PullReport>,
) -> Result<(), MoveError> {
    if failed.is_empty() {
        return Ok(());
    }
    let mut report = report.lock();
    for (table, error) in failed {
        if !report.tables.iter().any(|of| of.table == *table) {
            let (table, error) = (table.clone(), Some(error.to_string()));
            report.tables.push(PulledTable { table, error, ..PulledTable::default() });
        }
    }
    let reasons: Vec<String> = failed.iter().map(|(table, error)| format!("  {table}: {error}")).collect();
    Err(MoveError::Table(format!(
        "{} of {} not copied to the end:\n{}",
        failed.len(),
        helenus_cql::counted(names.len(), "table"),
        reasons.join("\n")
    )))
}

/// Copies the parts of a table.
async fn copy_all(job: &Arc<Job>, parts: Vec<Part>, turns: &Arc<Semaphore>) -> Result<(), MoveError> {
    let mut tasks = JoinSet::new();
    for part in parts {
        let (job, turns) = (Arc::clone(job), Arc::clone(turns));
        tasks.spawn(async move {
            let _turn = turns.acquire().await.map_err(|_| MoveError::Stopped)?;
            copy(&job, part).await
        });
    }
    while let Some(ended) = tasks.join_next().await {
        // The first failure ends the others, which are dropped with the set.
        ended.map_err(|error| MoveError::Internal(error.to_string()))??;
    }
    Ok(())
}

/// Copies a part.
async fn copy(job: &Arc<Job>, part: Part) -> Result<(), MoveError> {
    let (sender, mut rows) = portions(AHEAD);
    let of_reader = Arc::clone(job);
    let mut reader = JoinSet::new();
    reader.spawn(async move {
        let (remote, table) = (&of_reader.remote, &of_reader.table);
        let read = match part {
            Part::Range(range, condition) => remote.read_range(table, range, condition, &sender).await,
            Part::Where(condition) => {
                remote.read_pages((table, &crate::remote::Rows::Where(condition)), None, &[], &sender).await
            }
        };
        let _ = sender.send(last(read)).await;
    });
    while let Some(rows) = rows.next().await? {
        let of_writer = Arc::clone(job);
        let (rows, bytes) = job.threads.run(move || write(&of_writer, rows)).await?;
        job.with(|table| (table.rows, table.bytes) = (table.rows + rows, table.bytes + bytes));
    }
    job.with(|table| table.parts_done += 1);
    Ok(())
}

/// Writes rows here. Returns their number, without static rows, and their bytes.
fn write(job: &Job, rows: Vec<SeenRow>) -> Result<(u64, u64), MoveError> {
    let table = job.table.texts.table();
    let database = job.backend.database();
    let times = (database.wall_us(), database.now_s());
    let mut writer = LocalWriter::new(&job.backend, table);
    let (mut count, mut bytes) = (0, 0);
    let mut writes = Vec::new();
    for row in rows {
        count += u64::from(row.clustering.is_some());
        bytes += row.bytes() as u64;
        let row_error = |error| MoveError::Row { table: format!("{}.{}", table.keyspace, table.name), error };
        let row = job.masks.apply(table, row).map_err(row_error)?;
        if table.is_counter() {
            let here = read_local(database, table, &row.name())?;
            writer.add_up(here.as_ref(), &row)?;
            continue;
        }
        new_row(&job.opened, &row, times, &mut writes).map_err(row_error)?;
        writer.run(&writes)?;
        writes.clear();
    }
    writer.finish()?;
    Ok((count, bytes))
}
