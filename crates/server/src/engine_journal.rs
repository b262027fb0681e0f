//! Writes the engine's events to the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use helenus_cql::guardrails::Guardrails;
use helenus_cql::{counted, partition_key_text};
use helenus_engine::{
    ClockJump, Error, Event, Journal, LargePartition, PartitionLimits, SchemaChange, SchemaChangeKind,
};
use helenus_host::account;
use helenus_model::schema::Table;
use parking_lot::Mutex;

use crate::log::{Entry, Level, Log, duration_text, time_text};
use crate::policy::FailurePolicies;

/// Tables that the line of a log that gets no shorter names.
const STALLED_TABLES_SHOWN: usize = 10;

/// Logs the events of a database, and applies the failure policies.
pub struct EngineJournal {
    log: Arc<Log>,
    policies: Arc<FailurePolicies>,
    guardrails: Mutex<Guardrails>,
    /// Surplus bytes of the memory account that were logged.
    surplus: AtomicU64,
}

impl EngineJournal {
    /// A journal for one database.
    pub fn new(log: &Arc<Log>, policies: &Arc<FailurePolicies>) -> EngineJournal {
        let guardrails = Mutex::default();
        let (log, policies) = (Arc::clone(log), Arc::clone(policies));
        EngineJournal { log, policies, guardrails, surplus: AtomicU64::new(0) }
    }

    /// Sets the guardrails on partitions.
    pub fn set_guardrails(&self, guardrails: &Guardrails) {
        self.guardrails.lock().clone_from(guardrails);
    }

    fn large(&self, table: &Table, file: &str, partitions: &[LargePartition]) {
        let guardrails = self.guardrails.lock().clone();
        for partition in partitions {
            let key = partition_key_text(table, &partition.key);
            let name = format!("{}:{key} on sstable {file}", name_of(table));
            for passed in guardrails.partition(&name, partition) {
                let entry = Entry::new("guardrail", passed.text)
                    .with("file", file)
                    .with("bytes", partition.bytes)
                    .with("tombstones", partition.tombstones);
                let level = if passed.is_failure { Level::Error } else { Level::Warn };
                self.log.write(level, &of_table(entry, table));
            }
        }
    }

    /// Logs a fault of the memory account, which mends itself, and which nothing else shows. Called at each flush.
    fn look_at_account(&self) {
        let surplus = account::metrics().surplus;
        if self.surplus.fetch_max(surplus, Ordering::Relaxed) < surplus {
            let text =
                format!("{surplus} bytes of memory_limit were given back but not held, a bug of the server");
            self.log.write(Level::Error, &Entry::new("memory_account", text).with("bytes", surplus));
        }
    }

