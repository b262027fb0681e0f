//! Named consumers of a table's events.

use super::cursor::{Cursor, Start};
use super::page::start;
use helenus_engine::{ChangesError, Database, Result};

/// The place at which a named consumer goes on. A new one begins at `from`, and the log is kept for it from there on.
/// Without `from` it must be there.
///
/// # Errors
/// `UnknownConsumer`, `BadName`; those of `start`; failures of the disk.
pub fn resume(database: &Database, table: (&str, &str), name: &str, from: Option<Start>) -> Result<Cursor> {
    if let Some(from) = from {
        let cursor = start(database, table, from)?;
        acknowledge(database, table, name, &cursor)?;
        return Ok(cursor);
    }
    let Some(consumer) = database.changes().consumer(table, name) else {
        let (keyspace, table) = (table.0.to_owned(), table.1.to_owned());
        return Err(ChangesError::UnknownConsumer { name: name.to_owned(), keyspace, table }.into());
    };
    Ok(Cursor::parse(&consumer.cursor, database.host_id())?)
}

/// A consumer has dealt with everything before a place.
///
/// # Errors
/// `BadName`; failures of the disk.
pub fn acknowledge(database: &Database, table: (&str, &str), name: &str, cursor: &Cursor) -> Result<()> {
    database.changes().acknowledge(table, name, (cursor.position(), cursor.text(database.host_id())))
}
