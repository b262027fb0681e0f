//! Jobs: requests that take longer than an answer may. Each runs on its own thread, and tools ask for its progress by
//! number.

use std::sync::Arc;

use helenus_cql::{ImportReport, ImportRequest, LocalBackend};
use helenus_engine::CheckedName;
use helenus_engine::import::{FindOptions, ImportOptions, ImportProgress, SourceDisk};
use helenus_host::{Next, Tasks, Worker, contain};
use parking_lot::Mutex;

use super::answer::{Import, Job, Outcome, VerifiedTable};
use super::request::ImportOrder;

/// Finished jobs that are kept.
const KEPT_MAX: usize = 16;

/// The work of a job.
pub(super) type Work = Box<dyn FnOnce(&ImportProgress) -> Result<Outcome, String> + Send>;

/// The jobs of this server.
#[derive(Default)]
pub(super) struct Jobs {
    ordered: Mutex<Vec<Arc<Ordered>>>,
}

struct Ordered {
    number: u64,
    /// Its kind, as named in the message that another one must wait.
    what: &'static str,
    progress: ImportProgress,
    /// The result, or the text of the failure.
    ended: Mutex<Option<Result<Outcome, String>>>,
}

impl Jobs {
    /// Starts a job and returns its number. One job of a kind runs at a time.
    pub(super) fn begin(&self, tasks: &dyn Tasks, what: &'static str, work: Work) -> Result<u64, String> {
        let mut ordered = self.ordered.lock();
        if ordered.iter().any(|other| other.what == what && other.ended.lock().is_none()) {
            return Err(format!("another {what} is under way; try again when it is over"));
        }
        if ordered.len() >= KEPT_MAX {
            ordered.retain(|other| other.ended.lock().is_none());
        }
        let number = ordered.last().map_or(1, |last| last.number + 1);
        let one =
            Arc::new(Ordered { number, what, progress: ImportProgress::default(), ended: Mutex::default() });
        let runner = Runner { work: Some(work), ordered: Arc::clone(&one) };
        let started = tasks.try_start(what, Box::new(runner));
        // Nobody joins the thread. If the server stops first, the next start cleans up.
        drop(started.map_err(|error| format!("the system gives the server no thread for this: {error}"))?);
        ordered.push(one);
        Ok(number)
    }

    /// The progress of a job, or the text of its failure.
    pub(super) fn look(&self, number: u64) -> Result<Job, String> {
        let found = self.ordered.lock().iter().find(|one| one.number == number).cloned();
        let Some(one) = found else { return Err(format!("there is no job with the number {number}")) };
        let (doing, bytes_done, bytes_total) = one.progress.status();
        let outcome = one.ended.lock().clone().transpose()?;
        Ok(Job { number, doing, bytes_done, bytes_total, outcome })
    }
}

struct Runner {
    work: Option<Work>,
    ordered: Arc<Ordered>,
}

impl Worker for Runner {
    fn step(&mut self) -> Next {
        if let Some(work) = self.work.take() {
            let done = contain(|| work(&self.ordered.progress)).unwrap_or_else(|text| Err(panicked(&text)));
            *self.ordered.ended.lock() = Some(done);
        }
        Next::Done
    }
}

/// The error text for work that panicked.
pub(super) fn panicked(text: &str) -> String {
    format!("internal error, a bug: {text}; the server's log has its place")
}

/// The import that a tool's order describes. Its schema file is read from the disk.
///
/// # Errors
/// The schema file cannot be read, or the snapshot's name is not valid.
pub fn request_of(order: &ImportOrder, disk: &SourceDisk) -> Result<ImportRequest, String> {
    let schema = match &order.schema {
        None => None,
        Some(path) => {
            let bytes = helenus_engine::import::read_text(&**disk, path);
            Some(bytes.map_err(|error| format!("cannot read {}: {error}", path.display()))?)
        }
    };
    let snapshot = order.snapshot.as_deref().map(|name| CheckedName::new("a snapshot", name)).transpose();
    let find = FindOptions {
        snapshot: snapshot.map_err(|error| error.to_string())?,
        keyspace: order.keyspace.clone(),
        table: order.table.clone(),
    };
    let options = ImportOptions { link: !order.copy, verify: !order.no_verify, keep_level: order.keep_level };
    Ok(ImportRequest { directory: order.directory.clone(), find, schema, options, dry_run: order.dry_run })
}

/// The report of an import, in the form for tools.
pub fn imported(report: ImportReport) -> Import {
    let ImportReport { tables, bytes, made, notes } = report;
    Import { tables, bytes, made, notes }
}

/// Reads all SSTables of the tables and checks them.
pub(super) fn verify(
    backend: &LocalBackend,
    tables: &[Arc<helenus_model::schema::Table>],
    progress: &ImportProgress,
) -> Result<Outcome, String> {
    let database = backend.database();
    let text = |error: helenus_engine::Error| error.to_string();
    let sizes = database.status().tables;
    let size = |table: &helenus_model::schema::Table| {
        let line = sizes.iter().find(|line| *line.keyspace == *table.keyspace && *line.table == *table.name);
        line.map_or(0, |line| line.disk_bytes)
    };
    progress.begin(tables.iter().map(|table| size(table)).sum());
    let mut verified = Vec::new();
    for table in tables {
        let sstables = database.inspect().sstables(table).map_err(text)?;
        let mut problems = Vec::new();
        for descriptor in &sstables {
            progress.describe(format!("verify {}.{} {descriptor}", table.keyspace, table.name));
            problems.extend(database.inspect().verify(table, *descriptor).map_err(text)?);
            progress.add(size(table) / sstables.len() as u64);
        }
        let (keyspace, table) = (table.keyspace.to_string(), table.name.to_string());
        verified.push(VerifiedTable { keyspace, table, sstables: sstables.len() as u64, problems });
    }
    Ok(Outcome::Verified(verified))
}
