//! Access: who may log in, and who may do what. The tables of `system_auth` keep it as Cassandra's do.
//!
//! `options` says which of Cassandra's authenticators and authorizers the server has; `state` holds the options and caches.
//! `roles`, `grants` and `store` read and change the tables through ordinary statements. `passwords` hashes passwords and
//! `logins` checks them; `attempts` counts the failures.
//! `authorize` names what each kind of statement needs and checks it before the statement runs. `statement` is the owned
//! form of a statement about roles or permissions; `role_statements`, `permission_statements` and `listing` run it.
//!
//! Source: the package `org.apache.cassandra.auth` and the statements of `org.apache.cassandra.cql3.statements` that
//! extend `AuthenticationStatement` and `AuthorizationStatement`.

mod attempts;
mod authorize;
mod cache;
mod grants;
mod listing;
mod logins;
mod options;
mod passwords;
mod permission_statements;
mod resource;
mod role_statements;
mod roles;
mod state;
mod statement;
mod store;

pub(crate) use authorize::{Need, needs};
pub use logins::{FirstLogin, LoginRefused};
pub use options::{AccessOptions, Authenticator, Authorizer};
pub(crate) use state::Access;
pub(crate) use statement::AccessStatement;
