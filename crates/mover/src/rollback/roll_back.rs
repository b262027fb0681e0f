//! The way back: what the target was given since the cut comes here, and clients are served here again.
//!
//! A trial reads all rows of both sides and writes nothing: what cannot come back is known before anything is changed here.
//!
//! A first pass reads all rows of both sides again, while clients go on at the target. Meanwhile the partitions that they write are
//! noted (`Front::written`), and each further pass reads those that were written during the one before, until a pass is short enough.
//! The last one is made under the pause, when no write is under way any more. Then the cut is taken off the state, durably, and the
//! front serves here. A crash before that leaves the truth at the target, which is complete in any case.
//!
//! The tails go on behind the writes of the rollback, so a cut can be made again. `lost_target` is the way back without the target.

use crate::clocks::Clocks;
use crate::error::MoveError;
use crate::front::{Front, Pause};
use crate::messages::RollbackOrder;
use crate::problems::texts_for;
use crate::remote::BroughtBack;
use crate::schema;
use crate::state::{MoveState, StateFile};
use crate::target::Target;
use crate::threads::Threads;
use helenus_cluster::{Written, WrittenPartitions};
use helenus_cql::LocalBackend;
use helenus_model::schema::Table;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

use super::pass::{Kind, pass};
use super::way_back::way_back;

/// Passes before the pause at most. Each has only to read what was written during the one before, unless clients write faster than
/// it is read, or by statements whose partition is not known.
const PASSES: u32 = 8;

/// Pauses of clients at most, and how long the writes of a last pass that failed may take to end.
const PAUSES: u32 = 2;
const WRITES_END: Duration = Duration::from_secs(30);

/// What a rollback works on.
pub(crate) struct Rollback<'r> {
    pub(crate) backend: &'r Arc<LocalBackend>,
    pub(crate) front: &'r dyn Front,
    pub(crate) file: &'r StateFile,
    pub(crate) target: Target,
    pub(crate) threads: &'r Arc<Threads>,
    pub(crate) runtime: &'r Handle,
    /// What it does now, for `status`.
    pub(crate) progress: &'r Mutex<Option<String>>,
}

/// A cut that was taken back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RolledBack {
    pub(crate) passes: u32,
    /// Rows that were changed here.
    pub(crate) changed: u64,
    /// Rows that differ still: their cells here are newer than those at the target.
    pub(crate) kept: u64,
    /// How long clients waited.
    pub(crate) waited: Duration,
}

