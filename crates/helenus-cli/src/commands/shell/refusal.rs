//! Formats a server's error in cqlsh's words, so that users find the text in existing documentation.
//!
//! The names and summaries are those of the Python driver's `cassandra.protocol` and its exceptions.

use helenus_wire::native::{ErrorCode, ErrorDetail, ErrorMessage};
use std::fmt;

/// The server refused a statement or a login.
#[derive(Debug, thiserror::Error)]
pub struct Refused(pub ErrorMessage);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused(error) = self;
        let code = error.detail.code();
        let (class, summary) = words(code);
        match &error.detail {
            // The parser's message already contains the position.
            ErrorDetail::Plain(ErrorCode::Syntax | ErrorCode::Config) => {
                write!(f, "{class}: {}", error.message)
            }
            ErrorDetail::AlreadyExists { keyspace, table } if table.is_empty() => {
                write!(f, "{class}: Keyspace '{keyspace}' already exists")
            }
            ErrorDetail::AlreadyExists { keyspace, table } => {
                write!(f, "{class}: Table '{keyspace}.{table}' already exists")
            }
            _ => {
                let number = code.number();
                write!(
                    f,
                    "{class}: Error from server: code={number:04x} [{summary}] message=\"{}\"",
                    error.message
                )
            }
        }
    }
}

fn words(code: ErrorCode) -> (&'static str, &'static str) {
    const TIMED_OUT: &str = "Coordinator node timed out waiting for replica nodes' responses";
    match code {
        ErrorCode::Server => ("ServerError", "Server error"),
        ErrorCode::Protocol => ("ProtocolException", "Protocol error"),
        ErrorCode::BadCredentials => ("AuthenticationFailed", "Bad credentials"),
        ErrorCode::Unavailable => ("Unavailable", "Unavailable exception"),
        ErrorCode::Overloaded => ("OverloadedErrorMessage", "Coordinator node overloaded"),
        ErrorCode::IsBootstrapping => ("IsBootstrappingErrorMessage", "Coordinator node is bootstrapping"),
        ErrorCode::Truncate => ("TruncateError", "Error during truncate"),
        ErrorCode::WriteTimeout => ("WriteTimeout", TIMED_OUT),
        ErrorCode::ReadTimeout => ("ReadTimeout", TIMED_OUT),
        ErrorCode::ReadFailure => ("ReadFailure", "Replica(s) failed to execute read"),
        ErrorCode::FunctionFailure => ("FunctionFailure", "User Defined Function failure"),
        ErrorCode::WriteFailure => ("WriteFailure", "Replica(s) failed to execute write"),
        ErrorCode::CdcWriteFailure => {
            ("CDCWriteFailure", "Failed to execute write due to CDC space exhaustion.")
        }
        ErrorCode::CasWriteUnknown => ("CASWriteUnknown", "Conditional write of unknown outcome"),
        ErrorCode::Syntax => ("SyntaxException", "Syntax error in CQL query"),
        ErrorCode::Unauthorized => ("Unauthorized", "Unauthorized"),
        ErrorCode::Invalid => ("InvalidRequest", "Invalid query"),
        ErrorCode::Config => ("ConfigurationException", "Query invalid because of configuration issue"),
        ErrorCode::AlreadyExists => ("AlreadyExists", "Item already exists"),
        ErrorCode::Unprepared => {
            ("PreparedQueryNotFound", "Matching prepared statement not found on this node")
        }
    }
}
