//! Writes a traced request to `system_traces`, with the columns that drivers and cqlsh read.
//!
//! A trace is one session with at most `EVENTS_MAX` events, which show the counts of the request's probe by stage.
//! Stages alternate while a request runs, so the elapsed time of an event is the sum of its stage and the stages before
//! it, and not the time at which something happened. Source of names and types: Cassandra's `TraceKeyspace`.

use crate::backend::Trace;
use crate::plan::explain::counted;
use crate::syntax::shown;
use helenus_engine::read::{IndexChoice, Stage};
use helenus_engine::{Database, TIME_OF_DAY_MAX_S};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::packed::RowWriter;
use helenus_model::schema::Table;
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use uuid::Uuid;

/// Traces expire after a day, as in Cassandra (`trace_type_query_ttl`).
const TTL_S: i32 = 86_400;

/// Maximum bytes of a parameter, such as the text of the statement; the rest is cut off. Whoever asks for traces decides how
/// long the texts are, and traces stay for a day.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// Maximum bytes of a parameter's name.
const NAME_BYTES_MAX: usize = 256;
/// Maximum bytes of the parameters of a session, of which there may be 65,535; further ones are left out.
const PARAMETERS_BYTES_MAX: usize = 64 << 10;
/// Maximum number of skipped SSTables with their own event.
const SKIPPED_SHOWN_MAX: usize = 10;
/// Maximum number of events of a session.
const EVENTS_MAX: usize = 24;
/// Ticks of a time UUID in a microsecond; a tick is 100 ns.
const TICKS_A_US: u64 = 10;

/// One value of a row: its column, its path in a collection, its bytes.
type Value<'a> = (&'a str, Option<&'a [u8]>, Vec<u8>);

/// The mutation of a trace; `None` if its tables do not exist.
pub(super) fn trace_mutation(
    database: &Database,
    trace: &Trace<'_>,
    coordinator: SocketAddr,
) -> Option<Mutation> {
    let schema = database.schema();
    let (sessions, events) =
        (schema.table("system_traces", "sessions")?, schema.table("system_traces", "events")?);
    let expires_s = (database.now_s() + i64::from(TTL_S)).min(TIME_OF_DAY_MAX_S);
    let stamp = Stamp { timestamp_us: trace.started_us, expires_s };
    let client = trace.client.unwrap_or(coordinator);
    let mut values: Vec<Value<'_>> = vec![
        ("client", None, address(client.ip())),
        ("command", None, b"QUERY".to_vec()),
        ("coordinator", None, address(coordinator.ip())),
        ("coordinator_port", None, i32::from(coordinator.port()).to_be_bytes().to_vec()),
        ("duration", None, microseconds(trace.duration_us)),
        ("request", None, trace.request.as_bytes().to_vec()),
        ("started_at", None, (trace.started_us / 1000).to_be_bytes().to_vec()),
    ];
    let mut room = PARAMETERS_BYTES_MAX;
    for (name, value) in &trace.parameters {
        // Every role may read the traces.
        let value = if *name == "query" { shown(value) } else { Cow::Borrowed(*value) };
        let value = cut(&value, TEXT_BYTES_MAX);
        let name = cut(name, NAME_BYTES_MAX);
        room = room.saturating_sub(value.len() + name.len());
        if room == 0 {
            break;
        }
        values.push(("parameters", Some(name.as_bytes()), value.as_bytes().to_vec()));
    }
    let mut of_session = Changes::default();
    write_row(&mut of_session, sessions, None, &stamp, values);
    let mut of_events = Changes::default();
    let mut tick = 0;
    for (activity, elapsed_us) in Events::of(trace).into_iter().take(EVENTS_MAX) {
        tick = u64::try_from(elapsed_us).unwrap_or_default().saturating_mul(TICKS_A_US).max(tick + 1);
        let id = event_id(trace.session, tick);
        let values = vec![
            ("activity", None, activity.into_bytes()),
            ("source", None, address(coordinator.ip())),
            ("source_elapsed", None, microseconds(elapsed_us)),
            ("source_port", None, i32::from(coordinator.port()).to_be_bytes().to_vec()),
            ("thread", None, b"native".to_vec()),
        ];
        write_row(&mut of_events, events, Some(id), &stamp, values);
    }
    let update = |table: &Arc<Table>, changes| PartitionUpdate {
        table: table.clone(),
        key: trace.session.as_bytes().to_vec(),
        changes,
    };
    Some(Mutation { updates: vec![update(sessions, of_session), update(events, of_events)] })
}

