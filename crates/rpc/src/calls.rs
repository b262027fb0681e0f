//! Decodes a message, dispatches its call, and appends the answer, also for failures.

use crate::call_options::CallOptions;
use crate::context::{CallContext, ReplyState, Rpc};
use crate::describe_call::Refused;
use crate::error::{Result, RpcError};
use crate::session::Session;
use crate::trace;
use helenus_cql::CqlError;
use helenus_cql::backend::Identity;
use helenus_engine::account;
use helenus_engine::read::Probe;
use helenus_engine::{Ticket, contain};
use helenus_wire::thrift::{
    ApplicationFailure, Call, Exception, Message, MessageHead, MessageKind, Method, Reader, Reply,
    ThriftError, Type, put_failure,
};
use parking_lot::Mutex;
use std::time::Duration;

/// Messages of this size or more are charged to the memory account.
pub const LARGE_MESSAGE_BYTES: usize = 256 << 10;

/// Bytes of a text, struct or container of a message once it is decoded, and of what a call makes of it (a key and its
/// token, a name in a set), beside its own bytes.
const PART_BYTES: usize = 128;

/// The outcome of a message.
pub enum CallOutcome {
    /// The answer is written and can be sent.
    Answered,
    /// The answer is written and can be sent; it is an exception.
    Refused(Refused),
    /// The answer is written and can be sent once the ticket is ready. If the ticket fails, `Rpc::not_written` writes
    /// the answer instead.
    Held(Call, Ticket),
    /// The call needs the disk. Nothing was written; call again where blocking is allowed.
    WouldBlock,
    /// The client is gone (`CallOptions::cancelled`). Nothing was written, and it is not a failure.
    Cancelled,
}

/// The most that is quoted of the name of an unknown method, bytes.
const NAME_BYTES_MAX: usize = 256;

/// Maximum bytes of a message that is handled on the listener's thread.
const MESSAGE_AT_ONCE_BYTES: usize = 1 << 20;

/// The same maximum for batches, whose mutations are handled one by one: several thousand of them.
const CHANGES_AT_ONCE_BYTES: usize = 128 << 10;

/// Whether a call takes long, by what is known before it is decoded: its bytes, or that it describes the schema.
fn is_long(method: Method, bytes: usize) -> bool {
    match method {
        Method::BatchMutate | Method::AtomicBatchMutate => bytes > CHANGES_AT_ONCE_BYTES,
        Method::DescribeKeyspaces | Method::DescribeKeyspace => true,
        _ => bytes > MESSAGE_AT_ONCE_BYTES,
    }
}

/// Asks for the memory of a large message's arguments and of what a call makes of them. Where the call may not take long
/// they are not counted yet.
fn room_for(
    message: &[u8],
    arguments: &Reader<'_>,
    may_block: bool,
) -> std::result::Result<(), account::Refusal> {
    if message.len() < LARGE_MESSAGE_BYTES {
        return Ok(());
    }
    let parts = if may_block { arguments.clone().parts(Type::Struct).unwrap_or(0) } else { 0 };
    // A write copies its values once to pack them and once into the log's record.
    account::grow(2 * message.len() + parts * PART_BYTES)
}

