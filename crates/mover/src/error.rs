//! Why a move cannot begin, or a table of it has stopped.

use crate::front::FrontError;
use crate::source::SourceError;
use helenus_cluster::ClusterError;

/// Each text ends with what to do, where something can be done.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The cluster failed, or refused.
    #[error("the target: {0}")]
    Target(#[from] ClusterError),
    /// The source failed.
    #[error("the source: {0}")]
    Source(#[from] helenus_engine::Error),
    /// A row that CQL cannot write.
    #[error("{table}: {error}")]
    Row {
        /// The table.
        table: String,
        /// Why.
        error: SourceError,
    },
    /// A row that the target refuses for good.
    #[error(
        "{table}: the target refuses the row {row}: {error}. {}; then helenus move resume goes on",
        what_helps(.error)
    )]
    RowRefused {
        /// The table.
        table: String,
        /// The row's key, in words.
        row: String,
        /// The target's error.
        error: Box<ClusterError>,
    },
    /// A move is under way.
    #[error("a move to {to} is under way; helenus move status shows it, helenus move abort ends it")]
    UnderWay {
        /// Its target.
        to: String,
    },
    /// No move has been started.
    #[error("no move is under way; helenus move plan --to HOST shows what one would do")]
    NoMove,
    /// The order is wrong, or the target cannot take the tables; one text for each reason.
    #[error("nothing was started:\n  {}", .0.join("\n  "))]
    Refused(Vec<String>),
    /// A cut cannot be made now; one text for each reason.
    #[error("not done, and clients go on as before:\n  {}", .0.join("\n  "))]
    NotCut(Vec<String>),
    /// The target that clients are served by cannot be reached.
    #[error(
        "the target: {0}\nTry again when it can be reached. If it is lost for good, helenus move rollback --lose-later-writes serves here \
         again, with the rows of the cut"
    )]
    AwayAfterCut(ClusterError),
    /// The move has been cut over, and the request needs that it has not.
    #[error(
        "the move has been cut over: clients are served by {to}, which has the truth; helenus move rollback takes it back"
    )]
    IsCut {
        /// The target.
        to: String,
    },
    /// Another request changes the move.
    #[error(
        "another request starts, ends or cuts over the move at this moment; helenus move status shows it"
    )]
    Busy,
    /// The listeners could not do what they were told; clients go on as before.
    #[error("not done, and clients go on as before: {0}")]
    Front(#[from] FrontError),
    /// The target does not take a counter any more.
    #[error(
        "{table}: the target does not change a counter although it says so; one that was deleted there cannot be counted again in \
         Cassandra. helenus move resume truncates the table there and sends it anew"
    )]
    Counter {
        /// The table.
        table: String,
    },
    /// A table cannot go on.
    #[error("{0}")]
    Table(String),
    /// The state file cannot be read or written.
    #[error("{path}: {reason}")]
    State {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The move was told to stop.
    #[error("the move was stopped")]
    Stopped,
    /// The system gives no thread. It passes.
    #[error("the system gives the server no thread for the move now; it is tried again")]
    NoThread,
    /// A task failed; a bug.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Part of the text by which a node refuses a TTL that ends after what it stores (`ExpirationDateOverflowHandling`).
const LATE_EXPIRY: &str = "exceeds maximum supported expiration date";

/// What to do with a row that the target refuses.
fn what_helps(error: &ClusterError) -> &'static str {
    match error.server() {
        Some(error) if error.message.contains(LATE_EXPIRY) => {
            "Its TTL ends later than the target stores: set storage_compatibility_mode: NONE in cassandra.yaml at its nodes (5.0, as after an \
             upgrade that is done), or write the row here with a smaller TTL"
        }
        _ => "Change or delete the row here, or what refuses it there",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_wire::native::{ErrorCode, ErrorMessage};

    #[test]
    fn a_refused_ttl_says_what_lets_the_target_store_it() {
        let words = |text: &str| {
            let error = ClusterError::Server(ErrorMessage::plain(ErrorCode::Invalid, text));
            let (table, row) = ("ks.t".to_owned(), "k = 1".to_owned());
            MoveError::RowRefused { table, row, error: Box::new(error) }.to_string()
        };
        let late = "Request on table ks.t with ttl of 600000000 seconds exceeds maximum supported expiration date of 2038-01-19T03:14:06+00:00";
        assert!(words(late).contains("storage_compatibility_mode: NONE"), "{}", words(late));
        assert!(!words("no").contains("storage_compatibility_mode"));
    }
}
