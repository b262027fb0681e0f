//! The shell as a person meets it: a prompt, a line editor with history, completion and colours.

mod assist;
mod complete;
mod converse;
mod history;
mod words;

pub use converse::converse;
