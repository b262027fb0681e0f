//! Translates errors of the backend into ERROR messages of the protocol. No other file assigns error codes.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use helenus_cql::CqlError;
use helenus_engine::Ticket;
use helenus_engine::{SchemaChange, SchemaChangeKind};
use helenus_wire::native as wire;
use helenus_wire::native::{
    Consistency, ErrorCode, ErrorDetail, ErrorMessage, FailureReason, Failures, Progress, WriteType,
};

/// The ERROR that answers `error`.
pub(super) fn error_message(error: &CqlError) -> ErrorMessage {
    let detail = match error {
        CqlError::Protocol(_) => ErrorDetail::Plain(ErrorCode::Protocol),
        CqlError::Syntax(_) => ErrorDetail::Plain(ErrorCode::Syntax),
        CqlError::Invalid(_) => ErrorDetail::Plain(ErrorCode::Invalid),
        CqlError::Config(_) => ErrorDetail::Plain(ErrorCode::Config),
        CqlError::AlreadyExists { keyspace, table, .. } => {
            ErrorDetail::AlreadyExists { keyspace: keyspace.clone(), table: table.clone() }
        }
        CqlError::Unprepared(id) => ErrorDetail::Unprepared { id: id.to_vec() },
        CqlError::BadCredentials(_) => ErrorDetail::Plain(ErrorCode::BadCredentials),
        CqlError::Unauthorized(_) | CqlError::SessionEnded(_) => ErrorDetail::Plain(ErrorCode::Unauthorized),
        CqlError::Overloaded(_) => ErrorDetail::Plain(ErrorCode::Overloaded),
        CqlError::ReadTimeout { consistency } => {
            ErrorDetail::ReadTimeout { progress: nobody_answered(*consistency), data_present: false }
        }
        CqlError::WriteTimeout { consistency } => ErrorDetail::WriteTimeout {
            progress: nobody_answered(*consistency),
            write_type: WriteType::Simple,
            contentions: None,
        },
        CqlError::Truncate(_) => ErrorDetail::Plain(ErrorCode::Truncate),
        CqlError::ReadFailure { consistency, .. } => ErrorDetail::ReadFailure {
            progress: nobody_answered(*consistency),
            failures: this_failed(),
            data_present: false,
        },
        CqlError::TooManyTombstones { consistency } => ErrorDetail::ReadFailure {
            progress: nobody_answered(*consistency),
            failures: Failures::Replicas(vec![(
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                FailureReason::ReadTooManyTombstones,
            )]),
            data_present: false,
        },
        CqlError::WriteFailure { consistency, .. } => ErrorDetail::WriteFailure {
            progress: nobody_answered(*consistency),
            failures: this_failed(),
            write_type: WriteType::Simple,
        },
        CqlError::FunctionFailure { keyspace, function, argument_types, .. } => {
            ErrorDetail::FunctionFailure {
                keyspace: keyspace.clone(),
                function: function.clone(),
                argument_types: argument_types.clone(),
            }
        }
        // A request that may block cannot be put off again, and nobody waits for the answer of a cancelled one.
        CqlError::Server(_) | CqlError::WouldBlock | CqlError::Cancelled => {
            ErrorDetail::Plain(ErrorCode::Server)
        }
    };
    ErrorMessage { message: error.to_string(), detail }
}

/// The progress in the error when the only replica did not answer.
fn nobody_answered(consistency: u16) -> Progress {
    let consistency = Consistency::from_code(consistency).unwrap_or(Consistency::One);
    Progress { consistency, received: 0, block_for: 1 }
}

/// The failure of the only replica. Its address is required but tells the client nothing, so it is 127.0.0.1.
fn this_failed() -> Failures {
    Failures::Replicas(vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), FailureReason::Unknown)])
}

/// The answer to a write, or to a read that waited for one, when the commit log has failed. The text says what to do.
pub(super) fn log_failed(error: &helenus_engine::Error, consistency: Consistency) -> ErrorMessage {
    let (consistency, reason) = (consistency.code(), error.to_string());
    error_message(&match error {
        helenus_engine::Error::Unlogged { .. } => CqlError::ReadFailure { consistency, reason },
        _ => CqlError::WriteFailure { consistency, reason },
    })
}

/// The answer to a write that has waited too long for the log and may still be logged, or to a read that has seen such
/// a write.
pub(super) fn timed_out(ticket: &Ticket, consistency: Consistency) -> ErrorMessage {
    let consistency = consistency.code();
    error_message(&match ticket.is_of_read() {
        true => CqlError::ReadTimeout { consistency },
        false => CqlError::WriteTimeout { consistency },
    })
}

/// Converts a schema change to the form of results and events.
pub(super) fn schema_change(change: &SchemaChange) -> wire::SchemaChange<'_> {
    let name = |name: &'_ std::sync::Arc<str>| Cow::Owned(name.to_string());
    wire::SchemaChange {
        verb: match change.kind {
            SchemaChangeKind::Created => wire::SchemaVerb::Created,
            SchemaChangeKind::Updated => wire::SchemaVerb::Updated,
            SchemaChangeKind::Dropped => wire::SchemaVerb::Dropped,
        },
        keyspace: Cow::Borrowed(&change.keyspace),
        target: match &change.name {
            None => wire::SchemaTarget::Keyspace,
            Some(of) if change.is_type => wire::SchemaTarget::Type(name(of)),
            Some(of) => wire::SchemaTarget::Table(name(of)),
        },
    }
}
