//! Copies: reads the parts of each table, masks, and writes here.

use super::mask::{Masks, masks};
use super::messages::{PullOrder, PullReport, PulledTable, ReadFrom};
use super::parts::{Part, parts};
use super::schema;
use crate::error::MoveError;
use crate::remote::{LocalWriter, Remote, RemoteTable, SeenRow, new_row, read_local};
use crate::target::options;
use helenus_cluster::Cluster;
use helenus_cql::LocalBackend;
use helenus_wire::native::Consistency;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// Portions of rows that a reader may be ahead.
const AHEAD: usize = 2;

/// A table that is copied.
struct Job {
    backend: Arc<LocalBackend>,
    remote: Arc<Remote>,
    table: RemoteTable,
    masks: Masks,
    report: Arc<Mutex<PullReport>>,
    /// Its place in the report.
    place: usize,
}

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
    stop: &watch::Receiver<bool>,
) -> Result<(), MoveError> {
    let mut options = options(&order.cluster)?;
    options.driver_name = "helenus pull".to_owned();
    let cluster = Cluster::connect(options).await?;
    if !cluster.topology().partitioner.ends_with("Murmur3Partitioner") {
        return Err(MoveError::Table(
            "the cluster needs Murmur3Partitioner, to be read by tokens".to_owned(),
        ));
    }
    let names = schema::tables(&cluster, &order.cluster.what).await?;
    if names.len() > 1 && (!order.partitions.is_empty() || order.condition.is_some()) {
        return Err(MoveError::Table(
            "--partitions and --where need one table; pull one after the other".to_owned(),
        ));
    }
    let consistency = match order.read_from {
        ReadFrom::One => Consistency::LocalOne,
        ReadFrom::Quorum => Consistency::LocalQuorum,
        ReadFrom::All => Consistency::All,
    };
    let remote = Remote::new(&cluster, backend.database(), consistency, stop.clone());
    let remote = Arc::new(remote.limited(order.cluster.rows_per_second));
    let mut notes = Vec::new();
    let mut made = Vec::new();
    for name in &names {
        made.push(schema::make(&cluster, backend, name, &mut notes).await?);
    }
    let random = Arc::clone(&backend.database().host().random);
    let mut masks = masks(order, &made, &*random)?;
    let mut jobs = Vec::new();
    for (place, table) in made.iter().enumerate() {
        let of_remote = RemoteTable::new(table, &cluster);
        let name = format!("{}.{}", table.keyspace, table.name);
        let without_times = of_remote.texts.without_times();
        if !without_times.is_empty() {
            notes.push(format!(
                "{name}: the cluster's version does not tell timestamps and TTLs of elements: those of {} get the newest timestamp of \
                 their row, and no TTL",
                without_times.join(", ")
            ));
        }
        let of_table = parts(&remote, &of_remote, order).await?;
        let shown = PulledTable { table: name, parts: of_table.len(), ..PulledTable::default() };
        report.lock().tables.push(shown);
        let masks = masks.remove(&place).unwrap_or_default();
        let (backend, remote, report) = (Arc::clone(backend), Arc::clone(&remote), Arc::clone(report));
        let job = Job { backend, remote, table: of_remote, masks, report, place };
        jobs.push((Arc::new(job), of_table));
    }
    report.lock().notes = notes;
    let turns = Arc::new(Semaphore::new(order.cluster.ranges_at_once.max(1)));
    for (job, parts) in jobs {
        let mut tasks = JoinSet::new();
        for part in parts {
            let (job, turns) = (Arc::clone(&job), Arc::clone(&turns));
            tasks.spawn(async move {
                let _turn = turns.acquire().await.map_err(|_| MoveError::Stopped)?;
                copy(&job, part).await
            });
        }
        while let Some(ended) = tasks.join_next().await {
            // The first failure ends the others, which are dropped with the set.
            ended.map_err(|error| MoveError::Internal(error.to_string()))??;
        }
    }
    Ok(())
}

/// Copies a part.
async fn copy(job: &Arc<Job>, part: Part) -> Result<(), MoveError> {
    let (sender, mut portions) = mpsc::channel(AHEAD);
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
        if let Err(error) = read {
            let _ = sender.send(Err(error)).await;
        }
    });
    while let Some(rows) = portions.recv().await {
        let (rows, of_writer) = (rows?, Arc::clone(job));
        let written = tokio::task::spawn_blocking(move || write(&of_writer, rows));
        let (rows, bytes) = written.await.map_err(|error| MoveError::Internal(error.to_string()))??;
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
        new_row(table, &row, times, &mut writes).map_err(row_error)?;
        writer.run(&writes)?;
        writes.clear();
    }
    writer.finish()?;
    Ok((count, bytes))
}
