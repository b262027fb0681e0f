//! The front of a running server: its listener of the native protocol, served by the database or, after a cut, by the target of a move.
//!
//! The mover calls it (`helenus_mover::Front`). At a cut the native server hands the sockets of its clients and of its listeners to a
//! gateway in this process: clients keep their connections, but those by TLS. At a rollback connections are closed after their
//! answers, and the native server gets the listeners back.

use super::gateway;
use helenus_cluster::Cluster;
use helenus_cql::LocalBackend;
use helenus_cql::backend::Backend;
use helenus_gateway::{Gateway, GatewayOptions, OwnNode};
use helenus_mover::{CutOver, Front, FrontError, MoveOrder, Side, cluster_options};
use helenus_server::config::ServerConfig;
use helenus_server::log::{Entry, Level, Log};
use helenus_server::native::{Listeners, NativeServer};
use helenus_tls::ServerTls;
use parking_lot::Mutex;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// The pause before a target that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// How long requests in flight may take to be answered at the end.
const DRAIN: Duration = Duration::from_secs(5);

/// The listener of a server.
pub struct ServerFront {
    native: Arc<NativeServer>,
    local: Arc<LocalBackend>,
    config: ServerConfig,
    tls: Option<Arc<ServerTls>>,
    log: Arc<Log>,
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
    /// The connected target.
    cluster: Option<Cluster>,
    /// While the target answers and there is no pause.
    gateway: Option<Arc<Gateway>>,
    /// The sockets that clients connect to, while neither side listens.
    listeners: Option<Vec<TcpListener>>,
}

impl ServerFront {
    /// The front of a native server. `side`: of the target if the server starts after a cut; then the native server has no listener,
    /// and `begin_at` opens one.
    ///
    /// # Errors
    /// No threads can be started.
    pub(super) fn new(
        (native, local): (&Arc<NativeServer>, &Arc<LocalBackend>),
        config: &ServerConfig,
        tls: Option<&Arc<ServerTls>>,
        log: &Arc<Log>,
        side: Side,
    ) -> std::io::Result<Arc<ServerFront>> {
        let threads = helenus_host::real::cores().max(1);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let is_paused = side == Side::Cluster;
        let state = State {
            side,
            is_paused,
            is_stopped: false,
            shows_nodes: false,
            cluster: None,
            gateway: None,
            listeners: None,
        };
        Ok(Arc::new(ServerFront {
            native: Arc::clone(native),
            local: Arc::clone(local),
            config: config.clone(),
            tls: tls.cloned(),
            log: Arc::clone(log),
            runtime,
            state: Mutex::new(state),
        }))
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
            while !front.state.lock().is_stopped {
                front.runtime.block_on(tokio::time::sleep(AGAIN));
                if front.try_begin_at(&cut) {
                    return;
                }
            }
        });
    }

    fn try_begin_at(&self, cut: &CutOver) -> bool {
        let shows_nodes = self.local.database().wall_us() > cut.rollback_until_us;
        let begun = self.make_ready(&cut.order).and_then(|()| self.to_cluster(shows_nodes));
        if let Err(error) = &begun {
            let text = format!("clients cannot be served yet: {error}; it is tried again");
            self.log.write_rate_limited(Level::Error, "move", Entry::new("move", text));
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
            Side::Local => self.native.is_running(),
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
        self.native.stop();
    }

    /// Starts a gateway on the sockets that clients connect to; on new ones if there are none.
    fn serve_by_cluster(&self, state: &mut State) -> Result<(), FrontError> {
        if state.is_stopped {
            return Err(FrontError::Failed("the server is stopping".to_owned()));
        }
        let not_ready = || FrontError::Failed("the target is not connected".to_owned());
        let cluster = state.cluster.clone().ok_or_else(not_ready)?;
        let options = self.gateway_options(state.shows_nodes);
        let listeners = match &state.listeners {
            Some(listeners) => Some(
                listeners
                    .iter()
                    .map(TcpListener::try_clone)
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(failed)?,
            ),
            None => None,
        };
        let started = self.runtime.block_on(async {
            match listeners {
                Some(listeners) => Gateway::start_on(cluster, options, listeners),
                None => Gateway::start(cluster, options).await,
            }
        });
        state.gateway = Some(Arc::new(started.map_err(failed)?));
        state.listeners = None;
        state.is_paused = false;
        Ok(())
    }

    /// A gateway that clients take for the server which they know.
    fn gateway_options(&self, shows_nodes: bool) -> GatewayOptions {
        let mut options = gateway::options(&self.config, self.native.address(), self.tls.clone());
        options.shows_nodes = shows_nodes;
        options.own_node = Some(OwnNode {
            host_id: self.local.database().host_id(),
            cluster_name: self.config.cluster_name.clone(),
            datacenter: self.config.datacenter.clone(),
            rack: self.config.rack.clone(),
        });
        let local = Arc::clone(&self.local);
        options.known_statements = Some(Arc::new(move |id| {
            let known = local.prepared(id).ok().flatten()?;
            Some((known.keyspace.as_deref().map(str::to_owned), known.query.to_string()))
        }));
        options
    }

    /// Lets the native server listen on the sockets that clients connect to. They wait until `go_on`.
    fn listen_here(&self, state: &mut State) -> Result<(), FrontError> {
        let mut listeners = state.listeners.take().unwrap_or_default().into_iter();
        match listeners.next() {
            Some(first) => {
                let listeners = Listeners { first, encrypted: None, shard_aware: listeners.next() };
                self.native.take_back(listeners).map_err(failed)
            }
            None => self.native.resume().map_err(failed),
        }
    }

    fn serve_here(&self, state: &mut State) -> Result<(), FrontError> {
        self.listen_here(state)?;
        self.native.go_on();
        state.is_paused = false;
        Ok(())
    }

    fn say(&self, text: &str) {
        self.log.write(Level::Info, &Entry::new("move", text.to_owned()));
    }
}

