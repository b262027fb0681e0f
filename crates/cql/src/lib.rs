//! CQL: syntax, analysis, plans and execution of statements.

pub mod analysis;
pub mod backend;
mod error;
pub mod functions;
pub mod guardrails;
mod json;
mod local;
pub(crate) mod plan;
mod super_family;
pub mod syntax;
pub mod virtual_table;
pub mod work;

pub use error::{CqlError, Result};
pub use local::{
    ImportReport, ImportRequest, LocalBackend, LocalOptions, NewNames, RestoreJournal, RestorePart,
    RestoreRequest, seal_schema, unseal_schema,
};
pub use plan::batch::BatchLimits;
pub use plan::ddl::check_index;
