//! SELECT.

use super::execution::Execution;
use crate::analysis::{Markers, Scope};
use crate::backend::{Outcome, ResultColumns, RowsOut};
use crate::error::{CqlError, Result};
use crate::syntax::ast::Select;
use std::sync::Arc;

/// An analysed SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    columns: Arc<ResultColumns>,
    key_columns: usize,
}

impl SelectPlan {
    pub(crate) fn prepare(
        _select: &Select<'_>,
        _scope: &Scope<'_>,
        _markers: &mut Markers,
    ) -> Result<SelectPlan> {
        Err(CqlError::Invalid("SELECT is not supported yet".into()))
    }

    /// The columns of the result.
    pub(crate) fn columns(&self) -> &Arc<ResultColumns> {
        &self.columns
    }

    /// How many columns the table's partition key has; 0 for a virtual table.
    pub(crate) fn key_columns(&self) -> usize {
        self.key_columns
    }

    pub(crate) fn execute(&self, _execution: &Execution<'_>, _out: &mut dyn RowsOut) -> Result<Outcome> {
        Err(CqlError::Invalid("SELECT is not supported yet".into()))
    }
}
