//! The answer to a conditional statement: `[applied]` and, if it was not applied, the rows that the conditions found
//! (`ModificationStatement.buildCasResultSet`).

use super::request::{CasRequest, Shown};
use crate::analysis::selection::{Source, result_columns};
use crate::answer::{ResultColumn, ResultColumns, RowsOut};
use crate::budget::RequestBudget;
use crate::error::{CqlError, Result};
use crate::plan::modify::PriorRows;
use crate::plan::select::RowAt;
use crate::request::AnswerMemory;
use helenus_model::schema::{Column, ColumnKind};
use helenus_model::types::CqlType;
use std::sync::Arc;

/// The most bytes of an answer: of any, which is never given in pages, and of those of its role.
pub(crate) struct AnswerLimit {
    pub(crate) bytes_max: usize,
    pub(crate) memory: AnswerMemory,
}

impl AnswerLimit {
    fn check(&mut self, bytes: usize) -> Result<()> {
        self.memory.grow_to(bytes)?;
        if bytes > self.bytes_max {
            return Err(CqlError::Invalid(format!(
                "Nothing was written, because a condition is not met. The rows that were found are more than {} MiB, \
                 the most that is given without pages: use fewer statements in a batch, or conditions on columns, \
                 which show only these",
                self.bytes_max >> 20
            )));
        }
        Ok(())
    }
}

impl CasRequest<'_> {
    /// Writes the answer to a statement that was applied.
    pub(crate) fn write_applied(&self, out: &mut dyn RowsOut) -> Arc<ResultColumns> {
        let columns = self.described(&[]);
        out.columns(&columns);
        out.cell(Some(&[1]));
        out.end_row();
        columns
    }

    /// Writes the answer to a statement that was not applied: one row for each row found.
    ///
    /// # Errors
    /// There is no memory for the answer, or it is longer than its limit; the request took too long.
    pub(crate) fn write_refused(
        &self,
        prior: &PriorRows,
        (now_s, work): (i64, &RequestBudget<'_>),
        mut limit: AnswerLimit,
        out: &mut dyn RowsOut,
    ) -> Result<Arc<ResultColumns>> {
        let mut found: Vec<RowAt<'_>> = prior
            .rows(self.table.id, &self.key)
            .map(|row| RowAt { row: Some(row), ..self.row_at(prior, None, now_s) })
            .collect();
        if found.is_empty() {
            let alone = self.row_at(prior, None, now_s);
            if alone.statics.is_some() && self.shows_any_static(&alone)? {
                found.push(alone);
            }
        }
        let shown = if found.is_empty() { Vec::new() } else { self.shown_columns() };
        let columns = self.described(&shown);
        out.columns(&columns);
        let mut scratch = Vec::new();
        let sources: Vec<Option<Source>> =
            shown.iter().map(|column| self.is_read(column).then(|| Source::of(column))).collect();
        for row in &found {
            out.cell(Some(&[0]));
            for source in &sources {
                let value = match source {
                    Some(source) => {
                        row.room_for_value(source, &mut scratch)?;
                        row.value(source, &mut scratch)
                    }
                    None => None,
                };
                // The same static value goes into every row, so rows that were read do not bound the answer.
                let bytes = value.map_or(0, <[u8]>::len);
                work.value_steps(bytes)?;
                out.make_room(bytes)?;
                out.cell(value);
            }
            out.end_row();
            limit.check(out.bytes())?;
        }
        if found.is_empty() {
            out.cell(Some(&[0]));
            out.end_row();
        }
        Ok(columns)
    }

    fn shows_any_static(&self, row: &RowAt<'_>) -> Result<bool> {
        let mut scratch = Vec::new();
        for column in self.table.statics.iter().filter(|column| self.is_read(column)) {
            let source = Source::of(column);
            row.room_for_value(&source, &mut scratch)?;
            if row.value(&source, &mut scratch).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether Cassandra reads the column for these conditions (`CQL3CasRequest.columnsToRead`).
    fn is_read(&self, column: &Column) -> bool {
        // Columns of conditions are read in a batch with IF EXISTS too, which shows all columns.
        let is_asked = || self.asked.iter().any(|one| one.column.id == column.id);
        match column.kind {
            ColumnKind::PartitionKey | ColumnKind::Clustering => true,
            ColumnKind::Static => self.updates_statics || is_asked(),
            ColumnKind::Regular => self.updates_regulars || is_asked(),
        }
    }

    fn shown_columns(&self) -> Vec<&Column> {
        match &self.shown {
            Shown::All => self.table.columns_in_select_order().collect(),
            Shown::Conditions(conditions) => {
                let keys = self.table.partition_key.iter().chain(&self.table.clustering);
                let keys = keys.filter(|_| self.is_batch);
                keys.chain(conditions.iter().map(|condition| &condition.column)).collect()
            }
        }
    }

    fn described(&self, shown: &[&Column]) -> Arc<ResultColumns> {
        let describe = |name: &str, ty: CqlType| ResultColumn {
            keyspace: self.table.keyspace.clone(),
            table: self.table.name.clone(),
            name: name.into(),
            ty,
        };
        let mut columns = vec![describe("[applied]", CqlType::Boolean)];
        columns.extend(shown.iter().map(|column| describe(&column.name, column.ty.clone())));
        result_columns(columns, |_| false)
    }
}
