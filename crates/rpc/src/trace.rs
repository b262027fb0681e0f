//! Traces calls as requested by `trace_next_query`: a probe counts their work, and `system_traces` stores it, as for
//! CQL.
//!
//! The answer to trace_next_query contains the id of a session that does not exist yet. It exists once the next call on
//! data has been answered. It has the call's name, and the parameters that Cassandra's `CassandraServer` records.

use crate::context::Rpc;
use crate::session::Session;
use crate::statement::text;
use helenus_cql::backend::{Backend, Trace};
use helenus_engine::Database;
use helenus_engine::read::Probe;
use helenus_wire::thrift::{Field, Method, Reader, args};
use std::net::SocketAddr;
use uuid::Uuid;

/// A call that is traced.
pub(crate) struct Traced {
    pub(crate) session: Uuid,
    started_us: i64,
    started_ns: u64,
}

/// Begins the trace of a call, if one was requested and the call can be traced.
#[inline]
pub(crate) fn begin(method: Method, session: &mut Session, database: &Database) -> Option<Traced> {
    let id = session.traced_next?;
    if !is_traced(method) {
        return None;
    }
    session.traced_next = None;
    let clock = &database.host().clock;
    Some(Traced { session: id, started_us: clock.wall_us(), started_ns: clock.monotonic_ns() })
}

/// Whether a call is about data. Other calls leave the request for a trace pending.
fn is_traced(method: Method) -> bool {
    matches!(
        method,
        Method::Get
            | Method::GetSlice
            | Method::GetCount
            | Method::MultigetSlice
            | Method::MultigetCount
            | Method::GetRangeSlices
            | Method::GetPagedSlice
            | Method::GetIndexedSlices
            | Method::GetMultiSlice
            | Method::Insert
            | Method::Add
            | Method::Cas
            | Method::Remove
            | Method::RemoveCounter
            | Method::BatchMutate
            | Method::AtomicBatchMutate
            | Method::Truncate
            | Method::ExecuteCqlQuery
            | Method::ExecuteCql3Query
            | Method::ExecutePreparedCqlQuery
            | Method::ExecutePreparedCql3Query
    )
}

impl Rpc {
    /// Stores the trace of an answered call.
    pub(crate) fn keep_trace(
        &self,
        traced: &Traced,
        (method, arguments): (Method, Reader<'_>),
        client: Option<SocketAddr>,
        probe: &Probe,
    ) {
        let Some(local) = self.storage.local() else { return };
        let now_ns = local.database().host().clock.monotonic_ns();
        let parameters = parameters(method, arguments);
        let trace = Trace {
            session: traced.session,
            client,
            request: method.name(),
            parameters: parameters.iter().map(|(name, value)| (*name, value.as_str())).collect(),
            started_us: traced.started_us,
            duration_us: (now_ns.saturating_sub(traced.started_ns) / 1000).max(1) as i64,
            probe,
        };
        // An error does not affect the call, which is already answered; the trace is missing then.
        let _kept = local.record_trace(&trace);
    }
}

/// The parameters of the most common calls. Undecodable arguments were refused before.
fn parameters(method: Method, mut reader: Reader<'_>) -> Vec<(&'static str, String)> {
    let reader = &mut reader;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let read = match method {
        Method::GetSlice | Method::GetCount => args::GetSlice::read(reader)
            .map(|asked| (hex(asked.key), asked.column_parent.column_family, asked.consistency_level)),
        Method::Get => args::Get::read(reader)
            .map(|asked| (hex(asked.key), asked.column_path.column_family, asked.consistency_level)),
        Method::Insert => args::Insert::read(reader)
            .map(|asked| (hex(asked.key), asked.column_parent.column_family, asked.consistency_level)),
        Method::ExecuteCql3Query => {
            let asked = args::Cql3Query::read(reader).ok();
            let query = asked.and_then(|asked| text(asked.query, asked.compression).ok());
            return query.map(|query| ("query", query)).into_iter().collect();
        }
        Method::ExecuteCqlQuery => {
            let asked = args::CqlQuery::read(reader).ok();
            let query = asked.and_then(|asked| text(asked.query, asked.compression).ok());
            return query.map(|query| ("query", query)).into_iter().collect();
        }
        _ => return Vec::new(),
    };
    let Ok((key, family, level)) = read else { return Vec::new() };
    let level = format!("{level:?}").to_uppercase();
    vec![("key", key), ("column_family", family.to_owned()), ("consistency_level", level)]
}
