//! `helenus pull`: copies tables of a cluster into a database here.
//!
//! A running server does the work, or this process on a directory that no server has open: `command` has the options and waits, `verbs`
//! is the server's end, `show` prints.

mod command;
mod show;
mod verbs;

pub use command::{PullCommand, run};
pub use verbs::{TOOL, verbs};
