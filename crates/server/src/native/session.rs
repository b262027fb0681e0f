//! The protocol state of a connection: its version and stage, and the requests that never reach the backend.
//!
//! The rules are those of `InitialConnectionHandler` (until a STARTUP arrives), `ServerConnection.validateNewMessage` and
//! `StartupMessage.execute`.

use std::sync::Arc;

use helenus_cql::backend::Identity;
use helenus_wire::WireError;
use helenus_wire::native::{
    Compression, ErrorCode, ErrorMessage, EventTypes, Opcode, Outgoing, Startup, Version,
};

/// The CQL version that Cassandra 5.0.9 reports (`QueryProcessor.CQL_VERSION`).
pub(super) const CQL_VERSION: &str = helenus_wire::native::SUPPORTED_CQL;

/// The stage of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No STARTUP has arrived yet. Any request but it and OPTIONS is refused and ends the connection.
    Initial,
    /// A STARTUP arrived and was refused; another may follow.
    Established,
    /// STARTUP was answered with AUTHENTICATE, and the client has not logged in yet.
    Authenticating,
    /// Requests are accepted.
    Ready,
}

/// The state of a connection that its requests read and change.
pub(super) struct Session {
    pub stage: Stage,
    /// Fixed by the first STARTUP.
    pub version: Option<Version>,
    /// Compression of bodies (v3, v4) or segments (v5).
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

    /// Refuses a request that is not allowed at this stage. A request before the login is refused whatever it is.
    pub fn admit(&self, opcode: Opcode) -> Result<(), ErrorMessage> {
        let beginning = matches!(opcode, Opcode::Startup | Opcode::Options);
        let text = match self.stage {
            Stage::Initial | Stage::Established if !beginning => {
                format!("Unexpected message {opcode}, expecting STARTUP or OPTIONS")
            }
            Stage::Authenticating if opcode != Opcode::AuthResponse => {
                format!("Unexpected message {opcode}, expecting SASL_RESPONSE")
            }
            Stage::Ready if opcode == Opcode::Startup => {
                "Unexpected message STARTUP, the connection is already initialized".to_owned()
            }
            Stage::Initial | Stage::Established | Stage::Authenticating | Stage::Ready => return Ok(()),
        };
        Err(ErrorMessage::plain(ErrorCode::Protocol, text))
    }

    /// Applies a STARTUP. `authenticator` is the class by which the client must log in, if it must.
    pub fn start(
        &mut self,
        startup: &Startup<'_>,
        version: Version,
        authenticator: Option<&'static str>,
    ) -> Result<Outgoing<'static>, WireError> {
        self.compression = startup.check(version)?;
        self.throws_on_overload |= startup.throws_on_overload();
        match authenticator {
            Some(class) => {
                self.stage = Stage::Authenticating;
                Ok(Outgoing::Authenticate(class))
            }
            None => {
                self.stage = Stage::Ready;
                Ok(Outgoing::Ready)
            }
        }
    }

    /// Takes the identity of a login that succeeded.
    pub fn logged_in(&mut self, identity: Identity) {
        self.identity = identity;
        self.stage = Stage::Ready;
    }

    /// The compression of envelope bodies: none in v5, where segments are compressed.
    pub fn body_compression(&self) -> Option<Compression> {
        self.compression.filter(|_| self.version < Some(Version::V5))
    }
}
