//! The local engine as a `Backend`.
//!
//! `backend` runs statements, `writing` those that write, `explain` explains them, `explain_first` those that read before they write,
//! `statements` keeps analysed ones, `engine_error` turns the
//! engine's errors into those that clients see, `consistency` says which levels go with what, `import` takes SSTables in with
//! their schema, which `schema_text` reads and writes, `identity` computes the
//! ids of statements.

mod backend;
mod consistency;
mod engine_error;
mod explain;
mod explain_first;
mod guarding;
mod identity;
mod import;
mod options;
mod schema_text;
mod statements;
#[cfg(test)]
mod tests;
mod trace;
mod writing;

pub use backend::LocalBackend;
pub use import::{ImportReport, ImportRequest};
pub use options::LocalOptions;
