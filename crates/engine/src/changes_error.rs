//! Errors of the feed of changes.

use crate::log_position::LogPosition;

/// Why changes cannot be read. Each text ends with what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangesError {
    /// The database has no log.
    #[error(
        "changes are read from the commit log, and a database in memory has none: start the server with a data directory"
    )]
    NoLog,
    /// The table does not have `cdc = true`.
    #[error(
        "{keyspace}.{table} is not watched: ALTER TABLE {keyspace}.{table} WITH cdc = true; its changes are kept from then on"
    )]
    NotWatched {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// There is no such table.
    #[error("there is no table {keyspace}.{table}; to read what was left of a dropped one, give a position")]
    UnknownTable {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// The log of that position was removed.
    #[error(
        "the changes after this position are not kept any more; the oldest kept ones begin in segment {} of the log. Begin anew \
         with --from beginning (the present rows, then what follows), as a named consumer that acknowledges in time; \
         cdc_total_space and cdc_retention say how much is kept",
        oldest.segment()
    )]
    Gone {
        /// The position from which all changes are there.
        oldest: LogPosition,
    },
    /// A text that is no position.
    #[error("'{text}' is no position: give the position of an event as it was printed, or now, or beginning")]
    NoPosition {
        /// The text.
        text: String,
    },
    /// A position of another database.
    #[error(
        "position '{text}' is of another database (this one's begin with {here}): begin anew with --from beginning"
    )]
    OtherDatabase {
        /// The text.
        text: String,
        /// The beginning of this database's positions.
        here: String,
    },
    /// A position that is between two records, or after the end of the log.
    #[error("position '{text}' is not in the log of this database: begin anew with --from beginning")]
    NotInLog {
        /// The text.
        text: String,
    },
    /// The reader may not see the change behind a position.
    #[error("the change behind {position} may not be read: {reason}; begin behind it, with now or beginning")]
    Refused {
        /// The position; empty for present rows.
        position: String,
        /// Why.
        reason: String,
    },
    /// A SELECT of `system_views.changes` that does not name a table, or reads backwards.
    #[error(
        "system_views.changes is read forwards, of tables by name: WHERE keyspace_name = .. AND table_name = .. AND position > .."
    )]
    Unordered,
    /// A SELECT of `system_views.changes` without pages that has too many events.
    #[error(
        "more than {events} events for an answer without pages: read system_views.changes in pages, or with a LIMIT"
    )]
    Unpaged {
        /// The most events.
        events: usize,
    },
    /// A name that no consumer can have.
    #[error("'{name}' cannot name a consumer: use 1 to 64 letters, digits, '_', '-' and '.'")]
    BadName {
        /// The name.
        name: String,
    },
    /// There is no such consumer.
    #[error(
        "{keyspace}.{table} has no consumer '{name}'; helenus changes --consumers lists them, and a read with --consumer makes one"
    )]
    UnknownConsumer {
        /// Its name.
        name: String,
        /// Its keyspace.
        keyspace: String,
        /// Its table.
        table: String,
    },
}
