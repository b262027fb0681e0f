//! What the bytes between programs are: the native protocol, both halves, without sockets.
//!
//! The server decodes requests and encodes responses, a client does the reverse; both halves live side by side so that
//! each layout is written down once and tests meet themselves in the middle. Nothing here reads a socket, a clock or a
//! file, nothing panics on foreign bytes, and no length is believed before the bytes behind it have been seen.
#![warn(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod error;
mod error_text;
pub mod native;
mod room;
pub mod thrift;

pub use error::{SegmentPart, WireError};
pub use error_text::error_text;
pub use room::{Room, append};
