//! Checks before the start that the system gives the server what it cannot be without: threads, open files, address space.
//!
//! What runs out later is refused one by one: a connection, a job, a request. These are not: a server without one of its
//! threads, or without a file for its log, is none, and would fail somewhere in the middle of its start.

use anyhow::{Result, anyhow, bail};
use helenus_host::real::{address_space_allowed, check_threads};
use helenus_server::config::ServerConfig;

/// The threads of every server: of the log, the commit log, flushes, index builds, listeners and handshakes, HTTP, the admin
/// socket, the audit, watchers of the disk and of certificates, signals, and the first of each pool.
const THREADS: usize = 16;
/// The fewest open files: those of the start, and a few connections.
const FILES_MIN: u64 = 64;
/// Address space beside the memory of `memory_limit`: the program, the stacks of its threads, what the allocator reserves.
const SPACE_BYTES: u64 = 256 << 20;

/// Checks that a server with this configuration can be started.
///
/// # Errors
/// It cannot; what to do.
pub(super) fn check(config: &ServerConfig, files_allowed: u64) -> Result<()> {
    if files_allowed < FILES_MIN {
        bail!(
            "the system lets this process have {files_allowed} open files, and a server needs at least {FILES_MIN}: allow more by \
             ulimit -n, LimitNOFILE= of systemd"
        );
    }
    let limit = config.memory_limit;
    let wanted = limit.saturating_add(limit / 10).saturating_add(SPACE_BYTES);
    if let Some(allowed) = address_space_allowed().filter(|allowed| *allowed < wanted) {
        bail!(
            "the system lets this process have {} MiB of address space, and memory_limit with what the program needs besides is \
             {} MiB: lower memory_limit, or allow more by ulimit -v, LimitAS= of systemd",
            allowed >> 20,
            wanted >> 20
        );
    }
    let rpc = config.rpc.map_or(0, |_| config.rpc_limits.threads + 2);
    let wanted = THREADS + config.limits.event_loops + rpc + helenus_host::real::cores();
    check_threads(wanted).map_err(|(given, error)| {
        anyhow!(
            "the system gives this process {given} of the {wanted} threads that a server needs ({error}): allow more by ulimit -u, \
             TasksMax= of systemd, pids.max of the container"
        )
    })
}