impl Front for ServerFront {
    fn side(&self) -> Side {
        self.state.lock().side
    }

    fn make_ready(&self, order: &MoveOrder) -> Result<(), FrontError> {
        let mut reasons = gateway::unsupported(&self.config);
        if self.config.rpc.is_some() {
            // Its calls would go on here.
            reasons.push("the old RPC interface: leave --rpc and start_rpc out");
        }
        if !reasons.is_empty() {
            let text = format!(
                "after the cut this server is a gateway, which does not support\n  {}",
                reasons.join("\n  ")
            );
            return Err(FrontError::Failed(text));
        }
        let mut options = cluster_options(order).map_err(|error| FrontError::Failed(error.to_string()))?;
        options.driver_name = "Helenus gateway".to_owned();
        let cluster = self.runtime.block_on(Cluster::connect(options));
        self.state.lock().cluster = Some(cluster.map_err(|error| FrontError::Failed(error.to_string()))?);
        Ok(())
    }

    fn pause(&self, within: Duration) -> Result<(), FrontError> {
        let begun = Instant::now();
        let mut state = self.state.lock();
        match state.side {
            Side::Local => self
                .native
                .halt(within)
                .map_err(|not_at_rest| FrontError::Busy { requests: not_at_rest.connections, within })?,
            Side::Cluster => {
                let Some(gateway) = state.gateway.take() else {
                    return Err(FrontError::Failed("clients are not served at this moment".to_owned()));
                };
                state.listeners = Some(gateway.give_listeners());
                self.runtime.block_on(gateway.drain(within));
                if begun.elapsed() >= within {
                    self.serve_by_cluster(&mut state)?;
                    return Err(FrontError::Busy { requests: 1, within });
                }
            }
        }
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
                self.native.go_on();
                state.is_paused = false;
                Ok(())
            }
            Side::Cluster => self.serve_by_cluster(&mut state),
        };
        if let Err(error) = serves {
            let text = format!("clients cannot be served: {error}; stop the server and start it again");
            self.log.write(Level::Error, &Entry::new("move", text));
        }
    }

    fn to_cluster(&self, shows_nodes: bool) -> Result<(), FrontError> {
        let mut state = self.state.lock();
        state.shows_nodes = shows_nodes;
        if state.side == Side::Local {
            state.listeners = self.native.give_listeners().map(sockets);
        }
        if let Err(error) = self.serve_by_cluster(&mut state) {
            if state.side == Side::Local
                && let Err(error) = self.listen_here(&mut state)
            {
                let text = format!("clients cannot connect: {error}; stop the server and start it again");
                self.log.write(Level::Error, &Entry::new("move", text));
            }
            return Err(error);
        }
        if let Some(gateway) = &state.gateway {
            let gateway = Arc::downgrade(gateway);
            self.native.hand_over(Box::new(move |socket, connection| {
                // Without the gateway the server is stopping, and the connection ends.
                if let Some(gateway) = gateway.upgrade() {
                    gateway.take(socket, connection);
                }
            }));
        }
        state.side = Side::Cluster;
        drop(state);
        self.say("clients are served by the target of the move from now on");
        Ok(())
    }

    fn to_local(&self) -> Result<(), FrontError> {
        let mut state = self.state.lock();
        if let Some(gateway) = state.gateway.take() {
            state.listeners = Some(gateway.give_listeners());
            self.runtime.block_on(gateway.drain(DRAIN));
        }
        self.serve_here(&mut state)?;
        state.side = Side::Local;
        drop(state);
        self.say("clients are served by this database again");
        Ok(())
    }
}

fn failed(error: impl std::fmt::Display) -> FrontError {
    FrontError::Failed(error.to_string())
}

/// The sockets for clients; the one for TLS alone is not there, because a gateway has none.
fn sockets(listeners: Listeners) -> Vec<TcpListener> {
    std::iter::once(listeners.first).chain(listeners.shard_aware).collect()
}
