//! Protocol versions, directions, opcodes and the flags of an envelope: the vocabulary of the header.

use std::fmt;

use crate::WireError;

/// The versions that Cassandra 5.0.9 names in refusals and in SUPPORTED (its `ProtocolVersion`), version 6 included
/// although it is refused here: drivers read the list.
pub const SUPPORTED_VERSIONS: [&str; 4] = ["3/v3", "4/v4", "5/v5", "6/v6-beta"];

/// [`SUPPORTED_VERSIONS`] as the refusal lists them.
pub const SUPPORTED_VERSIONS_TEXT: &str = "3/v3, 4/v4, 5/v5, 6/v6-beta";

/// A version of the native protocol that this server speaks.
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

    /// The version answered when a connection has none yet (Cassandra's `CURRENT`).
    pub const CURRENT: Version = Version::V5;

    /// Reads the low seven bits of a header's first byte. `beta` says whether the USE_BETA flag is set, which Cassandra
    /// wants for version 6 and which changes the text of the refusal.
    pub fn from_number(number: u8, beta: bool) -> Result<Version, WireError> {
        match number {
            3 => Ok(Version::V3),
            4 => Ok(Version::V4),
            5 => Ok(Version::V5),
            6 if !beta => Err(WireError::BetaVersion),
            version => Err(WireError::UnsupportedVersion { version }),
        }
    }

    /// The version as the header's number, without direction bit.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{0}/v{0}", self.number())
    }
}

/// Who speaks: the top bit of the first byte.
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
        /// What a message is. The numbers are the protocol's; `Display` prints Cassandra's `Message.Type` name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Opcode {
            $(#[doc = $text] $variant = $code,)*
        }

        impl Opcode {
            /// Every opcode, in order.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)*];

            /// Which side sends this message.
            pub fn direction(self) -> Direction {
                match self {
                    $(Opcode::$variant => Direction::$direction,)*
                }
            }

            /// The opcode of a header.
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

/// The flags of an envelope. Unknown bits are kept and ignored, as Cassandra does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// v3, v4: the body is compressed. v5 ignores it: there the segment is compressed.
    pub const COMPRESSED: u8 = 0x01;
    /// A request to be traced; in a response, a tracing id stands first in the body.
    pub const TRACING: u8 = 0x02;
    /// v4 on: a bytes map stands before the message.
    pub const CUSTOM_PAYLOAD: u8 = 0x04;
    /// v4 on, responses: a list of warnings stands before the message.
    pub const WARNING: u8 = 0x08;
    /// The client takes a version marked beta.
    pub const USE_BETA: u8 = 0x10;

    /// Whether all bits of `mask` are set.
    pub fn has(self, mask: u8) -> bool {
        self.0 & mask == mask
    }
}
