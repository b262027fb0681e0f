//! Access: who may log in, and who may do what. The tables of `system_auth` keep it as Cassandra's do.
//!
//! `options` says which of Cassandra's authenticators and authorizers the server has; `state` holds the options and caches.
//! `roles`, `grants` and `store` read and change the tables through ordinary statements. `passwords` hashes passwords and
//! `logins` checks them. `certificates` logs in by what TLS has checked,
//! `own_login` is for scripts that the server runs itself.
//! `role_limits` has the limits of roles, and `role_table` shows them. `left_of_roles` deletes what an earlier role has left.
//! `authorize` checks before a statement runs that its role has what it needs, and `reach` that it may use the server from where
//! its client is, by the groups of networks of `cidr`. `role_statements`, `permission_statements` and
//! `listing` run the statements about roles and permissions.
//!
//! Source: the package `org.apache.cassandra.auth` and the statements of `org.apache.cassandra.cql3.statements` that
//! extend `AuthenticationStatement` and `AuthorizationStatement`.

mod authorize;
mod cache;
mod certificates;
mod cidr;
mod grants;
mod left_of_roles;
mod listing;
mod logins;
mod options;
mod own_login;
mod passwords;
mod permission_statements;
mod reach;
mod role_limits;
mod role_statements;
mod role_table;
mod roles;
mod state;
mod store;

pub(super) use authorize::Sight;
pub use logins::{FirstLogin, GivenPassword, sasl_plain};
pub use options::{
    AccessOptions, Authenticator, Authorizer, CertificateValidator, CidrAuthorizer, NetworkAuthorizer,
};
pub use own_login::OwnLogin;
pub use passwords::PASSWORD_COSTS;
pub use reach::CidrCounts;
pub use role_limits::LIMITS_OF;
pub(super) use role_table::role_limits_table;
pub(crate) use state::Access;
