//! What can go wrong with a call, and which of the interface's exceptions tells it.

use helenus_cql::CqlError;
use helenus_engine::Error as EngineError;
use helenus_model::types::TypeError;
use helenus_wire::thrift::{Exception, ThriftError};

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RpcError {
    /// It needs the disk: run it again where it may block. Nothing was written.
    #[error("the call needs the disk")]
    WouldBlock,
    /// Its client has gone: there is nobody to answer.
    #[error("nobody waits for the answer any more")]
    Cancelled,
    /// The interface's own exceptions.
    #[error("{}", text_of(.0))]
    Thrown(Exception),
    /// Its arguments cannot be read.
    #[error(transparent)]
    Arguments(#[from] ThriftError),
    /// The server failed.
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

/// `InvalidRequestException` with this `why`.
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
    /// As `ThriftConversion`: what is wrong with a request is invalid, a failure of a replica counts as a timeout.
    fn from(error: CqlError) -> RpcError {
        let text = error.to_string();
        RpcError::Thrown(match error {
            CqlError::WouldBlock => return RpcError::WouldBlock,
            CqlError::Cancelled => return RpcError::Cancelled,
            CqlError::Protocol(_)
            | CqlError::Syntax(_)
            | CqlError::Invalid(_)
            | CqlError::Config(_)
            | CqlError::AlreadyExists { .. }
            | CqlError::Unprepared(_)
            | CqlError::Unauthorized(_)
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
