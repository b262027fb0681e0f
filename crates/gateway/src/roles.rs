//! The roles of the cluster as which clients have logged in: each has connections of its own, which all its clients share, so that
//! the cluster's permissions hold for their statements.
//!
//! Every login is checked at the cluster, by a connection that is opened with it and closed. What it costs is bounded: few are checked
//! at a time, the answers to failed ones wait ever longer (`helenus_logins`), and the number of roles with connections is limited.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_cluster::{Cluster, ClusterError, ConnectError, Login, WrittenPartitions};
use helenus_logins::{Attempts, sasl_plain};
use helenus_wire::native::{ErrorCode, ErrorMessage};
use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore};

/// The class by which clients log in.
pub(crate) const AUTHENTICATOR: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

/// Logins that are checked at the same time.
const CHECKS_MAX: usize = 16;
/// Roles that have connections at the same time.
const ROLES_MAX: usize = 256;
/// The connections of a role are closed this long after its last client.
const KEPT: Duration = Duration::from_secs(60);

/// As what the requests of a client run: the connections of one role.
#[derive(Debug)]
pub struct Role {
    /// The cluster, as this role.
    pub cluster: Cluster,
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
    checks: Semaphore,
    attempts: Attempts,
    begun: tokio::time::Instant,
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
    /// Of a cluster that the gateway has connected to. `are_needed`: whether clients have to log in.
    pub fn new(own: Cluster, are_needed: bool) -> Roles {
        Roles {
            own: Arc::new(Role { cluster: own }),
            are_needed,
            checks: Semaphore::new(CHECKS_MAX),
            attempts: Attempts::default(),
            begun: tokio::time::Instant::now(),
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
    pub async fn log_in_with_token(&self, token: &[u8], client: IpAddr) -> Result<Arc<Role>, LoginRefused> {
        let (user, password) = sasl_plain(token).map_err(|text| refused(ErrorCode::BadCredentials, text))?;
        self.log_in(Login { user, password }, client).await
    }

    /// Logs a client in by name and password.
    ///
    /// # Errors
    /// The login is wrong, or cannot be checked; too many have failed, or too many roles are connected.
    pub async fn log_in(&self, login: Login, client: IpAddr) -> Result<Arc<Role>, LoginRefused> {
        let admitted = self.attempts.admit(client, &login.user, self.now_ns());
        admitted.map_err(|later| refused(ErrorCode::Overloaded, later.text(&login.user)))?;
        // The semaphore is never closed; without a permit the check would only not be bounded.
        let checking = self.checks.acquire().await;
        let checked = self.own.cluster.check_login(&login).await;
        drop(checking);
        match checked {
            Ok(()) => self.attempts.succeeded(client, &login.user, self.now_ns()),
            Err(error) => {
                let error = error_of(error);
                let is_wrong = error.detail.code() == ErrorCode::BadCredentials;
                let wait = match is_wrong {
                    true => self.attempts.failed(client, &login.user, self.now_ns()),
                    false => Duration::ZERO,
                };
                return Err(LoginRefused { error, wait });
            }
        }
        self.role(login).await
    }

    async fn role(&self, login: Login) -> Result<Arc<Role>, LoginRefused> {
        let key = (login.user.clone(), login.password.clone());
        let slot = {
            let mut slots = self.slots.lock();
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
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn refused(code: ErrorCode, text: String) -> LoginRefused {
    LoginRefused { error: ErrorMessage::plain(code, text), wait: Duration::ZERO }
}

/// The error for a client: a node's own as it is; of any other reason what Cassandra says when it cannot read its roles.
fn error_of(error: ClusterError) -> ErrorMessage {
    match error {
        ClusterError::Connect(ConnectError::Refused { error, .. }) | ClusterError::Server(error) => error,
        // A node that cannot check is not one that refuses: the client may try again.
        other => ErrorMessage::plain(ErrorCode::Server, format!("Unable to perform authentication: {other}")),
    }
}
