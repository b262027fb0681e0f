//! The cut: from one moment on the target has the truth, and clients are served by it.
//!
//! 1. Nothing hinders: every table of users is in its tail and close behind, the front is connected to the target, every role
//!    that logs in here can do so there, and the target checks what this server checks: permissions, data centers, masks.
//! 2. The front pauses. Every request that was begun is answered, so every acknowledged write is in the log.
//! 3. All tails send what is left (`drain`). If that takes longer than the pause may last, clients go on here as before.
//! 4. The cut is written to the state, durably. This is the moment: a crash before it leaves the truth here, a crash after it leaves it
//!    at the target, and a server that starts does what the state says (`cut_of`).
//! 5. The front serves by the target, and the pause ends.
//!
//! The target stamps later writes by its own clocks. If one of them is behind, a later write would lose against an earlier one, so
//! the pause lasts until that clock has passed the moment of the pause.

use crate::carry::CutDefinitions;
use crate::clocks::Clocks;
use crate::context::Context;
use crate::cut_masks::CutMasks;
use crate::error::MoveError;
use crate::front::{Front, Pause};
use crate::messages::CutOrder;
use crate::plan;
use crate::roles::CutRoles;
use crate::rollback::way_back;
use crate::state::{Cut, StateFile, TableState};
use helenus_cluster::ClusterError;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long each preparation of a cut may take. Nodes that never agree on a schema would hold it for ever.
const PREPARES: Duration = Duration::from_secs(120);

/// The lag of a table above which a cut is not tried, seconds.
const LAG_S: f64 = 3.0;

/// A cut that was made, or could be.
#[derive(Clone, Debug)]
pub(crate) struct CutDone {
    /// How long clients waited.
    pub(crate) waited: Duration,
    /// The number of tables.
    pub(crate) tables: usize,
    /// What to know of roles.
    pub(crate) notes: Vec<String>,
}

/// Cuts a move over. It is called from a plain thread; `runtime` is that of the move.
///
/// # Errors
/// The cut cannot be made now; nothing has changed.
pub(crate) fn cut(
    context: &Arc<Context>,
    front: &dyn Front,
    order: &CutOrder,
    runtime: &Handle,
) -> Result<CutDone, MoveError> {
    let check = |mut reasons: Vec<String>| {
        reasons.extend(hindrances(context));
        if reasons.is_empty() { Ok(()) } else { Err(MoveError::NotCut(reasons)) }
    };
    check(front.hindrances())?;
    let target_order =
        crate::messages::MoveOrder { clients: order.clients.clone(), ..context.state.lock().order.clone() };
    front.make_ready(&target_order)?;
    let behind = in_time((context, runtime), Clocks::of(&context.target.cluster, context.database()))?.behind;
    if !order.accepts_differences {
        verified(context)?;
    }
    let accepts = (order.accepts_differences, order.is_dry_run);
    let definitions = in_time((context, runtime), CutDefinitions::make_ready(context, accepts))?;
    let roles = in_time((context, runtime), CutRoles::make_ready(context, accepts))?;
    let mut notes = roles.as_ref().map(|roles| roles.notes.clone()).unwrap_or_default();
    notes.extend(definitions.notes.iter().cloned());
    if order.rollback_within_s > 0 {
        can_come_back(context, runtime)?;
    }
    let within = Duration::from_millis(order.pause_ms);
    if behind > within {
        return Err(MoveError::NotCut(vec![format!(
            "a node's clock is {} ms behind this server's, and clients would have to wait as long: its later writes would lose against \
             earlier ones. Set the clocks by NTP, or give --pause more",
            behind.as_millis()
        )]));
    }
    let tables = context.state.lock().tables.len();
    // Before anybody waits: a tail that hangs would not be at its end during the pause either.
    drain(context, Duration::from_secs_f64(LAG_S), runtime)?;
    let masks = in_time((context, runtime), CutMasks::make_ready(context))?;
    if order.is_dry_run {
        return Ok(CutDone { waited: Duration::ZERO, tables, notes });
    }
    let begun = tokio::time::Instant::now();
    let pause = Pause::begin(front, within)?;
    // Once more: a table may have been made since, or a role, or a mask.
    check(Vec::new())?;
    definitions.check(context)?;
    masks.check(context)?;
    roles.map_or(Ok(()), |roles| roles.check(context))?;
    drain(context, within.saturating_sub(begun.elapsed()), runtime)?;
    // Once more: changes may have been missed since.
    if !order.accepts_differences {
        verified(context)?;
    }
    runtime.block_on(async { tokio::time::sleep(behind.saturating_sub(begun.elapsed())).await });
    context.state.lock().order.clients.clone_from(&order.clients);
    let cut = Cut { at_us: context.database().wall_us(), rollback_within_s: order.rollback_within_s };
    write(context, Some(cut))?;
    if let Err(error) = front.to_cluster(cut.rollback_within_s == 0) {
        // Nobody was served by the target yet, so the cut can be taken back.
        write(context, None)?;
        return Err(error.into());
    }
    let waited = begun.elapsed();
    drop(pause);
    Ok(CutDone { waited, tables, notes })
}

