//! The interactive shell: a prompt, and a line editor with history, completion and colours.

mod assist;
mod complete;
mod converse;
mod history;
mod words;

pub use converse::converse;
