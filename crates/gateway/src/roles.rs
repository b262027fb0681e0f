//! The roles of the cluster as which clients have logged in: each has connections of its own, which all its clients share, so that
//! the cluster's permissions hold for their statements.
//!
//! Every login is checked at the cluster, by a connection that is opened with it and closed. What it costs is bounded: few are checked
//! at a time, in turns (`login_turns`), the answers to failed ones wait ever longer (`helenus_logins`), and the number of roles with
//! connections is limited.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_cluster::{Cluster, ClusterError, ConnectError, Login, WrittenPartitions};
use helenus_logins::{Attempts, TOO_MANY_LOGINS, sasl_plain};
use helenus_wire::native::{ErrorCode, ErrorMessage};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::login_turns::{LoginTurns, Place};

/// The class by which clients log in.
pub(crate) const AUTHENTICATOR: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

/// Roles that have connections at the same time.
const ROLES_MAX: usize = 256;
/// The connections of a role are closed this long after its last client.
const KEPT: Duration = Duration::from_secs(60);

/// The role of a new cluster, and its password.
const DEFAULT_ROLE: &str = "cassandra";
const DEFAULT_REFUSED: &str = "the default password of the role cassandra is accepted from the gateway's own machine only: change it there with \
                               ALTER ROLE, or start the gateway with --allow-default-password";

/// How clients log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolesOptions {
    /// Whether they have to.
    pub are_needed: bool,
    /// Whether the default password of the role `cassandra` is accepted from other machines.
    pub allows_default_password: bool,
}

/// As what the requests of a client run: the connections of one role.
#[derive(Debug)]
pub struct Role {
    /// The cluster, as this role.
    pub cluster: Cluster,
}

/// The place of a login that is checked, until all copies are dropped.
#[derive(Clone)]
pub struct LoginPlace {
    _place: Arc<Place>,
}

impl std::fmt::Debug for LoginPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginPlace").finish_non_exhaustive()
    }
}

/// A login that was refused.
#[derive(Debug)]
pub struct LoginRefused {
    /// The error for the client.
    pub error: ErrorMessage,
    /// How long its answer waits.
    pub wait: Duration,
}

/// The roles with connections, and the logins that failed.
pub struct Roles {
    /// The gateway's own.
    own: Arc<Role>,
    are_needed: bool,
    turns: Arc<LoginTurns>,
    attempts: Arc<Attempts>,
    begun: tokio::time::Instant,
    allows_default_password: bool,
    /// By name and password, so that nobody gets connections that another password has opened.
    slots: Mutex<HashMap<(String, String), Arc<Slot>>>,
    written: Arc<WrittenPartitions>,
}

/// The connections of a role, once they are open.
#[derive(Default)]
struct Slot {
    role: OnceCell<Arc<Role>>,
    /// Since when nobody uses it.
    idle: Mutex<Option<tokio::time::Instant>>,
}

impl Slot {
    /// Whether no node takes the role's login any more, as far as is known.
    fn is_refused(&self) -> bool {
        self.role.get().is_some_and(|role| role.cluster.login_refusal().is_some())
    }

    /// Whether a client has it, or is about to. Called with the list locked, which holds one reference.
    fn is_used(self: &Arc<Slot>) -> bool {
        Arc::strong_count(self) > 1 || self.role.get().is_some_and(|role| Arc::strong_count(role) > 1)
    }
}

impl std::fmt::Debug for Roles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Roles").field("connected", &self.slots.lock().len()).finish_non_exhaustive()
    }
}

impl Roles {
    /// Of a cluster that the gateway has connected to.
    pub fn new(own: Cluster, options: RolesOptions) -> Roles {
        let RolesOptions { are_needed, allows_default_password } = options;
        let (attempts, begun) = (Arc::<Attempts>::default(), tokio::time::Instant::now());
        let known = Arc::clone(&attempts);
        let rooms = move |client: IpAddr, role: &str| known.room(client, role, ns_since(begun));
        Roles {
            own: Arc::new(Role { cluster: own }),
            are_needed,
            turns: LoginTurns::new(Box::new(rooms)),
            attempts,
            begun,
            allows_default_password,
            slots: Mutex::new(HashMap::new()),
            written: Arc::default(),
        }
    }