/// Does this, unless it takes longer than a preparation may, or the move stops.
fn in_time<T>(
    (context, runtime): (&Context, &Handle),
    work: impl Future<Output = Result<T, MoveError>>,
) -> Result<T, MoveError> {
    let within = async { tokio::time::timeout(PREPARES, context.target.unless_stopped(work)).await };
    match runtime.block_on(within) {
        Ok(Err(MoveError::Target(ClusterError::NoAgreement { .. }))) | Err(_) => {
            Err(MoveError::NotCut(vec![format!(
                "the target did not answer within {} s, or its nodes did not agree on a schema: `nodetool describecluster` there names those \
                 that differ",
                PREPARES.as_secs()
            )]))
        }
        Ok(done) => done,
    }
}

/// Every table whose changes were missed, or which had rows at the target before, has been compared since, and was equal.
fn verified(context: &Context) -> Result<(), MoveError> {
    let state = context.state.lock();
    let unseen = state.tables.iter().filter(|table| table.has_gap());
    let reason = |table: &TableState| {
        format!(
            "{}: changes were missed, or the target had rows of it before, and both sides were not found equal since: helenus move verify \
             compares them, helenus move resume --anew {} truncates it there and sends it once more; --accept-differences cuts over all the same",
            table.full_name(),
            table.full_name()
        )
    };
    let reasons: Vec<String> = unseen.map(reason).collect();
    if reasons.is_empty() { Ok(()) } else { Err(MoveError::NotCut(reasons)) }
}

