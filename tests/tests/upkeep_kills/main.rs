//! Kills the real binary within its upkeep, starts it again and goes on with load: it starts by itself, answers as before
//! or after the upkeep, keeps its log within the bound, and leaves no file behind.
//!
//! Two tests: `kill -9` at the n-th rename, link, unlink or sync of a flush with a consumer, of a DROP, a TRUNCATE and an
//! import, by strace (skipped where it may not attach); and starts of each kind followed by load on one table, at several
//! memory limits. The check tries a few; more:
//!
//! | variable | what | default |
//! |---|---|---|
//! | `UPKEEP_KILLS` | kills of each upkeep | 2 |
//! | `UPKEEP_SEED` | draws the calls | 1 |
//! | `UPKEEP_LOAD_MB` | load after each kill and each start | 48 |
//! | `UPKEEP_STARTS` | starts with load, through all causes and limits | 3 |

mod ground;

use end_to_end::draw::Draw;
use ground::{Ground, Upkeep};

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Calls that change names, and those that make them durable.
const CALLS: [&str; 2] = ["rename,renameat2,link,linkat,unlink,unlinkat", "fsync,fdatasync"];

#[test]
fn a_kill_within_any_upkeep_leaves_a_server_that_starts_and_nothing_half_done() {
    let kills = from_environment("UPKEEP_KILLS", 2);
    let mut draw = Draw::from_seed(from_environment("UPKEEP_SEED", 1));
    let megabytes = from_environment("UPKEEP_LOAD_MB", 48);
    let mut ground = Ground::begin("512MiB");
    for round in 0..kills {
        for upkeep in [Upkeep::Flush, Upkeep::Drop, Upkeep::Truncate, Upkeep::Import] {
            let calls = CALLS[draw.below(CALLS.len())];
            // Few upkeeps make more than so many calls of one kind.
            let nth = 1 + draw.below(24) as u64;
            if !ground.kill_within(upkeep, calls, nth) {
                println!("not run: strace is missing or may not attach");
                return;
            }
            let what = format!("round {round}: {upkeep:?} killed at {calls} number {nth}");
            println!("{what}");
            ground.load("t", megabytes, &what);
            ground.check_files(&what);
        }
    }
}

/// What came before the load: see the engine's `progress` test, which has the same causes on a simulated machine.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Stopped,
    Killed,
    Active,
    Truncated,
    Often,
}

const CAUSES: [Cause; 5] = [Cause::Stopped, Cause::Killed, Cause::Active, Cause::Truncated, Cause::Often];
const LIMITS: [&str; 3] = ["2GiB", "64MiB", "512MiB"];

#[test]
fn the_log_stays_within_its_bound_under_load_after_a_start_of_any_kind() {
    let starts = from_environment("UPKEEP_STARTS", 3) as usize;
    let megabytes = from_environment("UPKEEP_LOAD_MB", 48);
    let first = from_environment("UPKEEP_SEED", 1) as usize - 1;
    for start in first..first + starts {
        let (cause, limit) = (CAUSES[start % CAUSES.len()], LIMITS[start % LIMITS.len()]);
        let what = format!("{cause:?}, memory_limit {limit}");
        let mut ground = Ground::begin(limit);
        ground.fill("d", 10, 100);
        match cause {
            Cause::Stopped => ground.restart(true),
            Cause::Killed => {
                ground.flush(&[]);
                ground.restart(false);
            }
            Cause::Active => {
                ground.flush(&[]);
                ground.fill("d", 3, 100);
                ground.flush(&["k", "d"]);
            }
            Cause::Truncated => {
                ground.flush(&[]);
                if ground.kill_within(Upkeep::Truncate, CALLS[0], 3) {
                    ground.restart(false);
                }
            }
            Cause::Often => (0..3).for_each(|_| ground.restart(true)),
        }
        ground.load("t", megabytes, &what);
        ground.restart(false);
        ground.load("t", megabytes, &format!("{what}, and once more"));
        ground.check_files(&what);
    }
}
