//! Logs slow statements, and statements at which the server failed.
//!
//! A statement is slow when its answer takes longer than a threshold (`slow_query_log_timeout`; Cassandra's
//! `MonitoringTask` does the same for reads). The cost of checking is one reading of a coarse clock for each statement,
//! or two if the statement arrives alone. A probe records what a slow statement touched. Probes cost too, so statements
//! that are answered from memory at once have none. Statements that wait for the disk, or take longer than 20 ms in
//! memory, run on disk threads (`engine::database::reading`); there each has a probe that counts everything but times
//! only the waits for files.
//!
//! Texts are shown without their literals, unless the owner wants to see values.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use helenus_cql::backend::Probe;
use helenus_cql::syntax::{parse, shown, shown_message, shown_without_values};
use helenus_engine::read::Stage;
use helenus_host::Clock;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::line::duration_text;
use super::line::{Entry, Level};
use super::sanitize::on_one_line;
use super::sink::Log;

/// Slow statements that are logged in `WINDOW_NS`; of further ones only the number. Cassandra logs as many in the same
/// time.
const SHOWN_MAX: u64 = 50;
const WINDOW_NS: u64 = 5_000_000_000;
/// Longest text of a statement in the log, bytes.
const TEXT_BYTES_MAX: usize = 2000;
/// Bytes of a statement that are scanned. What is shown is shorter, unless the statement is almost nothing but
/// literals.
const LOOKED_AT_MAX: usize = 16 << 10;
/// Longest text of an error in the log, bytes.
const ERROR_BYTES_MAX: usize = 1000;
/// Statements of a batch that are shown.
const BATCH_SHOWN_MAX: usize = 3;

/// The text of a statement for the log.
#[derive(Clone, Debug)]
pub struct StatementText {
    /// `query`, `prepared`, `batch` or `prepare`; in the old RPC interface `rpc_query` or `rpc_call`.
    pub kind: &'static str,
    /// The text, or the first texts of a batch. `StatementText::cut` shortens long ones, so that no more is kept than
    /// can be shown.
    pub texts: Vec<String>,
    /// The number of statements in the batch.
    pub count: usize,
    /// Bound values in hex, if they are to be shown.
    pub values: Vec<String>,
}

impl StatementText {
    /// Statements of a batch that are shown.
    pub const SHOWN_MAX: usize = BATCH_SHOWN_MAX;
    /// Bound values that are shown.
    pub const VALUES_MAX: usize = 32;

    /// The beginning of a statement that is scanned for the log.
    pub fn cut(text: &str) -> String {
        if text.len() <= LOOKED_AT_MAX {
            return text.to_owned();
        }
        let front = text.get(..text.floor_char_boundary(LOOKED_AT_MAX)).unwrap_or_default();
        // Half a literal might not be recognized as one.
        let end = front.rfind(char::is_whitespace).unwrap_or_default();
        format!("{} ...", front.get(..end).unwrap_or_default())
    }
}

/// Logs and counts slow and failed statements.
pub struct SlowStatements {
    log: Arc<Log>,
    /// `u64::MAX` if nothing is slow.
    threshold_ns: AtomicU64,
    shows_values: AtomicBool,
    count: AtomicU64,
    window: Mutex<Window>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Window {
    began_ns: u64,
    shown: u64,
    left_out: u64,
}

impl SlowStatements {
    /// Logs to `log` the statements that take longer than `threshold`; `None`: none is slow.
    pub fn new(
        log: &Arc<Log>,
        clock: &Arc<dyn Clock>,
        threshold: Option<Duration>,
        shows_values: bool,
    ) -> Arc<SlowStatements> {
        let slow = Arc::new(SlowStatements {
            log: Arc::clone(log),
            threshold_ns: AtomicU64::new(u64::MAX),
            shows_values: AtomicBool::new(false),
            count: AtomicU64::new(0),
            window: Mutex::default(),
            clock: Arc::clone(clock),
        });
        slow.set(threshold, shows_values);
        slow
    }

