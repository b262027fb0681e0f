//! `helenus serve`: `run` opens the database, then its doors; `doors` is what the admin socket knows of them, `says` tells, `ending` waits for the end.

mod doors;
mod ending;
mod run;
mod says;

pub use run::{command, run};
