//! Logins: the check of name and password, and the first superuser.
//!
//! Source: `PasswordAuthenticator`, `CassandraRoleManager.setupDefaultRole`.

use super::passwords;
use super::roles::DEFAULT_ROLE;
use super::state::now_ns;
use super::store::Changes;
use crate::backend::{Identity, LoginRefused, LoginRoom};
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use crate::request::{Place, RoleLimits};
use std::net::IpAddr;
use std::sync::Arc;

/// The password that the default role has in a new Cassandra.
const DEFAULT_PASSWORD: &str = "cassandra";

/// The refusal of the default password from another machine.
const DEFAULT_REFUSED: &str = "the role cassandra still has its default password, which is accepted from the server's own \
     machine only: change it there (ALTER ROLE cassandra WITH PASSWORD = '...'), or start the server with --password-file \
     FILE, or with --allow-default-password";

/// How often a login is checked anew because the role's password has changed meanwhile.
const CHECKS_MAX: usize = 3;

const SET_PASSWORD: &str = "UPDATE system_auth.roles SET salted_hash = ? WHERE role = ?";
const ADD_DEFAULT: &str = "INSERT INTO system_auth.roles (role, is_superuser, can_login, salted_hash) \
     VALUES (?, true, true, ?)";

/// The state of logins when the server starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstLogin {
    /// Whether the default role has its default password.
    pub has_default_password: bool,
    /// What became of the password that was given; `None` if none was, or nobody logs in.
    pub given: Option<GivenPassword>,
    /// Whether the role for which it was given is a superuser that may log in.
    pub is_superuser: bool,
}

/// What became of a password that the owner has given for a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenPassword {
    /// The role was made with it, as a superuser.
    Made,
    /// The role had none, or the default password, and has it now.
    Set,
    /// The role had it already.
    Same,
    /// The role has another one, and keeps it.
    Other,
    /// There is no such role, and it was not made, because a superuser is there who can make it, and may have dropped it.
    NoRole,
}

/// Name and password of a token.
///
/// # Errors
/// `BadCredentials`, in Cassandra's words.
pub fn sasl_plain(token: &[u8]) -> Result<(String, String)> {
    helenus_logins::sasl_plain(token).map_err(CqlError::BadCredentials)
}

impl LocalBackend {
    /// Logs in with a SASL PLAIN token. Blocks for tens of milliseconds.
    ///
    /// # Errors
    /// As `log_in_by_password`.
    pub(crate) fn log_in_with_token(
        &self,
        token: &[u8],
        client: Option<IpAddr>,
    ) -> std::result::Result<Identity, LoginRefused> {
        let (user, password) = sasl_plain(token)?;
        self.log_in_by_password(&user, &password, client)
    }

    /// Logs in by name and password. Blocks for tens of milliseconds. `client` is the client's address.
    ///
    /// # Errors
    /// `BadCredentials`, in Cassandra's words; `Overloaded` after too many failures of the role at the address.
    pub fn log_in_by_password(
        &self,
        user: &str,
        password: &str,
        client: Option<IpAddr>,
    ) -> std::result::Result<Identity, LoginRefused> {
        if !self.access().takes_passwords() {
            let text =
                "This server takes no passwords: clients log in by the certificate that they show to TLS";
            return Err(CqlError::BadCredentials(text.to_owned()).into());
        }
        let attempts = &self.access().attempts;
        if let Some(address) = client {
            let admitted = attempts.admit(address, user, now_ns(self.database()));
            admitted.map_err(|later| CqlError::Overloaded(later.text(user)))?;
        }
        let place = self.access().uses.place(user);
        let checked = self.check_password(user, password, client);
        let Some(address) = client else { return Ok(self.seated(place, checked?)?) };
        let now = now_ns(self.database());
        match checked {
            Ok(identity) => {
                attempts.succeeded(address, user, now);
                Ok(self.seated(place, identity)?)
            }
            Err(error) => Err(LoginRefused { error, wait: attempts.failed(address, user, now) }),
        }
    }

    /// Counts the session of an identity that has just logged in, at the place that was taken before the check.
    ///
    /// # Errors
    /// Its role was dropped meanwhile, or has as many as it may have; those of a read.
    pub(super) fn seated(&self, place: Place, identity: Identity) -> Result<Identity> {
        let role = identity.role.clone();
        let read = || role.map_or_else(|| Ok(RoleLimits::default()), |role| self.limits_of(&role));
        place.seat(identity, read)
    }

    /// How many logins of a client as a role may be checked now.
    pub(in crate::local) fn room_of_login(&self, client: IpAddr, role: &str) -> LoginRoom {
        self.access().attempts.room(client, role, now_ns(self.database()))
    }

