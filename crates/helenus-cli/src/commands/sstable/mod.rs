//! `helenus sstable`: works on SSTables directly, without a server and without a schema.
//!
//! `find` finds the SSTables that the arguments name. They are opened with their own headers. Each command has a file
//! of its own.

mod command;
mod dump;
mod find;
mod known_schema;
mod ls;
mod metadata;
mod names;
mod partitions;
mod scrub;
mod upgrade_split;
mod verify;

pub use command::{command, run};
pub use find::Found;
pub use known_schema::KnownSchema;
