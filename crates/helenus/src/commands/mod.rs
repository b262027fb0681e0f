//! The commands of the binary. Each is thin: it reads its flags, calls a library, and prints.

pub mod admin;
#[cfg(feature = "analysis")]
mod analysis;
mod at;
pub mod cli;
mod client;
pub mod export;
pub mod import;
pub mod profile;
mod progress;
mod rewrite;
pub mod serve;
pub mod sstable;
pub mod stress;
mod watch;