    /// Changes the threshold, and whether values are shown.
    pub fn set(&self, threshold: Option<Duration>, shows_values: bool) {
        let ns = threshold.and_then(|time| u64::try_from(time.as_nanos()).ok());
        self.threshold_ns.store(ns.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.shows_values.store(shows_values, Ordering::Relaxed);
    }

    /// The time in nanoseconds from which a statement is slow, if any is.
    #[inline]
    pub fn threshold_ns(&self) -> Option<u64> {
        Some(self.threshold_ns.load(Ordering::Relaxed)).filter(|ns| *ns != u64::MAX)
    }

    /// Whether bound values may be shown.
    pub fn shows_values(&self) -> bool {
        self.shows_values.load(Ordering::Relaxed)
    }

    /// The number of slow statements so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Logs a slow statement.
    pub fn slow(
        &self,
        statement: &StatementText,
        took_ns: u64,
        client: Option<SocketAddr>,
        probe: Option<&Probe>,
    ) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if !self.log.takes(Level::Warn) {
            return;
        }
        let left_out = match self.admit() {
            Some(left_out) => left_out,
            None => return,
        };
        let text = self.text(statement);
        let mut message = format!("{} took {}", text, duration_text(took_ns));
        let mut entry = Entry::new("slow_statement", "")
            .with("statement", text)
            .with("kind", statement.kind)
            .with("took_ms", took_ns / 1_000_000);
        if let Some(client) = client {
            message.push_str(&format!(" for {client}"));
            entry = entry.with("client", client.to_string());
        }
        match probe {
            Some(probe) => {
                message.push_str(&format!(": {}", words(probe)));
                entry = entry.with("probe", probe_json(probe));
            }
            None => message.push_str(": without counts, since it went to no disk thread"),
        }
        if left_out > 0 {
            message.push_str(&format!(" ({left_out} more slow statements were not written)"));
            entry = entry.with("left_out", left_out);
        }
        if self.shows_values() && !statement.values.is_empty() {
            message.push_str(&format!(" values [{}]", statement.values.join(", ")));
            entry = entry.with("values", statement.values.clone());
        }
        entry.message = message;
        self.log.write(Level::Warn, &entry);
    }

    /// Logs that answers waited for the commit log longer than the threshold.
    pub fn slow_write(&self, waited_ms: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let text = format!("answers to writes waited {waited_ms} ms for the commit log to reach the disk");
        let entry = Entry::new("slow_commit_log", text).with("took_ms", waited_ms);
        self.log.write_rate_limited(Level::Warn, "", entry);
    }

    /// Logs a statement that was answered with an error. `code`: the protocol's name of the error. `is_ours`: the
    /// failure is the server's, not the client's.
    pub fn failed(
        &self,
        statement: &dyn Fn() -> StatementText,
        (code, message): (&'static str, &str),
        is_ours: bool,
        client: Option<SocketAddr>,
    ) {
        let level = if is_ours { Level::Error } else { Level::Debug };
        if !self.log.takes(level) {
            return;
        }
        let statement = statement();
        let text = self.text(&statement);
        // A syntax error quotes the words before it; the server's own failures do not.
        let shown = |message: Cow<'_, str>, text: &String| {
            Cow::Owned(shown_message(text, is_ours || parse(text).is_ok(), &message).into_owned())
        };
        let message = statement.texts.iter().fold(Cow::Borrowed(message), shown);
        let message = &*on_one_line(&message, ERROR_BYTES_MAX);
        // The message about a client's mistake may quote values.
        let reason = if is_ours || self.shows_values() {
            message
        } else {
            "its message may quote values and is not shown"
        };
        let mut entry = Entry::new("statement_failed", format!("{code} for {text}: {reason}"))
            .with("code", code)
            .with("statement", text)
            .with("error", reason);
        if let Some(client) = client {
            entry = entry.with("client", client.to_string());
        }
        self.log.write_rate_limited(level, &format!("{code} {reason}"), entry);
    }

    /// Logs an overload.
    pub fn overloaded(&self, reason: &str) {
        self.log.write_rate_limited(Level::Warn, "", Entry::new("overloaded", reason));
    }

    /// Logs a connection that was refused.
    pub fn refused(&self, client: SocketAddr, reason: &str) {
        let entry = Entry::new("connection_refused", format!("{client}: {reason}"));
        let entry = entry.with("client", client.to_string()).with("reason", reason);
        self.log.write_rate_limited(Level::Warn, reason, entry);
    }

    /// Logs a connection whose handshake of TLS failed.
    pub fn not_secured(&self, client: SocketAddr, reason: &str) {
        let entry = Entry::new("handshake_failed", format!("{client}: {reason}"));
        let entry = entry.with("client", client.to_string()).with("reason", reason);
        self.log.write_rate_limited(Level::Info, "handshake", entry);
    }

    /// Logs that the system failed to accept a connection, such as for lack of descriptors.
    pub fn not_accepted(&self, server: &'static str, error: &std::io::Error) {
        let entry = Entry::new(
            "not_accepted",
            format!("no connection of {server} is accepted for a moment: {error}"),
        );
        self.log.write_rate_limited(Level::Warn, server, entry.with("error", error.to_string()));
    }

    /// The number of statements left out before this one; `None` if this one must be left out.
    fn admit(&self) -> Option<u64> {
        let now_ns = self.clock.monotonic_ns();
        let mut window = self.window.lock();
        if now_ns.saturating_sub(window.began_ns) >= WINDOW_NS {
            *window = Window { began_ns: now_ns, shown: 0, left_out: window.left_out };
        }
        if window.shown >= SHOWN_MAX {
            window.left_out += 1;
            return None;
        }
        window.shown += 1;
        Some(std::mem::take(&mut window.left_out))
    }

