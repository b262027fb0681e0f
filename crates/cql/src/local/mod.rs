//! The local engine as a `Backend`.
//!
//! `backend` runs statements, `writing` those that write, `explain` explains them, `explain_first` those that read before they write,
//! `statements` keeps analysed ones, `engine_error` turns the
//! engine's errors into those that clients see, `consistency` says which levels go with what, `import` takes SSTables in with
//! their schema, which `schema_text` reads and writes and `schema_seal` keeps from damage, `restore` takes back what an export holds, under `new_names` if need be, `identity` computes the
//! ids of statements, `tuning` is what may change while statements run.

mod backend;
mod consistency;
mod engine_error;
mod explain;
mod explain_first;
mod guarding;
mod identity;
mod import;
mod living;
mod new_names;
mod options;
mod prepared_table;
mod restore;
mod schema_comment;
mod schema_seal;
mod schema_text;
mod statements;
#[cfg(test)]
mod tests;
mod trace;
mod tuning;
mod writing;

pub use backend::LocalBackend;
pub use import::{ImportReport, ImportRequest};
pub use new_names::NewNames;
pub use options::LocalOptions;
pub use restore::{RestoreJournal, RestorePart, RestoreRequest};
pub use schema_seal::{seal_schema, unseal_schema};
