//! The front of a running server: its listeners, behind which is the database or, after a cut, the target of a move.
//!
//! The mover calls it (`helenus_mover::Front`). At a cut the native server hands the sockets of its clients and of its listeners to a
//! gateway in this process: clients keep their connections, but those by TLS and those that have logged in, because the target checks
//! logins from then on. The old RPC interface closes its connections after their answers. At a rollback all connections are closed after
//! their answers, and the native server gets the listeners back.

use super::gateway;
use super::rpc::OldInterface;
use helenus_cluster::{Cluster, WrittenPartitions};
use helenus_cql::LocalBackend;
use helenus_cql::backend::Backend;
use helenus_gateway::{Gateway, GatewayOptions, Listeners, OwnNode, Roles};
use helenus_host::Host;
use helenus_mover::{CutOver, Front, FrontError, MoveOrder, Side, cluster_options};
use helenus_rpc_gateway::ClusterTables;
use helenus_server::config::ServerConfig;
use helenus_server::log::{Entry, Level, Log};
use helenus_server::native::{self, NativeServer};
use helenus_tls::ServerTls;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// The pause before a target that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_secs(5);
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
}

/// The listeners of a server.
pub struct ServerFront {
    parts: FrontParts,
    /// Runs the gateway.
    runtime: Runtime,
    state: Mutex<State>,
}

struct State {
    side: Side,
    is_paused: bool,
    is_stopped: bool,
    /// Whether clients learn of the nodes of the target, so that they go there by themselves.
    shows_nodes: bool,
    ready: Option<Ready>,
    /// While the target answers and there is no pause.
    gateway: Option<Arc<Gateway>>,
    /// The sockets that clients connect to, while neither side listens.
    listeners: Option<Listeners>,
}

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
            is_stopped: false,
            shows_nodes: false,
            ready: None,
            gateway: None,
            listeners: None,
        };
        Ok(Arc::new(ServerFront { parts, runtime, state: Mutex::new(state) }))
    }

    /// Serves by the target, for a server that starts after a cut. If the target cannot be reached, it is tried again, and meanwhile
    /// no client is admitted.
    pub(super) fn begin_at(self: &Arc<ServerFront>, cut: CutOver) {
        if self.try_begin_at(&cut) {
            return;
        }
        let front = Arc::clone(self);
        // It ends with the server's runtime.
        let _task = self.runtime.spawn_blocking(move || {
            while front.waits_for_cluster() {
                front.runtime.block_on(tokio::time::sleep(AGAIN));
                if front.try_begin_at(&cut) {
                    return;
                }
            }
        });
    }

    /// Whether clients wait for the target.
    fn waits_for_cluster(&self) -> bool {
        let state = self.state.lock();
        !state.is_stopped && state.side == Side::Cluster
    }

    fn try_begin_at(&self, cut: &CutOver) -> bool {
        let shows_nodes = self.parts.local.database().wall_us() > cut.rollback_until_us;
        let begun = self.make_ready(&cut.order).and_then(|()| {
            let mut state = self.state.lock();
            match state.side {
                Side::Cluster => self.begin_at_cluster(&mut state, shows_nodes),
                // The cut was taken back meanwhile.
                Side::Local => Ok(()),
            }
        });
        if let Err(error) = &begun {
            let text = format!("clients cannot be served yet: {error}; it is tried again");
            self.parts.log.write_rate_limited(Level::Error, "move", Entry::new("move", text));
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
        let ready = state.ready.as_mut().ok_or_else(not_ready)?;
        let roles = Arc::clone(&ready.roles);
        let tables = match ready.tables.take() {
            None => self.tables(&roles)?,
            tables => tables,
        };
        let options = self.gateway_options(state.shows_nodes);
        let listeners = state.listeners.as_ref().map(Listeners::try_clone).transpose().map_err(failed)?;
        if let (Some(rpc), Some(tables)) = (&self.parts.rpc, tables) {
            rpc.serve_cluster(tables).map_err(failed)?;
        }
        let started = self.runtime.block_on(async {
            match listeners {
                Some(listeners) => Gateway::start_on(roles, options, listeners),
                None => Gateway::start(roles, options).await,
            }
        });
        match started {
            Ok(gateway) => state.gateway = Some(Arc::new(gateway)),
            Err(error) => {
                self.pause_old_interface(Duration::ZERO);
                return Err(failed(error));
            }
        }
        state.listeners = None;
        state.is_paused = false;
        Ok(())
    }

    /// Lets the target answer clients, who are served by either side now or wait.
    fn begin_at_cluster(&self, state: &mut State, shows_nodes: bool) -> Result<(), FrontError> {
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
        match state.listeners.take() {
            Some(Listeners { first, encrypted, also }) => {
                let listeners = native::Listeners { first, encrypted, shard_aware: also };
                native.take_back(listeners).map_err(failed)
            }
            None => native.resume().map_err(failed),
        }
    }

    /// Lets the database answer, on sockets that the native server listens on.
    fn serve_here(&self, state: &mut State) {
        self.parts.native.go_on();
        state.is_paused = false;
        if let Some(Err(error)) = self.parts.rpc.as_ref().map(OldInterface::serve_here) {
            let text = format!("the old RPC interface: {error}; stop the server and start it again");
            self.parts.log.write(Level::Error, &Entry::new("move", text));
        }
    }

    fn say(&self, text: &str) {
        self.parts.log.write(Level::Info, &Entry::new("move", text.to_owned()));
    }
}

