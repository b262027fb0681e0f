//! The front of a running server: its listeners, behind which is the database or, after a cut, the target of a move.
//!
//! The mover calls it (`helenus_mover::Front`). At a cut the native server hands the sockets of its clients and of its listeners to a
//! gateway in this process: clients keep their connections, but those by TLS and those that have logged in, because the target checks
//! logins from then on. The old RPC interface closes its connections after their answers. At a rollback all connections are closed after
//! their answers, and the native server gets the listeners back.

use super::gateway;
use super::gateway_settings::{Stands, not_kept};
use super::rpc::OldInterface;
use helenus_cluster::{Cluster, WrittenPartitions};
use helenus_cql::LocalBackend;
use helenus_cql::backend::Backend;
use helenus_cql::guardrails::Guardrails;
use helenus_gateway::{Gateway, GatewayOptions, Listeners, OwnNode, Roles};
use helenus_host::{Host, Next, TaskHandle, Worker, contain};
use helenus_mover::{CutOver, Front, FrontError, MoveOrder, Side, options_for_clients};
use helenus_rpc_gateway::ClusterTables;
use helenus_server::audit::Audit;
use helenus_server::config::ServerConfig;
use helenus_server::log::{Entry, Level, Log};
use helenus_server::native::{self, NativeServer};
use helenus_tls::ServerTls;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// The pause before a target that cannot be reached is tried again, nanoseconds.
const AGAIN_NS: u64 = 5_000_000_000;
/// How long requests in flight may take to be answered at the end.
const DRAIN: Duration = Duration::from_secs(5);

/// What a front consists of.
pub(super) struct FrontParts {
    /// The machine.
    pub(super) host: Host,
    /// The server of the native protocol.
    pub(super) native: Arc<NativeServer>,
    /// The old RPC interface, if it is configured.
    pub(super) rpc: Option<OldInterface>,
    /// The database.
    pub(super) local: Arc<LocalBackend>,
    /// The settings of the start.
    pub(super) config: ServerConfig,
    /// TLS towards clients.
    pub(super) tls: Option<Arc<ServerTls>>,
    /// The log.
    pub(super) log: Arc<Log>,
    /// The audit log.
    pub(super) audit: Arc<Audit>,
}

/// The listeners of a server.
pub struct ServerFront {
    /// Tries again what has failed. It is started with the front: the system may give no thread later.
    attempts: OnceLock<Arc<dyn TaskHandle>>,
    parts: FrontParts,
    /// What writes here beside clients.
    writing: Mutex<Vec<Weak<Writing>>>,
    /// Runs the gateway.
    runtime: Runtime,
    state: Mutex<State>,
}

struct State {
    side: Side,
    /// Whether clients wait: for the end of a pause, or because serving them by the target has failed.
    is_paused: bool,
    /// Whether serving by the target is tried again.
    tries_again: bool,
    /// The cut after which this server has started, until the target is connected.
    begins_at: Option<CutOver>,
    /// Whether the old interface serves nobody, because that has failed.
    old_interface_waits: bool,
    is_stopped: bool,
    /// Whether clients learn of the nodes of the target, so that they go there by themselves.
    shows_nodes: bool,
    ready: Option<Ready>,
    /// While the target answers and there is no pause.
    gateway: Option<Arc<Gateway>>,
    /// The sockets that clients connect to, while neither side listens.
    listeners: Option<Listeners>,
}

/// Something that writes to the database beside clients, for instance an import. It counts until the last copy is dropped.
struct Writing(String);

/// The connected target.
struct Ready {
    roles: Arc<Roles>,
    /// For the old RPC interface, until it serves them.
    tables: Option<ClusterTables>,
}