    /// The partitions that all clients write, of whatever role and interface.
    pub fn written(&self) -> &Arc<WrittenPartitions> {
        &self.written
    }

    /// Whether clients have to log in.
    pub fn are_needed(&self) -> bool {
        self.are_needed
    }

    /// The role of the gateway itself, for clients that need no login.
    pub fn own(&self) -> Arc<Role> {
        Arc::clone(&self.own)
    }

    /// Logs a client in by a SASL PLAIN token.
    ///
    /// # Errors
    /// As [`Roles::log_in`].
    pub async fn log_in_with_token(
        self: &Arc<Self>,
        token: &[u8],
        client: IpAddr,
    ) -> Result<Arc<Role>, LoginRefused> {
        let (user, password) = sasl_plain(token).map_err(|text| refused(ErrorCode::BadCredentials, text))?;
        self.log_in(Login { user, password }, client).await
    }

    /// Logs a client in by name and password. If the future is dropped before the login's turn has come, it is not checked; a check that
    /// runs is counted, whoever waits for it. While too many of the client have failed it waits.
    ///
    /// # Errors
    /// The login is wrong, or cannot be checked; it is the default one, from another machine; too many wait, or too many roles are connected.
    pub async fn log_in(self: &Arc<Self>, login: Login, client: IpAddr) -> Result<Arc<Role>, LoginRefused> {
        self.check_default(&login, client)?;
        let place = self.place(&login.user, client).await;
        let place = place.ok_or_else(|| refused(ErrorCode::Overloaded, TOO_MANY_LOGINS.to_owned()))?;
        self.log_in_at(place, login, client).await
    }

    /// Waits for the turn of a client's login as this role. If the future is dropped, it waits no more. `None`: too many wait. Called in the
    /// runtime of the gateway.
    pub async fn place(&self, user: &str, client: IpAddr) -> Option<LoginPlace> {
        Some(LoginPlace { _place: Arc::new(self.turns.wait(client, user).await?) })
    }

    /// As [`Roles::log_in`], for a login that has had its turn.
    ///
    /// # Errors
    /// As [`Roles::log_in`].
    pub async fn log_in_at(
        self: &Arc<Self>,
        place: LoginPlace,
        login: Login,
        client: IpAddr,
    ) -> Result<Arc<Role>, LoginRefused> {
        self.check_default(&login, client)?;
        let (roles, checked_login) = (Arc::clone(self), login.clone());
        let check = tokio::spawn(async move {
            let checked = roles.check(&checked_login, client).await;
            drop(place);
            checked
        });
        let failed = || refused(ErrorCode::Server, "Unable to perform authentication: a bug".to_owned());
        check.await.map_err(|_| failed())??;
        self.role(login).await
    }

    /// Refuses the default login from another machine.
    fn check_default(&self, login: &Login, client: IpAddr) -> Result<(), LoginRefused> {
        // A node sees the address of the gateway, which may be its own machine's.
        let is_own_machine = client.to_canonical().is_loopback();
        match !is_own_machine && !self.allows_default_password && is_default(login) {
            true => Err(refused(ErrorCode::BadCredentials, DEFAULT_REFUSED.to_owned())),
            false => Ok(()),
        }
    }

    /// Checks a login whose turn has come.
    async fn check(&self, login: &Login, client: IpAddr) -> Result<(), LoginRefused> {
        match self.own.cluster.check_login(login).await {
            Ok(()) => {
                self.attempts.succeeded(client, &login.user, self.now_ns());
                Ok(())
            }
            Err(error) => {
                let wait = match has_cost(&error) {
                    true => self.attempts.failed(client, &login.user, self.now_ns()),
                    false => Duration::ZERO,
                };
                Err(LoginRefused { error: error_of(error), wait })
            }
        }
    }