    fn check_password(&self, user: &str, password: &str, client: Option<IpAddr>) -> Result<Identity> {
        let incorrect =
            || CqlError::BadCredentials(format!("Provided username {user} and/or password are incorrect"));
        let unable =
            |error: &CqlError| CqlError::BadCredentials(format!("Unable to perform authentication: {error}"));
        let mut stored = self.stored_hash(user).map_err(|error| unable(&error))?;
        // For a role without a password as much time passes, so that the time does not tell which roles exist.
        let of_nobody = || Arc::new(passwords::of_nobody(self.access().options.password_cost));
        let mut checks = 0;
        let (stored, role) = loop {
            let is_right = passwords::matches(password, &stored.clone().unwrap_or_else(of_nobody));
            let Some(checked) = stored.filter(|_| is_right) else {
                return Err(incorrect());
            };
            let role = self.role(user, true).map_err(|error| unable(&error))?;
            let now = role.as_ref().map(|role| role.salted_hash.as_deref());
            if now.is_none_or(|hash| hash == Some(checked.as_str())) {
                break (checked, role);
            }
            // A check takes long, and the password may have been changed meanwhile.
            self.access().credentials.forget(user);
            checks += 1;
            if checks >= CHECKS_MAX {
                return Err(incorrect());
            }
            stored = role.and_then(|role| role.salted_hash).map(Arc::new);
        };
        if !role.is_some_and(|role| role.can_login) {
            return Err(CqlError::BadCredentials(format!("{user} is not permitted to log in")));
        }
        let is_own_machine = client.is_none_or(|address| address.to_canonical().is_loopback());
        // By the hash, since other texts may have the same.
        let is_default = || Ok::<bool, CqlError>(user == DEFAULT_ROLE && self.has_default_password()?);
        if !is_own_machine && !self.access().options.allows_default_password && is_default()? {
            return Err(CqlError::BadCredentials(DEFAULT_REFUSED.to_owned()));
        }
        // If it fails, the next login tries again.
        let _tried = self.hash_again(user, password, &stored);
        Ok(Identity::of_role(user).at(client))
    }

    /// Stores another hash of a password that has just been checked, if the cost of the stored one is not that of new ones.
    ///
    /// It is written right after the stored one in time, so that a change of the password meanwhile wins, and the least time
    /// between two changes (`password_interval`) is still counted from the last change.
    fn hash_again(&self, user: &str, password: &str, stored: &str) -> Result<()> {
        let cost = self.access().options.password_cost;
        if passwords::cost(stored) == Some(cost) {
            return Ok(());
        }
        let written_us = self
            .role(user, true)?
            .filter(|role| role.salted_hash.as_deref() == Some(stored))
            .and_then(|role| role.hash_written_us?.checked_add(1));
        let hash = passwords::hash_again(password, cost, self.database());
        let (Some(written_us), Some(hash)) = (written_us, hash) else { return Ok(()) };
        let mut changes = Changes::default();
        changes.add_texts(SET_PASSWORD, &[&hash, user]);
        let changed = self.change(&changes, Some(written_us));
        self.access().credentials.forget(user);
        Ok(changed?.wait()?)
    }

    /// The hash of a role's password. A hash may be as old as `credentials_validity`; that there is none is not cached.
    fn stored_hash(&self, user: &str) -> Result<Option<Arc<String>>> {
        let now = now_ns(self.database());
        let read = || Ok(self.role(user, true)?.and_then(|role| role.salted_hash));
        self.access().credentials.get_or_find(user, now, read)
    }

    /// Makes the default role if there are no roles, and sets its password if one is given. Called once, before the
    /// first client. Does nothing if there are no logins. With a password the role is made where no superuser can log in, as in a
    /// new database: elsewhere one that is missing was dropped, and a start that made it again would raise it.
    ///
    /// # Errors
    /// Those of a read and a write.
    pub fn begin_logins(&self, password: Option<&str>) -> Result<FirstLogin> {
        self.begin_logins_as(DEFAULT_ROLE, password)
    }