/// Takes a cut back. Returns the state with which the move goes on.
///
/// # Errors
/// It cannot be done now; clients are served by the target as before.
pub(crate) fn roll_back(
    rollback: &Rollback<'_>,
    state: &MoveState,
    order: &RollbackOrder,
) -> Result<(MoveState, RolledBack), MoveError> {
    let Rollback { front, runtime, target, .. } = rollback;
    let tables = tables(rollback, state, &order.without)?;
    let within = Duration::from_millis(order.pause_ms);
    let noting = Noting::begin(*front);
    let mut done = RolledBack::default();
    // Before hours of reading.
    clocks_within(rollback, within)?;
    // Nothing is written here before it is known that everything can be read and written.
    runtime.block_on(target.unless_stopped(try_all(rollback, state, &tables)))?;
    let begun_here = MoveState { has_brought: true, ..state.clone() };
    rollback.file.write(&begun_here)?;
    let state = &begun_here;
    let mut wanted = Written::anywhere();
    let mut pauses = 0;
    let (begun, pause, clocks, last) = loop {
        loop {
            let begun = tokio::time::Instant::now();
            let reading = pass(rollback, state, (&tables, &wanted, Kind::Pass(done.passes + 1)));
            let brought = runtime.block_on(target.unless_stopped(reading))?;
            done.add(&brought);
            // Counters that were changed, and rows that differ still, are compared once more by the next pass.
            wanted = brought.again;
            let took = begun.elapsed();
            // The last one may take a little longer than this one.
            if took + took / 4 < within {
                break;
            }
            if done.passes >= PASSES {
                return Err(MoveError::NotCut(vec![format!(
                    "reading what clients have written meanwhile takes {:.1} s, and they would have to wait as long: give --pause more, or \
                     let clients prepare their statements, so that only the partitions that they write are read",
                    took.as_secs_f64()
                )]));
            }
            wanted.add_all(noting.take());
        }
        let clocks = clocks_within(rollback, within)?;
        let begun = tokio::time::Instant::now();
        let pause = Pause::begin(*front, within)?;
        wanted.add_all(noting.take());
        let last = pass(rollback, state, (&tables, &wanted, Kind::Pass(done.passes + 1)));
        let last = target.unless_stopped(last);
        let left = within.saturating_sub(begun.elapsed());
        let last = runtime.block_on(async { tokio::time::timeout(left, last).await });
        let error = match last {
            Ok(Ok(last)) => break (begun, pause, clocks, last),
            Ok(Err(error)) => error,
            Err(_) => {
                let text =
                    "the last pass was not done in time: give --pause more, or try when clients write less";
                MoveError::NotCut(vec![text.to_owned()])
            }
        };
        // Clients go on at the target.
        drop(pause);
        (done.passes, pauses) = (done.passes + 1, pauses + 1);
        // A list that is written while the next pass reads it would be appended to twice.
        let ended = async { tokio::time::timeout(WRITES_END, rollback.threads.idle()).await.is_ok() };
        if !runtime.block_on(ended) {
            return Err(error);
        }
        let may_pass = match &error {
            MoveError::Target(error) => error.may_repeat(true),
            other => matches!(other, MoveError::NotCut(_)),
        };
        if !may_pass || pauses >= PAUSES || done.passes >= PASSES {
            return Err(error);
        }
        // What it was to read is read once more, without a pause.
    };
    done.add(&last);
    done.kept = last.kept;
    // Later writes here must not lose against those that a node stamped ahead of this clock.
    runtime.block_on(async { tokio::time::sleep(clocks.ahead.saturating_sub(begun.elapsed())).await });
    let database = rollback.backend.database();
    let now = database.changes().now()?.text(database.host_id());
    let mut next = state.clone();
    (next.cut, next.has_brought) = (None, false);
    for table in &mut next.tables {
        match order.without.contains(&table.full_name()) {
            // Its rows there are others than those here. They are not taken away unless somebody says so.
            true => {
                table.begin_anew();
                (table.had_rows, table.left_out) = (true, true);
                table.stopped = Some(format!(
                    "a rollback left it out, and the target has what was written there since the cut; helenus move resume --anew {} \
                     truncates it there and sends it anew",
                    table.full_name()
                ));
            }
            false => table.position = Some(now.clone()),
        }
    }
    if let Err(error) = rollback.file.write(&next) {
        // It may be on the disk in spite of the error: then the file decides what is true, as at a cut.
        let restored = rollback.file.write(state);
        if restored.is_ok() || !matches!(rollback.file.read(), Ok(Some(found)) if found.cut.is_none()) {
            return Err(error);
        }
    }
    if let Err(error) = front.to_local() {
        // Nobody was served here yet, so the truth is at the target still.
        rollback.file.write(state)?;
        return Err(error.into());
    }
    done.waited = begun.elapsed();
    drop(pause);
    Ok((next, done))
}

/// The clocks of the nodes.
///
/// # Errors
/// One is ahead of this server's by more than clients may wait; a node does not answer.
fn clocks_within(rollback: &Rollback<'_>, within: Duration) -> Result<Clocks, MoveError> {
    let target = &rollback.target;
    let clocks = Clocks::of(&target.cluster, rollback.backend.database());
    let clocks = rollback.runtime.block_on(target.unless_stopped(clocks))?;
    if clocks.ahead <= within {
        return Ok(clocks);
    }
    Err(MoveError::NotCut(vec![format!(
        "a node's clock is {} ms ahead of this server's, and clients would have to wait as long: later writes here would lose against its \
         earlier ones. Set the clocks by NTP, or give --pause more",
        clocks.ahead.as_millis()
    )]))
}

impl RolledBack {
    fn add(&mut self, pass: &BroughtBack) {
        self.passes += 1;
        self.changed += pass.changed;
    }
}

/// Notes what clients write, until it is dropped.
struct Noting(Option<Arc<WrittenPartitions>>);

impl Noting {
    fn begin(front: &dyn Front) -> Noting {
        let written = front.written();
        if let Some(written) = &written {
            written.begin();
        }
        Noting(written)
    }

