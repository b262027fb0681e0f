//! The errors of the cluster, as those that `rpc` turns into exceptions.

use helenus_cluster::{CallError, ClusterError};
use helenus_cql::CqlError;
use helenus_wire::native::{ErrorCode, ErrorMessage};

/// What failed: a lost answer means another exception for each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Read,
    Write,
    Statement,
}

/// The error of a call whose consistency level has this number.
pub(crate) fn cql_error(error: ClusterError, work: Work, consistency: u16) -> CqlError {
    let lost = |text: String| match work {
        Work::Read => CqlError::ReadTimeout { consistency },
        Work::Write => CqlError::WriteTimeout { consistency },
        Work::Statement => CqlError::Server(text),
    };
    match error {
        ClusterError::Server(error) => of_server(error, consistency),
        ClusterError::Call(CallError::Wire(error)) => CqlError::Invalid(error.to_string()),
        ClusterError::Call(error) if error.was_sent() => lost(error.to_string()),
        // Nothing was sent: the client may go elsewhere, or try again.
        ClusterError::Call(_)
        | ClusterError::NoNode { .. }
        | ClusterError::NoContact { .. }
        | ClusterError::Connect(_)
        | ClusterError::NoAgreement { .. } => CqlError::Overloaded(error.to_string()),
        ClusterError::Wire(_) | ClusterError::Unexpected { .. } | ClusterError::Invalid(_) => {
            CqlError::Server(error.to_string())
        }
    }
}

fn of_server(error: ErrorMessage, consistency: u16) -> CqlError {
    let text = error.message;
    match error.detail.code() {
        ErrorCode::Unavailable | ErrorCode::Overloaded | ErrorCode::IsBootstrapping => {
            CqlError::Overloaded(text)
        }
        ErrorCode::ReadTimeout => CqlError::ReadTimeout { consistency },
        ErrorCode::WriteTimeout | ErrorCode::CasWriteUnknown => CqlError::WriteTimeout { consistency },
        ErrorCode::ReadFailure => CqlError::ReadFailure { consistency, reason: text },
        ErrorCode::WriteFailure => CqlError::WriteFailure { consistency, reason: text },
        ErrorCode::Truncate => CqlError::Truncate(text),
        ErrorCode::BadCredentials => CqlError::BadCredentials(text),
        ErrorCode::Unauthorized => CqlError::Unauthorized(text),
        ErrorCode::Server => CqlError::Server(text),
        _ => CqlError::Invalid(text),
    }
}
