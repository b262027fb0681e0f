//! From a parsed statement to its plan: which family it belongs to, and what drivers are told of it.

use super::describe::DescribePlan;
use super::select::SelectPlan;
use crate::analysis::{Markers, Scope};
use crate::backend::{ResultColumn, ResultColumns};
use crate::error::{CqlError, Result};
use crate::syntax::ast::{Statement, StatementKind};
use std::sync::Arc;

/// An analysed statement.
#[derive(Debug)]
pub(crate) enum Plan {
    /// SELECT.
    Select(SelectPlan),
    /// DESCRIBE.
    Describe(DescribePlan),
}

/// A plan and what drivers are told of the statement.
#[derive(Debug)]
pub(crate) struct Analysed {
    /// The plan.
    pub(crate) plan: Plan,
    /// The bind markers in order.
    pub(crate) markers: Vec<ResultColumn>,
    /// Which markers make up the partition key; empty when not all of it is bound.
    pub(crate) partition_key_markers: Vec<u16>,
    /// The result's columns; `None` for statements without rows.
    pub(crate) columns: Option<Arc<ResultColumns>>,
}

/// Analyses a statement.
///
/// # Errors
/// Whatever is wrong with it under this schema.
pub(crate) fn analyse(statement: &Statement<'_>, scope: &Scope<'_>) -> Result<Analysed> {
    let mut markers = Markers::new(&statement.markers);
    let (mut columns, mut key_columns) = (None, 0);
    let plan = match &statement.kind {
        StatementKind::Select(select) => {
            let plan = SelectPlan::prepare(select, scope, &mut markers)?;
            columns = Some(plan.columns().clone());
            key_columns = plan.key_columns();
            Plan::Select(plan)
        }
        StatementKind::Describe(describe) => {
            let plan = DescribePlan::prepare(describe, scope)?;
            columns = Some(plan.columns().clone());
            Plan::Describe(plan)
        }
        _ => return Err(CqlError::Invalid("this statement is not supported yet".into())),
    };
    let (markers, partition_key_markers) = markers.finish(key_columns);
    Ok(Analysed { plan, markers, partition_key_markers, columns })
}
