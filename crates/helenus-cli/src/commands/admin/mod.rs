//! `helenus admin`: nodetool's verbs for a running server on this machine, through its admin socket.
//!
//! `command` defines the verbs of the command line, and `run` dispatches each verb to its file: `node` (facts about the
//! server), `tables` and `histograms` (statistics of tables), `clients`, `pools` (threads and memory), `compactions`,
//! `snapshots`, `maintenance` (changes of files), `paths`, `timeouts`, `clocks`, `passwords`, `overview` (a summary), `outgrow` (when the
//! machine will be too small). `absent`
//! answers the verbs that mean nothing on one machine, `single_node` those of them that a healthy node answers in the container image, `nodetool_options` has the options that need words. `requests` sends requests to the server, and `layout` prints in
//! nodetool's layout.
//!
//! The layouts follow the output of nodetool of Cassandra 5.0.9, and its classes `TableBuilder`, `TableStatsPrinter`
//! and similar ones.

mod absent;
mod audit;
mod clients;
mod clocks;
mod command;
mod compactions;
mod histograms;
mod layout;
mod maintenance;
mod networks;
mod node;
mod nodetool_options;
mod outgrow;
mod overview;
mod passwords;
mod paths;
mod pools;
mod requests;
mod run;
mod single_node;
mod snapshots;
mod tables;
mod timeouts;

pub use command::command;
pub use nodetool_options::with_long_options;
pub use requests::{run_job_on, unexpected};
pub use run::{run, run_as_node};
