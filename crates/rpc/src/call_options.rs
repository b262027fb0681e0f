//! How a call may be executed: whether it may block, at which consistency level, as whom.

use crate::error::{Result, RpcError};
use helenus_cql::backend::{ANALYSED_AT_ONCE_BYTES, AnswerMemory, Identity, InFlight};
use helenus_engine::ReadRequest;
use helenus_engine::read::Probe;
use helenus_model::mutation::Mutation;
use helenus_wire::thrift::ConsistencyLevel;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a storage keeps for a client that has logged in, for as long as the client's session.
pub type LoginHandle = Arc<dyn Any + Send + Sync>;

/// The turn of a login that is to be checked, until all copies are dropped.
pub type LoginTurn = Arc<dyn Any + Send + Sync>;

/// The consistency level's number in the native protocol.
pub(crate) fn native_level(level: ConsistencyLevel) -> u16 {
    match level {
        ConsistencyLevel::Any => 0x00,
        ConsistencyLevel::One => 0x01,
        ConsistencyLevel::Two => 0x02,
        ConsistencyLevel::Three => 0x03,
        ConsistencyLevel::Quorum => 0x04,
        ConsistencyLevel::All => 0x05,
        ConsistencyLevel::LocalQuorum => 0x06,
        ConsistencyLevel::EachQuorum => 0x07,
        ConsistencyLevel::Serial => 0x08,
        ConsistencyLevel::LocalSerial => 0x09,
        ConsistencyLevel::LocalOne => 0x0A,
    }
}

/// A call among those in flight of its client's role, until this is dropped: from its arrival until its answer may be sent.
#[derive(Debug)]
pub struct Arrival {
    /// `None`: nothing is counted for the role, or there is no room.
    in_flight: Option<InFlight>,
    /// Why the role may have no further call in flight.
    pub(crate) refusal: Option<String>,
}

impl Arrival {
    /// Counts a call of this many bytes.
    #[inline]
    pub(crate) fn of(identity: &Identity, bytes: usize) -> Arrival {
        match identity.begin(bytes) {
            Ok(in_flight) => Arrival { in_flight, refusal: None },
            Err(refusal) => Arrival { in_flight: None, refusal: Some(refusal.to_string()) },
        }
    }

    /// What keeps the call counted.
    pub fn into_in_flight(self) -> Option<InFlight> {
        self.in_flight
    }
}

/// How a call may be executed.
#[derive(Clone, Copy)]
pub struct CallOptions<'a> {
    /// Whether the call may wait for the disk.
    pub may_block: bool,
    /// Counts the work of the call, if it is observed. A traced call has a probe of its own.
    pub probe: Option<&'a Mutex<Probe>>,
    /// Set when the client is gone; the call's reads then end early.
    pub cancelled: Option<&'a AtomicBool>,
    /// The consistency level that the call names, as the native protocol numbers it. The call sets it.
    pub consistency: u16,
    /// Whether a login is refused unchecked, because too many wait.
    pub refuses_login: bool,
    /// Why no call is run at all now.
    pub refused: Option<&'a str>,
    /// When a read ends, by the limit of the client's role. The call sets it.
    pub deadline_ns: Option<u64>,
    /// The client, if its role has limits. The call sets it.
    pub limited: Option<&'a Identity>,
    /// What its answer takes of the memory of the client's role. The call sets it.
    pub memory: Option<&'a Mutex<AnswerMemory>>,
    /// The call among those of the client's role, where its caller has counted it; else it counts until the call returns.
    pub arrival: Option<&'a Arrival>,
    /// What the storage keeps of the client's login. The session sets it.
    pub login: Option<&'a LoginHandle>,
    /// The turn of a login that has waited for it (`Rpc::login_turn`).
    pub login_turn: Option<&'a LoginTurn>,
}

impl Default for CallOptions<'_> {
    /// A call that may not block, at level ONE.
    fn default() -> Self {
        let consistency = native_level(ConsistencyLevel::One);
        CallOptions {
            may_block: false,
            probe: None,
            cancelled: None,
            consistency,
            refuses_login: false,
            refused: None,
            deadline_ns: None,
            limited: None,
            memory: None,
            arrival: None,
            login: None,
            login_turn: None,
        }
    }
}

impl<'a> CallOptions<'a> {
    /// Takes over the consistency level of the call.
    pub(crate) fn at(&mut self, level: ConsistencyLevel) {
        self.consistency = native_level(level);
    }

    /// The engine's parameters of a read.
    pub(crate) fn read(self) -> ReadRequest<'a> {
        ReadRequest {
            may_block: self.may_block,
            deadline_ns: self.deadline_ns,
            cancelled: self.cancelled,
            ..ReadRequest::default()
        }
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
