//! Why a connection, a call or a statement failed, and whether it may be repeated.

use std::net::SocketAddr;
use std::time::Duration;

use helenus_wire::WireError;
use helenus_wire::native::{ErrorCode, ErrorMessage, Opcode};
use thiserror::Error;

/// Why one request on one connection has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The connection ended before the request was written to it.
    #[error("the connection to {node} ended before the request was sent: {reason}")]
    NotSent {
        /// The node.
        node: SocketAddr,
        /// Why it ended.
        reason: String,
    },
    /// The connection ended after the request was written; the node may have run it.
    #[error("the connection to {node} ended before the answer came: {reason}")]
    Lost {
        /// The node.
        node: SocketAddr,
        /// Why it ended.
        reason: String,
    },
    /// No answer came in time; the node may have run the request.
    #[error("no answer from {node} within {} ms", after.as_millis())]
    Timeout {
        /// The node.
        node: SocketAddr,
        /// The time that was waited.
        after: Duration,
    },
    /// The node answered with what the request does not ask for, so the connection was ended; the node has run the request. It must not be
    /// sent again: another node would answer alike.
    #[error("the connection to {node} was ended: {reason}")]
    Unasked {
        /// The node.
        node: SocketAddr,
        /// The request and the answer.
        reason: String,
    },
    /// The answer is longer than there is room for, and was dropped; the node has run the request.
    #[error("an answer of {node} is not taken: {reason}; ask for smaller pages")]
    TooLong {
        /// The node.
        node: SocketAddr,
        /// The length, and what there is room for.
        reason: String,
    },
    /// As many requests are in flight as the connection allows.
    #[error("too many requests are in flight on the connection to {node}")]
    Full {
        /// The node.
        node: SocketAddr,
    },
    /// The request cannot be encoded.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl CallError {
    /// Whether the node may have seen the request. If not, it may be sent again, whatever it does.
    pub fn was_sent(&self) -> bool {
        matches!(
            self,
            CallError::Lost { .. }
                | CallError::Timeout { .. }
                | CallError::Unasked { .. }
                | CallError::TooLong { .. }
        )
    }
}

/// Why there is no connection to a node.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The address cannot be reached, or the socket failed.
    #[error("{host}: {source}")]
    Socket {
        /// The host and port.
        host: String,
        /// Why.
        source: std::io::Error,
    },
    /// TLS failed.
    #[error("{host}: {reason}")]
    Tls {
        /// The host and port.
        host: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The node answered STARTUP or the login with an error.
    #[error("{host}: {}", error.message)]
    Refused {
        /// The host and port.
        host: String,
        /// The answer.
        error: ErrorMessage,
    },
    /// The node asks for a login and none was given.
    #[error("{host} asks for a login ({authenticator}); give a user and a password")]
    NoLogin {
        /// The host and port.
        host: String,
        /// The class that asks.
        authenticator: String,
    },
    /// The node asks for no login, so it cannot check one.
    #[error("{host} asks nobody to log in (authenticator: AllowAllAuthenticator), so it cannot check logins")]
    LoginUnchecked {
        /// The host and port.
        host: String,
    },
    /// The node did not answer in time.
    #[error("{host}: no answer within {} ms", after.as_millis())]
    Timeout {
        /// The host and port.
        host: String,
        /// The time that was waited.
        after: Duration,
    },
    /// What the node sent is not the native protocol.
    #[error("{host}: {reason}")]
    Protocol {
        /// The host and port.
        host: String,
        /// What is wrong.
        reason: String,
    },
}

/// How the message of a node begins that could not read its roles: it has BadCredentials too (`PasswordAuthenticator`), and says nothing
/// about the login.
const UNABLE: &str = "Unable to perform authentication";

impl ConnectError {
    /// The node's answer, if it has refused the login. One that cannot check logins just now has not.
    pub fn login_refusal(&self) -> Option<&ErrorMessage> {
        match self {
            ConnectError::Refused { error, .. } => {
                let code = error.detail.code();
                let is_refusal = matches!(code, ErrorCode::BadCredentials | ErrorCode::Unauthorized);
                (is_refusal && !error.message.starts_with(UNABLE)).then_some(error)
            }
            _ => None,
        }
    }
}

