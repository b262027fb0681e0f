//! The front of a running server: its listener of the native protocol, served by the database or, after a cut, by the target of a move.
//!
//! The mover calls it (`helenus_mover::Front`). A pause answers what was begun and closes all connections and the listener; then either the
//! native server or a gateway listens on the same address, and clients come back to it by themselves.

use super::gateway;
use helenus_cluster::Cluster;
use helenus_gateway::Gateway;
use helenus_mover::{Front, FrontError, MoveOrder, Side, cluster_options};
use helenus_server::config::ServerConfig;
use helenus_server::log::{Entry, Level, Log};
use helenus_server::native::NativeServer;
use helenus_tls::ServerTls;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// The pause between two looks at the connections that are left.
const LOOK: Duration = Duration::from_millis(2);
/// The pause before a target that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// How long requests in flight may take to be answered at the end.
const DRAIN: Duration = Duration::from_secs(5);

/// The listener of a server.
pub struct ServerFront {
    native: Arc<NativeServer>,
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
    /// The connected target.
    cluster: Option<Cluster>,
    /// While the target answers and there is no pause.
    gateway: Option<Gateway>,
}

impl ServerFront {
    /// The front of a native server. `side`: of the target if the server starts after a cut; then the native server has no listener,
    /// and `begin_at` opens one.
    ///
    /// # Errors
    /// No threads can be started.
    pub(super) fn new(
        native: &Arc<NativeServer>,
        config: &ServerConfig,
        tls: Option<&Arc<ServerTls>>,
        log: &Arc<Log>,
        side: Side,
    ) -> std::io::Result<Arc<ServerFront>> {
        let threads = helenus_host::real::cores().max(1);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let is_paused = side == Side::Cluster;
        let state = State { side, is_paused, is_stopped: false, cluster: None, gateway: None };
        Ok(Arc::new(ServerFront {
            native: Arc::clone(native),
            config: config.clone(),
            tls: tls.cloned(),
            log: Arc::clone(log),
            runtime,
            state: Mutex::new(state),
        }))
    }

    /// Serves by the target, for a server that starts after a cut. If the target cannot be reached, it is tried again, and meanwhile
    /// no client is admitted.
    pub(super) fn begin_at(self: &Arc<ServerFront>, order: MoveOrder) {
        if self.try_begin_at(&order) {
            return;
        }
        let front = Arc::clone(self);
        // It ends with the server's runtime.
        let _task = self.runtime.spawn_blocking(move || {
            while !front.state.lock().is_stopped {
                front.runtime.block_on(tokio::time::sleep(AGAIN));
                if front.try_begin_at(&order) {
                    return;
                }
            }
        });
    }

    fn try_begin_at(&self, order: &MoveOrder) -> bool {
        let begun = self.make_ready(order).and_then(|()| self.to_cluster());
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

    fn listen_by_cluster(&self, state: &mut State) -> Result<(), FrontError> {
        if state.is_stopped {
            return Err(FrontError::Failed("the server is stopping".to_owned()));
        }
        let not_ready = || FrontError::Failed("the target is not connected".to_owned());
        let cluster = state.cluster.clone().ok_or_else(not_ready)?;
        let options = gateway::options(&self.config, self.native.address(), self.tls.clone());
        let started = self.runtime.block_on(Gateway::start(cluster, options));
        state.gateway = Some(started.map_err(|error| FrontError::Failed(error.to_string()))?);
        state.is_paused = false;
        Ok(())
    }

    fn listen_here(&self, state: &mut State) -> Result<(), FrontError> {
        self.native.resume().map_err(|error| FrontError::Failed(error.to_string()))?;
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
            Side::Local => {
                self.native.pause();
                while self.native.connections_count() > 0 && begun.elapsed() < within {
                    self.runtime.block_on(tokio::time::sleep(LOOK));
                }
                let requests = self.native.connections_count();
                if requests > 0 {
                    self.listen_here(&mut state)?;
                    return Err(FrontError::Busy { requests, within });
                }
            }
            Side::Cluster => {
                let Some(gateway) = state.gateway.take() else {
                    return Err(FrontError::Failed("clients are not served at this moment".to_owned()));
                };
                self.runtime.block_on(gateway.drain(within));
                drop(gateway);
                if begun.elapsed() >= within {
                    self.listen_by_cluster(&mut state)?;
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
        let listens = match state.side {
            Side::Local => self.listen_here(&mut state),
            Side::Cluster => self.listen_by_cluster(&mut state),
        };
        if let Err(error) = listens {
            let text = format!("clients cannot be served: {error}; stop the server and start it again");
            self.log.write(Level::Error, &Entry::new("move", text));
        }
    }

    fn to_cluster(&self) -> Result<(), FrontError> {
        let mut state = self.state.lock();
        self.listen_by_cluster(&mut state)?;
        state.side = Side::Cluster;
        drop(state);
        self.say("clients are served by the target of the move from now on");
        Ok(())
    }

    fn to_local(&self) -> Result<(), FrontError> {
        let mut state = self.state.lock();
        if let Some(gateway) = state.gateway.take() {
            self.runtime.block_on(gateway.drain(DRAIN));
        }
        self.listen_here(&mut state)?;
        state.side = Side::Local;
        drop(state);
        self.say("clients are served by this database again");
        Ok(())
    }
}
