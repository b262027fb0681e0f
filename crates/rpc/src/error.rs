//! The errors of a call, and the exceptions that clients get for them.

use helenus_cql::CqlError;
use helenus_cql::backend::is_role_limit;
use helenus_engine::Error as EngineError;
use helenus_model::types::TypeError;
use helenus_wire::thrift::{Exception, ThriftError};

/// The reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RpcError {
    /// The call needs the disk. Nothing was written; run it again where blocking is allowed.
    #[error("the call needs the disk")]
    WouldBlock,
    /// The client is gone, so there is no answer.
    #[error("nobody waits for the answer any more")]
    Cancelled,
    /// An exception of the interface.
    #[error("{}", text_of(.0))]
    Thrown(Exception),
    /// The client lacks a permission, or has not logged in. For the client it is an `InvalidRequestException`, as in
    /// Cassandra's `ThriftConversion`; logs tell it from other invalid requests.
    #[error("{0}")]
    Unauthorized(String),
    /// The client's role may not be used any more, and its connection ends with the answer. The exception is that of `Unauthorized`.
    #[error("{0}")]
    SessionEnded(String),
    /// The arguments cannot be decoded.
    #[error(transparent)]
    Arguments(#[from] ThriftError),
    /// An internal error.
    #[error("{0}")]
    Internal(String),
}

fn text_of(exception: &Exception) -> String {
    match exception {
        Exception::InvalidRequest(why) | Exception::Authentication(why) | Exception::Authorization(why) => {
            why.clone()
        }
        other => format!("{other:?}"),
    }
}

pub(crate) type Result<T> = std::result::Result<T, RpcError>;

/// An `InvalidRequestException` with the text `why`.
pub(crate) fn invalid<T>(why: impl Into<String>) -> Result<T> {
    Err(RpcError::Thrown(Exception::InvalidRequest(why.into())))
}

impl From<TypeError> for RpcError {
    fn from(error: TypeError) -> RpcError {
        RpcError::Thrown(Exception::InvalidRequest(error.to_string()))
    }
}

impl From<EngineError> for RpcError {
    fn from(error: EngineError) -> RpcError {
        CqlError::from(error).into()
    }
}

impl From<CqlError> for RpcError {
    /// As `ThriftConversion`: errors of a request become invalid requests, failures of a replica become timeouts.
    fn from(error: CqlError) -> RpcError {
        let text = error.to_string();
        // Unavailable, which other overload is, has no text, and this one says what to change.
        if is_role_limit(&error) {
            return RpcError::Thrown(Exception::InvalidRequest(text));
        }
        RpcError::Thrown(match error {
            CqlError::WouldBlock => return RpcError::WouldBlock,
            CqlError::Cancelled => return RpcError::Cancelled,
            CqlError::Unauthorized(_) => return RpcError::Unauthorized(text),
            CqlError::SessionEnded(_) => return RpcError::SessionEnded(text),
            CqlError::Protocol(_)
            | CqlError::Syntax(_)
            | CqlError::Invalid(_)
            | CqlError::Config(_)
            | CqlError::AlreadyExists { .. }
            | CqlError::Unprepared(_)
            | CqlError::BadCredentials(_)
            | CqlError::FunctionFailure { .. } => Exception::InvalidRequest(text),
            CqlError::Overloaded(_) | CqlError::Truncate(_) => Exception::Unavailable,
            CqlError::ReadTimeout { .. }
            | CqlError::WriteTimeout { .. }
            | CqlError::ReadFailure { .. }
            | CqlError::TooManyTombstones { .. }
            | CqlError::WriteFailure { .. } => Exception::TimedOut,
            CqlError::Server(_) => return RpcError::Internal(text),
        })
    }
}
