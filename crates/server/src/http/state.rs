//! The state that the HTTP port answers from. The port listens before the database is open, so that clients can follow
//! the start.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use helenus_cql::LocalBackend;
use helenus_cql::virtual_table::NodeInfo;
use helenus_engine::{Database, OpenProgress, OpenStage};
use parking_lot::RwLock;

use crate::audit::Audit;
use crate::log::{Log, SlowStatements};
use crate::native::NativeServer;
use crate::policy::FailurePolicies;
use crate::rpc::RpcServer;

/// The state of a server for the HTTP port.
pub struct HttpState {
    pub(super) log: Arc<Log>,
    pub(super) slow: Arc<SlowStatements>,
    pub(super) policies: Arc<FailurePolicies>,
    /// Connections to the HTTP port whose handshake of TLS failed.
    pub(super) handshakes_failed: AtomicU64,
    stage: RwLock<Stage>,
}

#[derive(Clone)]
pub(super) enum Stage {
    /// The database is being opened.
    Opening(Arc<OpenProgress>),
    /// The database is open; clients are served unless a policy forbids it.
    Open(Arc<Watched>),
    /// The server is stopping.
    Stopping(Option<Arc<Watched>>),
}

/// The parts of an open server that are monitored.
pub struct Watched {
    /// The database.
    pub database: Arc<Database>,
    /// The server of the native protocol.
    pub native: Arc<NativeServer>,
    /// The server of the old RPC interface, if there is one.
    pub rpc: Option<Arc<RpcServer>>,
    /// The description of the node for clients.
    pub node: NodeInfo,
    /// The data directory; `None` in memory.
    pub directory: Option<PathBuf>,
    /// Checks logins.
    pub backend: Arc<LocalBackend>,
    /// The audit log.
    pub audit: Arc<Audit>,
    /// Version of the program.
    pub version: &'static str,
}

impl HttpState {
    /// The state of a server that is about to open its database.
    pub fn new(
        log: &Arc<Log>,
        slow: &Arc<SlowStatements>,
        policies: &Arc<FailurePolicies>,
        progress: &Arc<OpenProgress>,
    ) -> Arc<HttpState> {
        Arc::new(HttpState {
            log: Arc::clone(log),
            slow: Arc::clone(slow),
            policies: Arc::clone(policies),
            handshakes_failed: AtomicU64::default(),
            stage: RwLock::new(Stage::Opening(Arc::clone(progress))),
        })
    }

    /// Records that clients are served.
    pub fn opened(&self, watched: Watched) {
        *self.stage.write() = Stage::Open(Arc::new(watched));
    }

    /// Records that the server is about to stop.
    pub fn stopping(&self) {
        let mut stage = self.stage.write();
        let watched = match &*stage {
            Stage::Open(watched) => Some(Arc::clone(watched)),
            Stage::Opening(_) | Stage::Stopping(_) => None,
        };
        *stage = Stage::Stopping(watched);
    }

    /// Drops the database and the listeners.
    pub fn closed(&self) {
        *self.stage.write() = Stage::Stopping(None);
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.read().clone()
    }
}

/// The progress of opening, as text.
pub(super) fn opening_text(progress: &OpenProgress) -> String {
    match progress.stage() {
        OpenStage::ReadingLog(read, of) => {
            format!("reading the commit log: {} %", read * 100 / of.max(1))
        }
        OpenStage::Replaying(done, of) => format!("replaying the commit log: {} %", done * 100 / of.max(1)),
        OpenStage::Files => "opening files".to_owned(),
    }
}
