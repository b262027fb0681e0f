//! `helenus serve`: runs the server.
//!
//! `run` opens the database and then the listeners, `control` gives the admin socket control of them, `init` prepares an
//! empty database, `messages` writes messages and the log, `shutdown` waits for the end, `tls` reads keys and
//! certificates.

mod control;
mod init;
mod messages;
mod run;
mod shutdown;
mod tls;

pub use run::{command, outward_address, run};
