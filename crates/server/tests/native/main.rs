//! The native protocol's server over real sockets, with a backend of canned answers.

mod before_login;
mod canned;
mod client;
mod flow;
mod hand_over;
mod handshake;
mod hostile;
mod panics;
mod prepared;
mod results;
