//! The interface that calls belong to, and the context in which each call runs.

use crate::call_options::CallOptions;
use crate::error::{Result, invalid};
use crate::node::Node;
use crate::prepared::PreparedStatements;
use crate::session::Session;
use crate::storage::Storage;
use helenus_cql::LocalBackend;
use helenus_engine::{Listening, Ticket};
use helenus_wire::thrift::Reply;
use std::sync::Arc;

/// The Thrift RPC interface of a database.
pub struct Rpc {
    pub(crate) storage: Box<dyn Storage>,
    pub(crate) node: Node,
    pub(crate) prepared: PreparedStatements,
}

impl Rpc {
    /// Creates the interface of a local database. `node` is the description of this server for clients.
    pub fn new(backend: Arc<LocalBackend>, node: Node) -> Rpc {
        Rpc::of_storage(Box::new(backend), node)
    }

    /// Creates the interface of tables elsewhere.
    pub fn of_storage(storage: Box<dyn Storage>, node: Node) -> Rpc {
        Rpc { storage, node, prepared: PreparedStatements::default() }
    }

    /// The local database, for a call that needs more than reads and writes.
    ///
    /// # Errors
    /// The tables are elsewhere. `what`: the call or what it does.
    pub(crate) fn local(&self, what: &str) -> Result<&Arc<LocalBackend>> {
        match self.storage.local() {
            Some(local) => Ok(local),
            None => invalid(format!("{what} is not served by a gateway to a cluster; use CQL for it")),
        }
    }

    /// Calls `listener` whenever answers that are held may be ready to be sent, for as long as the result lives.
    pub fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening {
        self.storage.on_written(listener)
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