impl ServerFront {
    /// The front of a server. `side`: of the target if the server starts after a cut; then the native server has no listener,
    /// the old interface serves nothing, and `begin_at` opens both.
    ///
    /// # Errors
    /// No threads can be started.
    pub(super) fn new(parts: FrontParts, side: Side) -> std::io::Result<Arc<ServerFront>> {
        let threads = helenus_host::real::cores().max(1);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let is_paused = side == Side::Cluster;
        let state = State {
            side,
            is_paused,
            tries_again: false,
            begins_at: None,
            old_interface_waits: false,
            is_stopped: false,
            shows_nodes: false,
            ready: None,
            gateway: None,
            listeners: None,
        };
        let tasks = Arc::clone(&parts.host.tasks);
        let (attempts, writing) = (OnceLock::new(), Mutex::default());
        let front = Arc::new(ServerFront { attempts, parts, writing, runtime, state: Mutex::new(state) });
        let attempts = tasks.try_start("move-front", Box::new(Attempts(Arc::downgrade(&front))))?;
        // Nobody else sets it.
        let _ = front.attempts.set(attempts);
        Ok(front)
    }

    /// Serves by the target, for a server that starts after a cut. If the target cannot be reached, it is tried again, and meanwhile
    /// no client is admitted.
    pub(super) fn begin_at(self: &Arc<ServerFront>, cut: CutOver) {
        if !self.try_begin_at(&cut) {
            self.state.lock().begins_at = Some(cut);
            self.wake_attempts();
        }
    }

    fn wake_attempts(&self) {
        if let Some(attempts) = self.attempts.get() {
            attempts.wake();
        }
    }

    /// Tries again what has failed, on the thread of `Attempts`.
    fn try_again(&self) -> Next {
        let begins_at = {
            let mut state = self.state.lock();
            if state.is_stopped {
                return Next::Wait;
            }
            if state.side == Side::Local {
                // The cut was taken back meanwhile.
                state.begins_at = None;
            }
            state.begins_at.clone()
        };
        // Clients of the native protocol go on while this connects, because it locks the state at its end alone.
        if let Some(cut) = begins_at
            && self.try_begin_at(&cut)
        {
            self.state.lock().begins_at = None;
        }
        let tables = self.read_tables_again();
        let mut state = self.state.lock();
        if state.tries_again
            && let Err(error) = self.serve_by_cluster(&mut state)
        {
            self.say_not_served(&error);
        }
        if state.old_interface_waits && !state.is_paused {
            match (state.side, tables) {
                (Side::Local, _) => self.serve_old_interface_here(&mut state),
                (Side::Cluster, Ok(())) => self.serve_old_interface_by_cluster(&mut state),
                (Side::Cluster, Err(error)) => self.note_old_interface(&mut state, Err(error)),
            }
        }
        match state.begins_at.is_some() || state.tries_again || state.old_interface_waits {
            true => Next::WaitAtMost(AGAIN_NS),
            false => Next::Wait,
        }
    }

    fn try_begin_at(&self, cut: &CutOver) -> bool {
        let shows_nodes = self.parts.local.database().wall_us() > cut.rollback_until_us;
        let begun = self.connect(&cut.order).and_then(|()| {
            let mut state = self.state.lock();
            match state.side {
                Side::Cluster => self.begin_at_cluster(&mut state, shows_nodes),
                // The cut was taken back meanwhile.
                Side::Local => Ok(()),
            }
        });
        if let Err(error) = &begun {
            self.say_not_served(error);
        }
        begun.is_ok()
    }

    /// Why the native server may not listen, if it may not.
    pub(super) fn keeps_closed(&self) -> Option<String> {
        let state = self.state.lock();
        (state.side == Side::Cluster || state.is_paused).then(|| {
            "the move has been cut over: clients are served by its target, not by this database".to_owned()
        })
    }

    /// Whether clients are served.
    pub(super) fn is_open(&self) -> bool {
        let state = self.state.lock();
        match state.side {
            Side::Local => self.parts.native.is_running(),
            Side::Cluster => state.gateway.is_some(),
        }
    }

    /// Answers what was begun, and closes everything.
    pub(super) fn stop(&self) {
        let gateway = {
            let mut state = self.state.lock();
            state.is_stopped = true;
            state.gateway.take()
        };
        if let Some(gateway) = gateway {
            self.runtime.block_on(gateway.drain(DRAIN));
        }
        self.parts.native.stop();
    }

