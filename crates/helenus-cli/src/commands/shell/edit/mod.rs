//! The interactive shell: a prompt, and a line editor with history, completion and colours.

mod assist;
mod complete;
mod history;
mod interactive;
mod keywords;

pub use interactive::run_interactive;
