//! BATCH: which statements may stand together, and running them as one mutation.

use super::modify::{Attributes, Collector, ModifyPlan, timestamp_of};
use crate::analysis::{Bindings, Markers, Scope};
use crate::backend::BatchKind;
use crate::error::{CqlError, Result};
use crate::syntax::ast::{self, BatchItem};
use helenus_model::mutation::{Mutation, PartitionUpdate};
use std::collections::BTreeSet;

/// Bytes of a batch over several partitions from which on it is warned of (`batch_size_warn_threshold`).
pub(crate) const BATCH_BYTES_WARN: usize = 5 << 10;
/// Bytes from which on it is refused (`batch_size_fail_threshold`).
pub(crate) const BATCH_BYTES_FAIL: usize = 50 << 10;
/// Partitions of an unlogged batch from which on it is warned of
/// (`unlogged_batch_across_partitions_warn_threshold`).
pub(crate) const UNLOGGED_PARTITIONS_WARN: usize = 10;

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
    ) -> Result<(Mutation, Vec<String>)> {
        let mut collector = Collector::default();
        for statement in &self.statements {
            let timestamp_us = timestamp_of(self.attributes.timestamp.as_ref(), timestamp_us, bindings)?;
            statement.apply(bindings, (timestamp_us, now_s), &mut collector)?;
        }
        checked(collector.finish(), self.kind)
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

/// Checks the size of a batch, and gathers what to warn of.
pub(crate) fn checked(mutation: Mutation, kind: BatchKind) -> Result<(Mutation, Vec<String>)> {
    let mut warnings = Vec::new();
    if mutation.updates.len() <= 1 {
        return Ok((mutation, warnings));
    }
    let names = || {
        let name = |update: &PartitionUpdate| format!("{}.{}", update.table.keyspace, update.table.name);
        let names: BTreeSet<String> = mutation.updates.iter().map(name).collect();
        (names.len(), format!("[{}]", names.into_iter().collect::<Vec<_>>().join(", ")))
    };
    let bytes: usize =
        mutation.updates.iter().map(|update| update.key.len() + update.changes.as_bytes().len()).sum();
    if bytes > BATCH_BYTES_FAIL {
        return Err(CqlError::Invalid("Batch too large".into()));
    }
    if bytes > BATCH_BYTES_WARN {
        warnings.push(format!(
            "Batch for {} is of size {bytes}, exceeding specified threshold of {BATCH_BYTES_WARN} by {}.",
            names().1,
            bytes - BATCH_BYTES_WARN
        ));
    }
    let partitions = mutation.updates.len();
    if kind != BatchKind::Logged && partitions > UNLOGGED_PARTITIONS_WARN {
        let (tables, names) = names();
        let plural = if tables == 1 { "" } else { "s" };
        warnings.push(format!(
            "Unlogged batch covering {partitions} partitions detected against table{plural} {names}. You should use a \
             logged batch for atomicity, or asynchronous writes for performance."
        ));
    }
    Ok((mutation, warnings))
}
