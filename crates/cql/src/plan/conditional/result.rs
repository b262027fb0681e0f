//! The answer to a conditional statement: `[applied]` and, if it was not applied, the rows that the conditions found
//! (`ModificationStatement.buildCasResultSet`).

use super::request::{CasRequest, Shown};
use crate::analysis::selection::{Source, result_columns};
use crate::answer::{ResultColumn, ResultColumns, RowsOut};
use crate::plan::modify::PriorRows;
use crate::plan::select::RowAt;
use helenus_model::schema::{Column, ColumnKind};
use helenus_model::types::CqlType;
use std::sync::Arc;

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
    pub(crate) fn write_refused(
        &self,
        prior: &PriorRows,
        now_s: i64,
        out: &mut dyn RowsOut,
    ) -> Arc<ResultColumns> {
        let mut found: Vec<RowAt<'_>> = prior
            .rows(self.table.id, &self.key)
            .map(|row| RowAt { row: Some(row), ..self.row_at(prior, None, now_s) })
            .collect();
        if found.is_empty() {
            let alone = self.row_at(prior, None, now_s);
            if alone.statics.is_some() && self.shows_any_static(&alone) {
                found.push(alone);
            }
        }
        let shown = if found.is_empty() { Vec::new() } else { self.shown_columns() };
        let columns = self.described(&shown);
        out.columns(&columns);
        let mut scratch = Vec::new();
        for row in &found {
            out.cell(Some(&[0]));
            for column in &shown {
                let value =
                    if self.is_read(column) { row.value(&Source::of(column), &mut scratch) } else { None };
                out.cell(value);
            }
            out.end_row();
        }
        if found.is_empty() {
            out.cell(Some(&[0]));
            out.end_row();
        }
        columns
    }

    fn shows_any_static(&self, row: &RowAt<'_>) -> bool {
        let mut scratch = Vec::new();
        let statics = self.table.statics.iter().filter(|column| self.is_read(column));
        statics.into_iter().any(|column| row.value(&Source::of(column), &mut scratch).is_some())
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
