//! What every interface with logins shares, whoever checks the password: the token that clients send, and the delays after
//! failed logins, and the turns of logins that wait to be checked.
//!
//! `cql` and `server` use it for the roles of the local database, `gateway` for those of a cluster.
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod attempts;
mod network;
mod sasl;
mod turns;

pub use attempts::{Attempts, Room, Standing, TryLater, client_key};
pub use network::network_of;
pub use sasl::sasl_plain;
pub use turns::{Displaced, OF_ADDRESS_MAX, Turns, WAITING_MAX};

/// The text for a client whose login finds no room.
pub const TOO_MANY_LOGINS: &str = "Too many logins wait; try again later";