    /// What was written since the beginning or the last call. All, where nobody can tell.
    fn take(&self) -> Written {
        self.0.as_ref().map_or_else(Written::anywhere, |written| written.take())
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        if let Some(written) = &self.0 {
            written.end();
        }
    }
}

/// The tables, which must be the same on both sides. `without`: those that stay as they are here.
fn tables(
    rollback: &Rollback<'_>,
    state: &MoveState,
    without: &[String],
) -> Result<Vec<Arc<Table>>, MoveError> {
    let present = rollback.backend.database().schema();
    let unknown = without.iter().find(|name| !state.tables.iter().any(|table| table.full_name() == **name));
    if let Some(name) = unknown {
        return Err(MoveError::NotCut(vec![format!(
            "--without {name}: no table of the move; helenus move status lists them as KEYSPACE.TABLE"
        )]));
    }
    let of_move = state.tables.iter().filter(|table| !without.contains(&table.full_name()));
    let names: Vec<_> = of_move.map(|table| (table.keyspace.clone(), table.table.clone())).collect();
    let cluster = &rollback.target.cluster;
    let statements = schema::statements(cluster, (&present, &names), &state.order);
    let wanted = rollback.runtime.block_on(rollback.target.unless_stopped(statements))?;
    let (mut tables, mut reasons) = (Vec::new(), Vec::new());
    for (keyspace, name) in &names {
        match present.table(keyspace, name) {
            Some(table) => tables.push(Arc::clone(table)),
            None => reasons.push(format!("{keyspace}.{name} is not here any more")),
        }
    }
    for problems in [&wanted.problems, &wanted.only_there] {
        reasons.extend(texts_for(problems, tables.iter().map(|table| &**table)));
    }
    reasons.extend(wanted.to_run.iter().filter(|text| text.starts_with("CREATE TABLE")).map(|text| {
        let line = text.lines().next().unwrap_or_default();
        format!("the target has lost a table: {line}")
    }));
    for table in &tables {
        let checked = way_back(rollback.backend, cluster, table);
        if let Err(reason) = rollback.runtime.block_on(rollback.target.unless_stopped(checked))? {
            reasons.push(format!("{}.{}: {reason}", table.keyspace, table.name));
        }
    }
    if reasons.is_empty() {
        return Ok(tables);
    }
    reasons.push(WITHOUT.to_owned());
    Err(MoveError::NotCut(reasons))
}

/// What to do with a table that cannot be brought back.
const WITHOUT: &str = "helenus move rollback --without KEYSPACE.TABLE,.. brings the others back; these tables keep here the rows of the cut";