/// Every table could be brought back. The definitions were compared before.
fn can_come_back(context: &Arc<Context>, runtime: &Handle) -> Result<(), MoveError> {
    let mut reasons: Vec<String> = {
        let differences = context.differences.lock();
        let one_way = differences.iter().filter(|difference| difference.is_one_way);
        one_way.map(|difference| format!("a rollback would be refused: {}", difference.text)).collect()
    };
    let tables = context.state.lock().tables.clone();
    let schema = context.database().schema();
    let tables = tables.iter().filter_map(|of| schema.table(&of.keyspace, &of.table));
    for table in tables {
        let cluster = &context.target.cluster;
        if let Err(reason) = in_time((context, runtime), way_back(&context.backend, cluster, table))? {
            reasons.push(format!(
                "{}.{}: no rollback could bring it back: {reason}",
                table.keyspace, table.name
            ));
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    reasons.push("cut with --rollback-within 0 if no way back is wanted".to_owned());
    Err(MoveError::NotCut(reasons))
}

/// Seconds in words: the greatest unit of which they are a whole number.
pub(crate) fn duration_words(seconds: u64) -> String {
    match seconds {
        0 => "no time".to_owned(),
        s if s.is_multiple_of(3_600) => format!("{} h", s / 3_600),
        s if s.is_multiple_of(60) => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

/// Waits until everything is at the target.
fn drain(context: &Context, within: Duration, runtime: &Handle) -> Result<(), MoveError> {
    let question = context.drain.ask();
    let all = async { tokio::time::timeout(within, context.drain.all(question)).await };
    if runtime.block_on(all).is_ok() {
        return Ok(());
    }
    let state = context.state.lock();
    let tables: Vec<String> = context
        .drain
        .missing(question)
        .into_iter()
        .filter_map(|at| state.tables.get(at))
        .map(|table| format!("{} was not at the end of its changes in time", table.full_name()))
        .chain(context.target.pace.bound())
        .collect();
    Err(MoveError::NotCut(tables))
}

/// Writes the cut to the state, or takes it back. If that fails, the file decides what is true.
fn write(context: &Context, cut: Option<Cut>) -> Result<(), MoveError> {
    let mut state = context.state.lock();
    let before = std::mem::replace(&mut state.cut, cut);
    let Err(error) = context.file.write(&state) else { return Ok(()) };
    state.cut = before;
    // It may be on the disk in spite of the error.
    let restored = context.file.write(&state);
    if restored.is_err() && is_cut(&context.file) == Some(cut.is_some()) {
        state.cut = cut;
        return Ok(());
    }
    Err(error)
}

fn is_cut(file: &StateFile) -> Option<bool> {
    Some(file.read().ok()??.cut.is_some())
}

/// Why a move cannot be cut over now, a text each.
fn hindrances(context: &Context) -> Vec<String> {
    let state = context.state.lock();
    let now_us = context.database().wall_us();
    let waiting = context.waiting.lock();
    let of_table = |(at, table): (usize, &TableState)| {
        let name = table.full_name();
        if let Some(reason) = &table.stopped {
            return Some(format!("{name} has stopped: {reason}"));
        }
        if !table.is_filled() {
            return Some(format!("{name} is not in its tail yet"));
        }
        match waiting.get(at).and_then(|waiting| waiting.lag_s(now_us)) {
            None => Some(format!("{name} is not in its tail yet")),
            Some(lag) if lag > LAG_S => Some(format!("{name} is {lag:.1} s behind")),
            Some(_) => None,
        }
    };
    let mut reasons: Vec<String> = state.tables.iter().enumerate().filter_map(of_table).collect();
    let mut going = state.tables.iter().enumerate().filter(|(_, table)| table.stopped.is_none());
    if going.any(|table| of_table(table).is_some()) {
        reasons.extend(context.target.pace.bound());
    }
    if context.is_repaired() {
        // It would take away what clients count there after the cut.
        let text = "helenus move verify --repair is under way: wait for its end, or end it by helenus move verify --stop";
        reasons.push(text.to_owned());
    } else if let Some(until) = context.locks.doubt() {
        // Such as a repair that was stopped: what it has sent may still take away what clients count there.
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        reasons.push(format!(
            "requests without an answer have not come to an end at the target: they may be run there for another {} s",
            left.as_secs() + 1
        ));
    }
    let everything = crate::messages::MoveOrder { what: Vec::new(), ..state.order.clone() };
    // An error means that there is no table at all.
    for table in plan::tables(context.database(), &everything).unwrap_or_default() {
        let id = table.id.0.to_string();
        if !state.tables.iter().any(|of| of.id == id) {
            let of_order = &state.order.what;
            let is_meant = |name: &String| {
                *name == *table.keyspace || *name == format!("{}.{}", table.keyspace, table.name)
            };
            let what_to_do = match of_order.is_empty() || of_order.iter().any(is_meant) {
                true => "helenus move resume takes it in",
                false => "drop it, or abort and start a move of all tables",
            };
            reasons.push(format!(
                "{}.{} is no part of the move, and clients would not see it any more: {what_to_do}",
                table.keyspace, table.name
            ));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Repairing;
    use crate::scripted_target::ScriptedMove;

    #[tokio::test]
    async fn a_repair_that_runs_hinders_a_cut() {
        let of = ScriptedMove::new(&[], |_| None).await;
        assert_eq!(hindrances(&of.context), Vec::<String>::new());
        let repairing = Repairing::begin(&of.context);
        assert!(hindrances(&of.context)[0].contains("helenus move verify --repair is under way"));
        drop(repairing);
        assert_eq!(hindrances(&of.context), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_of_a_stopped_repair_that_may_still_be_run_hinders_a_cut_until_it_cannot() {
        let of = ScriptedMove::new(&[], |_| None).await;
        let mut lock = of.context.locks.rows_of(helenus_model::schema::TableId(Default::default())).await;
        lock.in_flight(Some(crate::target::SETTLE));
        assert_eq!(hindrances(&of.context), Vec::<String>::new(), "its holder waits for the answer");
        drop(lock);
        let reasons = hindrances(&of.context);
        assert!(reasons.len() == 1 && reasons[0].contains("another 18 s"), "{reasons:?}");
        tokio::time::advance(crate::target::SETTLE).await;
        assert_eq!(hindrances(&of.context), Vec::<String>::new());
    }
}
