//! COPY FROM: prepares the statement, starts the connections, counts rows, and writes the file of rejected rows.

use super::super::catalog::{Column, Role};
use super::super::session::quoted;
use super::dialect::Fields;
use super::glob;
use super::input::{Chunk, ReadUp, first_record, read_all};
use super::options::{Content, CopyStatement};
use super::progress::{RateMeter, interval};
use super::run::CopyContext;
use super::worker::{Failed, Plan, RequestFeed, Shared, Target, Worker};
use anyhow::{Context, Result, bail, ensure};
use helenus_model::types::CqlType;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Number of chunks read ahead for each connection.
const CHUNKS_AHEAD: usize = 2;
/// Number of requests in flight on each connection: enough that the server can group many writes into each sync of its
/// log.
const REQUESTS: usize = 512;
/// Maximum number of errors that are printed. The file contains all of them.
const TOLD_MAX: u64 = 20;

/// The table to import into or export from.
pub struct Filled<'a> {
    pub keyspace: &'a str,
    pub table: &'a str,
    pub columns: &'a [Column],
}

/// Imports files into a table.
///
/// # Errors
/// The files cannot be read, the columns do not match, the connection is lost, rows were not imported.
pub fn import(
    copy: &CopyStatement,
    into: &Filled<'_>,
    names: Option<&str>,
    place: &mut CopyContext<'_>,
) -> Result<()> {
    let files = names.map(glob::files).transpose()?.unwrap_or_default();
    let columns = columns(copy, into, &files)?;
    let (query, plan) = plan(copy, into, &columns, place)?;
    let prepared = place.session.prepare(&query)?;
    let mut plan = plan;
    for (target, variable) in plan.targets.iter_mut().zip(&prepared.variables) {
        target.ty = variable.ty.clone();
    }
    say!("\nStarting copy of {}.{} with columns [{}].", into.keyspace, into.table, columns.join(", "))?;
    if files.is_empty() && stdin().is_terminal() {
        say!("[Use \\. on a line by itself to end input]")?;
    }
    let connections = copy.options.connections.unwrap_or_else(default_connections);
    let (chunk_sender, chunks) = sync_channel::<Arc<Chunk>>(connections * CHUNKS_AHEAD);
    let (failures, failed) = sync_channel::<Failed>(1_000);
    let shared = Shared {
        chunks: Mutex::new(chunks),
        rows_done: AtomicU64::new(0),
        rows_sent: AtomicU64::new(0),
        begun: Instant::now(),
        is_aborted: AtomicBool::new(false),
        bytes_read: AtomicU64::new(0),
        bytes_total: files.iter().map(|file| file.metadata().map_or(0, |found| found.len())).sum(),
    };
    let mut workers = Vec::new();
    for _ in 0..connections {
        let mut session = place.session.another()?;
        // Cheap for each connection: the server finds the prepared statement by its text and keyspace.
        let prepared = session.prepare(&query)?;
        let (version, connection) = (session.version(), session.into_connection());
        workers.push(Worker {
            connection,
            feed: RequestFeed::new(&plan, &shared, prepared, version, failures.clone()),
        });
    }
    drop(failures);
    let mut errors = ErrorFile::new(copy, into);
    let done = std::thread::scope(|scope| -> Result<(ReadUp, u64, Duration)> {
        let (files, shared) = (&files, &shared);
        let reader = scope.spawn(move || {
            read_all(files, &copy.options, &mut |chunk| {
                shared.bytes_read.fetch_add(chunk.bytes(), Ordering::Relaxed);
                !shared.is_aborted.load(Ordering::Relaxed) && chunk_sender.send(Arc::new(chunk)).is_ok()
            })
        });
        let running: Vec<_> = workers.into_iter().map(|worker| scope.spawn(move || worker.run())).collect();
        let mut meter = RateMeter::begin(copy.options.report_every, copy.options.rate_file.as_deref())?;
        let watched = errors.watch(&failed, shared, &mut meter, place);
        if watched.is_err() {
            shared.is_aborted.store(true, Ordering::Relaxed);
        }
        let mut ended = watched;
        for worker in running {
            ended =
                ended.and(worker.join().unwrap_or_else(|_| bail!("a connection's thread ended by itself")));
        }
        // Dropping the receiver ends the reader, which may be waiting for a connection to take chunks.
        drop(std::mem::replace(&mut *shared.chunks.lock(), sync_channel(0).1));
        let read = reader.join().unwrap_or_else(|_| bail!("the reader's thread ended by itself"));
        let rows = shared.rows_done.load(Ordering::Relaxed);
        let (took, _) = meter.end(rows);
        ended?;
        Ok((read?, rows, took))
    });
    errors.close()?;
    if done.is_err() && errors.rows > 0 {
        note!("{}", errors.told_at_end());
    }
    let (read, rows, took) = done?;
    let rate = rows as f64 / took.as_secs_f64().max(1e-9);
    say!(
        "{rows} rows imported from {} files in {} ({} skipped), {rate:.0} rows/s.",
        read.files,
        interval(took),
        read.rows_skipped
    )?;
    match errors.rows {
        0 => Ok(()),
        _ => bail!("{}", errors.told_at_end()),
    }
}

