//! What the HTTP port answers from. It listens before the database is open, so that whoever waits for a server sees it come up.

use std::path::PathBuf;
use std::sync::Arc;

use helenus_cql::virtual_table::NodeInfo;
use helenus_engine::{Database, OpenProgress, OpenStage};
use parking_lot::RwLock;

use crate::log::{Log, SlowStatements};
use crate::native::NativeServer;
use crate::policy::FailurePolicies;
use crate::rpc::RpcServer;

/// The state of a server, as the HTTP port sees it.
pub struct HttpState {
    pub(super) log: Arc<Log>,
    pub(super) slow: Arc<SlowStatements>,
    pub(super) policies: Arc<FailurePolicies>,
    stage: RwLock<Stage>,
}

#[derive(Clone)]
pub(super) enum Stage {
    /// The database is being opened.
    Opening(Arc<OpenProgress>),
    /// Clients are served, unless a policy says otherwise.
    Open(Arc<Watched>),
    /// It ends.
    Stopping(Option<Arc<Watched>>),
}

/// What there is to watch once a server is open.
pub struct Watched {
    /// The database.
    pub database: Arc<Database>,
    /// The door of the native protocol.
    pub native: Arc<NativeServer>,
    /// That of the old RPC interface, if it is served.
    pub rpc: Option<Arc<RpcServer>>,
    /// What clients are told of the node.
    pub node: NodeInfo,
    /// Where the data is; none in memory.
    pub directory: Option<PathBuf>,
    /// Version of the program.
    pub version: &'static str,
}

impl HttpState {
    /// Of a server that is about to open its database.
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
            stage: RwLock::new(Stage::Opening(Arc::clone(progress))),
        })
    }

    /// Clients are served.
    pub fn opened(&self, watched: Watched) {
        *self.stage.write() = Stage::Open(Arc::new(watched));
    }

    /// The server is about to end.
    pub fn stopping(&self) {
        let mut stage = self.stage.write();
        let watched = match &*stage {
            Stage::Open(watched) => Some(Arc::clone(watched)),
            Stage::Opening(_) | Stage::Stopping(_) => None,
        };
        *stage = Stage::Stopping(watched);
    }

    /// Lets go of the database and the doors.
    pub fn closed(&self) {
        *self.stage.write() = Stage::Stopping(None);
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.read().clone()
    }
}

/// How far an opening is, for people.
pub(super) fn opening_text(progress: &OpenProgress) -> String {
    match progress.stage() {
        OpenStage::ReadingLog(read, of) => {
            format!("reading the commit log: {} %", read * 100 / of.max(1))
        }
        OpenStage::Replaying(done, of) => format!("replaying the commit log: {} %", done * 100 / of.max(1)),
        OpenStage::Files => "opening files".to_owned(),
    }
}
