//! Reads a page of events.

use super::cursor::{Cursor, Start};
use super::event::{EventText, STEPS_MAX, change_json, operation_of, timestamp_of};
use super::snapshot;
use helenus_engine::changes::ChangePosition;
use helenus_engine::{ChangesError, Database, Result};
use helenus_model::schema::Table;
use std::ops::ControlFlow;
use std::sync::Arc;

/// When a page ends.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Number of events.
    pub events: usize,
    /// Events that a page has whatever their size, if there are so many: a reader that gets its last event once more makes progress.
    pub events_min: usize,
    /// Bytes of their JSON; the last event may exceed it.
    pub bytes: usize,
    /// Microseconds of work on their numbers, estimated; the last event may exceed it.
    pub number_work_us: usize,
}

impl PageLimits {
    /// As much work on numbers as a single event may have.
    pub const NUMBER_WORK_US: usize = STEPS_MAX;
}

impl Default for PageLimits {
    fn default() -> PageLimits {
        PageLimits { events: 1000, events_min: 1, bytes: 1 << 20, number_work_us: PageLimits::NUMBER_WORK_US }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeEvent {
    /// Behind the event.
    pub cursor: String,
    /// Its operation.
    pub operation: &'static str,
    /// Its write timestamp, microseconds.
    pub timestamp_us: Option<i64>,
    /// The event as JSON.
    pub json: String,
}

/// A page of events.
#[derive(Clone, Debug)]
pub struct ChangesPage {
    /// The events, in order.
    pub events: Vec<ChangeEvent>,
    /// Where the next page begins.
    pub next: Cursor,
    /// Whether there were no more events.
    pub is_end: bool,
}

/// The place at which a reader of a table begins.
///
/// # Errors
/// `UnknownTable` and `NotWatched` unless the place is a cursor: there may be events of a table that was dropped or is not
/// watched any more. `NoLog`.
pub fn start(database: &Database, (keyspace, table): (&str, &str), start: Start) -> Result<Cursor> {
    if let Start::After(cursor) = start {
        return Ok(cursor);
    }
    let schema = database.schema();
    let of = || (keyspace.to_owned(), table.to_owned());
    match schema.table(keyspace, table) {
        None => {
            let (keyspace, table) = of();
            return Err(ChangesError::UnknownTable { keyspace, table }.into());
        }
        Some(found) if !found.options.cdc => {
            let (keyspace, table) = of();
            return Err(ChangesError::NotWatched { keyspace, table }.into());
        }
        Some(_) => {}
    }
    Ok(match start {
        Start::Oldest => Cursor::Changes(database.changes().begin()?),
        Start::Beginning => Cursor::Snapshot { then: database.changes().now()?, after: None },
        _ => Cursor::Changes(database.changes().now()?),
    })
}

/// Whether a reader may see the changes of a table, which is as it was when they were made; otherwise why not.
pub type MayRead<'m> = dyn Fn(&Table) -> std::result::Result<(), String> + 'm;

/// Reads the events behind a cursor, for a reader who may read everything.
///
/// # Errors
/// Those of `Database::read_changes`, and of reading the table for its present rows.
pub fn read_page(
    database: &Database,
    table: (&str, &str),
    from: Cursor,
    limits: PageLimits,
) -> Result<ChangesPage> {
    read_page_for(&|_| Ok(()), database, table, (from, limits))
}

/// The same for a reader who may read some. A page ends in front of the first event that is not for the reader.
///
/// # Errors
/// As `read_page`; `Refused` if the first event is not for the reader.
pub fn read_page_for(
    may_read: &MayRead<'_>,
    database: &Database,
    table: (&str, &str),
    (from, limits): (Cursor, PageLimits),
) -> Result<ChangesPage> {
    match from {
        Cursor::Snapshot { then, after } => {
            snapshot::read(may_read, database, table, ((then, after), limits))
        }
        Cursor::Changes(position) => changes(may_read, database, table, (position, limits)),
    }
}

fn changes(
    may_read: &MayRead<'_>,
    database: &Database,
    table: (&str, &str),
    (from, limits): (ChangePosition, PageLimits),
) -> Result<ChangesPage> {
    let host_id = database.host_id();
    let (mut events, mut bytes, mut all_steps, mut is_end) = (Vec::new(), 0, 0, true);
    // The definition that was asked about last; the position behind the last event, if the page ends there.
    let mut allowed: Option<Arc<Table>> = None;
    let (mut behind, mut ends_behind) = (from, None);
    let next = database.changes().read(table, from, &mut |change| {
        if !allowed.as_ref().is_some_and(|known| Arc::ptr_eq(known, change.table)) {
            if let Err(reason) = may_read(change.table) {
                if events.is_empty() {
                    return Err(ChangesError::Refused { position: behind.text(host_id), reason }.into());
                }
                (ends_behind, is_end) = (Some(behind), false);
                return Ok(ControlFlow::Break(()));
            }
            allowed = Some(Arc::clone(change.table));
        }
        behind = change.position;
        let cursor = change.position.text(host_id);
        let EventText { json, steps } = change_json(change, &cursor)?;
        bytes += json.len();
        all_steps += steps;
        let (operation, timestamp_us) = (operation_of(change), timestamp_of(change));
        events.push(ChangeEvent { cursor, operation, timestamp_us, json });
        let is_long = bytes >= limits.bytes || all_steps >= limits.number_work_us;
        let is_full = (is_long && events.len() >= limits.events_min) || events.len() >= limits.events;
        is_end = !is_full;
        Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(ChangesPage { events, next: Cursor::Changes(ends_behind.unwrap_or(next)), is_end })
}
