//! The state of access control: its options, and caches of what the tables of `system_auth` say.

use super::cache::Cache;
use super::grants::Grants;
use super::options::{AccessOptions, Authenticator, Authorizer, CidrAuthorizer, NetworkAuthorizer};
use super::reach::{Networks, Reach};
use super::roles::RoleSet;
use helenus_engine::Database;
use helenus_logins::Attempts;
use parking_lot::Mutex;

/// The state of access control: its options, and caches of what its tables say.
pub(crate) struct Access {
    pub(super) options: AccessOptions,
    /// The roles of a role by its name.
    pub(super) roles: Cache<RoleSet>,
    /// The permissions of a role by its name.
    pub(super) grants: Cache<Grants>,
    /// From where a role has access, by its name.
    pub(super) reaches: Cache<Reach>,
    /// The groups of networks.
    pub(super) networks: Networks,
    /// The hash of a role's password by the role's name.
    pub(super) credentials: Cache<String>,
    /// The role of an identity by the identity.
    pub(super) identities: Cache<Box<str>>,
    /// The failed logins of clients.
    pub(super) attempts: Attempts,
    /// The hash of the default role's password, and whether it is that of the default password.
    pub(super) default_checked: Mutex<Option<(String, bool)>>,
    /// The password of programs that the server itself runs, while it does.
    pub(super) own_password: Mutex<Option<String>>,
    /// Held by a statement that changes roles or permissions, because it depends on what it has read.
    pub(super) changing: Mutex<()>,
}

impl Access {
    pub(crate) fn new(options: AccessOptions) -> Access {
        Access {
            roles: Cache::new(options.roles_validity),
            grants: Cache::new(options.permissions_validity),
            reaches: Cache::new(options.permissions_validity),
            networks: Networks::default(),
            credentials: Cache::new(options.credentials_validity),
            identities: Cache::new(options.credentials_validity),
            attempts: Attempts::default(),
            default_checked: Mutex::default(),
            own_password: Mutex::default(),
            changing: Mutex::default(),
            options,
        }
    }

    /// Whether clients have to log in. Without logins everybody may do everything.
    #[inline]
    pub(crate) fn has_logins(&self) -> bool {
        self.options.authenticator != Authenticator::AllowAll
    }

    /// Whether clients may log in by name and password.
    pub(crate) fn takes_passwords(&self) -> bool {
        self.options.authenticator.takes_passwords()
    }

    /// The full name of the authenticator's class, if clients have to log in.
    pub(crate) fn authenticator(&self) -> Option<&'static str> {
        self.has_logins().then(|| self.options.authenticator.class())
    }

    /// Whether roles may be limited to datacenters or networks.
    #[inline]
    pub(super) fn has_limits(&self) -> bool {
        self.options.network != NetworkAuthorizer::AllowAll || self.options.cidr != CidrAuthorizer::AllowAll
    }

    /// Whether permissions count.
    pub(crate) fn has_permissions(&self) -> bool {
        self.options.authorizer != Authorizer::AllowAll
    }

    /// Forgets everything that was read, after a change.
    pub(super) fn forget(&self) {
        self.roles.clear();
        self.grants.clear();
        self.reaches.clear();
        self.credentials.clear();
        self.identities.clear();
    }
}

/// The clock of the caches.
pub(super) fn now_ns(database: &Database) -> u64 {
    database.host().clock.monotonic_ns()
}
