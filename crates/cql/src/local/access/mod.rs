//! Access: who may log in, and who may do what. The tables of `system_auth` keep it as Cassandra's do.
//!
//! `options` says which of Cassandra's authenticators and authorizers the server has; `state` holds the options and caches.
//! `roles`, `grants` and `store` read and change the tables through ordinary statements. `passwords` hashes passwords and
//! `logins` checks them; `attempts` counts the failures. `certificates` logs in by what TLS has checked.
//! `authorize` checks before a statement runs that its role has what it needs. `role_statements`, `permission_statements` and
//! `listing` run the statements about roles and permissions.
//!
//! Source: the package `org.apache.cassandra.auth` and the statements of `org.apache.cassandra.cql3.statements` that
//! extend `AuthenticationStatement` and `AuthorizationStatement`.

mod attempts;
mod authorize;
mod cache;
mod certificates;
mod grants;
mod listing;
mod logins;
mod options;
mod passwords;
mod permission_statements;
mod role_statements;
mod roles;
mod state;
mod store;

pub(super) use authorize::Sight;
pub use logins::{FirstLogin, sasl_plain};
pub use options::{AccessOptions, Authenticator, Authorizer, CertificateValidator};
pub(crate) use state::Access;
