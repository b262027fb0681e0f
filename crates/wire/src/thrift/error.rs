//! What can be wrong with the bytes of a Thrift message.

use thiserror::Error;

/// Why bytes are not a message, or not the struct that they should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ThriftError {
    /// The bytes end within a value. A reader of a stream waits for more; in a whole message it is damage.
    #[error("The message ends too early")]
    Short,
    /// A frame announces more than is taken.
    #[error("Frame of {bytes} bytes, which is longer than the maximum of {max}")]
    FrameTooLong {
        /// Its length.
        bytes: u64,
        /// What is taken.
        max: u64,
    },
    /// A message without frame that is longer than is taken.
    #[error("Message longer than the maximum of {max} bytes")]
    MessageTooLong {
        /// What is taken.
        max: u64,
    },
    /// A length or count below zero, or larger than what is left of the message can hold.
    #[error("Length of {0} in a message that has no room for it")]
    Length(i32),
    /// Structs or containers within one another, too many.
    #[error("Structs nested deeper than {0}")]
    TooDeep(usize),
    /// A type code that the protocol does not have.
    #[error("Unknown type {0}")]
    UnknownType(u8),
    /// The first bytes are neither a frame nor a message.
    #[error("Not a Thrift message")]
    NotAMessage,
    /// A version of the protocol other than 1.
    #[error("Bad version in readMessageBegin")]
    Version,
    /// A name or text that is not UTF-8.
    #[error("Text that is not UTF-8")]
    Text,
    /// A number that its enumeration does not have.
    #[error("No {name} has the number {number}")]
    Enumeration {
        /// The enumeration.
        name: &'static str,
        /// The number.
        number: i32,
    },
    /// A field that must be there is not.
    #[error("Required field '{field}' was not present! Struct: {of}")]
    Missing {
        /// The field.
        field: &'static str,
        /// Its struct.
        of: &'static str,
    },
}
