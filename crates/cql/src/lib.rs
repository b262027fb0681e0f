//! CQL: syntax, analysis, plans and execution of statements.

pub mod analysis;
mod answer;
pub mod audit;
pub mod backend;
pub mod budget;
pub mod changes;
mod cost;
mod error;
pub mod functions;
pub mod guardrails;
mod index_terms;
mod json;
mod key_text;
mod local;
pub(crate) mod plan;
mod request;
mod scope;
mod shown_value;
mod statement_id;
mod super_family;
pub mod syntax;
mod time_uuid;
pub mod virtual_table;

pub use error::{CqlError, Result};
pub use key_text::partition_key_text;
pub use local::{
    AccessOptions, Authenticator, Authorizer, CertificateValidator, CidrAuthorizer, CidrCounts, FirstLogin,
    GivenPassword, ImportReport, ImportRequest, LIMITS_OF, LocalBackend, LocalOptions, NetworkAuthorizer,
    OwnLogin, PASSWORD_COSTS, Renames, RestoreJournal, RestorePart, RestoreRequest, add_schema_digest,
    check_schema_digest, sasl_plain,
};
pub use plan::batch::BatchLimits;
pub use plan::ddl::check_index;
pub use plan::explain::{bytes_text, counted};
