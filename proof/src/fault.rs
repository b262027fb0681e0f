//! The fault test: one call of the disk fails somewhere in a random run, or all of its kind from there on, or the disk is
//! full.
//!
//! The run ends at the first operation that says so. The database that met the fault must still be in the state after the
//! last operation or the one before it, once the disk is sound again; and what a death or a loss of power leaves then must
//! be in the state after an operation that was acknowledged or later. At last its tables are truncated or dropped, and made
//! again: after a start long after that nothing is back, and nothing is left behind.

use crate::crash::{Case, Track, crash_plan};
use crate::load::{judge, turn};
use crate::model::text_of;
use crate::plan::{Op, Plan, script, script_of};
use crate::random::Random;
use crate::world::{Failure, Setup, Store, World};
use helenus_engine::SyncMode;
use helenus_host::sim::{Call, Fault, Survives};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a number of runs came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faulted {
    /// Databases made.
    pub runs: u64,
    /// Runs that met their fault.
    pub struck: u64,
    /// Runs in which an operation failed by it; the others went on without it.
    pub reported: u64,
}

const CALLS: [Call; 14] = [
    Call::Open,
    Call::Create,
    Call::Read,
    Call::Write,
    Call::Allocate,
    Call::SetSize,
    Call::Sync,
    Call::SyncDir,
    Call::Rename,
    Call::Link,
    Call::Remove,
    Call::RemoveDir,
    Call::CreateDir,
    Call::List,
];

/// Makes `runs` runs with seeds from `seed` on.
///
/// # Errors
/// The first that fails: its tables and operations, its fault, and what was wrong.
pub fn fault(runs: u64, seed: u64, mut progress: impl FnMut(u64, Faulted)) -> Result<Faulted, String> {
    let mut faulted = Faulted::default();
    for seed in seed..seed.saturating_add(runs) {
        let plan = crash_plan(seed);
        let ran = catch_unwind(AssertUnwindSafe(|| run(&plan, &mut faulted)));
        let ran = ran.unwrap_or_else(|panic| Err(text_of(&*panic)));
        ran.map_err(|failure| {
            format!("seed {seed}, fault, {:?}\n{}\n{failure}", plan.timing, script(&plan))
        })?;
        faulted.runs += 1;
        progress(seed, faulted);
    }
    Ok(faulted)
}

/// Whether the log has failed, whatever the operation that met the fault says. Nothing is synced then before a restart: an
/// index that was being built is built after it.
fn takes_no_writes(store: &Store) -> bool {
    let keyspace =
        "CREATE KEYSPACE beside WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    store.run(keyspace, None, None).is_err_and(|error| error.to_string().contains("the commit log failed"))
}

fn run(plan: &Plan, faulted: &mut Faulted) -> Result<(), Failure> {
    let mut random = Random::new(plan.seed ^ 0xFA);
    let sync = *random.pick(&[SyncMode::Group, SyncMode::Batch]);
    let setup = Setup::of_states(plan, sync);
    let mut world = World::new(plan, setup)?;
    let track = Arc::new(Mutex::new(Track::default()));
    track.lock().begin(&world.judges, 0);
    world.track = Some(track.clone());
    let machine = world.store()?.machine.clone();
    let what = if random.chance(8) {
        let room = random.below(60_000) as u64;
        machine.set_capacity(machine.used_bytes() + room);
        format!("the disk is full {room} bytes later")
    } else {
        let call = *random.pick(&CALLS);
        let nth =
            1 + random.below(if matches!(call, Call::Write | Call::Sync | Call::Read) { 120 } else { 20 })
                as u64;
        let kind = *random.pick(&[ErrorKind::Other, ErrorKind::StorageFull]);
        let fault = Fault::new(call, nth, kind);
        let lasts = random.chance(40);
        machine.fail(if lasts { fault.lasting() } else { fault });
        format!("{call:?} number {nth} fails, {}", if lasts { "and all after it" } else { "once" })
    };
    let mut failed = None;
    for (number, op) in plan.ops.iter().enumerate().filter(|(_, op)| !matches!(op, Op::Read(_))) {
        track.lock().op = number;
        let ran = world.apply(op).and_then(|()| {
            let last = track.lock().last_ticket();
            last.filter(|_| random.chance(40))
                .map_or(Ok(()), |ticket| ticket.wait().map_err(|error| error.to_string()))
        });
        if let Err(failure) = ran {
            failed = Some((op, failure));
            break;
        }
        if random.chance(40) {
            machine.step();
        }
    }
    faulted.struck += u64::from(machine.faults_struck() > 0 || failed.is_some());
    machine.clear_faults();
    machine.set_capacity(u64::MAX);
    let Some((op, failure)) = failed else { return Ok(()) };
    faulted.reported += 1;
    let at = format!("{what}; {}\nsays: {failure}", script_of(plan, op));
    let track = track.lock();
    let (begun, acknowledged) = (track.begun(), track.acknowledged());
    let case = Case::new(plan, &setup, track.states());
    // An operation of two steps has begun twice.
    let near = (begun.saturating_sub(2), begun);
    let store = world.store()?;
    match case.check(store, near, &mut random) {
        Err(wrong)
            if (wrong.contains("is not yet available")
                // Nobody is told of writes that were refused.
                || wrong.contains("refused when the commit log failed"))
                && takes_no_writes(store) => {}
        Err(wrong) => return Err(format!("{at}\nstill running: {wrong}")),
        Ok(_) => {}
    }
    for survives in
        [Survives::EverythingWritten, Survives::OnlySynced, Survives::Torn { seed: random.next() }]
    {
        let image = machine.crash_image(survives);
        case.recover(&image, (acknowledged, begun), &mut random, None)
            .map_err(|wrong| format!("{at}\nthen cut, {survives:?}, {acknowledged} acknowledged: {wrong}"))?;
    }
    drop(track);
    let emptied = empty_and_start_again(&mut world, &mut random);
    emptied.map_err(|wrong| format!("{at}\nthen emptied, and started long after: {wrong}"))
}

/// Time for what failed to be tried again, and until a start long after.
const REST_NS: u64 = 10_000_000_000;
const RESTS: usize = 8;
const LONG_NS: u64 = 30 * 86_400 * 1_000_000_000;

/// Truncates or drops every table, and starts the database twice, a month later.
fn empty_and_start_again(world: &mut World, random: &mut Random) -> Result<(), Failure> {
    world.track = None;
    if takes_no_writes(world.store()?) {
        world.apply(&Op::Restart { clean: false })?;
    }
    let tables: Vec<String> = world.tables.iter().map(|table| table.name.clone()).collect();
    let is_there = |store: &Store, name: &str| store.database().schema().table("ks", name).is_some();
    for name in &tables {
        let store = world.store()?;
        // It may be dropped already: a restore that failed has not made it again.
        if is_there(store, name) {
            let drops = random.chance(40);
            store.must(&format!("{} {name}", if drops { "DROP TABLE" } else { "TRUNCATE" }))?;
        }
    }
    for clean in [random.chance(50), random.chance(50)] {
        let store = world.store()?;
        (0..RESTS).for_each(|_| turn(store, REST_NS));
        judge(store)?;
        store.machine.advance(LONG_NS);
        world.apply(&Op::Restart { clean })?;
    }
    let store = world.store()?;
    for name in tables.iter().filter(|name| is_there(store, name)) {
        let rows = store.pages(&format!("SELECT * FROM {name}"), None)?;
        if !rows.is_empty() {
            return Err(format!("{} rows of {name} are back", rows.len()));
        }
    }
    (0..RESTS).for_each(|_| turn(store, REST_NS));
    judge(store)
}
