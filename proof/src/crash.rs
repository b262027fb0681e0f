//! The crash test: a machine cut off before and after syncs of a random run, and every such machine opened again.
//!
//! Operations are numbered. What is opened must be in the state after one of them: at least the last that was acknowledged
//! (in `periodic` mode, where a power cut may take what was acknowledged, the last that waited for a sync of its own), at
//! most the last that was begun. That one state says it all: acknowledged is there, unacknowledged whole or absent, batches
//! as a whole, counters neither lost nor doubled, deletions that were purged still in force, truncated tables empty,
//! imports whole, tables and rows of the same moment, indexes too.

use crate::judge::Judge;
use crate::model::text_of;
use crate::plan::{Op, Plan, script, script_of};
use crate::random::Random;
use crate::statement::Select;
use crate::world::{Failure, Setup, Store, World, compare, everything, shown};
use helenus_engine::{SyncMode, Ticket};
use helenus_host::sim::{Cut, Machine, Survives};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a number of runs came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crashed {
    /// Databases made.
    pub runs: u64,
    /// Operations on them.
    pub operations: u64,
    /// Machines opened after a crash.
    pub crashes: u64,
}

/// What must be there after a number of operations.
#[derive(Clone)]
pub(crate) struct State {
    judges: Vec<Judge>,
    /// A timestamp that the server had given by then.
    server_us: i64,
    /// The operation that led to it, by its number in the plan.
    op: usize,
}

/// How far a run has come; shared with the watcher of its syncs.
#[derive(Default)]
pub(crate) struct Track {
    /// State before the first operation, and after each that has begun.
    states: Vec<State>,
    /// Operation and ticket of each write.
    tickets: Vec<(usize, Arc<Ticket>)>,
    /// The last operation that returned only after a sync.
    synced: usize,
    /// The operation that runs, by its number in the plan.
    pub(crate) op: usize,
    cuts: Vec<Tracked>,
}

struct Tracked {
    cut: Cut,
    begun: usize,
    acknowledged: usize,
    synced: usize,
}

impl Track {
    /// The operation that has begun last.
    pub(crate) fn begun(&self) -> usize {
        self.states.len() - 1
    }

    pub(crate) fn states(&self) -> &[State] {
        &self.states
    }

    pub(crate) fn last_ticket(&self) -> Option<Arc<Ticket>> {
        self.tickets.last().map(|(_, ticket)| ticket.clone())
    }

    /// The last operation that was acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        let ready = self.tickets.iter().filter(|(_, ticket)| ticket.is_ready().unwrap_or(false));
        ready.map(|(op, _)| *op).max().unwrap_or(0).max(self.synced)
    }

    /// An operation begins that leads to this.
    pub(crate) fn begin(&mut self, judges: &[Judge], server_us: i64) {
        let server_us = self.states.last().map_or(server_us, |last| last.server_us.max(server_us));
        self.states.push(State { judges: judges.to_vec(), server_us, op: self.op });
    }

    /// The operation that has begun last has written nothing, so the log names no timestamp of it.
    pub(crate) fn wrote_nothing(&mut self) {
        if let [.., before, last] = &mut self.states[..] {
            last.server_us = before.server_us;
        }
    }

    /// The operation that has begun last will be acknowledged by a ticket.
    pub(crate) fn ticket(&mut self, ticket: Ticket) {
        self.tickets.push((self.states.len() - 1, Arc::new(ticket)));
    }

    /// The operation that has begun last, and all before it, are on the disk.
    pub(crate) fn synced(&mut self) {
        self.synced = self.states.len() - 1;
    }
}

const PERIODIC: SyncMode = SyncMode::Periodic { period_ms: 1000 };
const MODES: [SyncMode; 3] = [SyncMode::Group, SyncMode::Batch, PERIODIC];

/// Runs seeds from `seed` on until `crashes` machines were opened.
///
/// # Errors
/// The first that fails: its tables and operations, where it was cut, and what was wrong.
pub fn crash(crashes: u64, seed: u64, mut progress: impl FnMut(u64, Crashed)) -> Result<Crashed, String> {
    let mut crashed = Crashed::default();
    for seed in seed.. {
        if crashed.crashes >= crashes {
            break;
        }
        let mode = MODES[(seed % 3) as usize];
        let plan = crash_plan(seed);
        let ran = catch_unwind(AssertUnwindSafe(|| run(&plan, mode)));
        let ran = ran.unwrap_or_else(|panic| Err(text_of(&*panic)));
        let opened = ran.map_err(|failure| {
            format!("seed {seed}, {mode:?}, {:?}\n{}\n{failure}", plan.timing, script(&plan))
        })?;
        crashed.runs += 1;
        crashed.operations += plan.ops.len() as u64;
        crashed.crashes += opened;
        progress(seed, crashed);
    }
    Ok(crashed)
}

