//! TLS on the servers' sockets. Settings, keys and certificates are in `helenus_tls`.
//!
//! `handshakes` decides by the first byte of a connection whether it is encrypted, and does the handshakes on a thread of
//! their own; `stream` is a connection in the clear or encrypted, for the event loops.

mod handshakes;
mod stream;

pub(crate) use handshakes::{Candidate, Handshakes, Refusal, secure};
pub(crate) use stream::{Secured, ServerStream};