fn default_connections() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(4)
}

/// The columns that the fields of a record belong to: those of the statement; otherwise those of the file's first line,
/// if it names columns of the table; otherwise those of the table.
fn columns(copy: &CopyStatement, into: &Filled<'_>, files: &[PathBuf]) -> Result<Vec<String>> {
    if copy.options.content == Content::Json {
        ensure!(
            copy.columns.is_empty(),
            "a list of columns makes no sense for JSON: each object names its own"
        );
        ensure!(copy.options.columns_skipped.is_empty(), "SKIPCOLS makes no sense for JSON");
        return Ok(vec!["[json]".to_owned()]);
    }
    let is_column = |name: &String| into.columns.iter().any(|column| column.name == *name);
    if let Some(wrong) = copy.columns.iter().find(|name| !is_column(name)) {
        bail!("Invalid column name {wrong}");
    }
    if !copy.columns.is_empty() {
        return Ok(copy.columns.clone());
    }
    if let Some(first) = files.first().filter(|_| copy.options.header)
        && let Some(line) = first_record(first, &copy.options)?
    {
        let mut fields = Fields::default();
        fields.read(&line, copy.options.marks);
        let names: Vec<String> = (0..fields.len())
            .filter_map(|at| fields.get(&line, at))
            .map(|name| name.trim().to_owned())
            .collect();
        if names.iter().all(is_column) {
            return Ok(names);
        }
    }
    Ok(into.columns.iter().map(|column| column.name.clone()).collect())
}

/// The statement to prepare, and the field that each variable takes its value from.
fn plan(
    copy: &CopyStatement,
    into: &Filled<'_>,
    columns: &[String],
    place: &CopyContext<'_>,
) -> Result<(String, Plan)> {
    let options = &copy.options;
    let table = format!("{}.{}", quoted(into.keyspace), quoted(into.table));
    let ttl = options.ttl_s.map(|ttl| format!(" USING TTL {ttl}")).unwrap_or_default();
    let is_counter = into.columns.iter().any(|column| column.ty == "counter");
    let used: Vec<(usize, &String)> =
        columns.iter().enumerate().filter(|(_, name)| !options.columns_skipped.contains(name)).collect();
    let role = |name: &str| into.columns.iter().find(|column| column.name == name).map(|column| column.role);
    let is_key = |name: &str| matches!(role(name), Some(Role::PartitionKey | Role::Clustering));
    let (query, order, fields) = if options.content == Content::Json {
        let unset = if options.null_as_unset { " DEFAULT UNSET" } else { "" };
        (format!("INSERT INTO {table} JSON ?{unset}{ttl}"), vec![(None, "[json]")], 0)
    } else {
        for column in into.columns.iter().filter(|column| is_key(&column.name)) {
            let has = used.iter().any(|(_, name)| **name == column.name);
            ensure!(has, "Primary key column '{}' missing or skipped", column.name);
        }
        let (keys, values): (Vec<_>, Vec<_>) = used.iter().partition(|(_, name)| is_key(name));
        if is_counter {
            ensure!(ttl.is_empty(), "counters have no TTL");
            let sets: Vec<String> =
                values.iter().map(|(_, name)| format!("{0} = {0} + ?", quoted(name))).collect();
            let wheres: Vec<String> = keys.iter().map(|(_, name)| format!("{} = ?", quoted(name))).collect();
            let query = format!("UPDATE {table} SET {} WHERE {}", sets.join(", "), wheres.join(" AND "));
            let order = values.iter().chain(&keys).map(|(at, name)| (Some(*at), name.as_str())).collect();
            (query, order, columns.len())
        } else {
            let names: Vec<String> = used.iter().map(|(_, name)| quoted(name)).collect();
            let marks = vec!["?"; names.len()].join(", ");
            let query = format!("INSERT INTO {table} ({}) VALUES ({marks}){ttl}", names.join(", "));
            let order = used.iter().map(|(at, name)| (Some(*at), name.as_str())).collect();
            (query, order, columns.len())
        }
    };
    let target = |(field, name): (Option<usize>, &str)| Target {
        field,
        name: name.to_owned(),
        ty: CqlType::Text,
        is_key: is_key(name),
    };
    let plan = Plan {
        targets: order.into_iter().map(target).collect(),
        fields,
        marks: options.marks,
        texts: options.texts.clone(),
        consistency: place.consistency,
        batch_rows: options.batch_rows,
        is_counter,
        null_as_unset: options.null_as_unset,
        attempts_max: options.attempts_max,
        requests_max: options.requests_max.unwrap_or(REQUESTS),
        rows_per_second: options.rows_per_second,
    };
    Ok((query, plan))
}

