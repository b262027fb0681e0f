//! The conditions of a statement or batch, grouped by row (`CQL3CasRequest`).

use super::condition::{Condition, Conditions};
use super::evaluate::{Assembled, BoundCondition};
use crate::budget::{RequestBudget, room_for};
use crate::error::{CqlError, Result};
use crate::plan::modify::{ModifyKind, ModifyPlan, PriorRows, ReadSet, Statement};
use crate::plan::select::RowAt;
use helenus_model::byte_comparable::clustering_key;
use helenus_model::mutation::{Change, Mutation};
use helenus_model::packed::{clustering_values, unpack};
use helenus_model::row::RowBuf;
use helenus_model::schema::Table;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The conditions on one row.
enum RowCondition<'a> {
    NotExists,
    Exists,
    Columns(Vec<BoundCondition<'a>>),
}

/// The columns in the answer of a request that was not applied.
pub(super) enum Shown<'a> {
    /// All of them.
    All,
    /// The columns that have conditions, each once.
    Conditions(Vec<&'a Condition>),
}

/// The conditions of one execution; all are on one partition.
pub(crate) struct CasRequest<'a> {
    pub(super) table: &'a Arc<Table>,
    pub(super) key: Vec<u8>,
    pub(super) is_batch: bool,
    pub(super) shown: Shown<'a>,
    /// All conditions on columns.
    pub(super) asked: Vec<&'a Condition>,
    /// Whether regular columns, and whether static columns, are read: all of them, or those with conditions.
    pub(super) updates_regulars: bool,
    pub(super) updates_statics: bool,
    static_condition: Option<RowCondition<'a>>,
    /// By the ordered clustering of their rows.
    rows: BTreeMap<Vec<u8>, RowCondition<'a>>,
}

/// The result of evaluating the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All conditions are met.
    Applies,
    /// A condition is not met.
    Refused,
}

fn invalid<T>(message: &str) -> Result<T> {
    Err(CqlError::Invalid(message.into()))
}

/// Rejects a batch with conditions over several tables (`BatchStatement.validate`).
pub(crate) fn check_together<'p>(
    mut statements: impl Iterator<Item = &'p ModifyPlan> + Clone,
) -> Result<bool> {
    let mut all = statements.clone();
    if all.all(|plan| plan.conditions.is_none()) {
        return Ok(false);
    }
    let Some(first) = statements.next() else { return Ok(false) };
    if statements.any(|plan| plan.table.id != first.table.id) {
        return invalid("Batch with conditions cannot span multiple tables");
    }
    Ok(true)
}

/// Removes a batch's writes to rows that the same batch deletes. All of its changes have one timestamp, at which a
/// deletion wins over a write.
///
/// # Errors
/// The request has taken too long; a clustering that has no ordered form.
pub(crate) fn without_deleted_rows(mutation: &mut Mutation, work: &RequestBudget<'_>) -> Result<()> {
    for update in &mut mutation.updates {
        let clustering = &update.table.clustering;
        let mut row = RowBuf::default();
        let mut deletes =
            |packed: &[u8]| unpack(packed, clustering.len(), &mut row).is_ok() && !row.deletion.is_live();
        // Rows by their ordered clusterings: equal values may have different bytes.
        let place = |packed: &[u8]| -> Result<Vec<u8>> {
            work.value_steps(packed.len())?;
            let mut key = Vec::new();
            clustering_key(clustering_values(packed, clustering.len()), clustering, &mut key)
                .map_err(|error| CqlError::Invalid(error.to_string()))?;
            Ok(key)
        };
        let mut deleted = HashSet::new();
        for change in update.changes.iter().flatten() {
            if let Change::Row(packed) = change
                && deletes(packed)
            {
                deleted.insert(place(packed)?);
            }
        }
        if deleted.is_empty() {
            continue;
        }
        // The changes that stay are copied.
        room_for(update.changes.as_bytes().len())?;
        let mut failure = Ok(());
        update.changes.retain(|change| match change {
            Change::Row(packed) if !deletes(packed) => match place(packed) {
                Ok(place) => !deleted.contains(&place),
                Err(error) => {
                    failure = Err(error);
                    true
                }
            },
            _ => true,
        });
        failure?;
    }
    Ok(())
}

