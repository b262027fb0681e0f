//! execute_cql3_query, prepare_cql3_query, execute_prepared_cql3_query.

use super::rows::CqlRows;
use super::text::text;
use crate::call_options::native_level;
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, RpcError, invalid};
use helenus_cql::backend::{Answer, Backend, BoundValue, Outcome, Prepared, Request, Values};
use helenus_cql::{CqlError, LocalBackend};
use helenus_engine::Ticket;
use helenus_wire::thrift::{CqlPreparedResult, CqlResult, CqlResultType, Field, Reader, Type, args};
use std::sync::Arc;

impl Rpc {
    pub(crate) fn execute_cql3(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::Cql3Query::read(reader)?;
        let text = text(asked.query, asked.compression)?;
        let mut rows = CqlRows::new();
        let keyspace = work.session.keyspace.clone();
        let identity = work.session.identity.clone();
        let request = Request {
            keyspace: keyspace.as_deref(),
            consistency: native_level(asked.consistency),
            may_block: work.manner.may_block,
            probe: work.manner.probe,
            cancelled: work.manner.cancelled,
            ..Request::plain(&identity, &[])
        };
        let answer = self.storage.query(&text, &request, (&mut rows, work.manner))?;
        self.answer(answer, &rows, work)
    }

    pub(crate) fn prepare_cql3(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::CqlQuery::read(reader)?;
        let text = text(asked.query, asked.compression)?;
        work.manner.check_length(text.len())?;
        let session = &work.session;
        let (item_id, markers): (i32, Vec<_>) = match self.storage.local() {
            Some(local) => {
                let prepared = local.prepare(&text, session.keyspace.as_deref(), &session.identity)?;
                let markers = prepared.markers.iter();
                let markers = markers.map(|marker| (marker.name.to_string(), marker.ty.class_name()));
                (self.prepared.keep(prepared.id), markers.collect())
            }
            None => {
                self.prepared.check_length(&text)?;
                let markers = self.storage.markers(&text, session.keyspace.as_deref(), work.manner)?;
                let markers = markers.iter().map(|(name, ty)| (name.to_string(), ty.class_name()));
                let number = self.prepared.keep_elsewhere((session.keyspace.clone(), text.as_str().into()));
                (number, markers.collect())
            }
        };
        let (names, types): (Vec<_>, Vec<_>) =
            markers.into_iter().map(|(name, class)| (name.into(), class.into())).unzip();
        let result = CqlPreparedResult {
            item_id,
            count: names.len() as i32,
            variable_types: Some(types),
            variable_names: Some(names),
        };
        work.reply.success(&result, work.out);
        Ok(ReplyState::Result)
    }

    pub(crate) fn execute_prepared_cql3(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::PreparedCql3::read(reader)?;
        let values: Vec<BoundValue<'_>> = asked.values.iter().map(|value| BoundValue::Bytes(value)).collect();
        let mut rows = CqlRows::new();
        let identity = work.session.identity.clone();
        let request = Request {
            consistency: native_level(asked.consistency),
            values: Values::Positional(&values),
            may_block: work.manner.may_block,
            probe: work.manner.probe,
            cancelled: work.manner.cancelled,
            ..Request::plain(&identity, &values)
        };
        let answer = match self.storage.local() {
            Some(local) => {
                let statement = self.prepared_here(local, asked.item_id, work)?;
                let keyspace = work.session.keyspace.clone();
                let request = Request { keyspace: keyspace.as_deref(), ..request };
                local.execute(&statement, &request, &mut rows)?
            }
            None => {
                let found = self.prepared.elsewhere(asked.item_id);
                let Some((keyspace, text)) = found else { return not_prepared(asked.item_id) };
                let request = Request { keyspace: keyspace.as_deref(), ..request };
                self.storage.query(&text, &request, (&mut rows, work.manner))?
            }
        };
        self.answer(answer, &rows, work)
    }

    fn prepared_here(
        &self,
        local: &LocalBackend,
        number: i32,
        work: &CallContext<'_>,
    ) -> Result<Arc<Prepared>> {
        let statement = match self.prepared.id_of(number) {
            Some(id) if !work.manner.may_block && !local.has_analysed(&id) => {
                return Err(RpcError::WouldBlock);
            }
            Some(id) => local.prepared(&id)?,
            None => None,
        };
        statement.map_or_else(|| not_prepared(number), Ok)
    }

    fn answer(&self, answer: Answer, rows: &CqlRows, work: &mut CallContext<'_>) -> Result<ReplyState> {
        let void = CqlResult { kind: CqlResultType::Void, rows: None, num: None, schema: None };
        let ticket = match answer.outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => {
                work.reply.success(&void, work.out);
                ticket
            }
            Outcome::UsedKeyspace(keyspace) => {
                work.session.use_keyspace(&keyspace);
                work.reply.success(&void, work.out);
                Ticket::ready()
            }
            Outcome::Rows { columns, ticket, .. } => {
                work.reply.begin_success(Type::Struct, work.out);
                rows.put_result(&columns, work.out).map_err(CqlError::from)?;
                work.reply.end(work.out);
                ticket.unwrap_or_else(Ticket::ready)
            }
        };
        Ok(ReplyState::Promise(ticket))
    }
}

fn not_prepared<T>(number: i32) -> Result<T> {
    invalid(format!(
        "Prepared query with ID {number} not found (either the query was not prepared on this host (maybe the host has been \
         restarted?) or you have prepared too many queries and it has been evicted from the internal cache)"
    ))
}