/// Reads all rows of both sides and checks the writes, without running them, so that a table which cannot come back is known before anything
/// is written here.
async fn try_all(rollback: &Rollback<'_>, state: &MoveState, tables: &[Arc<Table>]) -> Result<(), MoveError> {
    let mut reasons = Vec::new();
    for table in tables {
        let one = std::slice::from_ref(table);
        match pass(rollback, state, (one, &Written::anywhere(), Kind::Trial)).await {
            Ok(_) => {}
            Err(MoveError::Stopped) => return Err(MoveError::Stopped),
            Err(error) => reasons.push(format!("{}.{}: {error}", table.keyspace, table.name)),
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    reasons.push(WITHOUT.to_owned());
    Err(MoveError::NotCut(reasons))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::double::FrontDouble;
    use crate::scripted_target::{Answer, Asked, ScriptedMove};
    use crate::state::Cut;
    use helenus_model::types::CqlType;
    use helenus_wire::native::{ErrorCode, ErrorMessage};

    const CREATE: [&str; 2] = [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, a int)",
    ];

    /// Rolls a move back whose node answers by a script. Returns the state with which it goes on, too.
    fn rolled_back(
        (create, front): (&[&str], &FrontDouble),
        order: &RollbackOrder,
        script: impl FnMut(&Asked) -> Option<Answer> + Send + 'static,
    ) -> Result<(MoveState, RolledBack), MoveError> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let of = runtime.block_on(ScriptedMove::new(create, script));
        let target = runtime.block_on(Target::connect(&of.order, of.stop.subscribe())).unwrap();
        let progress = Mutex::default();
        let rollback = Rollback {
            backend: &of.context.backend,
            front,
            file: &of.context.file,
            target,
            threads: &of.context.threads,
            runtime: runtime.handle(),
            progress: &progress,
        };
        let cut = Some(Cut { at_us: 1, rollback_within_s: 60 });
        let state = MoveState { cut, ..of.context.state.lock().clone() };
        roll_back(&rollback, &state, order)
    }

    fn order(pause_ms: u64, without: &[&str]) -> RollbackOrder {
        let without = without.iter().map(|name| (*name).to_owned()).collect();
        RollbackOrder { pause_ms, loses_later_writes: false, without }
    }

    /// A move without tables, whose node has a clock that is ahead.
    fn rolled_back_ahead(ahead_ms: i64, pause_ms: u64) -> (Result<RolledBack, MoveError>, Vec<&'static str>) {
        let front = FrontDouble::default();
        let done = rolled_back((&[], &front), &order(pause_ms, &[]), move |asked| {
            asked.text.contains("toUnixTimestamp").then(|| {
                let now_ms = helenus_host::real::host().clock.wall_us() / 1000 + ahead_ms;
                let cell = Some(now_ms.to_be_bytes().to_vec());
                Answer::Rows(vec![("now", CqlType::Timestamp)], vec![vec![cell]])
            })
        });
        (done.map(|(_, done)| done), front.0.into_inner().steps)
    }

    #[test]
    fn a_table_that_is_left_out_keeps_what_the_target_has_until_somebody_says_otherwise() {
        let front = FrontDouble::default();
        let done = rolled_back((&CREATE, &front), &order(10_000, &["ks.t"]), |_| None);
        let (state, _) = done.unwrap();
        assert!(state.tables[0].left_out && state.tables[0].stopped.is_some());
    }

    /// The node answers nothing while clients wait for the first time.
    #[test]
    fn a_last_pass_that_is_not_done_in_time_is_made_again() {
        let front = Arc::new(FrontDouble::default());
        let of_node = Arc::clone(&front);
        let done = rolled_back((&CREATE, &front), &order(1_500, &[]), move |asked| {
            let text = |names: &[&str]| names.iter().map(|name| Some(name.as_bytes().to_vec())).collect();
            let of_text = |names: &[&'static str]| names.iter().map(|name| (*name, CqlType::Text)).collect();
            if asked.text.contains("FROM system_schema.keyspaces") {
                return Some(Answer::Rows(of_text(&["keyspace_name"]), vec![text(&["ks"])]));
            }
            if asked.text.contains("FROM system_schema.columns") {
                let mut columns: Vec<(&'static str, CqlType)> =
                    of_text(&["table_name", "column_name", "kind", "type"]);
                columns.extend([("position", CqlType::Int), ("clustering_order", CqlType::Text)]);
                let column = |name: &str, kind: &str, position: i32| {
                    let mut cells: Vec<Option<Vec<u8>>> = text(&["t", name, kind, "int"]);
                    cells.extend([Some(position.to_be_bytes().to_vec()), Some(b"none".to_vec())]);
                    cells
                };
                let rows = vec![column("k", "partition_key", 0), column("a", "regular", -1)];
                return Some(Answer::Rows(columns, rows));
            }
            let told = of_node.0.lock();
            let is_first = told.steps.iter().filter(|step| **step == "pause").count() == 1;
            let is_read = !asked.is_prepare && asked.text.contains("FROM ks.t");
            (is_read && told.is_paused && is_first)
                .then(|| Answer::Error(ErrorMessage::plain(ErrorCode::Overloaded, "not now")))
        });
        let (state, done) = done.unwrap();
        assert!(state.cut.is_none() && !state.tables[0].left_out);
        assert!(done.passes >= 4, "{}", done.passes);
        assert_eq!(front.0.lock().steps, ["pause", "go_on", "pause", "to_local"]);
    }

    #[test]
    fn a_rollback_waits_until_this_clock_has_passed_those_that_are_ahead_and_is_refused_if_that_is_too_long()
    {
        let (refused, steps) = rolled_back_ahead(5_000, 1_000);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("clock is") && text.contains("ahead of this server's"), "{text}");
        assert!(!steps.contains(&"pause") && !steps.contains(&"to_local"), "{steps:?}");
        let (done, steps) = rolled_back_ahead(400, 10_000);
        assert!(done.unwrap().waited >= Duration::from_millis(400));
        assert_eq!(steps, ["pause", "to_local"]);
    }
}
