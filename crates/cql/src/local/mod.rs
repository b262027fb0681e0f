//! The local engine as a `Backend`.
//!
//! `backend` runs statements, `writing` runs writes, `explain` explains statements, `explain_first` those that read
//! before they write. `statements` caches analysed statements, `engine_error` maps the engine's errors to those that
//! clients see, `consistency` checks consistency levels. `import` imports SSTables with their schema, which
//! `schema_text` reads and writes and `schema_seal` protects with a digest; `restore` restores an export, under
//! `new_names` if requested. `identity` computes the ids of statements, `tuning` has the options that may change at run
//! time.

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