    /// The same for a role of another name, which the owner of the server chose in place of the default role. A role that is there
    /// is not raised, and a password that was set by a statement is not replaced: the one given may be an old one.
    ///
    /// # Errors
    /// As `begin_logins`.
    pub fn begin_logins_as(&self, role: &str, password: Option<&str>) -> Result<FirstLogin> {
        if !self.access().has_logins() {
            return Ok(FirstLogin { has_default_password: false, given: None, is_superuser: false });
        }
        let hash = |password| self.hash_of(password);
        let mut changes = Changes::default();
        let mut given = None;
        if let Some(password) = password {
            let known = self.role(role, true)?;
            let what = match known.as_ref().map(|known| known.salted_hash.as_deref()) {
                None if self.has_superuser()? => GivenPassword::NoRole,
                None => GivenPassword::Made,
                Some(None) => GivenPassword::Set,
                Some(Some(stored)) if passwords::matches(password, stored) => GivenPassword::Same,
                Some(Some(_)) if role == DEFAULT_ROLE && self.has_default_password()? => GivenPassword::Set,
                Some(Some(_)) => GivenPassword::Other,
            };
            match what {
                GivenPassword::Made => {
                    self.note_left(role, &mut changes)?;
                    changes.add_texts(ADD_DEFAULT, &[role, &hash(password)?]);
                }
                GivenPassword::Set => changes.add_texts(SET_PASSWORD, &[&hash(password)?, role]),
                GivenPassword::Same | GivenPassword::Other | GivenPassword::NoRole => {}
            }
            self.remove_left(&changes)?;
            self.change_and_wait(&changes, None)?;
            given = Some(what);
        } else if self.ask("SELECT role FROM system_auth.roles LIMIT 1", &[], true)?.is_empty() {
            self.note_left(DEFAULT_ROLE, &mut changes)?;
            self.remove_left(&changes)?;
            // Any later write replaces what is written at time 0.
            changes.add_texts(ADD_DEFAULT, &[DEFAULT_ROLE, &hash(DEFAULT_PASSWORD)?]);
            self.change_and_wait(&changes, Some(0))?;
        }
        self.access().forget();
        let owners = self.role_set_now(role, true)?;
        Ok(FirstLogin {
            has_default_password: self.has_default_password()?,
            given,
            is_superuser: owners.is_super() && owners.can_login(),
        })
    }

    /// Whether a role can log in that is a superuser or inherits from one.
    fn has_superuser(&self) -> Result<bool> {
        for role in self.all_roles()?.iter().filter(|role| role.can_login) {
            if role.is_superuser || self.role_set_now(&role.name, true)?.is_super() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The hash of a new password.
    ///
    /// # Errors
    /// `Invalid` for one that cannot be hashed whole.
    pub(super) fn hash_of(&self, password: &str) -> Result<String> {
        passwords::hash(password, self.access().options.password_cost, self.database())
    }

    /// Whether clients log in and the default role still has its default password.
    ///
    /// # Errors
    /// Those of a read.
    pub fn has_default_password(&self) -> Result<bool> {
        if !self.access().takes_passwords() {
            return Ok(false);
        }
        let Some(stored) = self.role(DEFAULT_ROLE, true)?.and_then(|role| role.salted_hash) else {
            return Ok(false);
        };
        // A check takes long, so its result is kept with the hash.
        let mut checked = self.access().default_checked.lock();
        if let Some((_, is_default)) = checked.as_ref().filter(|(hash, _)| *hash == stored) {
            return Ok(*is_default);
        }
        let is_default = passwords::matches(DEFAULT_PASSWORD, &stored);
        *checked = Some((stored, is_default));
        Ok(is_default)
    }

    /// Sets the password of a role for the server's owner, who may have no other way in: that of the default role is made
    /// if it is missing, and made a superuser that may log in.
    ///
    /// # Errors
    /// Clients need not log in; there is no such role; those of a read and a write.
    pub fn set_lost_password(&self, role: &str, password: &str) -> Result<()> {
        let invalid = |text: String| Err(CqlError::Invalid(text));
        if !self.access().takes_passwords() {
            return invalid(
                "clients of this server need no password; start it with authenticator: PasswordAuthenticator"
                    .to_owned(),
            );
        }
        if password.is_empty() {
            return invalid("the password is empty".to_owned());
        }
        let hash = self.hash_of(password)?;
        let _changing = self.access().changing();
        let mut changes = Changes::default();
        if role == DEFAULT_ROLE {
            if self.role(role, true)?.is_none() {
                self.note_left(role, &mut changes)?;
            }
            changes.add_texts(ADD_DEFAULT, &[DEFAULT_ROLE, &hash]);
        } else if self.role(role, true)?.is_some() {
            changes.add_texts(SET_PASSWORD, &[&hash, role]);
        } else {
            return invalid(format!("Role {role} doesn't exist"));
        }
        self.remove_left(&changes)?;
        let changed = self.change_and_wait(&changes, None);
        for role in &changes.ended {
            self.access().uses.end(role);
        }
        changed
    }
}
