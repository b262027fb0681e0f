//! A message comes in, its answer is appended: which call it is, and what its failures become.

use crate::error::{Result, RpcError};
use crate::node::Node;
use crate::prepared::PreparedStatements;
use crate::session::Session;
use crate::trace;
use crate::words::Refused;
use helenus_cql::backend::ANALYSED_AT_ONCE_BYTES;
use helenus_cql::{CqlError, LocalBackend};
use helenus_engine::account;
use helenus_engine::read::Probe;
use helenus_engine::{Database, ReadRequest, Ticket, contain};

use helenus_model::mutation::Mutation;
use helenus_wire::thrift::{
    ApplicationFailure, Call, Exception, Message, MessageHead, MessageKind, Method, Reader, Reply,
    ThriftError, put_failure,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a message from which on its room is asked for on the account of memory.
pub const LARGE_MESSAGE_BYTES: usize = 256 << 10;

/// The interface over a database.
pub struct Rpc {
    backend: Arc<LocalBackend>,
    pub(crate) node: Node,
    pub(crate) prepared: PreparedStatements,
}

/// What became of a message.
pub enum Done {
    /// Its answer is written, and may leave.
    Answered,
    /// Likewise, and it is an exception.
    Refused(Refused),
    /// Its answer is written, and may leave once the ticket is ready; if it never is, `Rpc::not_written` answers instead.
    Held(Call, Ticket),
    /// It needs the disk: nothing is written; call it again where it may block.
    WouldBlock,
    /// Its client has gone (`Manner::cancelled`): nothing is written, and nothing has failed.
    Cancelled,
}

/// What a call left in the answer.
pub(crate) enum Left {
    /// Its result, whole.
    Result,
    /// Its result, true once the ticket is ready.
    Promise(Ticket),
}

/// A call at work: where its answer goes, and what it may do.
pub(crate) struct Work<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) manner: Manner<'a>,
    pub(crate) reply: Reply,
    pub(crate) out: &'a mut Vec<u8>,
}

/// How a call is done.
#[derive(Clone, Copy, Default)]
pub struct Manner<'a> {
    /// Whether it may wait for the disk.
    pub may_block: bool,
    /// What counts what it touches, if somebody watches; a call that is traced has one of its own.
    pub probe: Option<&'a Mutex<Probe>>,
    /// Set when its client has gone: what it reads is for nobody then, and ends.
    pub cancelled: Option<&'a AtomicBool>,
}

impl<'a> Manner<'a> {
    /// What a read may do.
    pub(crate) fn read(self) -> ReadRequest<'a> {
        ReadRequest { may_block: self.may_block, cancelled: self.cancelled, ..ReadRequest::default() }
    }

    /// Puts a long statement off to where the call may wait: to read it takes time by its bytes.
    pub(crate) fn check_length(self, bytes: usize) -> Result<()> {
        if !self.may_block && bytes > ANALYSED_AT_ONCE_BYTES { Err(RpcError::WouldBlock) } else { Ok(()) }
    }

    /// Ends a call of many short reads, none of which takes long enough to be asked.
    pub(crate) fn go_on(self) -> Result<()> {
        match self.cancelled {
            Some(cancelled) if cancelled.load(Ordering::Relaxed) => {
                Err(helenus_engine::Error::Cancelled.into())
            }
            _ => Ok(()),
        }
    }

    /// Notes what was written.
    pub(crate) fn wrote(self, mutation: &Mutation) {
        if let Some(probe) = self.probe {
            probe.lock().count_write(mutation);
        }
    }
}

/// Longest message that a listener's thread answers by itself.
const MESSAGE_AT_ONCE_BYTES: usize = 1 << 20;

/// The same of changes, of which each is looked at: some thousand.
const CHANGES_AT_ONCE_BYTES: usize = 128 << 10;

/// Whether a call takes long by what is known of it before it is read: its bytes, or that it shows the schema.
fn is_long(method: Method, bytes: usize) -> bool {
    match method {
        Method::BatchMutate | Method::AtomicBatchMutate => bytes > CHANGES_AT_ONCE_BYTES,
        Method::DescribeKeyspaces | Method::DescribeKeyspace => true,
        _ => bytes > MESSAGE_AT_ONCE_BYTES,
    }
}

impl Rpc {
    /// Over a backend; `node` is what clients are told of this server.
    pub fn new(backend: Arc<LocalBackend>, node: Node) -> Rpc {
        Rpc { backend, node, prepared: PreparedStatements::default() }
    }

    pub(crate) fn backend(&self) -> &LocalBackend {
        &self.backend
    }

    /// The database.
    pub fn database(&self) -> &Database {
        self.backend.database()
    }

