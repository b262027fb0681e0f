//! `helenus move`: moves tables to a cluster of Apache Cassandra.
//!
//! The server does the work: `command` has the options, asks the server and prints, `verbs` is the server's end, `show` words.

mod command;
mod show;
mod verbs;

pub use command::{MoveCommand, run};
pub use verbs::{TOOL, verbs};