    /// Serves by the target: starts a gateway on the sockets that clients connect to, or on new ones if there are none, and gives the old
    /// interface the tables there.
    fn serve_by_cluster(&self, state: &mut State) -> Result<(), FrontError> {
        if state.is_stopped {
            return Err(FrontError::Failed("the server is stopping".to_owned()));
        }
        let not_ready = || FrontError::Failed("the target is not connected".to_owned());
        let ready = state.ready.as_ref().ok_or_else(not_ready)?;
        let roles = Arc::clone(&ready.roles);
        let options = self.gateway_options(state.shows_nodes);
        let listeners = state.listeners.as_ref().map(Listeners::try_clone).transpose().map_err(failed)?;
        let started = self.runtime.block_on(async {
            match listeners {
                Some(listeners) => Gateway::start_on(roles, options, listeners),
                None => Gateway::start(roles, options).await,
            }
        });
        state.gateway = Some(Arc::new(started.map_err(failed)?));
        state.listeners = None;
        (state.is_paused, state.tries_again) = (false, false);
        // Nobody else waits for it: it needs the schema of the target, which may not answer now.
        self.serve_old_interface_by_cluster(state);
        Ok(())
    }

    /// Gives the old interface the tables of the target; if that fails, it is tried again.
    fn serve_old_interface_by_cluster(&self, state: &mut State) {
        let (Some(rpc), Some(ready)) = (&self.parts.rpc, &mut state.ready) else { return };
        let served = match ready.tables.take() {
            Some(tables) => rpc.serve_cluster(tables).map_err(failed),
            None => Err(FrontError::Failed("the tables of the target are not read".to_owned())),
        };
        self.note_old_interface(state, served);
    }

    /// Reads the tables of the target again for an old interface that waits for them. Others may look at the state meanwhile, because the
    /// target may not answer.
    fn read_tables_again(&self) -> Result<(), FrontError> {
        let roles = {
            let state = self.state.lock();
            let waits = state.side == Side::Cluster && state.old_interface_waits && !state.is_paused;
            match &state.ready {
                Some(ready) if waits && ready.tables.is_none() => Arc::clone(&ready.roles),
                _ => return Ok(()),
            }
        };
        let tables = self.tables(&roles)?;
        let mut state = self.state.lock();
        if let Some(ready) = state.ready.as_mut().filter(|ready| Arc::ptr_eq(&ready.roles, &roles)) {
            ready.tables = tables;
        }
        Ok(())
    }

    /// Lets the old interface serve this database; if that fails, it is tried again.
    fn serve_old_interface_here(&self, state: &mut State) {
        if let Some(rpc) = &self.parts.rpc {
            self.note_old_interface(state, rpc.serve_here().map_err(failed));
        }
    }

    fn note_old_interface(&self, state: &mut State, served: Result<(), FrontError>) {
        let waited = std::mem::replace(&mut state.old_interface_waits, served.is_err());
        if let Err(error) = served {
            let text = format!("the old RPC interface cannot serve clients yet: {error}; it is tried again");
            self.parts.log.write_rate_limited(Level::Error, "move-rpc", Entry::new("move", text));
            // A wake within an attempt would be one without a pause.
            if !waited {
                self.wake_attempts();
            }
        }
    }

    /// Serves by the target; if that fails, clients wait, and it is tried again until it succeeds or the server is stopped.
    fn serve_by_cluster_or_try_again(&self, state: &mut State) {
        let Err(error) = self.serve_by_cluster(state) else { return };
        state.is_paused = true;
        self.say_not_served(&error);
        state.tries_again = true;
        self.wake_attempts();
    }

    /// Makes a change that limits clients or records what they do, unless they are served by the target, where it has no effect: then it is
    /// not made, and there is no result. No cut falls between the look and the change.
    pub(super) fn change_here<T>(&self, change: impl FnOnce() -> T) -> Option<T> {
        let state = self.state.lock();
        (state.side == Side::Local).then(change)
    }

