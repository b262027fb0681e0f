//! Reads the trace of a request from `system_traces`, once the server has written it.

use super::output::table;
use super::session::Session;
use super::value::{MAGENTA, Painted, RESET, Style, ValueRules, show, show_name};
use anyhow::{Result, bail};
use helenus_model::types::CqlType;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Maximum time until a trace is written completely (cqlsh's `max_trace_wait`).
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two queries.
const PAUSE: Duration = Duration::from_millis(20);
/// Ticks of 100 ns from the beginning of the Gregorian calendar to 1970.
const GREGORIAN_TO_UNIX: u64 = 0x01B2_1DD2_1381_4000;

type Cells = Vec<Option<Vec<u8>>>;

/// The text of a session's trace.
///
/// # Errors
/// There is no trace with this id, or the server does not answer.
pub fn traced(session: &mut Session, id: Uuid, is_over: bool, in_colour: bool) -> Result<String> {
    let header = whole_session(session, id, is_over)?;
    let events = session.rows(&format!(
        "SELECT event_id, activity, source, source_elapsed, thread FROM system_traces.events WHERE session_id = {id}"
    ))?;
    let rules = ValueRules::default();
    let style = Style { rules: &rules, in_colour };
    let cell = |row: &Cells, at: usize| row.get(at).cloned().flatten();
    let put = |ty: &CqlType, bytes: Option<Vec<u8>>| show(ty, bytes.as_deref(), style);
    let [request, started, coordinator, client, duration] = [0, 1, 2, 3, 4].map(|at| cell(&header, at));
    let mut rows: Vec<Vec<Painted>> = vec![vec![
        put(&CqlType::Text, request),
        put(&CqlType::Timestamp, started.clone()),
        put(&CqlType::Inet, coordinator.clone()),
        put(&CqlType::Int, Some(0_i32.to_be_bytes().to_vec())),
        put(&CqlType::Inet, client.clone()),
    ]];
    for event in &events {
        let text = |at| String::from_utf8_lossy(&cell(event, at).unwrap_or_default()).into_owned();
        let activity = format!("{} [{}]", text(1), text(4));
        let at = cell(event, 0).and_then(|id| Uuid::from_slice(&id).ok()).map(moment_of);
        rows.push(vec![
            put(&CqlType::Text, Some(activity.into_bytes())),
            put(&CqlType::Timestamp, at),
            put(&CqlType::Inet, cell(event, 2)),
            put(&CqlType::Int, cell(event, 3)),
            put(&CqlType::Inet, client.clone()),
        ]);
    }
    let (begun, took) = (number(started.as_deref()), duration.as_deref().map(|bytes| number(Some(bytes))));
    if let Some(took) = took {
        rows.push(vec![
            put(&CqlType::Text, Some(b"Request complete".to_vec())),
            put(&CqlType::Timestamp, Some((begun + took / 1_000).to_be_bytes().to_vec())),
            put(&CqlType::Inet, coordinator),
            put(&CqlType::BigInt, Some(took.to_be_bytes().to_vec())),
            put(&CqlType::Inet, client),
        ]);
    }
    let names = ["activity", "timestamp", "source", "source_elapsed", "client"]
        .map(|name| show_name(name, MAGENTA, in_colour));
    let (colour, reset) = if in_colour { (MAGENTA, RESET) } else { ("", "") };
    let mut out = String::new();
    _ = writeln!(out, "\n{colour}Tracing session: {reset}{id}\n\n{}", table(&names, &rows, true));
    Ok(out)
}

/// The session's row, read again until it contains the duration.
fn whole_session(session: &mut Session, id: Uuid, is_over: bool) -> Result<Cells> {
    let query = format!(
        "SELECT request, started_at, coordinator, client, duration FROM system_traces.sessions WHERE session_id = {id}"
    );
    let begun = Instant::now();
    loop {
        let found = session.rows(&query)?.into_iter().next();
        let is_whole = found.as_ref().is_some_and(|row| matches!(row.get(4), Some(Some(_))));
        let is_late = is_over || begun.elapsed() > PATIENCE;
        match found {
            Some(row) if is_whole || is_late => return Ok(row),
            None if is_late => bail!("Session {id} wasn't found."),
            _ => std::thread::sleep(PAUSE),
        }
    }
}

/// The value of an int or bigint.
fn number(bytes: Option<&[u8]>) -> i64 {
    bytes.unwrap_or_default().iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte))
}

/// The time of a time UUID as a serialised timestamp.
fn moment_of(id: Uuid) -> Vec<u8> {
    let ticks = id.get_timestamp().map_or(0, |moment| moment.to_gregorian().0);
    let ms = ticks.saturating_sub(GREGORIAN_TO_UNIX) / 10_000;
    i64::try_from(ms).unwrap_or_default().to_be_bytes().to_vec()
}
