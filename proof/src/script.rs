//! Scripts: what a failing run was cut down to, kept so that it does not fail again.
//!
//! A line is a statement, or begins with `--` and is one of `flush T`, `compact T`, `move T` (export, truncate, import),
//! `move-cut-short T` (the same, but the import fails at its first file and is undone),
//! `snapshot T`, `take-back T` (TRUNCATE, and the last snapshot is imported), `restore T` (export, DROP, restore with its schema),
//! `fail-sync-dir PART` (the next sync of a folder whose path has it fails), `sound` (the disk is, from here on),
//! `pass SECONDS`, `clock SECONDS` (the wall clock is set back), `power cut`, `restart`, `idle`; others say something to the
//! reader. The lines after a SELECT that begin with `=` are its rows, as `world::shown` prints them.

use crate::table::Timing;
use crate::upkeep::{import_snapshot, move_table, restore_table, snapshot_of};
use crate::world::{Failure, Setup, Store, shown};
use helenus_engine::SyncMode;
use helenus_host::sim::{Call, Fault, Machine, Survives};
use std::io::ErrorKind;
use std::path::PathBuf;

/// Runs a script.
///
/// # Errors
/// The first line whose answer is another.
pub fn script(text: &str) -> Result<(), String> {
    let (timing, sync) = (Timing::Server, SyncMode::Group);
    let setup = Setup { seed: 2, timing, sync, segment_bytes: 256 << 10, grace_s: Some(0) };
    let mut store = Store::open(Machine::new(setup.seed), &setup)?;
    let mut snapshot = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("-- ") {
            store = direct(store, &setup, words, &mut snapshot)
                .map_err(|failure| format!("{line}\n{failure}"))?;
        } else if line.starts_with("SELECT") {
            let mut expected = Vec::new();
            while let Some(row) = lines.next_if(|line| line.starts_with('=')) {
                expected.push(row.trim_start_matches(['=', ' ']).to_owned());
            }
            let rows = store.pages(line, None)?;
            let found: Vec<String> = rows.iter().map(|row| shown(Some(row))).collect();
            if found != expected {
                return Err(format!("{line}\nanswers\n{}\nnot\n{}", found.join("\n"), expected.join("\n")));
            }
        } else if !line.is_empty() {
            store.must(line)?;
        }
    }
    store.machine.end_tasks();
    Ok(())
}

/// Does what a line says that is no statement; the store to go on with. `snapshot` is the folder of the last one.
fn direct(
    store: Store,
    setup: &Setup,
    words: &str,
    snapshot: &mut Option<PathBuf>,
) -> Result<Store, Failure> {
    let engine = |error: helenus_engine::Error| error.to_string();
    let table = |name: &str| {
        let schema = store.database().schema();
        schema.table("ks", name).cloned().ok_or_else(|| format!("table {name} is not there"))
    };
    match words.split_once(' ').unwrap_or((words, "")) {
        ("flush", name) => drop(store.database().flush(table(name)?.id).map_err(engine)?),
        ("compact", name) => {
            store.database().compact(vec![table(name)?.id]).wait().map_err(|error| error.to_string())?;
        }
        ("move", name) => {
            move_table(&store, &table(name)?, true, |store| {
                store.must(&format!("TRUNCATE {name}")).map(drop)
            })?;
        }
        ("snapshot", name) => *snapshot = Some(snapshot_of(&store, &table(name)?)?),
        ("take-back", name) => {
            let folder = snapshot.as_ref().ok_or("no snapshot was taken")?;
            store.must(&format!("TRUNCATE {name}"))?;
            import_snapshot(&store, folder, name, true)?;
        }
        ("restore", name) => {
            restore_table(&store, &table(name)?, true, |store| {
                store.must(&format!("DROP TABLE {name}")).map(drop)
            })?;
        }
        ("move-cut-short", name) => {
            // From the folder whose name says that the import counts.
            store.machine.fail(Fault::new(Call::Link, 1, ErrorKind::Other).on(".ready"));
            let moved = move_table(&store, &table(name)?, true, |store| {
                store.must(&format!("TRUNCATE {name}")).map(drop)
            });
            store.machine.clear_faults();
            if moved.is_ok() {
                return Err("it was not cut short".into());
            }
        }
        ("fail-sync-dir", part) => {
            store.machine.fail(Fault::new(Call::SyncDir, 1, ErrorKind::Other).on(part));
        }
        ("sound", _) => {
            if store.machine.faults_struck() == 0 {
                return Err("nothing has failed".into());
            }
            store.machine.clear_faults();
        }
        ("pass", seconds) => store.machine.advance(seconds.parse().unwrap_or(1) * 1_000_000_000),
        ("clock", seconds) => {
            let back: i64 = seconds.parse().unwrap_or(1);
            store.machine.set_wall_us(store.machine.host().clock.wall_us() - back * 1_000_000);
        }
        ("idle", _) => drop(store.machine.run_until_idle()),
        ("power", "cut") => {
            let after = store.machine.crash_image(Survives::OnlySynced);
            store.machine.end_tasks();
            drop(store);
            return Store::open(after, setup);
        }
        ("restart", _) => {
            store.database().close().map_err(engine)?;
            let machine = store.machine.clone();
            drop(store);
            return Store::open(machine, setup);
        }
        _ => {}
    }
    Ok(store)
}
