//! `helenus serve`: `run` opens the database and then the listeners, `doors` gives the admin socket control of them,
//! `says` writes messages and the log, `ending` waits for the end.

mod control;
mod messages;
mod run;
mod shutdown;

pub use run::{command, run};
