//! The purposes for which memory is taken. Each has a counter of its own in the account.

/// The purpose of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Requests that are being served: rows, values, merges, conditions, answers that grow.
    Requests,
    /// Answers that are complete and wait for their client.
    Answers,
    /// Requests that arrive or wait for a thread.
    Arriving,
    /// Flushes, compactions, imports and other background work.
    Background,
    /// Cached statements.
    Statements,
    /// The definitions of tables, and the objects that each table has while the server runs.
    Schema,
    /// What open SSTables keep in memory: filters, indexes, chunk offsets (`StandingBytes`).
    SsTables,
}

impl Share {
    /// All shares.
    pub const ALL: [Share; 7] = [
        Share::Requests,
        Share::Answers,
        Share::Arriving,
        Share::Background,
        Share::Statements,
        Share::Schema,
        Share::SsTables,
    ];

    /// Its name for messages and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Share::Requests => "requests",
            Share::Answers => "answers",
            Share::Arriving => "arriving",
            Share::Background => "background",
            Share::Statements => "statements",
            Share::Schema => "schema",
            Share::SsTables => "sstables",
        }
    }
}