/// Operations between two starts: no restarts, the cuts are that; reads wait for the cut machines, and so does load.
pub(crate) fn crash_plan(seed: u64) -> Plan {
    let mut plan = Plan::new(seed, Some([60, 120, 240][(seed / 3 % 3) as usize]));
    plan.ops.retain(|op| !matches!(op, Op::Restart { .. } | Op::Load { .. } | Op::DropLoaded));
    plan
}

fn run(plan: &Plan, mode: SyncMode) -> Result<u64, Failure> {
    let mut random = Random::new(plan.seed ^ 0xC0);
    let setup = Setup::of_states(plan, mode);
    let mut world = World::new(plan, setup)?;
    // What was made first is on the disk in every mode.
    world.apply(&Op::Restart { clean: true })?;
    let track = Arc::new(Mutex::new(Track::default()));
    track.lock().begin(&world.judges, 0);
    let watched = track.clone();
    let machine = world.store()?.machine.clone();
    // One run syncs hundreds of times: a few of them each, so that there are many runs.
    let mut kept = Random::new(plan.seed ^ 0x5C);
    let percent = if mode == SyncMode::Batch { 3 } else { 12 };
    machine.on_every_sync(move |cut| {
        if !kept.chance(percent) {
            return;
        }
        let mut track = watched.lock();
        let (begun, acknowledged, synced) = (track.begun(), track.acknowledged(), track.synced);
        track.cuts.push(Tracked { cut: cut.clone(), begun, acknowledged, synced });
    });
    world.track = Some(track.clone());
    for (number, op) in plan.ops.iter().enumerate().filter(|(_, op)| !matches!(op, Op::Read(_))) {
        track.lock().op = number;
        world.apply(op)?;
        let last = track.lock().last_ticket();
        if let Some(ticket) = last.filter(|_| random.chance(25)) {
            ticket.wait().map_err(|error| format!("{op:?} is not acknowledged: {error}"))?;
        }
        if random.chance(30) {
            machine.step();
        }
    }
    machine.stop_watching();
    let mut opened = 0;
    let cuts = std::mem::take(&mut track.lock().cuts);
    let track = track.lock();
    for Tracked { cut, begun, acknowledged, synced } in cuts {
        let kept = if mode == PERIODIC { synced } else { acknowledged };
        let torn = Survives::Torn { seed: random.next() };
        let left = [(Survives::OnlySynced, kept), (torn, kept), (Survives::EverythingWritten, acknowledged)];
        let (survives, least) = *random.pick(&left);
        let at = format!(
            "cut {:?} sync {} of {}, {survives:?}: operation {begun} had begun, {acknowledged} was acknowledged",
            cut.when,
            cut.number,
            cut.path.display()
        );
        let case = Case::new(plan, &setup, &track.states);
        let again = random.chance(4).then_some(kept);
        let image = cut.machine.crash_image(survives);
        opened += case
            .recover(&image, (least, begun), &mut random, again)
            .map_err(|failure| format!("{at}\n{failure}"))?;
        cut.machine.end_tasks();
    }
    Ok(opened)
}