/// How a node's error begins that could not read the permissions of a role at this moment.
const PERMISSIONS_UNREAD: &str = "Unable to perform authorization";

/// Why a statement failed, or a cluster cannot be used.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// No contact point could be used; one text for each.
    #[error("no node of the cluster can be used: {}", reasons.join("; "))]
    NoContact {
        /// Why, for each contact point.
        reasons: Vec<String>,
    },
    /// No node that could answer has a connection now.
    #[error("no node of the cluster is connected{}", reason.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    NoNode {
        /// The last error of a connection.
        reason: Option<String>,
    },
    /// A request has no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A node cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The cluster answered with an error.
    #[error("{}: {}", .0.detail.code().name(), .0.message)]
    Server(ErrorMessage),
    /// The answer is damaged.
    #[error("an answer of the cluster cannot be read: {0}")]
    Wire(#[from] WireError),
    /// An answer of another kind than the request asks for.
    #[error("unexpected {opcode} from the cluster")]
    Unexpected {
        /// Its kind.
        opcode: Opcode,
    },
    /// The nodes still have different schemas.
    #[error("the nodes have not agreed on a schema within {} ms", after.as_millis())]
    NoAgreement {
        /// The time that was waited.
        after: Duration,
    },
    /// A value that the caller gave, or a cell of a system table, is not what it must be.
    #[error("{0}")]
    Invalid(String),
}

impl ClusterError {
    /// Whether the statement may be sent again. `idempotent`: whether running it twice has the effect of once. Without
    /// that, only failures before any replica was asked count.
    pub fn may_repeat(&self, idempotent: bool) -> bool {
        match self {
            ClusterError::NoNode { .. } | ClusterError::NoAgreement { .. } => true,
            ClusterError::Call(
                CallError::Wire(_) | CallError::Unasked { .. } | CallError::TooLong { .. },
            ) => false,
            ClusterError::Call(error) => idempotent || !error.was_sent(),
            ClusterError::Server(error) => match error.detail.code() {
                ErrorCode::IsBootstrapping | ErrorCode::Unprepared => true,
                ErrorCode::Overloaded
                | ErrorCode::Unavailable
                | ErrorCode::WriteTimeout
                | ErrorCode::ReadTimeout
                | ErrorCode::ReadFailure
                | ErrorCode::WriteFailure
                | ErrorCode::Truncate
                | ErrorCode::Server => idempotent,
                // The node could not read permissions: it says nothing about whether they are there (`CassandraAuthorizer.authorize`).
                ErrorCode::Unauthorized if error.message.starts_with(PERMISSIONS_UNREAD) => idempotent,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the cluster has refused the statement itself: it names a keyspace, a table or a column that is not there. Every other error
    /// says nothing about what is there.
    pub fn is_invalid(&self) -> bool {
        matches!(self, ClusterError::Server(error) if error.detail.code() == ErrorCode::Invalid)
    }

    /// The error of the cluster, if it answered with one.
    pub fn server(&self) -> Option<&ErrorMessage> {
        match self {
            ClusterError::Server(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_cannot_check_a_login_has_not_refused_it() {
        let is_refusal = |code: ErrorCode, text: &str| {
            let error = ErrorMessage::plain(code, text);
            ConnectError::Refused { host: "host:9042".to_owned(), error }.login_refusal().is_some()
        };
        let wrong = "Provided username app and/or password are incorrect";
        assert!(is_refusal(ErrorCode::BadCredentials, wrong));
        assert!(is_refusal(ErrorCode::Unauthorized, "app is not permitted to log in"));
        let unable = "Unable to perform authentication: Operation timed out - received only 0 responses.";
        assert!(!is_refusal(ErrorCode::BadCredentials, unable));
        assert!(!is_refusal(ErrorCode::Overloaded, "Request breached limit on bytes in flight"));
    }
}
