//! execute_cql_query, prepare_cql_query, execute_prepared_cql_query.

use super::ast::Statement;
use super::parser::parse;
use super::term::Variables;
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, invalid};
use crate::statement::text::text;
use helenus_cql::syntax::ast::Permission;
use helenus_wire::thrift::{CqlPreparedResult, CqlResult, CqlResultType, Field, Reader, args};

impl Rpc {
    pub(crate) fn execute_first(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::CqlQuery::read(reader)?;
        let text = text(asked.query, asked.compression)?;
        work.manner.check_length(text.len())?;
        let (statement, _) = parse(&text)?;
        self.run_first(&statement, &[], work)
    }

    pub(crate) fn prepare_first(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::CqlQuery::read(reader)?;
        let text = text(asked.query, asked.compression)?;
        work.manner.check_length(text.len())?;
        self.prepared.check_length(&text)?;
        let (_, markers) = parse(&text)?;
        let result = CqlPreparedResult {
            item_id: self.prepared.keep_cql2(&text),
            count: markers as i32,
            variable_types: None,
            variable_names: None,
        };
        work.reply.success(&result, work.out);
        Ok(ReplyState::Result)
    }

    pub(crate) fn execute_prepared_first(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::PreparedCql::read(reader)?;
        let Some(text) = self.prepared.text_of(asked.item_id) else {
            return invalid(format!("Prepared query with ID {} not found", asked.item_id));
        };
        work.manner.check_length(text.len())?;
        let (statement, markers) = parse(&text)?;
        if markers != asked.values.len() {
            return invalid(format!(
                "there were {markers} markers(?) in CQL but {} bound variables",
                asked.values.len()
            ));
        }
        self.run_first(&statement, &asked.values, work)
    }

    fn run_first(
        &self,
        statement: &Statement,
        variables: &Variables<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        work.session.asks = work.session.asks.with(match statement {
            Statement::Select(_) => &[Permission::Select],
            Statement::Modify(_) | Statement::Batch(..) => &[Permission::Modify],
            _ => &[],
        });
        if matches!(statement, Statement::Modify(_) | Statement::Batch(..)) {
            self.check_disk()?;
        }
        match statement {
            Statement::Select(select) => return self.cql2_select(select, variables, work),
            Statement::Modify(modify) => {
                return self.first_modify(std::slice::from_ref(modify), None, variables, work);
            }
            Statement::Batch(using, statements) => {
                return self.first_modify(statements, Some(*using), variables, work);
            }
            Statement::Use(keyspace) => {
                if !self.storage.schema().keyspaces.contains_key(keyspace.as_str()) {
                    return invalid(format!("Keyspace '{keyspace}' does not exist"));
                }
                work.session.use_keyspace(keyspace);
            }
            schema => self.first_schema(schema, work)?,
        }
        let void = CqlResult { kind: CqlResultType::Void, rows: None, num: None, schema: None };
        work.reply.success(&void, work.out);
        Ok(ReplyState::Result)
    }
}
