//! An analysed BATCH: which statements may stand together, and the one mutation they make.

use super::BatchLimits;
use crate::analysis::{Bindings, Markers, Scope};
use crate::backend::BatchKind;
use crate::error::{CqlError, Result};
use crate::plan::modify::{Attributes, Collector, ModifyPlan, timestamp_of};
use crate::syntax::ast::{self, BatchItem};
use helenus_model::mutation::Mutation;

/// An analysed BATCH of text.
#[derive(Debug)]
pub(crate) struct BatchPlan {
    kind: BatchKind,
    attributes: Attributes,
    pub(crate) statements: Vec<ModifyPlan>,
}

impl BatchPlan {
    /// Analyses a BATCH.
    pub(crate) fn prepare(
        batch: &ast::Batch<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<BatchPlan> {
        let mut statements = Vec::with_capacity(batch.items.len());
        for item in &batch.items {
            statements.push(match item {
                BatchItem::Insert(insert, _) => ModifyPlan::insert(insert, scope, markers)?,
                BatchItem::Update(update, _) => ModifyPlan::update(update, scope, markers)?,
                BatchItem::Delete(delete, _) => ModifyPlan::delete(delete, scope, markers)?,
            });
        }
        let using = (batch.using.timestamp.as_ref(), batch.using.ttl.as_ref());
        let name = "[batch]".into();
        let attributes = Attributes::prepare(using, (&name, &name), scope, markers)?;
        if attributes.ttl.is_some() {
            return Err(CqlError::Invalid("Global TTL on the BATCH statement is not supported.".into()));
        }
        let kind = match batch.kind {
            ast::BatchKind::Logged => BatchKind::Logged,
            ast::BatchKind::Unlogged => BatchKind::Unlogged,
            ast::BatchKind::Counter => BatchKind::Counter,
        };
        let with_timestamp = attributes.timestamp.is_some();
        if with_timestamp && kind == BatchKind::Counter {
            return Err(CqlError::Invalid("Cannot provide custom timestamp for counter BATCH".into()));
        }
        if with_timestamp && statements.iter().any(|statement| statement.attributes.timestamp.is_some()) {
            return Err(CqlError::Invalid(
                "Timestamp must be set either on BATCH or individual statements".into(),
            ));
        }
        check_kinds(kind, statements.iter())?;
        Ok(BatchPlan { kind, attributes, statements })
    }

    /// How many columns the partition key of the batch's only table has; 0 if there are several tables, whose markers
    /// drivers are not told of.
    pub(crate) fn key_columns(&self) -> usize {
        let Some(first) = self.statements.first() else { return 0 };
        let same = self.statements.iter().all(|statement| statement.table.id == first.table.id);
        if same { first.table.partition_key.len() } else { 0 }
    }

    /// The mutation of one execution, and warnings.
    pub(crate) fn mutation(
        &self,
        bindings: &Bindings<'_>,
        (timestamp_us, now_s): (i64, i64),
        limits: &BatchLimits,
    ) -> Result<(Mutation, Vec<String>)> {
        let mut collector = Collector::default();
        for statement in &self.statements {
            let timestamp_us = timestamp_of(self.attributes.timestamp.as_ref(), timestamp_us, bindings)?;
            statement.apply(bindings, (timestamp_us, now_s), &mut collector)?;
        }
        let mutation = collector.finish();
        let warnings = limits.check(&mutation, self.kind, self.statements.iter())?;
        Ok((mutation, warnings))
    }
}

/// Refuses statements that do not go together (`BatchStatement.validate`).
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