/// The rows that were not imported.
struct ErrorFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    rows: u64,
    parse_errors: u64,
    insert_errors: u64,
    told: u64,
    parse_errors_max: Option<u64>,
    insert_errors_max: Option<u64>,
}

impl ErrorFile {
    fn new(copy: &CopyStatement, into: &Filled<'_>) -> ErrorFile {
        let default = || PathBuf::from(format!("import_{}_{}.err", into.keyspace, into.table));
        ErrorFile {
            path: copy.options.error_file.clone().unwrap_or_else(default),
            file: None,
            rows: 0,
            parse_errors: 0,
            insert_errors: 0,
            told: 0,
            parse_errors_max: copy.options.parse_errors_max,
            insert_errors_max: copy.options.insert_errors_max,
        }
    }

    /// Receives failures and reports progress until all connections have ended.
    fn watch(
        &mut self,
        failed: &Receiver<Failed>,
        shared: &Shared,
        meter: &mut RateMeter,
        place: &CopyContext<'_>,
    ) -> Result<()> {
        let mut ended = Ok(());
        loop {
            match failed.recv_timeout(Duration::from_millis(100)) {
                // Failures that arrive after the import was given up are recorded too.
                Ok(failed) => {
                    let kept = self.keep(&failed, meter);
                    ended = ended.and(kept);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return ended,
            }
            meter.at(shared.rows_done.load(Ordering::Relaxed) + self.rows, shared.share());
            if ended.is_ok() && place.session.interrupt.take() {
                ended = Err(anyhow::anyhow!("interrupted; rows that were sent are imported"));
            }
            if ended.is_err() {
                shared.is_aborted.store(true, Ordering::Relaxed);
            }
        }
    }

    fn keep(&mut self, failed: &Failed, meter: &mut RateMeter) -> Result<()> {
        let count = failed.rows.len() as u64;
        self.rows += count;
        *(if failed.is_parse_error { &mut self.parse_errors } else { &mut self.insert_errors }) += count;
        if self.told < TOLD_MAX {
            meter.clear();
            let tries = match failed.is_parse_error {
                true => "given up without retries".to_owned(),
                false => format!("given up after {} attempts", failed.attempts),
            };
            note!("Failed to import {count} rows (row {}): {}, {tries}", failed.first_row, failed.message);
            self.told += 1;
            if self.told == TOLD_MAX {
                note!("Further rows that fail are only counted, and written to {}", self.path.display());
            }
        }
        if self.file.is_none() {
            move_away(&self.path)?;
            let file =
                File::create(&self.path).with_context(|| format!("cannot make {}", self.path.display()))?;
            self.file = Some(BufWriter::new(file));
        }
        if let Some(file) = &mut self.file {
            for row in &failed.rows {
                file.write_all(row)?;
                file.write_all(b"\n")?;
            }
        }
        for (found, most, kind) in [
            (self.parse_errors, self.parse_errors_max, "parse"),
            (self.insert_errors, self.insert_errors_max, "insert"),
        ] {
            if let Some(most) = most.filter(|most| found > *most) {
                bail!("Exceeded maximum number of {kind} errors {most}");
            }
        }
        Ok(())
    }

    fn told_at_end(&self) -> String {
        format!("Failed to process {} rows; failed rows written to {}", self.rows, self.path.display())
    }

    fn close(&mut self) -> Result<()> {
        match self.file.take() {
            Some(mut file) => file.flush().with_context(|| format!("cannot write {}", self.path.display())),
            None => Ok(()),
        }
    }
}

/// Renames an existing error file by appending a number.
fn move_away(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let free = (1..).map(|number| PathBuf::from(format!("{}.{number}", path.display())));
    let Some(other) = free.into_iter().find(|other| !other.exists()) else { return Ok(()) };
    std::fs::rename(path, &other).with_context(|| format!("cannot move {}", path.display()))
}