    /// Notes that something writes to this database beside clients until the result is dropped. No cut falls in between.
    ///
    /// # Errors
    /// Clients are served by the target, or will be in a moment: nobody would read what is written here.
    pub(super) fn begin_writing(&self, what: &str) -> Result<Box<dyn Send>, String> {
        let state = self.state.lock();
        if state.side == Side::Cluster || state.is_paused {
            return Err(format!(
                "{what}: clients are served by the target of the move, so nobody would read what is written here, and a rollback takes it \
                 away; do it at the target, or after helenus move rollback"
            ));
        }
        let one = Arc::new(Writing(what.to_owned()));
        let mut writing = self.writing.lock();
        writing.retain(|other| other.strong_count() > 0);
        writing.push(Arc::downgrade(&one));
        Ok(Box::new(one))
    }

    /// What would be wrong with a cut while clients are served here.
    fn not_at_rest(&self) -> Vec<String> {
        let writing = self.writing.lock();
        let writing = writing.iter().filter_map(Weak::upgrade);
        let mut reasons: Vec<String> = writing
            .map(|one| {
                format!(
                    "{} is under way, and what it writes after the cut nobody would read: wait for its end",
                    one.0
                )
            })
            .collect();
        if !self.parts.native.is_running() {
            reasons.push(
                "clients are kept out (helenus admin disablebinary), and a cut would let them in: helenus admin enablebinary".to_owned(),
            );
        }
        reasons
    }

    /// Lets the target answer clients, who are served by either side now or wait.
    fn begin_at_cluster(&self, state: &mut State, shows_nodes: bool) -> Result<(), FrontError> {
        // Once more: a setting may have been changed since. None is, while the state is locked (`change_here`).
        self.check_settings()?;
        state.shows_nodes = shows_nodes;
        if state.side == Side::Local {
            state.listeners = self.parts.native.give_listeners().map(of_gateway);
        }
        if let Err(error) = self.serve_by_cluster(state) {
            if state.side == Side::Local
                && let Err(error) = self.listen_here(state)
            {
                let text = format!("clients cannot connect: {error}; stop the server and start it again");
                self.parts.log.write(Level::Error, &Entry::new("move", text));
            }
            return Err(error);
        }
        if let Some(gateway) = &state.gateway {
            let gateway = Arc::downgrade(gateway);
            self.parts.native.hand_over(Box::new(move |socket, connection| {
                // Without the gateway the server is stopping, and the connection ends.
                if let Some(gateway) = gateway.upgrade() {
                    gateway.take(socket, connection);
                }
            }));
        }
        state.side = Side::Cluster;
        self.say("clients are served by the target of the move from now on");
        Ok(())
    }

    /// The tables of the target for the old interface, if it is configured.
    fn tables(&self, roles: &Arc<Roles>) -> Result<Option<ClusterTables>, FrontError> {
        if self.parts.rpc.is_none() {
            return Ok(None);
        }
        let clock = self.parts.host.clock.clone();
        let tables = self.runtime.block_on(ClusterTables::new(Arc::clone(roles), clock));
        tables.map(Some).map_err(|error| FrontError::Failed(format!("the target: {error}")))
    }

    fn pause_old_interface(&self, within: Duration) {
        if let Some(rpc) = &self.parts.rpc {
            rpc.server.pause(within);
        }
    }

    /// Whether clients log in.
    fn has_logins(&self) -> bool {
        self.parts.local.authenticator().is_some()
    }

    /// A gateway that clients take for the server which they know.
    fn gateway_options(&self, shows_nodes: bool) -> GatewayOptions {
        let mut options =
            gateway::options(&self.parts.config, self.parts.native.address(), self.parts.tls.clone());
        options.shows_nodes = shows_nodes;
        options.own_node = Some(OwnNode {
            host_id: self.parts.local.database().host_id(),
            cluster_name: self.parts.config.cluster_name.clone(),
            datacenter: self.parts.config.datacenter.clone(),
            rack: self.parts.config.rack.clone(),
        });
        let local = Arc::clone(&self.parts.local);
        options.known_statements = Some(Arc::new(move |id| {
            let known = local.prepared(id).ok().flatten()?;
            Some((known.keyspace.as_deref().map(str::to_owned), known.query.to_string()))
        }));
        options
    }