impl Rpc {
    /// The monotonic time in a while, for a storage of this process.
    fn ns_in(&self, time: Duration) -> Option<u64> {
        let now_ns = self.storage.local()?.database().host().clock.monotonic_ns();
        Some(now_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Answers a message. The answer is appended to `out`.
    ///
    /// # Errors
    /// The bytes are not a message: the connection must be closed.
    pub fn call(
        &self,
        message: &Message<'_>,
        session: &mut Session,
        manner: CallOptions<'_>,
        out: &mut Vec<u8>,
    ) -> std::result::Result<CallOutcome, ThriftError> {
        let mut reader = Reader::new(message.bytes);
        let head = MessageHead::read(&mut reader)?;
        if !matches!(head.kind, MessageKind::Call | MessageKind::Oneway) {
            let failure = (ApplicationFailure::InvalidMessageType, "Only calls are answered");
            put_failure((head.name, head.number), failure, message.framing, out);
            return Ok(CallOutcome::Refused(Refused::of_failure(failure.0, failure.1)));
        }
        let Some(method) = Method::of_name(head.name) else {
            // A name may be as long as a message.
            let name = head.name.get(..NAME_BYTES_MAX).unwrap_or(head.name);
            let text = format!("Invalid method name: '{}'", String::from_utf8_lossy(name));
            let failure = (ApplicationFailure::UnknownMethod, &*text);
            put_failure((head.name, head.number), failure, message.framing, out);
            return Ok(CallOutcome::Refused(Refused::of_failure(failure.0, failure.1)));
        };
        let call = Call { method, number: head.number, framing: message.framing };
        let at = out.len();
        let reply = Reply::begin(call, out);
        let traced = self.storage.local().and_then(|local| trace::begin(method, session, local.database()));
        let probe = traced.as_ref().map(|_| Mutex::new(Probe::default()));
        let login = session.login.clone();
        let limited = session.identity.is_limited().then(|| session.identity.clone());
        let own = match manner.arrival {
            Some(_) => None,
            None => Some(session.arrive(message.bytes.len())),
        };
        let refusal = manner.arrival.or(own.as_ref()).and_then(|arrival| arrival.refusal.as_ref());
        let timeout = limited.as_ref().and_then(Identity::statement_timeout);
        let deadline_ns = timeout.and_then(|time| self.ns_in(time));
        let memory = Mutex::default();
        let manner = CallOptions {
            probe: probe.as_ref().or(manner.probe),
            login: login.as_ref(),
            deadline_ns,
            limited: limited.as_ref(),
            memory: Some(&memory),
            ..manner
        };
        let mut work = CallContext { session, manner, reply, out };
        let arguments = reader.clone();
        // A call that is refused needs no memory, and is refused where nothing may wait.
        let is_refused = manner.refused.is_some() || refusal.is_some() || manner.refuses_login;
        let has_room = match is_refused {
            true => Ok(()),
            false => room_for(message.bytes, &arguments, manner.may_block),
        };
        let has_room = has_room.map_err(|refusal| RpcError::from(CqlError::from(refusal)));
        // The exception for a server that cannot serve has no text.
        let refused = |why: &str| RpcError::Thrown(Exception::InvalidRequest(why.to_owned()));
        let refusal = manner.refused.or(refusal.map(String::as_str)).map(refused);
        // A panic fails only this call, and the connection stays open. The panic hook has logged it.
        let done = contain(|| match has_room.and_then(|()| refusal.map_or(Ok(()), Err)) {
            Ok(()) if is_long(method, message.bytes.len()) && !manner.may_block => Err(RpcError::WouldBlock),
            Ok(()) => {
                self.admit(method, &mut work).and_then(|()| self.dispatch(method, &mut reader, &mut work))
            }
            Err(refusal) => Err(refusal),
        });
        let done = done
            .unwrap_or_else(|_| Err(RpcError::Internal("a bug; the server's log has its place".to_owned())));
        let is_late =
            |deadline_ns: u64| self.ns_in(Duration::ZERO).is_some_and(|now_ns| now_ns >= deadline_ns);
        let done = match (done, &limited, timeout) {
            (Err(RpcError::Thrown(Exception::TimedOut)), Some(limited), Some(time))
                if deadline_ns.is_some_and(is_late) =>
            {
                Err(limited.timed_out(time).into())
            }
            (done, ..) => done,
        };
        if let (Some(traced), Some(probe)) = (traced, probe) {
            match done {
                // The call runs again where it may block, and is traced then.
                Err(RpcError::WouldBlock) => session.traced_next = Some(traced.session),
                _ => self.keep_trace(&traced, (method, arguments), session.client, &probe.into_inner()),
            }
        }
        match done {
            Ok(ReplyState::Result) => Ok(CallOutcome::Answered),
            Ok(ReplyState::Promise(ticket)) => Ok(CallOutcome::Held(call, ticket)),
            Err(RpcError::WouldBlock) => {
                out.truncate(at);
                Ok(CallOutcome::WouldBlock)
            }
            Err(RpcError::Cancelled) => {
                out.truncate(at);
                Ok(CallOutcome::Cancelled)
            }
            Err(RpcError::Thrown(exception)) => {
                reply.exception(&exception, out);
                Ok(Refused::of_exception(&exception).map_or(CallOutcome::Answered, CallOutcome::Refused))
            }
            Err(RpcError::SessionEnded(text)) => {
                session.end();
                reply.exception(&Exception::InvalidRequest(text.clone()), out);
                Ok(CallOutcome::Refused(Refused::of_missing_permission(text)))
            }
            Err(RpcError::Unauthorized(text)) => {
                reply.exception(&Exception::InvalidRequest(text.clone()), out);
                Ok(CallOutcome::Refused(Refused::of_missing_permission(text)))
            }
            Err(RpcError::Arguments(error)) => {
                let (failure, text) = (ApplicationFailure::Protocol, error.to_string());
                reply.failure(failure, &text, out);
                Ok(CallOutcome::Refused(Refused::of_failure(failure, &text)))
            }
            Err(RpcError::Internal(text)) => {
                let text = format!("Internal error processing {}: {text}", method.name());
                reply.failure(ApplicationFailure::Internal, &text, out);
                Ok(CallOutcome::Refused(Refused::of_failure(ApplicationFailure::Internal, &text)))
            }
        }
    }

    /// Writes the answer to a call whose ticket failed.
    pub fn not_written(&self, call: Call, out: &mut Vec<u8>) {
        Reply::begin(call, out).exception(&Exception::TimedOut, out);
    }

    /// Hands the written log records to the operating system. Called once for all calls that arrived together.
    ///
    /// # Errors
    /// The log has failed; the tickets report it too.
    pub fn write_out(&self) -> std::result::Result<(), helenus_engine::Error> {
        self.storage.write_out()
    }

    fn dispatch(
        &self,
        method: Method,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
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
