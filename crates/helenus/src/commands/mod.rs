//! The commands of the binary. Each is thin: it reads its flags, calls a library, and prints.

pub mod admin;
pub mod cli;
mod client;
pub mod profile;
pub mod serve;
pub mod stress;