    /// Lets the native server listen on the sockets that clients connect to. They wait until `serve_here`.
    fn listen_here(&self, state: &mut State) -> Result<(), FrontError> {
        let native = &self.parts.native;
        let Some(listeners) = &state.listeners else { return native.resume().map_err(failed) };
        // A copy: after a failure the gateway needs them.
        let Listeners { first, encrypted, also } = listeners.try_clone().map_err(failed)?;
        native.take_back(native::Listeners { first, encrypted, shard_aware: also }).map_err(failed)?;
        state.listeners = None;
        Ok(())
    }

    /// Lets the database answer, on sockets that the native server listens on.
    fn serve_here(&self, state: &mut State) {
        self.parts.native.go_on();
        state.is_paused = false;
        self.serve_old_interface_here(state);
    }

    /// Checks that a gateway keeps the settings that this server has now.
    fn check_settings(&self) -> Result<(), FrontError> {
        let mut config = self.parts.config.clone();
        // These are changed while the server runs.
        config.audit.enabled = self.parts.audit.is_on();
        config.guardrails = self.guardrails();
        let mut reasons = not_kept(&config, Stands::AfterCut);
        if self.parts.local.logs_in_by_certificate() {
            reasons.push(
                "logins by certificates, which the target would not see: set authenticator to PasswordAuthenticator"
                    .to_owned(),
            );
        }
        if reasons.is_empty() {
            return Ok(());
        }
        let text = format!(
            "after the cut this server is a gateway, which does not support\n  {}",
            reasons.join("\n  ")
        );
        Err(FrontError::Failed(text))
    }

    /// The guardrails in force.
    pub(super) fn guardrails(&self) -> Guardrails {
        self.parts.local.guardrails().map_or_else(Guardrails::default, |guardrails| (*guardrails).clone())
    }

    /// Checks that the clients of this server, which log in or do not, are served as roles of their own at the target.
    fn check_roles(&self, order: &MoveOrder) -> Result<(), FrontError> {
        let reason = match (self.has_logins(), &order.clients, &order.login) {
            (true, Some(clients), _) => format!(
                "a role for all clients, because they log in by themselves: leave --clients-role {} out; or, after a cut that was made \
                 with it, start this server without logins (authenticator)",
                clients.user
            ),
            (false, None, Some((user, _))) => format!(
                "clients that log in nowhere in front of a target with logins: all of them would be served as {user}, the role of the move, \
                 with its rights to keyspaces that were never here. Make a role there that has the rights which clients need, and give \
                 --clients-role NAME --clients-password-file FILE; or let clients log in here (authenticator: PasswordAuthenticator)"
            ),
            _ => return Ok(()),
        };
        Err(FrontError::Failed(reason))
    }

    /// Connects to the target, if this server can be a gateway to it with the settings that it has. Before a cut and at each start after one:
    /// the settings may be others then.
    fn connect(&self, order: &MoveOrder) -> Result<(), FrontError> {
        self.check_roles(order)?;
        self.check_settings()?;
        let of_target = |error: &dyn std::fmt::Display| FrontError::Failed(format!("the target: {error}"));
        let mut options =
            options_for_clients(order).map_err(|error| FrontError::Failed(error.to_string()))?;
        options.driver_name = "Helenus gateway".to_owned();
        options.answers = gateway::answer_room(&self.parts.config);
        options.must_log_in = self.has_logins();
        let cluster = self.runtime.block_on(Cluster::connect(options)).map_err(|error| of_target(&error))?;
        let options = gateway::roles_options(&self.parts.config, self.has_logins());
        let roles = Arc::new(Roles::new(cluster, options));
        let tables = self.tables(&roles)?;
        self.state.lock().ready = Some(Ready { roles, tables });
        Ok(())
    }

    fn say_not_served(&self, error: &FrontError) {
        let text = format!("clients cannot be served yet: {error}; it is tried again");
        self.parts.log.write_rate_limited(Level::Error, "move", Entry::new("move", text));
    }

