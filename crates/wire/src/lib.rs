//! Encodes and decodes the native protocol and the old Thrift interface, for servers and clients, without sockets.
//!
//! The server decodes requests and encodes responses; a client does the reverse. Both halves are in the same crate, so
//! that each layout is written once and tests can run one against the other. Nothing here reads a socket, a clock or a
//! file. Foreign bytes cause no panic, and no length is trusted before the bytes it counts have arrived.
#![warn(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod append;
mod error_text;
pub mod native;
pub mod thrift;

pub use append::{ReservedSpace, append};
pub use error_text::error_text;
pub use native::{SegmentPart, WireError};