/// The beginning of a text, whole characters of it.
fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// The activities with their elapsed time in microseconds.
struct Events<'a> {
    trace: &'a Trace<'a>,
    elapsed_ns: u64,
    found: Vec<(String, i64)>,
}

impl Events<'_> {
    fn of(trace: &Trace<'_>) -> Vec<(String, i64)> {
        let mut events = Events { trace, elapsed_ns: 0, found: Vec::new() };
        let probe = trace.probe;
        if probe.times.ns(Stage::Plan) > 0 {
            events.after(Stage::Plan, "Values bound".to_owned());
        }
        if let Some(choice) = &probe.index_choice {
            events.also(index_choice(choice));
        }
        if probe.reads > 0 {
            events.of_sources();
            events.of_reading();
        }
        if probe.partitions_written > 0 {
            let (bytes, partitions) = (probe.bytes_written, probe.partitions_written);
            let partitions = counted(partitions, "partition");
            events.after(Stage::Write, format!("Wrote {bytes} bytes of {partitions} to log and memtable"));
        }
        events.found.push(("Answer ready".to_owned(), trace.duration_us));
        events.found
    }

    /// Adds an event after a stage.
    fn after(&mut self, stage: Stage, activity: String) {
        self.elapsed_ns += self.trace.probe.times.ns(stage);
        self.also(activity);
    }

    /// Adds another event at the same time.
    fn also(&mut self, activity: String) {
        let elapsed_us = i64::try_from(self.elapsed_ns / 1000).unwrap_or(i64::MAX);
        self.found.push((activity, elapsed_us.min(self.trace.duration_us)));
    }

    fn of_sources(&mut self) {
        let probe = self.trace.probe;
        let all = probe.sstables + probe.sstables_skipped;
        let asked = format!(
            "Asked {} and {} of {}",
            counted(probe.memtables, "memtable"),
            probe.sstables,
            counted(all, "SSTable")
        );
        self.after(Stage::Sources, asked);
        let skipped = || probe.tables.iter().filter(|table| table.reasons().next().is_some());
        for table in skipped().take(SKIPPED_SHOWN_MAX) {
            let reasons: Vec<&str> = table.reasons().map(|(reason, _)| reason.describe()).collect();
            self.also(format!("Skipped SSTable {}: {}", table.descriptor.id, reasons.join(", ")));
        }
        let more = skipped().count().saturating_sub(SKIPPED_SHOWN_MAX);
        if more > 0 {
            self.also(format!("Skipped {more} more SSTables"));
        }
    }

    fn of_reading(&mut self) {
        let (probe, touched) = (self.trace.probe, &self.trace.probe.touched);
        if probe.sstables > 0 {
            let pages = touched.index_pages_cached + touched.index_pages_read;
            let (nodes, read) = (touched.index_nodes, touched.index_pages_read);
            self.after(
                Stage::Index,
                format!("Visited {nodes} index nodes in {pages} pages, {read} of them read"),
            );
            let (read, bytes, cached) = (touched.blocks_read, touched.bytes_read, touched.blocks_cached);
            let blocks = format!(
                "Read {} ({bytes} bytes with index), {cached} more from the cache",
                counted(read, "block")
            );
            self.after(Stage::Disk, blocks);
            let (blocks, bytes) = (touched.blocks_decompressed, touched.bytes_decompressed);
            self.after(
                Stage::Decompress,
                format!("Decompressed {} to {bytes} bytes", counted(blocks, "block")),
            );
            self.also(format!(
                "Decoded {}, {}, {}",
                counted(touched.rows_decoded, "row"),
                counted(touched.cells_decoded, "cell"),
                counted(touched.tombstones, "tombstone")
            ));
        }
        let passed = probe.tombstones;
        self.after(Stage::Merge, format!("Merged sources, passed {passed} dead rows and range tombstones"));
        let mut answer = format!("Put {} into the answer", counted(probe.rows, "row"));
        if probe.rows_filtered > 0 {
            answer.push_str(&format!(", dropped {} by filter", probe.rows_filtered));
        }
        self.after(Stage::Sink, answer);
    }
}

