//! `helenus sstable`: what can be done with SSTables where they lie, without a server and without a schema.
//!
//! `found` turns arguments into SSTables, which are opened by their own headers; each command has a file of its own.

mod anew;
mod command;
mod dump;
mod found;
mod ls;
mod metadata;
mod partitions;
mod scrub;
mod verify;

pub use command::{command, run};
pub use found::Found;
