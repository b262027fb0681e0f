//! `helenus admin`: nodetool's verbs for a running server on this machine, through its admin socket.
//!
//! `command` is the table of verbs as the command line sees it, `run` sends each to its file: `node` (who the server is),
//! `tables` and `histograms` (what is known of tables), `pools` (threads and memory), `compactions`, `snapshots`, `upkeep` (what
//! changes files), `clocks`, `overview` (everything at a glance). `absent` answers for the verbs that mean nothing on one machine.
//! `asking` talks to the server, `layout` prints as nodetool does.
//!
//! Layouts are those that Cassandra 5.0.9's nodetool printed, and its `TableBuilder`, `TableStatsPrinter` and their kin.

mod absent;
mod asking;
mod clients;
mod clocks;
mod command;
mod compactions;
mod histograms;
mod layout;
mod node;
mod overview;
mod paths;
mod pools;
mod run;
mod snapshots;
mod tables;
mod timeouts;
mod upkeep;

pub use asking::{follow, unexpected};
pub use command::command;
pub use run::run;
