//! Access: who may log in, and who may do what. The tables of `system_auth` keep it as Cassandra's do.
//!
//! `options` says which of Cassandra's authenticators and authorizers the server has. `roles`, `grants` and `store`
//! read and change the tables through ordinary statements. `passwords` hashes passwords and `logins` checks them.
//! `authorize` names what each kind of statement needs and checks it before the statement runs. `statement` is the owned
//! form of a statement about roles or permissions; `role_statements`, `permission_statements` and `listing` run it.
//!
//! Source: the package `org.apache.cassandra.auth` and the statements of `org.apache.cassandra.cql3.statements` that
//! extend `AuthenticationStatement` and `AuthorizationStatement`.

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
mod statement;
mod store;

pub(crate) use authorize::{Need, needs};
pub use logins::FirstLogin;
pub use options::{AccessOptions, Authenticator, Authorizer};
pub(crate) use statement::AccessStatement;

use cache::Cache;
use grants::Grants;
use helenus_engine::Database;
use parking_lot::Mutex;
use roles::RoleSet;

/// The state of access control: its options, and caches of what its tables say.
pub(crate) struct Access {
    options: AccessOptions,
    /// The roles of a role by its name.
    roles: Cache<RoleSet>,
    /// The permissions of a role by its name.
    grants: Cache<Grants>,
    /// The hash of a role's password by the role's name.
    credentials: Cache<String>,
    /// Held by a statement that changes roles or permissions, because it depends on what it has read.
    changing: Mutex<()>,
}

impl Access {
    pub(crate) fn new(options: AccessOptions) -> Access {
        Access {
            roles: Cache::new(options.roles_validity),
            grants: Cache::new(options.permissions_validity),
            credentials: Cache::new(options.credentials_validity),
            changing: Mutex::default(),
            options,
        }
    }

    /// Whether clients have to log in. Without logins everybody may do everything.
    #[inline]
    pub(crate) fn has_logins(&self) -> bool {
        self.options.authenticator != Authenticator::AllowAll
    }

    /// The full name of the authenticator's class, if clients have to log in.
    pub(crate) fn authenticator(&self) -> Option<&'static str> {
        self.has_logins().then(|| self.options.authenticator.class())
    }

    /// Whether permissions count.
    pub(crate) fn has_permissions(&self) -> bool {
        self.options.authorizer != Authorizer::AllowAll
    }

    /// Forgets everything that was read, after a change.
    fn forget(&self) {
        self.roles.clear();
        self.grants.clear();
        self.credentials.clear();
    }
}

/// The clock of the caches.
fn now_ns(database: &Database) -> u64 {
    database.host().clock.monotonic_ns()
}
