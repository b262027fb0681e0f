//! Measures the CPU time and memory of a run, for the client and the server.

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// The unit of the times in `/proc/PID/stat`, in ticks a second: USER_HZ, which is 100 on every Linux.
const TICKS: f64 = 100.0;

/// A thread's use of the CPU so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadUse {
    /// CPU time, user and system.
    pub cpu: Duration,
    /// Time in which the thread was runnable and waited for a processor; zero if the system does not report it.
    pub waited: Duration,
}

impl ThreadUse {
    /// The use since `before`.
    pub fn since(self, before: ThreadUse) -> ThreadUse {
        let (cpu, waited) = (self.cpu.saturating_sub(before.cpu), self.waited.saturating_sub(before.waited));
        ThreadUse { cpu, waited }
    }
}

/// The use of the current thread. The second number of Linux' schedstat is the time in run queues, in nanoseconds.
pub(super) fn thread_use() -> ThreadUse {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let cpu =
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = stat.split_whitespace().nth(1).and_then(|field| field.parse().ok());
    ThreadUse { cpu, waited: Duration::from_nanos(waited.unwrap_or(0)) }
}

/// Makes timers of this thread, and of threads that it starts, fire exactly. By default, Linux may delay a timer by up
/// to 50 us to fire it together with others, which would count as latency at a fixed rate.
pub(super) fn wake_on_time() {
    // A system without this file wakes threads later, which the results show.
    let _only_linux_has_it = fs::write("/proc/self/timerslack_ns", "1");
}

/// A server process on this machine, observed from outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerUse {
    /// CPU time of all its threads so far, user and system, in steps of 10 ms.
    pub cpu_s: f64,
    /// Resident memory, MiB.
    pub resident_mib: f64,
    /// The peak of resident memory, MiB.
    pub resident_peak_mib: f64,
}

impl ServerUse {
    /// Reads `/proc/PID`.
    pub fn of(pid: u32) -> Result<ServerUse> {
        let path = format!("/proc/{pid}/stat");
        let stat = fs::read_to_string(&path).with_context(|| format!("--server-pid: cannot read {path}"))?;
        // The second field, the name, is in parentheses and may contain blanks. User and system time are fields 14 and
        // 15.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: Vec<f64> =
            after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
        let path = format!("/proc/{pid}/status");
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let mib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            kib.unwrap_or(0.0) / 1024.0
        };
        Ok(ServerUse {
            cpu_s: ticks.iter().sum::<f64>() / TICKS,
            resident_mib: mib("VmRSS:"),
            resident_peak_mib: mib("VmHWM:"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_this_thread_has_run() {
        let used = ServerUse::of(std::process::id()).unwrap();
        assert!(used.resident_mib > 0.0 && used.resident_peak_mib >= used.resident_mib);
        assert!(thread_use().cpu > Duration::ZERO);
    }
}