/// What machines of one run are held against.
pub(crate) struct Case<'a> {
    plan: &'a Plan,
    setup: &'a Setup,
    states: &'a [State],
    /// Of the plan; run on what was opened.
    reads: Vec<&'a Select>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(plan: &'a Plan, setup: &'a Setup, states: &'a [State]) -> Case<'a> {
        let reads =
            plan.ops.iter().filter_map(|op| if let Op::Read(select) = op { Some(select) } else { None });
        Case { plan, setup, states, reads: reads.collect() }
    }

    /// Opens a machine after a crash and checks it; how many were opened. `again`: cut it at each sync of its recovery too,
    /// and the least operation that such a cut must leave.
    pub(crate) fn recover(
        &self,
        machine: &Machine,
        allowed: (usize, usize),
        random: &mut Random,
        again: Option<usize>,
    ) -> Result<u64, Failure> {
        // The clock is wrong at the start, and put right for what is read: what had expired may be purged.
        let wall_us = machine.host().clock.wall_us();
        machine.set_wall_us(wall_us - 2_000_000);
        let cuts = Arc::new(Mutex::new(Vec::new()));
        if again.is_some() {
            let kept = cuts.clone();
            machine.on_every_sync(move |cut| kept.lock().push(cut.clone()));
        }
        let checked = Store::open(machine.clone(), self.setup).and_then(|store| {
            let next_us =
                store.database().next_timestamp().map_err(|error| format!("no timestamp: {error}"))?;
            machine.set_wall_us(wall_us);
            let state = self.check(&store, allowed, random)?;
            // No timestamp is given a second time.
            let given_us = self.states[state].server_us;
            if next_us > given_us {
                Ok(())
            } else {
                Err(format!("server timestamp {next_us} after {given_us}"))
            }
        });
        machine.stop_watching();
        machine.end_tasks();
        checked?;
        let mut opened = 1;
        let cuts = std::mem::take(&mut *cuts.lock());
        for cut in cuts {
            let survives =
                if random.chance(50) { Survives::OnlySynced } else { Survives::Torn { seed: random.next() } };
            let image = cut.machine.crash_image(survives);
            let least = again.unwrap_or_default();
            opened += self.recover(&image, (least, allowed.1), random, None).map_err(|failure| {
                format!(
                    "then {:?} sync {} of {} of its recovery: {failure}",
                    cut.when,
                    cut.number,
                    cut.path.display()
                )
            })?;
            cut.machine.end_tasks();
        }
        Ok(opened)
    }

    /// Finds the state that an open database is in, by its number, and reads in it.
    pub(crate) fn check(
        &self,
        store: &Store,
        allowed: (usize, usize),
        random: &mut Random,
    ) -> Result<usize, Failure> {
        let found = content(store, &self.states[0])?;
        let now_s = store.now_s();
        let fits = |op: &usize| expected(&self.states[*op], now_s) == found;
        let Some(op) = (allowed.0..=allowed.1).find(fits) else {
            let other = (0..self.states.len()).rev().find(fits);
            let last =
                (allowed.0.min(other.unwrap_or(allowed.0)).saturating_sub(2)..=allowed.1).map(|state| {
                    let op = self.states[state].op;
                    format!("  {state}: {}", script_of(self.plan, &self.plan.ops[op]))
                });
            return Err(format!(
                "the state is none of {allowed:?}; it is that of {other:?}\n{}\n{}",
                last.collect::<Vec<_>>().join("\n"),
                difference(&found, &expected(&self.states[allowed.1], now_s))
            ));
        };
        // States may have the same rows and differ in what only some reads show, such as how long a cell has to live.
        let chosen: Vec<&Select> = (0..self.reads.len().min(3)).map(|_| *random.pick(&self.reads)).collect();
        let read = |op: usize| {
            let judges = &self.states[op].judges;
            let is_whole = |judge: &Judge| judge.missing.is_none() && !judge.is_absent;
            let readable = chosen.iter().filter(|select| is_whole(&judges[select.table]));
            readable.into_iter().try_for_each(|select| compare(store, judges, select)).map(|()| op)
        };
        let mut others = (op + 1..=allowed.1).filter(fits);
        read(op).or_else(|failure| others.find_map(|op| read(op).ok()).ok_or(failure))
    }
}

/// A table's columns and rows.
type Content = Vec<(Vec<String>, Vec<Vec<Option<Vec<u8>>>>)>;

fn content(store: &Store, like: &State) -> Result<Content, Failure> {
    let schema = store.database().schema();
    let mut content = Content::new();
    for judge in &like.judges {
        let name = &judge.table.name;
        let Some(table) = schema.table("ks", name) else {
            content.push(Default::default());
            continue;
        };
        let names: Vec<String> = judge.table.columns.iter().map(|column| column.name.clone()).collect();
        let present: Vec<String> = names.into_iter().filter(|name| table.column(name).is_some()).collect();
        let rows = store.pages(&format!("SELECT {} FROM {name}", present.join(", ")), None)?;
        content.push((present, rows));
    }
    Ok(content)
}

fn expected(state: &State, now_s: i64) -> Content {
    let of = |(number, judge): (usize, &Judge)| {
        if judge.is_absent {
            return Default::default();
        }
        let mut select = everything(&judge.table, number);
        if let Some(missing) = judge.missing {
            select.shown.remove(missing);
        }
        let columns = judge.table.columns.iter().enumerate();
        let present = columns.filter(|(index, _)| Some(*index) != judge.missing);
        (present.map(|(_, column)| column.name.clone()).collect(), judge.select(&select, now_s))
    };
    state.judges.iter().enumerate().map(of).collect()
}

fn difference(found: &Content, expected: &Content) -> String {
    let mut text = String::new();
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        if found != expected {
            let at = found.1.iter().zip(&expected.1).position(|(a, b)| a != b);
            let at = at.unwrap_or(found.1.len().min(expected.1.len()));
            text += &format!(
                "table {number}: columns {:?}, {} rows; in the last state {:?}, {}; row {at} is\n  {}\nthere\n  {}\n",
                found.0,
                found.1.len(),
                expected.0,
                expected.1.len(),
                shown(found.1.get(at)),
                shown(expected.1.get(at))
            );
        }
    }
    text
}
