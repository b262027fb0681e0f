//! An analysed EXPLAIN.

use super::step::{Form, Step};
use crate::answer::{ResultColumns, RowsOut};
use crate::error::Result;
use crate::plan::Plan;
use std::sync::Arc;

/// The statement to explain, and the form of the answer.
#[derive(Debug)]
pub(crate) struct ExplainPlan {
    /// The plan of the statement: SELECT, INSERT, UPDATE, DELETE or BATCH.
    pub(crate) statement: Plan,
    form: Form,
    columns: Arc<ResultColumns>,
}

impl ExplainPlan {
    /// Makes one from the plan of a statement.
    pub(crate) fn new(statement: Plan, analyzed: bool, json: bool) -> ExplainPlan {
        let form = Form { analyzed, json };
        ExplainPlan { statement, form, columns: form.columns() }
    }

    /// Whether the statement is run (ANALYZE).
    pub(crate) fn is_analyzed(&self) -> bool {
        self.form.analyzed
    }

    /// The columns of the answer.
    pub(crate) fn columns(&self) -> &Arc<ResultColumns> {
        &self.columns
    }

    /// Writes the answer.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn write(&self, steps: &[Step], out: &mut dyn RowsOut) -> Result<()> {
        self.form.write(steps, &self.columns, out)
    }
}