/// Which index is searched, in the words that programs look for in traces
/// (`SecondaryIndexManager.getBestIndexQueryPlanFor`). Storage-attached indexes are one plan there, whose estimate is the
/// smallest number, so that it is preferred.
fn index_choice(choice: &IndexChoice) -> String {
    let attached: Vec<&str> =
        choice.candidates.iter().filter(|(_, rows)| rows.is_none()).map(|(name, _)| &**name).collect();
    let attached = (!attached.is_empty()).then(|| format!("{}:{}", attached.join(","), i64::MIN));
    let others = choice.candidates.iter().filter_map(|(name, rows)| Some(format!("{name}:{}", (*rows)?)));
    let all: Vec<String> = attached.into_iter().chain(others).collect();
    format!("Index mean cardinalities are {}. Scanning with {}.", all.join(","), choice.chosen)
}

struct Stamp {
    timestamp_us: i64,
    expires_s: i64,
}

fn write_row(
    changes: &mut Changes,
    table: &Table,
    clustering: Option<Uuid>,
    stamp: &Stamp,
    values: Vec<Value<'_>>,
) {
    let mut cells: Vec<_> = values
        .into_iter()
        .filter_map(|(name, path, value)| table.column(name).map(|column| (column.id, path, value)))
        .collect();
    cells.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    let live = Liveness { timestamp_us: stamp.timestamp_us, ttl_s: TTL_S, expires_s: stamp.expires_s };
    let clustering = clustering.iter().map(|id| Some(&id.as_bytes()[..]));
    changes.row(clustering, (live, DeletionTime::LIVE), &[], |row: &mut RowWriter<'_>| {
        for (column, path, value) in &cells {
            let cell = Cell {
                column: *column,
                ttl_s: TTL_S,
                timestamp_us: stamp.timestamp_us,
                local_deletion_s: stamp.expires_s,
                path: Span::NULL,
                value: Span::EMPTY,
            };
            row.cell(&cell, *path, value);
        }
    });
}

/// The time UUID this many ticks after the session's, so that events sort in their order.
fn event_id(session: Uuid, ticks: u64) -> Uuid {
    let (high, node) = session.as_u64_pair();
    let began = (high & 0xFFF) << 48 | (high & 0xFFFF_0000) << 16 | high >> 32;
    let now = began.wrapping_add(ticks) & ((1 << 60) - 1);
    Uuid::from_u64_pair(now << 32 | (now >> 32 & 0xFFFF) << 16 | high & 0xF000 | now >> 48, node)
}

fn address(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn microseconds(us: i64) -> Vec<u8> {
    i32::try_from(us).unwrap_or(i32::MAX).to_be_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_s_id_is_the_session_s_that_many_ticks_later() {
        let session = Uuid::parse_str("ffffffff-ffff-1abc-8123-0123456789ab").unwrap();
        assert_eq!(event_id(session, 0), session);
        assert_eq!(event_id(session, 1), Uuid::parse_str("00000000-0000-1abd-8123-0123456789ab").unwrap());
        assert_eq!(event_id(session, 17), Uuid::parse_str("00000010-0000-1abd-8123-0123456789ab").unwrap());
    }
}
