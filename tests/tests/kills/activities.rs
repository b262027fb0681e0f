//! Activities beside the writers until the server is killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use end_to_end::raw::Raw;
use end_to_end::{Cql, Server, binary, tool};
use rustix::process::{Pid, Signal, kill_process};

use crate::chance;
use crate::jobs::number_of;

/// The activity of a round.
#[derive(Clone, Debug)]
pub enum Activity {
    Nothing,
    /// Repeats a verb of `helenus admin`.
    Admin(&'static str),
    /// Imports existing rows again from an export.
    Import(PathBuf),
    /// Restores a backup under another name and drops it.
    Restore(PathBuf),
    /// Sends SIGSTOP and SIGCONT.
    Pause,
    /// Fills the disk with this file, and empties it.
    Fill(PathBuf),
    /// Makes the process's wall clock jump, through this file of libfaketime; seed and round.
    Clock(PathBuf, u64, u64),
}

impl Activity {
    pub fn run(&self, server: &Server, over: &AtomicBool) {
        let mut turn = 0;
        while !over.load(Ordering::Relaxed) {
            turn += 1;
            let mut command = Command::new(binary());
            match self {
                Activity::Nothing => return,
                Activity::Admin(verb) => command.args(["admin", verb]),
                Activity::Import(export) => command.arg("import").arg(export),
                Activity::Restore(backup) => {
                    // Drops what the previous turn has restored, if it finished.
                    if let Some(mut client) = Raw::try_ready(server.address(), 4) {
                        let _ = client.try_query("DROP KEYSPACE IF EXISTS restored");
                    }
                    command.args(restore_args(backup))
                }
                Activity::Pause => {
                    let Some(pid) = Pid::from_raw(server.process_id() as i32) else { return };
                    // An error means that the process was killed meanwhile.
                    let _ = kill_process(pid, Signal::STOP).and_then(|()| kill_process(pid, Signal::CONT));
                    continue;
                }
                Activity::Fill(ballast) => {
                    fill(ballast);
                    // The disk stays full for every second turn, or until the server is gone.
                    if turn % 2 == 0 {
                        let _ = std::fs::remove_file(ballast);
                    }
                    continue;
                }
                Activity::Clock(file, seed, round) => {
                    jump(file, *seed ^ *round << 8, turn);
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    continue;
                }
            };
            // The server may be killed during the command, so its result is ignored.
            let _ =
                command.arg("--data").arg(server.data()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }

    /// Checks that the activity has left a complete state or none, and can be repeated.
    pub fn check(&self, server: &Server, cql: &Cql) {
        if let Activity::Restore(backup) = self {
            let mut args: Vec<_> = restore_args(backup).map(PathBuf::from).to_vec();
            args.extend(["--data".into(), server.data()]);
            let there = cql.try_run("SELECT count(c) FROM restored.backed_up");
            let rows = there.ok().map(|()| rows_of(cql));
            assert!(rows.is_none_or(|rows| [0, 500].contains(&rows)), "half of a restore: {rows:?} rows");
            tool(&args);
            assert_eq!(rows_of(cql), 500, "a restore that was cut, gone on with");
            cql.run("DROP KEYSPACE restored");
        }
        if let Activity::Fill(ballast) = self {
            let _ = std::fs::remove_file(ballast);
        }
    }
}

fn rows_of(cql: &Cql) -> i64 {
    number_of(&cql.rows("SELECT count(c) FROM restored.backed_up")[0][0])
}

fn restore_args(backup: &Path) -> [&std::ffi::OsStr; 9] {
    let word = std::ffi::OsStr::new;
    [
        word("restore"),
        backup.as_os_str(),
        word("--copy"),
        word("--keyspace"),
        word("k"),
        word("--table"),
        word("backed_up"),
        word("--as-keyspace"),
        word("restored"),
    ]
}

/// Writes until the disk is full.
fn fill(ballast: &Path) {
    use std::io::Write;
    let Ok(mut file) = std::fs::File::options().create(true).append(true).open(ballast) else { return };
    let piece = vec![1; 64 << 10];
    while file.write_all(&piece).is_ok() {}
}

/// Jumps of seconds to days, forwards and backwards.
const JUMPS_S: [i64; 9] = [0, 1, -1, 3600, -3600, 86_400, -86_400, 30 * 86_400, -30 * 86_400];

/// Moves the clock of a process under libfaketime.
fn jump(file: &Path, seed: u64, turn: u64) {
    let by = JUMPS_S[chance(seed, turn, JUMPS_S.len() as u64) as usize];
    let new = file.with_extension("new");
    let written = std::fs::write(&new, format!("{by:+}s\n")).and_then(|()| std::fs::rename(&new, file));
    written.expect("the file that says what time it is");
}
