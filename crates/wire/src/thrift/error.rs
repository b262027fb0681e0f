//! The errors of decoding Thrift messages.

use thiserror::Error;

/// Why bytes are not a message, or not the expected struct.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ThriftError {
    /// The bytes end within a value. A reader of a stream waits for more; in a complete message it means damage.
    #[error("The message ends too early")]
    Short,
    /// A frame states a greater length than is allowed.
    #[error("Frame of {bytes} bytes, which is longer than the maximum of {max}")]
    FrameTooLong {
        /// The stated length.
        bytes: u64,
        /// The greatest length.
        max: u64,
    },
    /// A message without a frame exceeds the allowed length.
    #[error("Message longer than the maximum of {max} bytes")]
    MessageTooLong {
        /// The greatest length.
        max: u64,
    },
    /// A length or count is negative, or greater than the rest of the message can hold.
    #[error("Length of {0} in a message that has no room for it")]
    Length(i32),
    /// Structs or containers are nested too deeply.
    #[error("Structs nested deeper than {0}")]
    TooDeep(usize),
    /// A type code that the protocol does not have.
    #[error("Unknown type {0}")]
    UnknownType(u8),
    /// The first bytes begin neither a frame nor a message.
    #[error("Not a Thrift message")]
    NotAMessage,
    /// A version of the protocol other than 1.
    #[error("Bad version in readMessageBegin")]
    Version,
    /// A name or text is not UTF-8.
    #[error("Text that is not UTF-8")]
    Text,
    /// A number is not in its enumeration.
    #[error("No {name} has the number {number}")]
    Enumeration {
        /// The enumeration.
        name: &'static str,
        /// The number.
        number: i32,
    },
    /// A required field is missing.
    #[error("Required field '{field}' was not present! Struct: {of}")]
    Missing {
        /// The field.
        field: &'static str,
        /// Its struct.
        of: &'static str,
    },
}
