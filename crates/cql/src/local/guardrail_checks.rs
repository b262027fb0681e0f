//! Applies the guardrails, if there are any.

use super::backend::LocalBackend;
use crate::backend::{Answer, Request};
use crate::error::Result;
use crate::plan::modify::Statement;
use crate::syntax::ast::StatementKind;
use helenus_engine::is_system_keyspace;
use helenus_model::mutation::Mutation;
use helenus_model::schema::Table;

impl LocalBackend {
    /// Checks a statement during its analysis.
    pub(super) fn guard_statement(&self, kind: &StatementKind<'_>) -> Result<()> {
        self.tuning.guarded.get().map_or(Ok(()), |guardrails| guardrails.statement(kind))
    }

    /// Checks the consistency level of a read of a user's table, and runs it.
    pub(super) fn guard_read(
        &self,
        table: &Table,
        request: &Request<'_>,
        run: impl FnOnce() -> Result<Answer>,
    ) -> Result<Answer> {
        let guardrails = self.tuning.guarded.get().filter(|_| !is_system_keyspace(&table.keyspace));
        let warning = guardrails.map_or(Ok(None), |guardrails| guardrails.read_level(request))?;
        let mut answer = run()?;
        answer.warnings.splice(0..0, warning);
        Ok(answer)
    }

    /// Checks the operations on lists before they run.
    pub(super) fn guard_lists(&self, statements: &[Statement<'_>]) -> Result<()> {
        let Some(guardrails) = self.tuning.guarded.get() else { return Ok(()) };
        let mut operations = statements.iter().flat_map(|statement| statement.plan.list_operations());
        operations.try_for_each(|operation| guardrails.list_operation(operation))
    }

    /// Checks a mutation before it is written; returns warnings for the client.
    pub(super) fn guard_write(&self, mutation: &Mutation, request: &Request<'_>) -> Result<Vec<String>> {
        if request.identity.is_server() {
            return Ok(Vec::new());
        }
        let Some(guardrails) = self.tuning.guarded.get() else { return Ok(Vec::new()) };
        let mut warnings: Vec<String> = guardrails.write_level(request)?.into_iter().collect();
        if mutation.updates.iter().any(|update| !is_system_keyspace(&update.table.keyspace)) {
            warnings.extend(self.check_disk_state()?);
        }
        // After the clock was set back, the server's own timestamps are ahead of it.
        let now_us = self.database().wall_us()..=self.database().latest_us();
        warnings.extend(guardrails.mutation(mutation, &now_us)?);
        Ok(warnings)
    }
}
