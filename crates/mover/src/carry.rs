//! Carries the definitions of tables over while a move runs: options, indexes and masks that are made or changed here.
//!
//! What is made here before, during or between moves is made at the target too: `follow` looks whenever the schema here has changed, and
//! makes each item of the target's definition that has changed here what it is here. The state has the items that the target has taken, so
//! that a crash leaves nothing out, and so that what an operator alters at the target by hand afterwards stays, also when another item
//! changes here: it is only told (`Difference`). An item that the target refuses is tried again every minute.

use crate::context::Context;
use crate::definitions::{Both, Difference, Items, TargetTable, differences, items, there};
use crate::error::MoveError;
use crate::masks::{self, Masks};
use crate::messages::MoveOrder;
use crate::problems::texts_for;
use crate::schema::{self, Wanted};
use crate::state::TableState;
use helenus_model::schema::{Schema, Table, TableId};
use helenus_wire::native::Consistency;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often the schema here is looked at, and the number of looks after which both sides are compared although nothing has changed here.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 60;

/// Follows the definitions here until the move stops.
pub(crate) async fn follow(context: Arc<Context>) {
    let mut seen: Option<Arc<Schema>> = None;
    let mut looks = 0;
    while !context.target.is_stopped() {
        let schema = context.database().schema();
        let is_new = seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &schema));
        if is_new || looks >= LOOKS {
            looks = 0;
            let done = async {
                carry(&context).await?;
                compare(&context).await
            };
            // A target that does not answer is asked again at the next look.
            seen = done.await.is_ok().then_some(schema);
        }
        looks += 1;
        if context.target.pause(LOOK).await.is_err() {
            return;
        }
    }
}

/// Makes the definitions of all tables at the target as they are here, where they have changed here.
///
/// # Errors
/// The target does not answer; the disk failed; the move stops. What the target refuses is a difference.
pub(crate) async fn carry(context: &Context) -> Result<(), MoveError> {
    let tables = context.state.lock().tables.len();
    for at in 0..tables {
        carry_table(context, at).await?;
    }
    Ok(())
}

