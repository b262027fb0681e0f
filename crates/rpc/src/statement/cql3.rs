//! execute_cql3_query, prepare_cql3_query, execute_prepared_cql3_query.

use super::rows::CqlRows;
use super::text::text;
use crate::call_options::native_level;
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, RpcError, invalid};
use helenus_cql::backend::{Answer, Backend, BoundValue, Outcome, Request, Values};
use helenus_engine::Ticket;
use helenus_wire::thrift::{CqlPreparedResult, CqlResult, CqlResultType, Field, Reader, Type, args};

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
        let local = self.local("prepare_cql3_query")?;
        let prepared = local.prepare(&text, session.keyspace.as_deref(), &session.identity)?;
        let item_id = self.prepared.keep(prepared.id);
        let names = prepared.markers.iter().map(|marker| marker.name.to_string().into());
        let types = prepared.markers.iter().map(|marker| marker.ty.class_name().into());
        let result = CqlPreparedResult {
            item_id,
            count: prepared.markers.len() as i32,
            variable_types: Some(types.collect()),
            variable_names: Some(names.collect()),
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
        let local = self.local("execute_prepared_cql3_query")?;
        let statement = match self.prepared.id_of(asked.item_id) {
            Some(id) if !work.manner.may_block && !local.has_analysed(&id) => {
                return Err(RpcError::WouldBlock);
            }
            Some(id) => local.prepared(&id)?,
            None => None,
        };
        let Some(statement) = statement else {
            return invalid(format!(
                "Prepared query with ID {} not found (either the query was not prepared on this host (maybe the host has \
                 been restarted?) or you have prepared too many queries and it has been evicted from the internal cache)",
                asked.item_id
            ));
        };
        let values: Vec<BoundValue<'_>> = asked.values.iter().map(|value| BoundValue::Bytes(value)).collect();
        let mut rows = CqlRows::new();
        let keyspace = work.session.keyspace.clone();
        let identity = work.session.identity.clone();
        let request = Request {
            keyspace: keyspace.as_deref(),
            consistency: native_level(asked.consistency),
            values: Values::Positional(&values),
            may_block: work.manner.may_block,
            probe: work.manner.probe,
            cancelled: work.manner.cancelled,
            ..Request::plain(&identity, &values)
        };
        let answer = local.execute(&statement, &request, &mut rows)?;
        self.answer(answer, &rows, work)
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
                rows.put_result(&columns, work.out);
                work.reply.end(work.out);
                ticket.unwrap_or_else(Ticket::ready)
            }
        };
        Ok(ReplyState::Promise(ticket))
    }
}