impl<'a> CasRequest<'a> {
    /// Collects the conditions of a batch's statements, or of one statement outside a batch.
    ///
    /// # Errors
    /// Invalid values; statements that cannot be combined.
    pub(crate) fn new(statements: &[Statement<'a>], is_batch: bool) -> Result<CasRequest<'a>> {
        let mut request: Option<CasRequest<'a>> = None;
        let mut shows_all = false;
        for Statement { plan, bindings } in statements {
            bindings.calls.work.step()?;
            let key = plan.conditional_partition(bindings, is_batch)?;
            let request = match &mut request {
                Some(request) if request.key == key => request,
                Some(_) => return invalid("Batch with conditions cannot span multiple partitions"),
                none => none.insert(CasRequest::of(plan, key, is_batch)),
            };
            // As in Cassandra, the partitions are checked before the rows.
            let clustering = plan.conditional_row(bindings)?;
            request.updates_regulars |= plan.updates_regulars();
            if plan.conditions.is_none() {
                continue;
            }
            request.updates_statics |= plan.changes_statics();
            match &plan.conditions {
                Conditions::None => {}
                Conditions::NotExists => request.add_existence(clustering, RowCondition::NotExists)?,
                Conditions::Exists => request.add_existence(clustering, RowCondition::Exists)?,
                Conditions::Columns(conditions) => {
                    let (statics, regulars): (Vec<_>, Vec<_>) =
                        conditions.iter().partition(|condition| condition.is_static());
                    for (conditions, row) in [(regulars, clustering), (statics, None)] {
                        if conditions.is_empty() {
                            continue;
                        }
                        let bound = conditions.into_iter().map(|one| BoundCondition::bind(one, bindings));
                        request.add_columns(row, bound.collect::<Result<_>>()?)?;
                    }
                }
            }
            match &plan.conditions {
                Conditions::Columns(conditions) => request.asked.extend(conditions),
                _ => shows_all = true,
            }
        }
        let Some(mut request) = request else {
            return invalid("a batch without statements has no conditions");
        };
        if !shows_all {
            let mut conditions = request.asked.clone();
            let mut seen = HashSet::new();
            conditions.retain(|condition: &&Condition| seen.insert(condition.column.id));
            request.shown = Shown::Conditions(conditions);
        }
        Ok(request)
    }

    fn of(plan: &'a ModifyPlan, key: Vec<u8>, is_batch: bool) -> CasRequest<'a> {
        CasRequest {
            table: &plan.table,
            key,
            is_batch,
            shown: Shown::All,
            asked: Vec::new(),
            updates_regulars: false,
            updates_statics: false,
            static_condition: None,
            rows: BTreeMap::new(),
        }
    }

    fn present(&mut self, row: &Option<Vec<u8>>) -> Option<&mut RowCondition<'a>> {
        match row {
            None => self.static_condition.as_mut(),
            Some(key) => self.rows.get_mut(key),
        }
    }

    fn put(&mut self, row: Option<Vec<u8>>, condition: RowCondition<'a>) {
        match row {
            None => self.static_condition = Some(condition),
            Some(key) => _ = self.rows.insert(key, condition),
        }
    }

    fn add_existence(&mut self, row: Option<Vec<u8>>, condition: RowCondition<'a>) -> Result<()> {
        let not = matches!(condition, RowCondition::NotExists);
        match self.present(&row) {
            None => {
                self.put(row, condition);
                Ok(())
            }
            Some(RowCondition::NotExists) if not => Ok(()),
            Some(RowCondition::Exists) if !not => Ok(()),
            Some(RowCondition::Columns(_)) if not => {
                invalid("Cannot mix IF conditions and IF NOT EXISTS for the same row")
            }
            Some(RowCondition::Columns(_)) => {
                invalid("Cannot mix IF conditions and IF EXISTS for the same row")
            }
            Some(_) => invalid("Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row"),
        }
    }

    fn add_columns(&mut self, row: Option<Vec<u8>>, conditions: Vec<BoundCondition<'a>>) -> Result<()> {
        match self.present(&row) {
            None => {
                self.put(row, RowCondition::Columns(conditions));
                Ok(())
            }
            Some(RowCondition::Columns(present)) => {
                present.extend(conditions);
                Ok(())
            }
            Some(_) => invalid("Cannot mix IF conditions and IF NOT EXISTS for the same row"),
        }
    }

    /// Adds the rows to read: the rows of conditions or, if there are only static conditions, the first row of the
    /// partition, which distinguishes a partition without static values from an absent one.
    pub(crate) fn want(&self, wanted: &mut ReadSet) {
        let partition = wanted.partition(self.table, &self.key);
        partition.statics = true;
        partition.first_row = self.rows.is_empty();
        partition.rows.extend(self.rows.keys().cloned());
    }

    /// Evaluates the conditions.
    ///
    /// # Errors
    /// A value that cannot be compared; the request took too long.
    pub(crate) fn verdict(&self, prior: &PriorRows, now_s: i64, work: &RequestBudget<'_>) -> Result<Verdict> {
        let all = self.static_condition.iter().map(|condition| (None, condition));
        for (row, condition) in all.chain(self.rows.iter().map(|(key, condition)| (Some(key), condition))) {
            let at = self.row_at(prior, row.map(Vec::as_slice), now_s);
            let exists = match row {
                None => at.statics.is_some(),
                Some(_) => at.row.is_some(),
            };
            let holds = match condition {
                RowCondition::NotExists => !exists,
                RowCondition::Exists => exists,
                RowCondition::Columns(conditions) => {
                    let (mut all, mut assembled) = (true, Assembled::default());
                    for condition in conditions {
                        all &= condition.holds(&at, &mut assembled, work)?;
                        if !all {
                            break;
                        }
                    }
                    all
                }
            };
            if !holds {
                return Ok(Verdict::Refused);
            }
        }
        Ok(Verdict::Applies)
    }

    pub(super) fn row_at<'r>(&'r self, prior: &'r PriorRows, row: Option<&[u8]>, now_s: i64) -> RowAt<'r> {
        RowAt {
            key: &self.key,
            key_columns: self.table.partition_key.len(),
            statics: prior.statics(self.table.id, &self.key),
            row: row.and_then(|row| prior.row(self.table.id, &self.key, row)),
            now_s,
        }
    }

    /// The error for a statement that names several rows by IN.
    pub(crate) fn refuse_in(kind: ModifyKind, what: &str) -> CqlError {
        let word = if kind == ModifyKind::Update { "updates" } else { "deletions" };
        CqlError::Invalid(format!("IN on the {what} is not supported with conditional {word}"))
    }
}