    async fn role(&self, login: Login) -> Result<Arc<Role>, LoginRefused> {
        let key = (login.user.clone(), login.password.clone());
        let slot = {
            let mut slots = self.slots.lock();
            // The nodes have refused the login and take it now. Its connections would be tried again only after a pause.
            if slots.get(&key).is_some_and(|slot| slot.is_refused()) {
                slots.remove(&key);
            }
            if slots.len() >= ROLES_MAX && !slots.contains_key(&key) {
                slots.retain(|_, slot| slot.is_used());
                if slots.len() >= ROLES_MAX {
                    let text = format!(
                        "{ROLES_MAX} roles are connected, as many as a gateway keeps; use fewer, or another gateway"
                    );
                    return Err(refused(ErrorCode::Overloaded, text));
                }
            }
            Arc::clone(slots.entry(key).or_default())
        };
        let connect = async || {
            let cluster = self.own.cluster.as_role(login).await?;
            Ok::<_, ClusterError>(Arc::new(Role { cluster }))
        };
        match slot.role.get_or_try_init(connect).await {
            Ok(role) => Ok(Arc::clone(role)),
            Err(error) => Err(LoginRefused { error: error_of(error), wait: Duration::ZERO }),
        }
    }

    /// Closes the connections of roles that no client has used for a while. Called again and again.
    pub fn drop_idle(&self) {
        let now = tokio::time::Instant::now();
        self.slots.lock().retain(|_, slot| {
            let mut idle = slot.idle.lock();
            if slot.is_used() {
                *idle = None;
                return true;
            }
            now.duration_since(*idle.get_or_insert(now)) < KEPT
        });
    }

    fn now_ns(&self) -> u64 {
        ns_since(self.begun)
    }
}

fn ns_since(begun: tokio::time::Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Whether a login is that of a new cluster: the role `cassandra` with a password that has the hash of its default one. Of a password
/// bcrypt reads 72 bytes, over and over from its beginning, with a zero byte after each time.
fn is_default(login: &Login) -> bool {
    let read = |password: &str| password.bytes().chain([0]).collect::<Vec<u8>>().into_iter().cycle().take(72);
    login.user == DEFAULT_ROLE && read(&login.password).eq(read(DEFAULT_ROLE))
}

fn refused(code: ErrorCode, text: String) -> LoginRefused {
    LoginRefused { error: ErrorMessage::plain(code, text), wait: Duration::ZERO }
}

/// Whether a failed login counts as an attempt: a node had it, which may have cost the node the check of a password. An overloaded node answers
/// late, or that it cannot read its roles; guesses that make it so are guesses all the same.
fn has_cost(error: &ClusterError) -> bool {
    match error {
        ClusterError::Connect(error) => match error {
            ConnectError::Refused { .. } | ConnectError::Timeout { .. } | ConnectError::Protocol { .. } => {
                true
            }
            ConnectError::Socket { .. }
            | ConnectError::Tls { .. }
            | ConnectError::NoLogin { .. }
            | ConnectError::LoginUnchecked { .. } => false,
        },
        ClusterError::Call(_) | ClusterError::Server(_) => true,
        _ => false,
    }
}

/// The error for a client: a node's own as it is; of any other reason what Cassandra says when it cannot read its roles.
fn error_of(error: ClusterError) -> ErrorMessage {
    match error {
        ClusterError::Connect(ConnectError::Refused { error, .. }) | ClusterError::Server(error) => error,
        // A node that cannot check is not one that refuses: the client may try again.
        other => ErrorMessage::plain(ErrorCode::Server, format!("Unable to perform authentication: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_login_is_known_in_every_text_that_has_its_hash() {
        let is_default = |user: &str, password: &str| {
            is_default(&Login { user: user.to_owned(), password: password.to_owned() })
        };
        let again = ["cassandra"; 9].join("\0");
        for password in ["cassandra", "cassandra\0cassandra", &again, &format!("{}x", &again[..72])] {
            assert!(is_default("cassandra", password), "{password:?}");
            assert!(!is_default("app", password) && !is_default("Cassandra", password));
        }
        for password in
            ["", "cassandr", "Cassandra", "cassandra\0", "cassandra\0x", "cassandra1", "cassandracassandra"]
        {
            assert!(!is_default("cassandra", password), "{password:?}");
        }
    }
}
