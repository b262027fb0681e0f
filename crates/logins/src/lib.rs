//! What every interface with logins shares, whoever checks the password: the token that clients send, and the delays after
//! failed logins.
//!
//! `cql` uses it for the roles of the local database, `gateway` for those of a cluster.
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where its expectation does")
)]

mod attempts;
mod sasl;

pub use attempts::{Attempts, TryLater, client_key};
pub use sasl::sasl_plain;