impl Front for ServerFront {
    fn side(&self) -> Side {
        self.state.lock().side
    }

    fn make_ready(&self, order: &MoveOrder) -> Result<(), FrontError> {
        let mut reasons = gateway::unsupported(&self.parts.config);
        if self.parts.local.logs_in_by_certificate() {
            reasons.push(
                "logins by certificates, which the target would not see: set authenticator to PasswordAuthenticator",
            );
        }
        if !reasons.is_empty() {
            let text = format!(
                "after the cut this server is a gateway, which does not support\n  {}",
                reasons.join("\n  ")
            );
            return Err(FrontError::Failed(text));
        }
        let of_target = |error: &dyn std::fmt::Display| FrontError::Failed(format!("the target: {error}"));
        let mut options = cluster_options(order).map_err(|error| FrontError::Failed(error.to_string()))?;
        options.driver_name = "Helenus gateway".to_owned();
        options.must_log_in = self.has_logins();
        let cluster = self.runtime.block_on(Cluster::connect(options)).map_err(|error| of_target(&error))?;
        let roles = Arc::new(Roles::new(cluster, self.has_logins()));
        let tables = self.tables(&roles)?;
        self.state.lock().ready = Some(Ready { roles, tables });
        Ok(())
    }

    fn written(&self) -> Option<Arc<WrittenPartitions>> {
        let state = self.state.lock();
        state.ready.as_ref().map(|ready| Arc::clone(ready.roles.written()))
    }

    fn pause(&self, within: Duration) -> Result<(), FrontError> {
        let begun = Instant::now();
        let mut state = self.state.lock();
        match state.side {
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
                    self.serve_by_cluster(&mut state)?;
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
        let serves = match state.side {
            Side::Local => {
                self.serve_here(&mut state);
                Ok(())
            }
            Side::Cluster => self.serve_by_cluster(&mut state),
        };
        if let Err(error) = serves {
            let text = format!("clients cannot be served: {error}; stop the server and start it again");
            self.parts.log.write(Level::Error, &Entry::new("move", text));
        }
    }

    fn to_cluster(&self, shows_nodes: bool) -> Result<(), FrontError> {
        self.begin_at_cluster(&mut self.state.lock(), shows_nodes)
    }

    fn to_local(&self) -> Result<(), FrontError> {
        let mut state = self.state.lock();
        if let Some(gateway) = state.gateway.take() {
            state.listeners = gateway.give_listeners();
            self.runtime.block_on(gateway.drain(DRAIN));
            self.pause_old_interface(DRAIN);
        }
        self.listen_here(&mut state)?;
        self.serve_here(&mut state);
        state.side = Side::Local;
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
