//! The state of access control: its options, and caches of what the tables of `system_auth` say.

use super::cache::Cache;
use super::cidr::CidrGroups;
use super::grants::Grants;
use super::options::{AccessOptions, Authenticator, Authorizer, CidrAuthorizer, NetworkAuthorizer};
use super::reach::{Networks, Reach};
use super::roles::RoleSet;
use crate::request::{PermitNumbers, RoleUses};
use helenus_engine::Database;
use helenus_logins::Attempts;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// The state of access control: its options, and caches of what its tables say.
pub(crate) struct Access {
    pub(super) options: AccessOptions,
    /// The roles of a role by its name.
    pub(super) roles: Cache<RoleSet>,
    /// The permissions of a role by its name.
    pub(super) grants: Cache<Grants>,
    /// From where a role has access, by its name.
    pub(super) reaches: Cache<Reach>,
    /// The groups of networks, under one key.
    pub(super) cidr_groups: Cache<CidrGroups>,
    /// What was decided by them.
    pub(super) networks: Networks,
    /// The hash of a role's password by the role's name.
    pub(super) credentials: Cache<String>,
    /// The role of an identity by the identity.
    pub(super) identities: Cache<Box<str>>,
    /// What the sessions of roles use.
    pub(super) uses: Arc<RoleUses>,
    /// The numbers of the permits of roles to run statements.
    pub(super) permit_numbers: PermitNumbers,
    /// The failed logins of clients.
    pub(super) attempts: Attempts,
    /// The hash of the default role's password, and whether it is that of the default password.
    pub(super) default_checked: Mutex<Option<(String, bool)>>,
    /// The password of programs that the server itself runs, while it does.
    pub(super) own_password: Mutex<Option<String>>,
    /// Held by a statement that changes roles, permissions or the schema, because it depends on what it has read, and because
    /// grants follow the objects that they are on.
    changing: Mutex<()>,
}

impl Access {
    pub(crate) fn new(options: AccessOptions) -> Access {
        Access {
            roles: Cache::new(options.roles_validity),
            grants: Cache::new(options.permissions_validity),
            reaches: Cache::new(options.permissions_validity),
            cidr_groups: Cache::new(options.cidr_groups_interval),
            networks: Networks::default(),
            credentials: Cache::new(options.credentials_validity),
            identities: Cache::new(options.credentials_validity),
            uses: Arc::default(),
            permit_numbers: PermitNumbers::default(),
            attempts: Attempts::default(),
            default_checked: Mutex::default(),
            own_password: Mutex::default(),
            changing: Mutex::default(),
            options,
        }
    }

    /// What the sessions of roles use.
    pub(crate) fn uses(&self) -> Arc<RoleUses> {
        Arc::clone(&self.uses)
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

    /// Held while roles, permissions or the schema change.
    pub(in crate::local) fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// Whether permissions count.
    pub(crate) fn has_permissions(&self) -> bool {
        self.options.authorizer != Authorizer::AllowAll
    }

    /// Grows with every change of roles and rights that is made known here.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.roles.generation().wrapping_add(self.grants.generation())
    }

    /// Forgets everything that was read, after a change. The roles come first: the others are made of them too.
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
