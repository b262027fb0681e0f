//! The model test: random operations on random tables, each answer beside the judge's.

use crate::plan::{Op, Plan, script};
use crate::statement::Action;
use crate::world::{Failure, Setup, World};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a number of runs came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// Databases made.
    pub runs: u64,
    /// Operations on them.
    pub operations: u64,
    /// SELECTs among these.
    pub reads: u64,
}

/// Runs seeds from `seed` on until there were `operations`.
///
/// # Errors
/// The first seed that fails: its tables, the fewest operations that still fail, and what was wrong.
pub fn model(operations: u64, seed: u64, mut progress: impl FnMut(u64, Ran)) -> Result<Ran, String> {
    let mut ran = Ran::default();
    for seed in seed.. {
        if ran.operations >= operations {
            break;
        }
        let plan = Plan::new(seed, None);
        if let Err(failure) = run(&plan) {
            return Err(report(&plan, failure));
        }
        ran.runs += 1;
        ran.operations += plan.ops.len() as u64;
        ran.reads += plan.ops.iter().filter(|op| matches!(op, Op::Read(_))).count() as u64;
        progress(seed, ran);
    }
    Ok(ran)
}

/// Runs one seed, and the fewest operations of it that fail.
///
/// # Errors
/// As `model`.
pub fn one_seed(seed: u64) -> Result<(), String> {
    let plan = Plan::new(seed, None);
    run(&plan).map_err(|failure| report(&plan, failure))
}

fn run(plan: &Plan) -> Result<(), Failure> {
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(plan, Setup::of(plan))?;
        for op in &plan.ops {
            world.apply(op)?;
        }
        world.compare_everything()?;
        world.count_loaded()?;
        world.rest_and_judge()
    }));
    ran.unwrap_or_else(|panic| Err(text_of(&*panic)))
}

/// What a panic said.
pub(crate) fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    format!("panic: {}", text.unwrap_or_default())
}

fn report(plan: &Plan, failure: Failure) -> String {
    eprintln!("seed {} fails; cutting it down\n{failure}", plan.seed);
    let least = shrink(plan.clone());
    let failure = run(&least).err().unwrap_or(failure);
    format!("seed {}, {:?}\n{}\n{failure}", plan.seed, plan.timing, script(&least))
}

/// Leaves out operations, then parts of them, as long as it still fails.
fn shrink(mut plan: Plan) -> Plan {
    let fails = |ops: &[Op], plan: &Plan| run(&Plan { ops: ops.to_vec(), ..plan.clone() }).is_err();
    let mut size = plan.ops.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < plan.ops.len() {
            let mut fewer = plan.ops.clone();
            fewer.drain(at..(at + size).min(plan.ops.len()));
            if fails(&fewer, &plan) {
                plan.ops = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    for at in 0..plan.ops.len() {
        let mut part = 0;
        while let Some(smaller) = without_part(&plan.ops[at], part) {
            let mut fewer = plan.ops.clone();
            fewer[at] = smaller;
            if fails(&fewer, &plan) {
                plan.ops = fewer;
            } else {
                part += 1;
            }
        }
    }
    plan
}

/// The operation without one of its parts; `None` behind the last.
fn without_part(op: &Op, part: usize) -> Option<Op> {
    match op {
        Op::Batch { writes, logged } if writes.len() > 1 && part < writes.len() => {
            let mut writes = writes.clone();
            writes.remove(part);
            Some(Op::Batch { writes, logged: *logged })
        }
        Op::Write(write) => {
            let mut write = write.clone();
            match &mut write.action {
                Action::Insert(cells)
                    if part < cells.len() && (cells.len() > 1 || write.clustering.is_some()) =>
                {
                    drop(cells.remove(part));
                }
                Action::Update(assigns) if assigns.len() > 1 && part < assigns.len() => {
                    drop(assigns.remove(part))
                }
                _ => return None,
            }
            Some(Op::Write(write))
        }
        Op::Read(select) => {
            let mut select = select.clone();
            if part < select.filters.len() {
                select.filters.remove(part);
            } else {
                match part - select.filters.len() {
                    0 if select.page.is_some() => select.page = None,
                    0 | 1 if select.limit.is_some() => select.limit = None,
                    0..=2 if select.per_partition.is_some() => select.per_partition = None,
                    _ => return None,
                }
            }
            Some(Op::Read(select))
        }
        _ => None,
    }
}