    fn say(&self, text: &str) {
        self.parts.log.write(Level::Info, &Entry::new("move", text.to_owned()));
    }
}

impl Drop for ServerFront {
    fn drop(&mut self) {
        // It finds that the front is gone.
        self.wake_attempts();
    }
}

/// The thread that tries again what has failed.
struct Attempts(Weak<ServerFront>);

impl Worker for Attempts {
    fn step(&mut self) -> Next {
        let Some(front) = self.0.upgrade() else { return Next::Done };
        // A panic is logged; whoever waits for the server would otherwise wait for ever.
        contain(|| front.try_again()).unwrap_or(Next::WaitAtMost(AGAIN_NS))
    }
}

impl Front for ServerFront {
    fn side(&self) -> Side {
        self.state.lock().side
    }

    fn make_ready(&self, order: &MoveOrder) -> Result<(), FrontError> {
        self.connect(order)
    }

    fn hindrances(&self) -> Vec<String> {
        match self.side() {
            Side::Local => self.not_at_rest(),
            Side::Cluster => Vec::new(),
        }
    }

    fn written(&self) -> Option<Arc<WrittenPartitions>> {
        let state = self.state.lock();
        state.ready.as_ref().map(|ready| Arc::clone(ready.roles.written()))
    }

    fn pause(&self, within: Duration) -> Result<(), FrontError> {
        let begun = Instant::now();
        let mut state = self.state.lock();
        match state.side {
            // None begins any more while the state is locked, and then there is a pause.
            Side::Local if !self.not_at_rest().is_empty() => {
                return Err(FrontError::Failed(self.not_at_rest().join("; ")));
            }
            Side::Local => self
                .parts
                .native
                .halt(within)
                .map_err(|not_at_rest| FrontError::Busy { requests: not_at_rest.connections, within })?,
            Side::Cluster => {
                let Some(gateway) = state.gateway.take() else {
                    return Err(FrontError::Failed("clients are not served at this moment".to_owned()));
                };
                state.listeners = gateway.give_listeners();
                self.runtime.block_on(gateway.drain(within));
                if begun.elapsed() >= within {
                    self.serve_by_cluster_or_try_again(&mut state);
                    return Err(FrontError::Busy { requests: 1, within });
                }
            }
        }
        // Last, because its connections do not go on after a pause that fails.
        self.pause_old_interface(within.saturating_sub(begun.elapsed()));
        state.is_paused = true;
        Ok(())
    }

    fn go_on(&self) {
        let mut state = self.state.lock();
        if !state.is_paused {
            return;
        }
        match state.side {
            Side::Local => self.serve_here(&mut state),
            Side::Cluster => self.serve_by_cluster_or_try_again(&mut state),
        }
    }

    fn to_cluster(&self, shows_nodes: bool) -> Result<(), FrontError> {
        self.begin_at_cluster(&mut self.state.lock(), shows_nodes)
    }

    fn to_local(&self) -> Result<(), FrontError> {
        let mut state = self.state.lock();
        let was_paused = state.is_paused;
        if let Some(gateway) = state.gateway.take() {
            state.listeners = gateway.give_listeners();
            self.runtime.block_on(gateway.drain(DRAIN));
            self.pause_old_interface(DRAIN);
        }
        if let Err(error) = self.listen_here(&mut state) {
            // Without a pause nobody ends one.
            if !was_paused {
                self.serve_by_cluster_or_try_again(&mut state);
            }
            return Err(error);
        }
        self.serve_here(&mut state);
        (state.side, state.tries_again) = (Side::Local, false);
        drop(state);
        self.say("clients are served by this database again");
        Ok(())
    }
}

fn failed(error: impl std::fmt::Display) -> FrontError {
    FrontError::Failed(error.to_string())
}

fn of_gateway(listeners: native::Listeners) -> Listeners {
    let native::Listeners { first, encrypted, shard_aware } = listeners;
    Listeners { first, encrypted, also: shard_aware }
}

#[cfg(test)]
mod tests;
