//! The history of the server's own figures: a sample an hour, kept in the data directory.
//!
//! `sample` is one of them, `file` keeps them across restarts, and `recorder` takes them. `helenus admin outgrow` computes from
//! them when the machine will be too small.

mod file;
mod recorder;
mod sample;

pub(crate) use recorder::Recorder;
pub use sample::Sample;
