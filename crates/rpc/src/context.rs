//! The interface that calls belong to, and the context in which each call runs.

use crate::error::{Result, RpcError};
use crate::node::Node;
use crate::prepared::PreparedStatements;
use crate::session::Session;
use helenus_cql::LocalBackend;
use helenus_cql::backend::ANALYSED_AT_ONCE_BYTES;
use helenus_engine::read::Probe;
use helenus_engine::{Database, ReadRequest, Ticket};
use helenus_model::mutation::Mutation;
use helenus_wire::thrift::Reply;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The Thrift RPC interface of a database.
pub struct Rpc {
    backend: Arc<LocalBackend>,
    pub(crate) node: Node,
    pub(crate) prepared: PreparedStatements,
}

impl Rpc {
    /// Creates the interface. `node` is the description of this server for clients.
    pub fn new(backend: Arc<LocalBackend>, node: Node) -> Rpc {
        Rpc { backend, node, prepared: PreparedStatements::default() }
    }

    pub(crate) fn backend(&self) -> &LocalBackend {
        &self.backend
    }

    /// The database that the calls use.
    pub fn database(&self) -> &Database {
        self.backend.database()
    }
}

/// The state of the answer after a call.
pub(crate) enum ReplyState {
    /// The complete result.
    Result,
    /// A result that is valid once the ticket is ready.
    Promise(Ticket),
}

/// The context of a call: the session, the limits of its execution, and the buffer of its answer.
pub(crate) struct CallContext<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) manner: CallOptions<'a>,
    pub(crate) reply: Reply,
    pub(crate) out: &'a mut Vec<u8>,
}

/// How a call may be executed.
#[derive(Clone, Copy, Default)]
pub struct CallOptions<'a> {
    /// Whether the call may wait for the disk.
    pub may_block: bool,
    /// Counts the work of the call, if it is observed. A traced call has a probe of its own.
    pub probe: Option<&'a Mutex<Probe>>,
    /// Set when the client is gone; the call's reads then end early.
    pub cancelled: Option<&'a AtomicBool>,
}

impl<'a> CallOptions<'a> {
    /// The engine's parameters of a read.
    pub(crate) fn read(self) -> ReadRequest<'a> {
        ReadRequest { may_block: self.may_block, cancelled: self.cancelled, ..ReadRequest::default() }
    }

    /// Defers a long statement until the call may block, because parsing takes time in proportion to its bytes.
    pub(crate) fn check_length(self, bytes: usize) -> Result<()> {
        if !self.may_block && bytes > ANALYSED_AT_ONCE_BYTES { Err(RpcError::WouldBlock) } else { Ok(()) }
    }

    /// Ends a cancelled call. For calls of many reads, each too short to check for itself.
    pub(crate) fn go_on(self) -> Result<()> {
        match self.cancelled {
            Some(cancelled) if cancelled.load(Ordering::Relaxed) => {
                Err(helenus_engine::Error::Cancelled.into())
            }
            _ => Ok(()),
        }
    }

    /// Counts a write in the probe.
    pub(crate) fn wrote(self, mutation: &Mutation) {
        if let Some(probe) = self.probe {
            probe.lock().count_write(mutation);
        }
    }
}