/// The same for one table.
///
/// # Errors
/// As `carry`.
pub(crate) async fn carry_table(context: &Context, at: usize) -> Result<(), MoveError> {
    let _alone = context.defining.lock().await;
    let found = context.with_table(at, |table| {
        let is_there = table.target_id.is_some();
        (is_there, table.keyspace.clone(), table.table.clone(), table.defined.clone())
    });
    let Some((true, keyspace, name, defined)) = found else { return Ok(()) };
    let schema = context.database().schema();
    let (Some(of_keyspace), Some(table)) = (schema.keyspaces.get(&*keyspace), schema.table(&keyspace, &name))
    else {
        return Ok(());
    };
    let mut now = items(of_keyspace, table);
    if defined == now {
        return Ok(());
    }
    let cluster = &context.target.cluster;
    let there = there(cluster, (&keyspace, Some(&name))).await?;
    let masks = masks::there(cluster, (&keyspace, Some(&name))).await?;
    let Some(of_target) = there.get(&name) else { return Ok(()) };
    let both = Both { keyspace: of_keyspace, table, there: of_target, masks: &masks, carried: &defined };
    let changed =
        differences(&both).into_iter().filter(|found| defined.get(&found.item) != now.get(&found.item));
    let mut refused = Vec::new();
    for difference in changed {
        if difference.statements.is_empty() {
            // The target has another one of its own, and was not asked to take this one.
            refused.push(difference.item.clone());
        }
        for statement in &difference.statements {
            match context.target.run(statement, Consistency::LocalQuorum).await {
                // If they do not agree in time, both sides are compared once more at the next look.
                Ok(()) => context.agree_in_time().await?,
                // The difference stays, and is told.
                Err(MoveError::Target(error)) if error.server().is_some() => {
                    *context.target.last_error.lock() = Some(format!("{error}; in {statement}"));
                    refused.push(difference.item.clone());
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    for item in refused {
        match defined.get(&item) {
            Some(before) => now.insert(item, before.clone()),
            None => now.remove(&item),
        };
    }
    context.with_table(at, |state| state.defined = now);
    context.save()
}

/// Compares the definitions of all tables of the move, for `status`, `verify` and a cut.
///
/// # Errors
/// The target does not answer.
pub(crate) async fn compare(context: &Context) -> Result<(), MoveError> {
    let tables: Vec<_> = {
        let state = context.state.lock();
        let of_state = state.tables.iter();
        of_state.map(|table| (table.keyspace.clone(), table.table.clone(), table.defined.clone())).collect()
    };
    let schema = context.database().schema();
    let cluster = &context.target.cluster;
    let mut found: Vec<Difference> = columns(context, &schema).await?;
    let mut of_keyspace: Option<(String, BTreeMap<String, TargetTable>, Masks)> = None;
    for (keyspace, name, carried) in &tables {
        let (Some(here), Some(table)) = (schema.keyspaces.get(&**keyspace), schema.table(keyspace, name))
        else {
            continue;
        };
        // Tables are ordered by their keyspaces.
        if of_keyspace.as_ref().is_none_or(|(read, ..)| read != keyspace) {
            let of = (&**keyspace, None);
            let read = (there(cluster, of).await?, masks::there(cluster, of).await?);
            of_keyspace = Some((keyspace.clone(), read.0, read.1));
        }
        let Some((_, there, masks)) = &of_keyspace else { continue };
        let Some(of_target) = there.get(name) else { continue };
        for difference in differences(&Both { keyspace: here, table, there: of_target, masks, carried }) {
            // What is of the keyspace is told by each of its tables.
            if found.iter().all(|told| told.text != difference.text) {
                found.push(difference);
            }
        }
    }
    *context.differences.lock() = found;
    Ok(())
}

/// How the columns of the move's tables and the fields of their types differ at the target, and the tables that it has lost.
async fn columns(context: &Context, schema: &Schema) -> Result<Vec<Difference>, MoveError> {
    let (order, made) = {
        let state = context.state.lock();
        let made = state.tables.iter().filter(|table| table.target_id.is_some());
        let names = made.map(|table| (table.keyspace.clone(), table.table.clone()));
        (state.order.clone(), names.collect::<Vec<_>>())
    };
    let here: Vec<&Table> = made
        .iter()
        .filter_map(|(keyspace, name)| schema.table(keyspace, name).map(|table| &**table))
        .collect();
    let told = |wanted: &Wanted| {
        let mut texts = texts_for(&wanted.problems, here.iter().copied());
        texts.extend(texts_for(&wanted.only_there, here.iter().copied()));
        let is_lost = |table: &&&Table| !wanted.present.iter().any(|there| there.id == table.id);
        texts.extend(here.iter().filter(is_lost).map(|table| {
            format!(
                "{}.{}: the target has lost the table; helenus move resume makes it there and sends it anew",
                table.keyspace, table.name
            )
        }));
        texts
    };
    let mut texts = told(&missing(context, (schema, &made), &order).await?);
    if !texts.is_empty() {
        // The node that was asked may be behind with the schema.
        context.agree_in_time().await?;
        texts = told(&missing(context, (schema, &made), &order).await?);
    }
    let difference = |text: String| Difference {
        item: String::new(),
        text,
        statements: Vec::new(),
        is_seen: true,
        is_one_way: true,
    };
    Ok(texts.into_iter().map(difference).collect())
}

/// What the target does not have (`schema::missing`), once it answers.
///
/// # Errors
/// The target does not answer; the move stops.
pub(crate) async fn missing(
    context: &Context,
    (schema, names): (&Schema, &[(String, String)]),
    order: &MoveOrder,
) -> Result<Wanted, MoveError> {
    let (target, mut retry) = (&context.target, context.target.retry_of_reads());
    loop {
        let asked = schema::missing(&target.cluster, (schema, names), order);
        let wanted = target.unless_stopped(asked).await;
        if let Some(wanted) = retry.answer(wanted).await? {
            return Ok(wanted);
        }
    }
}

/// The definitions of the tables of a move, as they were compared before a cut.
pub(crate) struct CutDefinitions {
    here: Vec<Option<(TableId, Items)>>,
    /// What differs and does not refuse the cut.
    pub(crate) notes: Vec<String>,
}

impl CutDefinitions {
    /// Makes definitions equal once more and compares them. `accepts`: differences do not refuse the cut. `is_dry_run`: nothing is made.
    ///
    /// # Errors
    /// They differ so that clients would see it; the target does not answer.
    pub(crate) async fn make_ready(
        context: &Context,
        (accepts, is_dry_run): (bool, bool),
    ) -> Result<CutDefinitions, MoveError> {
        let here = of_move(context);
        if !is_dry_run {
            carry(context).await?;
        }
        compare(context).await?;
        let found = context.differences.lock().clone();
        let (seen, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|difference| difference.is_seen && !accepts);
        if !seen.is_empty() {
            let mut reasons: Vec<String> = seen.into_iter().map(|difference| difference.text).collect();
            reasons.push(
                "make these definitions equal on one side, or cut with --accept-differences".to_owned(),
            );
            return Err(MoveError::NotCut(reasons));
        }
        let notes = others.into_iter().map(|difference| difference.text).collect();
        Ok(CutDefinitions { here, notes })
    }

    /// Checks, while clients wait, that no definition has changed since.
    ///
    /// # Errors
    /// One has.
    pub(crate) fn check(&self, context: &Context) -> Result<(), MoveError> {
        if of_move(context) == self.here {
            return Ok(());
        }
        Err(MoveError::NotCut(vec![
            "definitions of tables were changed at this moment; try again".to_owned(),
        ]))
    }
}

/// The definitions of the tables of a move, in their order.
fn of_move(context: &Context) -> Vec<Option<(TableId, Items)>> {
    let schema = context.database().schema();
    let state = context.state.lock();
    let definition = |of: &TableState| {
        let keyspace = schema.keyspaces.get(&*of.keyspace)?;
        let table = schema.table(&of.keyspace, &of.table)?;
        Some((table.id, items(keyspace, table)))
    };
    state.tables.iter().map(definition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_target::{Answer, ScriptedMove};
    use helenus_model::types::CqlType;
    use parking_lot::Mutex;

    #[tokio::test]
    async fn a_resume_makes_an_index_anew_that_was_dropped_at_the_target() {
        let create = [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, a int)",
            "CREATE INDEX of_a ON ks.t (a)",
        ];
        let made: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&made);
        let of = ScriptedMove::new(&create, move |asked| {
            if asked.is_run_of("CREATE INDEX") {
                noted.lock().push(asked.text.clone());
            }
            let row = || vec![Some(b"t".to_vec()), Some(vec![7; 16])];
            let columns = || vec![("table_name", CqlType::Text), ("id", CqlType::Uuid)];
            asked.text.contains("FROM system_schema.tables").then(|| Answer::Rows(columns(), vec![row()]))
        });
        let of = of.await;
        let schema = of.context.database().schema();
        let taken = items(schema.keyspaces.get("ks").unwrap(), &of.table("t"));
        of.with_table(|table| table.defined = taken.clone());
        carry(&of.context).await.unwrap();
        let count = || made.lock().len();
        assert_eq!(count(), 0);
        of.with_table(TableState::ask_for_indexes);
        carry(&of.context).await.unwrap();
        assert_eq!(count(), 1);
        assert_eq!(of.with_table(|table| table.defined.clone()), taken);
        carry(&of.context).await.unwrap();
        assert_eq!(count(), 1);
    }

    /// The answer of a node whose table `t` has these columns, of the type `int`, by name and kind.
    fn columns_there(columns: &[(&str, &str)]) -> Answer {
        let text = |text: &str| Some(text.as_bytes().to_vec());
        let row = |(name, kind): &(&str, &str)| {
            let position: i32 = if *kind == "partition_key" { 0 } else { -1 };
            let position = Some(position.to_be_bytes().to_vec());
            vec![text("t"), text(name), text(kind), text("int"), position, text("none")]
        };
        let names = ["table_name", "column_name", "kind", "type", "position", "clustering_order"];
        let ty = |name: &str| if name == "position" { CqlType::Int } else { CqlType::Text };
        let names = names.map(|name| (name, ty(name))).to_vec();
        Answer::Rows(names, columns.iter().map(row).collect())
    }

    #[tokio::test]
    async fn columns_that_differ_are_told_unless_the_node_was_behind_with_the_schema() {
        static MORE: [(&str, &str); 3] = [("k", "partition_key"), ("a", "regular"), ("b", "regular")];
        let (key, here) = (&MORE[..1], &MORE[..2]);
        let create = [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, a int)",
        ];
        // What the node answers first, and what from then on.
        for (first, later, told) in [
            (here, here, ""),
            (&[][..], here, ""),
            (key, here, ""),
            (&MORE[..], here, ""),
            (key, key, "the target has no column a"),
            (&MORE[..], &MORE[..], "the target alone has a column b"),
            (&[][..], &[][..], "the target has lost the table"),
        ] {
            let mut asked_before = false;
            let of = ScriptedMove::new(&create, move |asked| {
                asked.is_run_of("SELECT table_name, column_name, kind").then(|| {
                    let columns = if asked_before { later } else { first };
                    asked_before = true;
                    columns_there(columns)
                })
            });
            let of = of.await;
            compare(&of.context).await.unwrap();
            let found = of.context.differences.lock().clone();
            assert_eq!(found.len(), usize::from(!told.is_empty()), "{told}: {found:?}");
            assert!(
                found.iter().all(|of| of.text.contains(told) && of.is_seen && of.is_one_way),
                "{found:?}"
            );
        }
    }
}
