//! Asks the guardrails, where there are some.

use super::backend::LocalBackend;
use crate::backend::{Answer, Request};
use crate::error::Result;
use crate::syntax::ast::StatementKind;
use helenus_engine::is_system_keyspace;
use helenus_model::mutation::Mutation;
use helenus_model::schema::Table;

impl LocalBackend {
    /// Judges a statement when it is analysed.
    pub(super) fn guard_statement(&self, kind: &StatementKind<'_>) -> Result<()> {
        self.guardrails.as_ref().map_or(Ok(()), |guardrails| guardrails.statement(kind))
    }

    /// Judges a read of a table of users, and runs it.
    pub(super) fn guard_read(
        &self,
        table: &Table,
        request: &Request<'_>,
        run: impl FnOnce() -> Result<Answer>,
    ) -> Result<Answer> {
        let guardrails = self.guardrails.as_ref().filter(|_| !is_system_keyspace(&table.keyspace));
        let Some(guardrails) = guardrails else { return run() };
        let mut warnings = guardrails.read(table, request)?;
        let mut answer = run()?;
        warnings.append(&mut answer.warnings);
        Ok(Answer { warnings, ..answer })
    }

    /// Judges what is about to be written; warnings for its client.
    pub(super) fn guard_write(&self, mutation: &Mutation, request: &Request<'_>) -> Result<Vec<String>> {
        let Some(guardrails) = &self.guardrails else { return Ok(Vec::new()) };
        let mut warnings: Vec<String> = guardrails.write_level(request)?.into_iter().collect();
        warnings.extend(guardrails.mutation(mutation, self.now_us())?);
        Ok(warnings)
    }
}
