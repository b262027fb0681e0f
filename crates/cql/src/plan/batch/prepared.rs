//! An analysed BATCH: which statements may be combined, and the one mutation that they make.

use crate::analysis::{Bindings, Markers, Scope};
use crate::budget::room_for;
use crate::error::{CqlError, Result};
use crate::plan::conditional::check_together;
use crate::plan::modify::{Attributes, ModifyPlan, Moment, Statement, timestamp_of};
use crate::plan::timeout::refuse_inside_batch;
use crate::request::BatchKind;
use crate::syntax::ast::{self, BatchItem};

/// An analysed BATCH in CQL text.
#[derive(Debug)]
pub(crate) struct BatchPlan {
    pub(crate) kind: BatchKind,
    /// Whether a statement has conditions; all are then on one partition.
    pub(crate) is_conditional: bool,
    pub(crate) attributes: Attributes,
    pub(crate) statements: Vec<ModifyPlan>,
}

impl BatchPlan {
    /// Analyses a BATCH.
    pub(crate) fn prepare(
        batch: &ast::Batch<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<BatchPlan> {
        room_for(batch.items.len() * size_of::<ModifyPlan>())?;
        let mut statements = Vec::with_capacity(batch.items.len());
        for item in &batch.items {
            scope.work.step()?;
            statements.push(match item {
                BatchItem::Insert(insert, _) => ModifyPlan::insert(insert, scope, markers)?,
                BatchItem::Update(update, _) => ModifyPlan::update(update, scope, markers)?,
                BatchItem::Delete(delete, _) => ModifyPlan::delete(delete, scope, markers)?,
            });
        }
        statements.iter().try_for_each(refuse_inside_batch)?;
        let name = "[batch]".into();
        let attributes = Attributes::prepare(&batch.using, (&name, &name), scope, markers)?;
        if attributes.ttl.is_some() {
            return Err(CqlError::Invalid("Global TTL on the BATCH statement is not supported.".into()));
        }
        let kind = match batch.kind {
            ast::BatchKind::Logged => BatchKind::Logged,
            ast::BatchKind::Unlogged => BatchKind::Unlogged,
            ast::BatchKind::Counter => BatchKind::Counter,
        };
        let with_timestamp = attributes.timestamp.is_some();
        if with_timestamp && statements.iter().any(|statement| !statement.conditions.is_none()) {
            return Err(CqlError::Invalid("Cannot provide custom timestamp for conditional BATCH".into()));
        }
        if with_timestamp && kind == BatchKind::Counter {
            return Err(CqlError::Invalid("Cannot provide custom timestamp for counter BATCH".into()));
        }
        if with_timestamp && statements.iter().any(|statement| statement.attributes.timestamp.is_some()) {
            return Err(CqlError::Invalid(
                "Timestamp must be set either on BATCH or individual statements".into(),
            ));
        }
        if with_timestamp && statements.iter().any(|statement| statement.table.is_counter()) {
            return Err(CqlError::Invalid(
                "Cannot provide custom timestamp for a BATCH containing counters".into(),
            ));
        }
        check_kinds(kind, statements.iter())?;
        let is_conditional = check_together(statements.iter())?;
        statements.iter().try_for_each(ModifyPlan::validate)?;
        Ok(BatchPlan { kind, is_conditional, attributes, statements })
    }

    /// The number of columns in the partition key of the batch's table; 0 if there are several tables, because drivers
    /// then get no partition key markers.
    pub(crate) fn key_columns(&self) -> usize {
        let Some(first) = self.statements.first() else { return 0 };
        let same = self.statements.iter().all(|statement| statement.table.id == first.table.id);
        if same { first.table.partition_key.len() } else { 0 }
    }

    /// The statements with the values of one execution.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(crate) fn bound<'a>(&'a self, bindings: &Bindings<'a>) -> Result<Vec<Statement<'a>>> {
        room_for(self.statements.len() * size_of::<Statement<'_>>())?;
        Ok(self.statements.iter().map(|plan| Statement { plan, bindings: bindings.clone() }).collect())
    }

    /// The moment of the batch's writes: with its own timestamp, if it has one, instead of the request's.
    pub(crate) fn moment(&self, moment: Moment, bindings: &Bindings<'_>) -> Result<Moment> {
        let timestamp_us = timestamp_of(self.attributes.timestamp.as_ref(), moment.timestamp_us, bindings)?;
        let is_clients = moment.is_clients || self.attributes.timestamp.is_some();
        Ok(Moment { timestamp_us, is_clients, ..moment })
    }
}

/// Rejects statements that cannot be combined (`BatchStatement.validate`).
pub(crate) fn check_kinds<'p>(
    kind: BatchKind,
    statements: impl Iterator<Item = &'p ModifyPlan>,
) -> Result<()> {
    let (mut counters, mut others) = (false, false);
    for statement in statements {
        match statement.table.is_counter() {
            true => counters = true,
            false => others = true,
        }
    }
    let refused = if kind == BatchKind::Counter && others {
        "Cannot include non-counter statement in a counter batch"
    } else if counters && others {
        "Counter and non-counter mutations cannot exist in the same batch"
    } else if kind == BatchKind::Logged && counters {
        "Cannot include a counter statement in a logged batch"
    } else {
        return Ok(());
    };
    Err(CqlError::Invalid(refused.into()))
}
