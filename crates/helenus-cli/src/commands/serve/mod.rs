//! `helenus serve`: runs the server.
//!
//! `run` opens the database and then the listeners, `in_process` does so for a tool, `control` gives the admin socket control of them, `disk` measures the usage of the disk, `front` is what a move switches
//! between database and cluster, `gateway` serves a cluster instead of a database, `gateway_settings` refuses settings that it does not keep, `init` prepares an
//! empty database, `messages` writes messages and the log, `rpc` is the old RPC interface of a server, `shutdown` waits for the end, `resources` checks what the system gives, `tls` reads keys and
//! certificates.

mod control;
mod disk;
mod front;
mod gateway;
mod gateway_settings;
mod in_process;
mod init;
mod messages;
mod resources;
mod rpc;
mod run;
mod shutdown;
mod tls;

pub use in_process::{InProcess, Source};
pub use run::{command, outward_address, run};
