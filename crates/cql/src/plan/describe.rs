//! DESCRIBE.

use super::execution::Execution;
use crate::analysis::Scope;
use crate::backend::{Outcome, ResultColumns, RowsOut};
use crate::error::{CqlError, Result};
use crate::syntax::ast::Describe;
use std::sync::Arc;

/// An analysed DESCRIBE.
#[derive(Debug)]
pub(crate) struct DescribePlan {
    columns: Arc<ResultColumns>,
}

impl DescribePlan {
    pub(crate) fn prepare(_describe: &Describe<'_>, _scope: &Scope<'_>) -> Result<DescribePlan> {
        Err(CqlError::Invalid("DESCRIBE is not supported yet".into()))
    }

    /// The columns of the result.
    pub(crate) fn columns(&self) -> &Arc<ResultColumns> {
        &self.columns
    }

    pub(crate) fn execute(&self, _execution: &Execution<'_>, _out: &mut dyn RowsOut) -> Result<Outcome> {
        Err(CqlError::Invalid("DESCRIBE is not supported yet".into()))
    }
}
