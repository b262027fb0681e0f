//! A traced request as rows of `system_traces`, in the columns that drivers and cqlsh read.
//!
//! One session and two events: taken up, answered. Source of names and types: Cassandra's `TraceKeyspace`.

use crate::backend::Trace;
use helenus_engine::Database;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::packed::RowWriter;
use helenus_model::schema::Table;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use uuid::Uuid;

/// Traces go after a day, as in Cassandra (`trace_type_query_ttl`).
const TTL_S: i32 = 86_400;

/// One value of a row: its column, its place in a collection, its bytes.
type Value<'a> = (&'a str, Option<&'a [u8]>, Vec<u8>);

/// The rows of a trace; `None` when there are no tables for them.
pub(super) fn trace_mutation(
    database: &Database,
    trace: &Trace<'_>,
    coordinator: SocketAddr,
) -> Option<Mutation> {
    let schema = database.schema();
    let (sessions, events) =
        (schema.table("system_traces", "sessions")?, schema.table("system_traces", "events")?);
    let stamp = Stamp { timestamp_us: trace.started_us, expires_s: database.now_s() + i64::from(TTL_S) };
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
    for (name, value) in &trace.parameters {
        values.push(("parameters", Some(name.as_bytes()), value.as_bytes().to_vec()));
    }
    let mut of_session = Changes::default();
    write_row(&mut of_session, sessions, None, &stamp, values);
    let mut of_events = Changes::default();
    for (number, (activity, elapsed_us)) in
        [(trace.request, 0), ("Answer ready", trace.duration_us)].into_iter().enumerate()
    {
        let id = event_id(trace.session, number as u64 + 1);
        let values = vec![
            ("activity", None, activity.as_bytes().to_vec()),
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

/// The time UUID so many ticks after the session's: events sort in their order.
fn event_id(session: Uuid, number: u64) -> Uuid {
    let (high, low) = session.as_u64_pair();
    // The low 32 bits of the time are the upper half of the first word; a carry beyond them is seven minutes away.
    Uuid::from_u64_pair(high.wrapping_add(number << 32), low)
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