    fn text(&self, statement: &StatementText) -> String {
        // The names of a call and of its table contain no literals.
        let is_plain = self.shows_values() || statement.kind == "rpc_call";
        let one = |text: &String| match is_plain {
            true if statement.kind == "rpc_call" => text.clone(),
            true => shown(text).into_owned(),
            false => shown_without_values(text),
        };
        let shown: Vec<String> = statement.texts.iter().take(BATCH_SHOWN_MAX).map(one).collect();
        let mut text = shown.join("; ");
        if let Some((end, _)) = text.char_indices().find(|(at, _)| *at >= TEXT_BYTES_MAX) {
            text.truncate(end);
            text.push_str(" ...");
        }
        let more = statement.count.saturating_sub(BATCH_SHOWN_MAX);
        match statement.kind {
            "batch" if more > 0 => format!("batch of {text}; and {more} more"),
            "batch" => format!("batch of {text}"),
            _ => text,
        }
    }
}

/// The most interesting counts of a probe.
fn words(probe: &Probe) -> String {
    let touched = &probe.touched;
    let mut words = Vec::new();
    if probe.reads > 0 {
        words.push(format!("{} SSTables asked, {} left out", probe.sstables, probe.sstables_skipped));
        words.push(format!("{} ms waiting for files", probe.times.ns(Stage::Disk) / 1_000_000));
        words.push(format!("{} blocks read, {} cached", touched.blocks_read, touched.blocks_cached));
        words.push(format!("{} tombstones passed", probe.tombstones));
        words.push(format!("{} rows filtered out, {} given", probe.rows_filtered, probe.rows));
    }
    if probe.partitions_written > 0 {
        words.push(format!("{} bytes written", probe.bytes_written));
    }
    if words.is_empty() { "it read and wrote nothing".to_owned() } else { words.join(", ") }
}

fn probe_json(probe: &Probe) -> Value {
    let touched = &probe.touched;
    json!({
        "reads": probe.reads,
        "partitions": probe.partitions,
        "memtables": probe.memtables,
        "sstables": probe.sstables,
        "sstables_skipped": probe.sstables_skipped,
        "places_remembered": touched.keys_cached,
        "index_blocks_remembered": touched.index_blocks_cached,
        "index_nodes": touched.index_nodes,
        "index_pages_read": touched.index_pages_read,
        "index_pages_cached": touched.index_pages_cached,
        "blocks_read": touched.blocks_read,
        "blocks_cached": touched.blocks_cached,
        "bytes_read": touched.bytes_read,
        "bytes_decompressed": touched.bytes_decompressed,
        "rows_decoded": touched.rows_decoded,
        "cells_decoded": touched.cells_decoded,
        "rows": probe.rows,
        "rows_filtered": probe.rows_filtered,
        "tombstones": probe.tombstones,
        "index_entries": probe.index_entries,
        "partitions_written": probe.partitions_written,
        "bytes_written": probe.bytes_written,
        "disk_ms": probe.times.ns(Stage::Disk) / 1_000_000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Format;
    use helenus_host::sim::Machine;

    fn watching(shows_values: bool) -> (Machine, Arc<SlowStatements>) {
        let machine = Machine::new(1);
        let host = machine.host();
        let log = Log::start(&host, Format::Json, Some(Level::Debug));
        (machine, SlowStatements::new(&log, &host.clock, Some(Duration::from_millis(500)), shows_values))
    }

    fn statement(text: &str) -> StatementText {
        StatementText { kind: "query", texts: vec![text.to_owned()], count: 1, values: Vec::new() }
    }

    #[test]
    fn values_are_shown_only_when_they_are_wanted() {
        let secret = statement("SELECT a FROM t WHERE p = 'secret'");
        assert_eq!(watching(false).1.text(&secret), "SELECT a FROM t WHERE p = ?");
        assert_eq!(watching(true).1.text(&secret), secret.texts[0]);
    }

    #[test]
    fn so_many_slow_statements_are_written_in_five_seconds_and_all_are_counted() {
        let (machine, slow) = watching(false);
        for _ in 0..SHOWN_MAX + 3 {
            slow.slow(&statement("SELECT 1"), 1_000_000_000, None, None);
        }
        assert_eq!(slow.count(), SHOWN_MAX + 3);
        assert_eq!(slow.admit(), None);
        machine.advance(WINDOW_NS);
        assert_eq!(slow.admit(), Some(4));
    }

    #[test]
    fn a_long_batch_is_shown_by_its_first_statements() {
        let texts = (0..5).map(|n| format!("INSERT INTO t (a) VALUES ({n})")).collect();
        let batch = StatementText { kind: "batch", texts, count: 5, values: Vec::new() };
        let text = watching(false).1.text(&batch);
        assert!(
            text.starts_with("batch of INSERT INTO t (a) VALUES (?);") && text.ends_with("and 2 more"),
            "{text}"
        );
    }
}