    /// Answers a message. The answer goes to the end of `out`.
    ///
    /// # Errors
    /// When the bytes are no message at all: the connection is to end.
    pub fn call(
        &self,
        message: &Message<'_>,
        session: &mut Session,
        manner: Manner<'_>,
        out: &mut Vec<u8>,
    ) -> std::result::Result<Done, ThriftError> {
        let mut reader = Reader::new(message.bytes);
        let head = MessageHead::read(&mut reader)?;
        if !matches!(head.kind, MessageKind::Call | MessageKind::Oneway) {
            let failure = (ApplicationFailure::InvalidMessageType, "Only calls are answered");
            put_failure((head.name, head.number), failure, message.framing, out);
            return Ok(Done::Refused(Refused::of_failure(failure.0, failure.1)));
        }
        let Some(method) = Method::of_name(head.name) else {
            let text = format!("Invalid method name: '{}'", String::from_utf8_lossy(head.name));
            let failure = (ApplicationFailure::UnknownMethod, &*text);
            put_failure((head.name, head.number), failure, message.framing, out);
            return Ok(Done::Refused(Refused::of_failure(failure.0, failure.1)));
        };
        let call = Call { method, number: head.number, framing: message.framing };
        let at = out.len();
        let reply = Reply::begin(call, out);
        let traced = trace::begin(method, session, self.database());
        let probe = traced.as_ref().map(|_| Mutex::new(Probe::default()));
        let manner = Manner { probe: probe.as_ref().or(manner.probe), ..manner };
        let mut work = Work { session, manner, reply, out };
        let arguments = reader.clone();
        // A write packs its values, and the log has a record of them.
        let has_room = if message.bytes.len() >= LARGE_MESSAGE_BYTES {
            account::grow(2 * message.bytes.len())
        } else {
            Ok(())
        };
        // The panic hook has told what happened: here one call fails, and its connection goes on.
        let done = contain(|| match has_room {
            Ok(()) if is_long(method, message.bytes.len()) && !manner.may_block => Err(RpcError::WouldBlock),
            Ok(()) => self.dispatch(method, &mut reader, &mut work),
            Err(refusal) => Err(CqlError::from(refusal).into()),
        });
        let done = done
            .unwrap_or_else(|_| Err(RpcError::Internal("a bug; the server's log has its place".to_owned())));
        if let (Some(traced), Some(probe)) = (traced, probe) {
            match done {
                // It is called again where it may block.
                Err(RpcError::WouldBlock) => session.traced_next = Some(traced.session),
                _ => self.keep_trace(&traced, (method, arguments), session.client, &probe.into_inner()),
            }
        }
        match done {
            Ok(Left::Result) => Ok(Done::Answered),
            Ok(Left::Promise(ticket)) => Ok(Done::Held(call, ticket)),
            Err(RpcError::WouldBlock) => {
                out.truncate(at);
                Ok(Done::WouldBlock)
            }
            Err(RpcError::Cancelled) => {
                out.truncate(at);
                Ok(Done::Cancelled)
            }
            Err(RpcError::Thrown(exception)) => {
                reply.exception(&exception, out);
                Ok(Refused::of_exception(&exception).map_or(Done::Answered, Done::Refused))
            }
            Err(RpcError::Arguments(error)) => {
                let (failure, text) = (ApplicationFailure::Protocol, error.to_string());
                reply.failure(failure, &text, out);
                Ok(Done::Refused(Refused::of_failure(failure, &text)))
            }
            Err(RpcError::Internal(text)) => {
                let text = format!("Internal error processing {}: {text}", method.name());
                reply.failure(ApplicationFailure::Internal, &text, out);
                Ok(Done::Refused(Refused::of_failure(ApplicationFailure::Internal, &text)))
            }
        }
    }

    /// The answer to a call whose ticket never became ready.
    pub fn not_written(&self, call: Call, out: &mut Vec<u8>) {
        Reply::begin(call, out).exception(&Exception::TimedOut, out);
    }

    /// Hands what has been written so far to the operating system; once for all calls that came together.
    ///
    /// # Errors
    /// When the log has failed; tickets say so too.
    pub fn write_out(&self) -> std::result::Result<(), helenus_engine::Error> {
        self.database().write_out()
    }

    fn dispatch(&self, method: Method, reader: &mut Reader<'_>, work: &mut Work<'_>) -> Result<Left> {
        match method {
            Method::GetSlice => self.get_slice(reader, work),
            Method::BatchMutate => self.batch_mutate(reader, true, work),
            Method::Get => self.get(reader, work),
            Method::Insert => self.insert(reader, work),
            Method::MultigetSlice => self.multiget_slice(reader, work),
            Method::GetCount => self.get_count(reader, work),
            Method::MultigetCount => self.multiget_count(reader, work),
            Method::GetRangeSlices => self.get_range_slices(reader, work),
            Method::GetPagedSlice => self.get_paged_slice(reader, work),
            Method::GetIndexedSlices => self.get_indexed_slices(reader, work),
            Method::GetMultiSlice => self.get_multi_slice(reader, work),
            Method::Add => self.add(reader, work),
            Method::Cas => self.cas(reader, work),
            Method::Remove => self.remove(reader, work),
            Method::RemoveCounter => self.remove_counter(reader, work),
            Method::AtomicBatchMutate => self.batch_mutate(reader, false, work),
            Method::Truncate => self.truncate(reader, work),
            Method::Login | Method::SetKeyspace | Method::SetCqlVersion => self.enter(method, reader, work),
            Method::DescribeSchemaVersions
            | Method::DescribeClusterName
            | Method::DescribeVersion
            | Method::DescribeRing
            | Method::DescribeLocalRing
            | Method::DescribeTokenMap
            | Method::DescribePartitioner
            | Method::DescribeSnitch
            | Method::DescribeSplits
            | Method::DescribeSplitsEx
            | Method::TraceNextQuery => self.describe_server(method, reader, work),
            Method::DescribeKeyspaces | Method::DescribeKeyspace => {
                self.describe_schema(method, reader, work)
            }
            Method::SystemAddColumnFamily
            | Method::SystemDropColumnFamily
            | Method::SystemAddKeyspace
            | Method::SystemDropKeyspace
            | Method::SystemUpdateKeyspace
            | Method::SystemUpdateColumnFamily => self.change_schema(method, reader, work),
            Method::ExecuteCql3Query => self.execute_cql3(reader, work),
            Method::PrepareCql3Query => self.prepare_cql3(reader, work),
            Method::ExecutePreparedCql3Query => self.execute_prepared_cql3(reader, work),
            Method::ExecuteCqlQuery => self.execute_first(reader, work),
            Method::PrepareCqlQuery => self.prepare_first(reader, work),
            Method::ExecutePreparedCqlQuery => self.execute_prepared_first(reader, work),
        }
    }
}
