//! The state of a client's connection that one server of the protocol hands over to another, in the midst of its stream.

use std::sync::Arc;

use super::{Compression, EventTypes, Refusal, SegmentReader, Version};

/// A connection between two requests: every request that was begun has its answer, and the rest is not served yet.
#[derive(Debug, Default)]
pub struct HandedOver {
    /// What STARTUP has fixed, and what requests have set since; `None` before STARTUP.
    pub agreed: Option<Agreed>,
    /// Answers and events that the client has not taken yet, framed as they go to the socket.
    pub unsent: Vec<u8>,
    /// What the client has sent and nobody has served.
    pub unserved: UnservedInput,
}

/// The protocol state of a connection after STARTUP.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// The version.
    pub version: Version,
    /// Compression of bodies (v3, v4) or segments (v5).
    pub compression: Option<Compression>,
    /// The keyspace in use.
    pub keyspace: Option<Arc<str>>,
    /// The events that the client has registered for.
    pub events: EventTypes,
}

/// Input that was read from the socket and not served. Its parts are served in the order of the fields.
#[derive(Debug, Default)]
pub struct UnservedInput {
    /// Complete envelopes out of a segment that was read (v5).
    pub envelopes: Vec<u8>,
    /// The bytes of a refused frame that are still to be dropped, and the refusal that is sent after them.
    pub skip: Option<(u64, Refusal)>,
    /// The reader of segments (v5), which may hold the beginning of a long message.
    pub segments: Option<Box<SegmentReader>>,
    /// Bytes as they came from the socket.
    pub bytes: Vec<u8>,
}
