//! A SELECT from `system.peers` or `system.peers_v2`, as far as the gateway answers it with the nodes of the cluster.
//!
//! Drivers read all rows, or those of one node by its key. Other conditions, functions and aliases are refused: they would need an
//! execution of CQL here.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use helenus_lexer::token::Kind;
use helenus_wire::native::{ErrorCode, ErrorMessage, Values};

use crate::lexed::Token;

/// The rows that are asked for: those that meet all conditions, and at most so many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeersSelect {
    conditions: Arc<[(Key, Operand)]>,
    limit: Option<Operand>,
}

/// A column of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Peer,
    Port,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operand {
    Text(String),
    /// A bind marker: its number from 0, and its name if it has one.
    Marker(usize, Option<String>),
}

impl PeersSelect {
    /// Reads the tokens from the first behind SELECT to the end.
    ///
    /// # Errors
    /// The statement asks for more than this module can answer.
    pub fn of<'a>(tokens: impl Iterator<Item = Token<'a>>) -> Result<PeersSelect, Unsupported> {
        let mut tokens = tokens.peekable();
        loop {
            let token = tokens.next().ok_or(Unsupported)?;
            match token.kind {
                Kind::From => break,
                Kind::Star | Kind::Comma => {}
                Kind::Distinct | Kind::Json | Kind::Cast => return Err(Unsupported),
                // Neither a function nor an alias: a name, and no name behind it.
                kind if kind.is_name() => match tokens.peek().map(|next| next.kind) {
                    Some(Kind::Comma | Kind::From) => {}
                    _ => return Err(Unsupported),
                },
                _ => return Err(Unsupported),
            }
        }
        // The name of the table, which the caller knows.
        tokens.next();
        if tokens.next_if(|token| token.kind == Kind::Dot).is_some() {
            tokens.next();
        }
        let (mut conditions, mut limit, mut markers) = (Vec::new(), None, 0);
        while let Some(token) = tokens.next() {
            match token.kind {
                Kind::Semicolon => {}
                Kind::Where | Kind::And => {
                    let key = match tokens.next().and_then(|token| token.name()).as_deref() {
                        Some("peer") => Key::Peer,
                        Some("peer_port") => Key::Port,
                        _ => return Err(Unsupported),
                    };
                    if tokens.next().is_none_or(|token| token.kind != Kind::Equal) {
                        return Err(Unsupported);
                    }
                    conditions.push((key, operand(&mut tokens, &mut markers)?));
                }
                Kind::Limit => limit = Some(operand(&mut tokens, &mut markers)?),
                Kind::Allow if tokens.next().is_some_and(|token| token.kind == Kind::Filtering) => {}
                _ => return Err(Unsupported),
            }
        }
        Ok(PeersSelect { conditions: conditions.into(), limit })
    }

    /// Whether the row of a node is asked for.
    pub fn matches(&self, peer: SocketAddr, values: &Values<'_>) -> bool {
        self.conditions.iter().all(|(key, operand)| match (key, operand) {
            (Key::Peer, Operand::Text(text)) => text.parse() == Ok(peer.ip()),
            (Key::Port, Operand::Text(text)) => text.parse() == Ok(peer.port()),
            (Key::Peer, Operand::Marker(..)) => operand.bound(values).is_some_and(|bytes| match peer.ip() {
                IpAddr::V4(ip) => bytes == ip.octets(),
                IpAddr::V6(ip) => bytes == ip.octets(),
            }),
            (Key::Port, Operand::Marker(..)) => {
                operand.bound(values).is_some_and(|bytes| bytes == i32::from(peer.port()).to_be_bytes())
            }
        })
    }

    /// The most rows.
    pub fn limit(&self, values: &Values<'_>) -> usize {
        let limit = match &self.limit {
            None => None,
            Some(Operand::Text(text)) => text.parse().ok(),
            Some(marker) => marker
                .bound(values)
                .and_then(|bytes| usize::try_from(i32::from_be_bytes(bytes.try_into().ok()?)).ok()),
        };
        limit.unwrap_or(usize::MAX)
    }
}

