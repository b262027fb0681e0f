//! `helenus move`: moves tables to a cluster of Apache Cassandra.
//!
//! The server does the work: `command` has the options, asks the server and prints, `verbs` is the server's end, `show` words, `verify`
//! waits for a comparison.

mod command;
mod show;
mod verbs;
mod verify;

pub use command::{MoveCommand, run};
pub use verbs::{TOOL, verbs};
