//! The fields of an envelope's header: protocol versions, directions, opcodes and flags.

use std::fmt;

use crate::WireError;

/// The versions that Cassandra 5.0.9 lists in refusals and in SUPPORTED (its `ProtocolVersion`). Version 6 is listed
/// because drivers read the list, although it is refused here.
pub const SUPPORTED_VERSIONS: [&str; 4] = ["3/v3", "4/v4", "5/v5", "6/v6-beta"];

/// The version of CQL that the answer to OPTIONS names (`QueryProcessor.CQL_VERSION`).
pub const SUPPORTED_CQL: &str = "3.4.7";

/// [`SUPPORTED_VERSIONS`] as listed in refusals.
pub const SUPPORTED_VERSIONS_TEXT: &str = "3/v3, 4/v4, 5/v5, 6/v6-beta";

/// A supported version of the native protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Version {
    /// Since Cassandra 2.1.
    V3 = 3,
    /// Since Cassandra 2.2: warnings, custom payloads, unset values.
    V4 = 4,
    /// Since Cassandra 4.0: segments with checksums, keyspace per request, result metadata ids.
    V5 = 5,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Version; 3] = [Version::V3, Version::V4, Version::V5];

    /// The version of answers on a connection that has none yet (Cassandra's `CURRENT`).
    pub const CURRENT: Version = Version::V5;

    /// Parses the low seven bits of a header's first byte. `beta`: whether the USE_BETA flag is set, which Cassandra
    /// requires for version 6, and which changes the text of the refusal.
    pub fn from_number(number: u8, beta: bool) -> Result<Version, WireError> {
        match number {
            3 => Ok(Version::V3),
            4 => Ok(Version::V4),
            5 => Ok(Version::V5),
            6 if !beta => Err(WireError::BetaVersion),
            version => Err(WireError::UnsupportedVersion { version }),
        }
    }

    /// The version's number in the header, without the direction bit.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{0}/v{0}", self.number())
    }
}

/// The sending side: the top bit of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From a client.
    Request,
    /// From a server.
    Response,
}

impl Direction {
    /// The opposite direction.
    pub fn other(self) -> Direction {
        match self {
            Direction::Request => Direction::Response,
            Direction::Response => Direction::Request,
        }
    }

    /// The bit this direction sets in the version byte.
    pub fn bit(self) -> u8 {
        match self {
            Direction::Request => 0,
            Direction::Response => 0x80,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Request => "REQUEST",
            Direction::Response => "RESPONSE",
        })
    }
}

macro_rules! opcodes {
    ($($variant:ident = $code:literal, $direction:ident, $text:literal;)*) => {
        /// The kind of a message. The numbers are the protocol's; `Display` prints the name in Cassandra's
        /// `Message.Type`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Opcode {
            $(#[doc = $text] $variant = $code,)*
        }

        impl Opcode {
            /// All opcodes, in order.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)*];

            /// The side that sends this message.
            pub fn direction(self) -> Direction {
                match self {
                    $(Opcode::$variant => Direction::$direction,)*
                }
            }

            /// The opcode with a number.
            pub fn from_byte(byte: u8) -> Result<Opcode, WireError> {
                match byte {
                    $($code => Ok(Opcode::$variant),)*
                    opcode => Err(WireError::UnknownOpcode { opcode }),
                }
            }
        }

        impl fmt::Display for Opcode {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Opcode::$variant => $text,)*
                })
            }
        }
    };
}

opcodes! {
    Error = 0x00, Response, "ERROR";
    Startup = 0x01, Request, "STARTUP";
    Ready = 0x02, Response, "READY";
    Authenticate = 0x03, Response, "AUTHENTICATE";
    Credentials = 0x04, Request, "CREDENTIALS";
    Options = 0x05, Request, "OPTIONS";
    Supported = 0x06, Response, "SUPPORTED";
    Query = 0x07, Request, "QUERY";
    Result = 0x08, Response, "RESULT";
    Prepare = 0x09, Request, "PREPARE";
    Execute = 0x0A, Request, "EXECUTE";
    Register = 0x0B, Request, "REGISTER";
    Event = 0x0C, Response, "EVENT";
    Batch = 0x0D, Request, "BATCH";
    AuthChallenge = 0x0E, Response, "AUTH_CHALLENGE";
    AuthResponse = 0x0F, Request, "AUTH_RESPONSE";
    AuthSuccess = 0x10, Response, "AUTH_SUCCESS";
}

/// The flags of an envelope. Unknown bits are kept and ignored, as in Cassandra.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// v3, v4: the body is compressed. v5 ignores it, because segments are compressed there.
    pub const COMPRESSED: u8 = 0x01;
    /// The request is to be traced; in a response, the body begins with a tracing id.
    pub const TRACING: u8 = 0x02;
    /// Since v4: a bytes map precedes the message.
    pub const CUSTOM_PAYLOAD: u8 = 0x04;
    /// Since v4, in responses: a list of warnings precedes the message.
    pub const WARNING: u8 = 0x08;
    /// The client accepts a beta version.
    pub const USE_BETA: u8 = 0x10;

    /// Whether all bits of `mask` are set.
    pub fn has(self, mask: u8) -> bool {
        self.0 & mask == mask
    }
}
