//! What a connection is in the protocol's eyes: its version and stage, and the requests that never reach the backend.
//!
//! The rules are those of `InitialConnectionHandler` (until a STARTUP arrives), `ServerConnection.validateNewMessage` and
//! `StartupMessage.execute`.

use std::sync::Arc;

use helenus_cql::backend::Identity;
use helenus_wire::WireError;
use helenus_wire::native::{
    Compression, ErrorCode, ErrorMessage, EventTypes, Opcode, Outgoing, Startup, Version,
};

/// The CQL version that Cassandra 5.0.9 names (`QueryProcessor.CQL_VERSION`).
pub(super) const CQL_VERSION: &str = "3.4.7";

/// How far a connection has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No STARTUP has come yet: anything but it and OPTIONS is refused, and ends the connection.
    Initial,
    /// A STARTUP came and was refused; another may follow.
    Established,
    /// Requests are taken.
    Ready,
}

/// The state of one connection that requests read and change.
pub(super) struct Session {
    pub stage: Stage,
    /// Fixed by the first STARTUP.
    pub version: Option<Version>,
    /// Of bodies (v3, v4) or segments (v5).
    pub compression: Option<Compression>,
    pub throws_on_overload: bool,
    pub keyspace: Option<Arc<str>>,
    pub identity: Identity,
    pub events: EventTypes,
}

impl Session {
    pub fn new(throws_on_overload: bool) -> Session {
        Session {
            stage: Stage::Initial,
            version: None,
            compression: None,
            throws_on_overload,
            keyspace: None,
            identity: Identity::default(),
            events: EventTypes::default(),
        }
    }

    /// Refuses a request that must not come at this stage.
    pub fn admit(&self, opcode: Opcode) -> Result<(), ErrorMessage> {
        let beginning = matches!(opcode, Opcode::Startup | Opcode::Options);
        let text = match self.stage {
            Stage::Initial | Stage::Established if !beginning => {
                format!("Unexpected message {opcode}, expecting STARTUP or OPTIONS")
            }
            Stage::Ready if opcode == Opcode::Startup => {
                "Unexpected message STARTUP, the connection is already initialized".to_owned()
            }
            Stage::Initial | Stage::Established | Stage::Ready => return Ok(()),
        };
        Err(ErrorMessage::plain(ErrorCode::Protocol, text))
    }

    /// Obeys a STARTUP.
    pub fn start(&mut self, startup: &Startup<'_>, version: Version) -> Result<Outgoing<'static>, WireError> {
        self.compression = startup.check(version)?;
        self.throws_on_overload |= startup.throws_on_overload();
        self.stage = Stage::Ready;
        Ok(Outgoing::Ready)
    }

    /// Compression of envelope bodies: none in v5, where segments are compressed.
    pub fn body_compression(&self) -> Option<Compression> {
        self.compression.filter(|_| self.version < Some(Version::V5))
    }
}
