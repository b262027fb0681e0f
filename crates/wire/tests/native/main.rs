//! The native protocol from outside: both halves against each other, against another implementation, and against
//! arbitrary bytes.
#![allow(clippy::unwrap_used, reason = "a test ends where its expectation does")]

mod hostile;
mod live;
mod oracle;
mod refusals;
mod requests;
mod responses;
mod samples;