impl Operand {
    fn bound<'v>(&self, values: &Values<'v>) -> Option<&'v [u8]> {
        let Operand::Marker(number, name) = self else { return None };
        let (_, value) = match values.has_names() {
            true => values.iter().find(|(given, _)| *given == name.as_deref())?,
            false => values.iter().nth(*number)?,
        };
        value.bytes()
    }
}

fn operand<'a>(
    tokens: &mut impl Iterator<Item = Token<'a>>,
    markers: &mut usize,
) -> Result<Operand, Unsupported> {
    let mut marker = |name| {
        *markers += 1;
        Operand::Marker(*markers - 1, name)
    };
    let token = tokens.next().ok_or(Unsupported)?;
    match token.kind {
        Kind::QMark => Ok(marker(None)),
        Kind::Colon => {
            let name = tokens.next().and_then(|token| token.name());
            name.map(|name| marker(Some(name))).ok_or(Unsupported)
        }
        _ => token.constant().map(Operand::Text).ok_or(Unsupported),
    }
}

/// The statement asks for more than the gateway can answer by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported;

impl From<Unsupported> for ErrorMessage {
    fn from(_: Unsupported) -> ErrorMessage {
        ErrorMessage::plain(
            ErrorCode::Invalid,
            "the gateway answers system.peers and system.peers_v2 itself: select columns by their names or *, with no other \
             conditions than peer = .. and peer_port = ..; a node of the cluster answers everything else",
        )
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use helenus_wire::native::Value;

    use super::*;
    use crate::lexed::Tokens;

    fn select(text: &str) -> Result<PeersSelect, Unsupported> {
        PeersSelect::of(Tokens::of(text).skip(1))
    }

    fn found(text: &str, values: &Values<'_>) -> Vec<u8> {
        let select = select(text).unwrap();
        let nodes = (1..4).map(|last| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 7000)));
        let nodes = nodes.filter(|node| select.matches(*node, values)).take(select.limit(values));
        nodes.map(|node| if let IpAddr::V4(ip) = node.ip() { ip.octets()[3] } else { 0 }).collect()
    }

    #[test]
    fn the_statements_of_drivers_find_their_rows() {
        let none = Values::NONE;
        assert_eq!(found("SELECT * FROM system.peers", &none), [1, 2, 3]);
        assert_eq!(found("select peer, \"tokens\" from system.peers LIMIT 2;", &none), [1, 2]);
        assert_eq!(found("SELECT * FROM system.peers WHERE peer = '10.0.0.2'", &none), [2]);
        assert_eq!(found("SELECT * FROM system.peers WHERE peer='10.0.0.9' ALLOW FILTERING", &none), []);
        let by_port = "SELECT * FROM system.peers_v2 WHERE peer='10.0.0.2' AND peer_port=7001";
        assert_eq!(found(by_port, &none), []);
        let (ip, port) = ([10, 0, 0, 3], 7000_i32.to_be_bytes());
        let (ip, port) = (Value::Bytes(&ip), Value::Bytes(&port));
        let by_name = "SELECT * FROM system.peers_v2 WHERE peer = :address and peer_port = :port";
        assert_eq!(found(by_name, &Values::named(&[("port", port), ("address", ip)])), [3]);
        assert_eq!(found(by_name, &Values::positional(&[ip, port])), [3]);
        let limit = Value::Bytes(&[0, 0, 0, 1]);
        assert_eq!(found("SELECT * FROM system.peers LIMIT ?", &Values::positional(&[limit])), [1]);
    }

    #[test]
    fn what_needs_an_execution_of_cql_is_refused() {
        for text in [
            "SELECT count(*) FROM system.peers",
            "SELECT peer AS p FROM system.peers",
            "SELECT DISTINCT peer FROM system.peers_v2",
            "SELECT json peer FROM system.peers",
            "SELECT * FROM system.peers WHERE peer IN ('10.0.0.1')",
            "SELECT * FROM system.peers WHERE token(peer) > 1",
            "SELECT * FROM system.peers WHERE rack = 'r'",
            "SELECT peer",
        ] {
            assert_eq!(select(text), Err(Unsupported), "{text}");
        }
    }
}