    fn failed(&self, table: Option<&Table>, (event, what): (&'static str, &str), error: &Error) {
        self.log_failed(table, (event, what), error, &[]);
    }

    fn log_failed(
        &self,
        table: Option<&Table>,
        (event, what): (&'static str, &str),
        error: &Error,
        left_out: &[String],
    ) {
        let name = table.map(name_of);
        let of = name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let out = if left_out.is_empty() {
            String::new()
        } else {
            format!("; it is compacted without {} for now", left_out.join(", "))
        };
        let mut entry =
            Entry::new(event, format!("{of}{what}: {error}{out}")).with("error", error.to_string());
        if !left_out.is_empty() {
            entry = entry.with("left_out", left_out.join(","));
        }
        if let Some(table) = table {
            entry = of_table(entry, table);
        }
        self.log.write_rate_limited(Level::Error, &error.to_string(), with_place(entry, error));
    }
}

impl Journal for EngineJournal {
    fn partition_limits(&self) -> PartitionLimits {
        self.guardrails.lock().partition_limits()
    }

    fn note(&self, event: &Event<'_>) {
        match event {
            Event::LargePartitions { table, file, partitions } => self.large(table, file, partitions),
            Event::Flushed { table, bytes, took_ns } => {
                self.look_at_account();
                let text = format!("{}: {} in {}", name_of(table), size(*bytes), duration_text(*took_ns));
                let entry =
                    Entry::new("flushed", text).with("bytes", *bytes).with("took_ms", took_ns / 1_000_000);
                self.log.write(level_of(table), &of_table(entry, table));
            }
            Event::Compacted {
                table,
                kind,
                sstables_before,
                bytes_before,
                sstables_after,
                bytes_after,
                took_ns,
            } => {
                let text = format!(
                    "{}: {kind} of {} of {} to {sstables_after} of {} in {}",
                    name_of(table),
                    counted(*sstables_before, "SSTable"),
                    size(*bytes_before),
                    size(*bytes_after),
                    duration_text(*took_ns)
                );
                let entry = Entry::new("compacted", text)
                    .with("kind", *kind)
                    .with("sstables_before", *sstables_before)
                    .with("bytes_before", *bytes_before)
                    .with("sstables_after", *sstables_after)
                    .with("bytes_after", *bytes_after)
                    .with("took_ms", took_ns / 1_000_000);
                self.log.write(level_of(table), &of_table(entry, table));
            }
            Event::SchemaChanged(change) => self.log.write(Level::Info, &schema_entry(change)),
            Event::Truncated(table) => {
                let entry = Entry::new("truncated", name_of(table));
                self.log.write(Level::Info, &of_table(entry, table));
            }
            Event::Imported { table, sstables } => {
                let entry =
                    Entry::new("imported", format!("{}: {}", name_of(table), counted(*sstables, "SSTable")));
                self.log.write(Level::Info, &of_table(entry.with("sstables", *sstables), table));
            }
            Event::FlushFailed { table, error } => {
                self.failed(Some(table), ("flush_failed", "what is in memory was not written"), error);
                self.policies.disk_failed(error);
            }
            Event::OptionsReplaced { table, problem } => {
                let text = format!(
                    "{}: written with the default compression: {problem}; ALTER TABLE",
                    name_of(table)
                );
                let entry = of_table(Entry::new("options_replaced", text), table).with("problem", *problem);
                self.log.write_rate_limited(Level::Warn, problem, entry);
            }
            Event::CompactionFailed { table, error, left_out } => {
                self.log_failed(*table, ("compaction_failed", "compaction ended"), error, left_out);
                self.policies.disk_failed(error);
            }
            Event::CompactionWaits { table, wanted, free, kept } => {
                let text = format!(
                    "{}: compactions wait for space: the least writes up to {}, and of {} free {} are kept for the commit log, \
                     for flushes and for running compactions; helenus admin diskusage shows what holds the space",
                    name_of(table),
                    size(*wanted),
                    size(*free),
                    size(*kept)
                );
                let entry = Entry::new("compaction_waits", text)
                    .with("wanted_bytes", *wanted)
                    .with("free_bytes", *free)
                    .with("kept_bytes", *kept);
                self.log.write(Level::Warn, &of_table(entry, table));
            }
            Event::SsTableMemory { bytes, counted_max } => {
                let text = format!(
                    "SSTables keep {} of filters, indexes and chunk offsets in memory, more than the {} of memory_limit that are \
                     for them: raise memory_limit, or give large tables a higher bloom_filter_fp_chance and chunk_length_in_kb",
                    size(*bytes),
                    size(*counted_max)
                );
                let entry = Entry::new("sstable_memory", text).with("bytes", *bytes);
                self.log.write(Level::Warn, &entry.with("counted_bytes_max", *counted_max));
            }
            Event::CompactionGoesOn { table } => {
                let entry =
                    Entry::new("compaction_goes_on", format!("{}: it is compacted again", name_of(table)));
                self.log.write(Level::Info, &of_table(entry, table));
            }
            Event::ReadFailed { table, error } => {
                self.failed(Some(table), ("read_failed", "a read ended"), error);
                self.policies.disk_failed(error);
            }
            Event::LogFailed { reason } => {
                let text = format!("the commit log takes no more writes until a restart: {reason}");
                self.log.write(Level::Error, &Entry::new("commit_log_failed", text).with("error", *reason));
                self.policies.log_failed(reason);
            }
            Event::ClockJumped(jump) => self.log.write(Level::Warn, &jump_entry(*jump)),
            Event::ImportWaits { table, error } => {
                let text = format!(
                    "{}: the import goes on as soon as the disk allows; TRUNCATE or DROP gives it up: {error}",
                    name_of(table)
                );
                let entry = Entry::new("import_waits", text).with("error", error.to_string());
                self.log.write(Level::Warn, &with_place(of_table(entry, table), error));
                self.policies.disk_failed(error);
            }
            Event::IndexIncomplete { table, index, reason } => {
                let text = format!(
                    "{}: index {index} may lack rows and is built anew; reads through it are refused until then: {reason}",
                    name_of(table)
                );
                let entry =
                    Entry::new("index_incomplete", text).with("index", *index).with("reason", *reason);
                self.log.write(Level::Warn, &of_table(entry, table));
            }
            Event::IndexFilesNotKept { table, error } => {
                let text = format!(
                    "{}: the record of the files of its indexes is that of the run before until there is room: {error}",
                    name_of(table)
                );
                let entry = Entry::new("index_files_not_kept", text).with("error", error.to_string());
                self.log.write(Level::Warn, &with_place(of_table(entry, table), error));
            }
            Event::IndexBuildBegun { table, index } => {
                let text = format!(
                    "{}: index {index} is being built; reads through it are refused until it is",
                    name_of(table)
                );
                self.log.write(
                    Level::Info,
                    &of_table(Entry::new("index_build", text).with("index", *index), table),
                );
            }
            Event::IndexBuilt { table, index, entries } => {
                let text = format!(
                    "{}: index {index} is built, of {}",
                    name_of(table),
                    format_args!("{entries} entries")
                );
                let entry = Entry::new("index_built", text).with("index", *index).with("entries", *entries);
                self.log.write(Level::Info, &of_table(entry, table));
            }
            Event::LeftBehind { path, error } => {
                let path = path.display().to_string();
                let text = format!("{path}: files that are no longer needed stay for now: {error}");
                let entry =
                    Entry::new("left_behind", text).with("path", path).with("error", error.to_string());
                self.log.write(Level::Warn, &entry);
            }
            Event::LogNotRemoved { error } => {
                let text = format!("segments that are no longer needed stay for now: {error}");
                let entry = Entry::new("commit_log_not_removed", text).with("error", error.to_string());
                self.log.write_rate_limited(Level::Warn, "", with_place(entry, error));
            }
            Event::LogStalled { segments, tables } => {
                let mut tables = tables.to_vec();
                let others = tables.len().saturating_sub(STALLED_TABLES_SHOWN);
                tables.truncate(STALLED_TABLES_SHOWN);
                if others > 0 {
                    tables.push(format!("and {others} others"));
                }
                let tables = tables.join(", ");
                let text = format!(
                    "the commit log has {segments} segments, and its oldest one has stayed for a minute for {tables} although no \
                     flush fails; please report this"
                );
                let entry = Entry::new("commit_log_stalled", text).with("segments", *segments as u64);
                self.log.write(Level::Warn, &entry.with("tables", tables));
            }
            Event::LogFull { error } => {
                let text = format!(
                    "writes are refused until there is room (helenus admin diskusage shows what holds it): {error}"
                );
                let entry = Entry::new("commit_log_full", text).with("error", error.to_string());
                self.log.write_rate_limited(Level::Error, "", with_place(entry, error));
                self.policies.log_failed(&error.to_string());
            }
            Event::Ignored { text } => {
                self.log.write_rate_limited(Level::Warn, text, Entry::new("ignored", (*text).to_owned()));
            }
        }
    }
}

/// Flushes and compactions of system tables are logged at a lower level.
fn level_of(table: &Table) -> Level {
    if helenus_engine::is_system_keyspace(&table.keyspace) { Level::Debug } else { Level::Info }
}

fn name_of(table: &Table) -> String {
    format!("{}.{}", table.keyspace, table.name)
}

fn of_table(entry: Entry, table: &Table) -> Entry {
    entry.with("keyspace", &*table.keyspace).with("table", &*table.name)
}

/// Adds the file and offset that an error names.
fn with_place(entry: Entry, error: &Error) -> Entry {
    match error.place() {
        None => entry,
        Some((file, offset)) => {
            let entry = entry.with("file", file.display().to_string());
            match offset {
                Some(offset) => entry.with("offset", offset),
                None => entry,
            }
        }
    }
}

fn jump_entry(jump: ClockJump) -> Entry {
    let (from, to) = (time_text(jump.expected_us), time_text(jump.found_us));
    let (text, advice) = match (jump.between_runs, jump.found_us > jump.expected_us) {
        (false, true) => (
            format!("the machine's clock jumped ahead from {from} to {to}"),
            "what expires has expired by it; nothing is removed for good by it for an hour",
        ),
        (false, false) => (
            format!("the machine's clock was set back from {from} to {to}"),
            "timestamps of writes go on behind the last one; helenus admin resetclock sets them back",
        ),
        (true, true) => (
            format!("the machine's clock says {to}, more than a year after the last write at {from}"),
            "if that is wrong, set it right before writing; nothing is removed for good by it for an hour",
        ),
        (true, false) => (
            format!("the machine's clock says {to}, before the last write at {from}"),
            "timestamps of writes go on behind that one; helenus admin resetclock sets them back",
        ),
    };
    Entry::new("clock_jumped", format!("{text}: {advice}"))
        .with("expected_us", jump.expected_us)
        .with("found_us", jump.found_us)
        .with("between_runs", jump.between_runs)
}

fn schema_entry(change: &SchemaChange) -> Entry {
    let verb = match change.kind {
        SchemaChangeKind::Created => "created",
        SchemaChangeKind::Updated => "changed",
        SchemaChangeKind::Dropped => "dropped",
    };
    let (what, name) = match &change.name {
        None => ("keyspace", change.keyspace.to_string()),
        Some(name) if change.is_type => ("type", format!("{}.{name}", change.keyspace)),
        Some(name) => ("table", format!("{}.{name}", change.keyspace)),
    };
    Entry::new("schema_changed", format!("{what} {name} {verb}"))
        .with("change", verb)
        .with("target", what)
        .with("name", name)
}

/// Formats a number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / f64::from(1 << shift)),
        None => format!("{bytes} B"),
    }
}
