//! The local engine as a `Backend`.
//!
//! `backend` runs statements, `writing` runs writes, `explain` explains statements, `explain_read_first` those that
//! read before they write, `trace` stores what a traced request did. `statements` caches analysed statements, which
//! `prepared_table` lists, and `statement_id` computes their ids. `engine_error` maps the engine's errors to those that
//! clients see, `consistency` checks consistency levels, `guardrail_checks` the guardrails. `options` has the options
//! of the start, `live_options` those that may change at run time. `import` imports SSTables with their schema;
//! `current_folders` selects the folder of a table that was created again under its name. `schema_text` reads and
//! writes schemas, `foreign_schema` knows what other versions and makers write into them, `schema_comment` reads compact tables from comments, `schema_digest` protects a schema with a
//! digest. `restore` restores an export, under `renames` if requested. `access` has logins, roles and permissions.

mod access;
mod backend;
mod consistency;
mod current_folders;
mod engine_error;
mod explain;
mod explain_read_first;
mod foreign_schema;
mod guardrail_checks;
mod import;
mod live_options;
mod options;
mod prepared_table;
mod renames;
mod restore;
mod schema_comment;
mod schema_digest;
mod schema_text;
mod statement_id;
mod statements;
#[cfg(test)]
mod tests;
mod trace;
mod writing;

pub use access::{
    AccessOptions, Authenticator, Authorizer, CertificateValidator, CidrAuthorizer, CidrCounts, FirstLogin,
    GivenPassword, LIMITS_OF, NetworkAuthorizer, OwnLogin, PASSWORD_COSTS, sasl_plain,
};
pub use backend::LocalBackend;
use backend::may_block;
pub use import::{ImportReport, ImportRequest};
pub use options::LocalOptions;
pub use renames::Renames;
pub use restore::{RestoreJournal, RestorePart, RestoreRequest};
pub use schema_digest::{add_schema_digest, check_schema_digest};
