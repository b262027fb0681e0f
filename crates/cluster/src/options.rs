//! How a cluster is reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use helenus_tls::TlsClient;
use helenus_wire::native::Version;

use crate::AnswerRoom;

/// The port of the native protocol.
pub const DEFAULT_PORT: u16 = 9042;

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The role.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// How a cluster is reached. Start with [`ClusterOptions::new`].
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Nodes to begin with, as `host`, `host:port` or `[v6]:port`.
    pub contact_points: Vec<String>,
    /// The data center whose nodes are asked first; `None`: that of the first contact point that answers.
    pub local_dc: Option<String>,
    /// The login, if the cluster asks for one.
    pub login: Option<Login>,
    /// Whether a node that asks for no login is refused: where the login is a client's, which nobody else checks.
    pub must_log_in: bool,
    /// The settings of TLS, if the cluster takes it.
    pub tls: Option<TlsClient>,
    /// The newest version of the protocol to try; older ones are tried when a node refuses it.
    pub newest: Version,
    /// Whether bodies are compressed with LZ4.
    pub compress: bool,
    /// Connections to each node.
    pub connections: usize,
    /// The most requests in flight on a connection, at most 32,768.
    pub in_flight_max: usize,
    /// The time until a request without answer fails.
    pub timeout: Duration,
    /// The time for a connection with its login.
    pub connect_timeout: Duration,
    /// A connection that has been silent for this time is asked for a sign of life, and closed if none comes in the same time.
    pub heartbeat: Duration,
    /// The longest answer, in bytes.
    pub answer_bytes_max: u64,
    /// The room for long answers that arrive at the same time.
    pub answers: Arc<AnswerRoom>,
    /// The name that nodes show in `system_views.clients`.
    pub driver_name: String,
}

impl ClusterOptions {
    /// The usual settings for these contact points.
    pub fn new(contact_points: Vec<String>) -> ClusterOptions {
        ClusterOptions {
            contact_points,
            local_dc: None,
            login: None,
            must_log_in: false,
            tls: None,
            newest: Version::V5,
            compress: false,
            connections: 2,
            in_flight_max: 1024,
            timeout: Duration::from_secs(12),
            connect_timeout: Duration::from_secs(5),
            heartbeat: Duration::from_secs(5),
            answer_bytes_max: 256 << 20,
            answers: AnswerRoom::new(u64::MAX),
            driver_name: "Helenus".to_owned(),
        }
    }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    /// Name or address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Parses `host`, `host:port`, `v6`, `[v6]` and `[v6]:port`.
    pub(crate) fn parse(text: &str) -> Result<HostPort, String> {
        let text = text.trim();
        let wrong = || format!("'{text}' is no address; write HOST or HOST:PORT");
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(wrong()),
            }
        } else {
            match text.split_once(':') {
                Some((_, rest)) if rest.contains(':') => (text, None),
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        let port = port.map_or(Ok(DEFAULT_PORT), |port| port.parse().map_err(|_| wrong()))?;
        if host.is_empty() || port == 0 {
            return Err(wrong());
        }
        Ok(HostPort { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_maybe_a_port() {
        let read = |text: &str| HostPort::parse(text).map(|found| found.to_string());
        assert_eq!(read("db1").unwrap(), "db1:9042");
        assert_eq!(read("db1:19042").unwrap(), "db1:19042");
        assert_eq!(read("::1").unwrap(), "[::1]:9042");
        assert_eq!(read("[::1]:9").unwrap(), "[::1]:9");
        for wrong in ["", ":9042", "db1:", "db1:x", "db1:0", "[::1", "[::1]9"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
