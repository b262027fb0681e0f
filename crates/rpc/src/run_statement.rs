//! Runs a CQL 3 statement for a call that changes the schema or truncates.

use crate::context::{CallContext, Rpc};
use crate::error::Result;
use helenus_cql::backend::{BoundValue, NoRows, Outcome, Request};

impl Rpc {
    /// Runs a CQL 3 statement without rows, and waits until it is durable in the configured way.
    pub(crate) fn run_statement(&self, text: &str, work: &CallContext<'_>) -> Result<()> {
        let none: &[BoundValue<'_>] = &[];
        let request = Request {
            may_block: work.manner.may_block,
            probe: work.manner.probe,
            cancelled: work.manner.cancelled,
            ..Request::plain(&work.session.identity, none)
        };
        let answer = self.storage.query(text, &request, (&mut NoRows, work.manner))?;
        match answer.outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().map_err(Into::into),
            _ => Ok(()),
        }
    }
}
