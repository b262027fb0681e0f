//! System calls of a running process that fail, or that kill it, by strace's injection. Not possible without strace, or where
//! it may not attach.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use conformance::server::Server;

/// Maximum time for strace to attach to all threads.
const ATTACH_MAX: Duration = Duration::from_secs(20);

/// A running strace; it detaches from the server when dropped.
pub struct Injection(Child);

impl Injection {
    /// Makes these system calls of the server fail with EIO. `None` if that is impossible.
    pub fn fail(server: &Server, calls: &str) -> Option<Self> {
        Self::begin(server, calls, "error=EIO")
    }

    /// Kills the server at the `nth` of these calls, before it has an effect. Each thread's calls, and those of each kind,
    /// are counted by themselves.
    pub fn kill_at(server: &Server, calls: &str, nth: u64) -> Option<Self> {
        Self::begin(server, calls, &format!("error=EIO:signal=KILL:when={nth}"))
    }

    fn begin(server: &Server, calls: &str, what: &str) -> Option<Self> {
        let process = server.process_id().to_string();
        let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:{what}"));
        let mut command = Command::new("strace");
        command.args(["-f", "-q", "-p", &process, "-e", &trace, "-e", &inject]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let mut injection = Self(child);
        let began = Instant::now();
        while !is_traced(server.process_id()) {
            let has_ended = injection.0.try_wait().is_ok_and(|status| status.is_some());
            if has_ended || began.elapsed() > ATTACH_MAX {
                return None;
            }
            std::thread::yield_now();
        }
        Some(injection)
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether every thread of a process is traced.
fn is_traced(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return false };
    threads.flatten().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
    })
}
