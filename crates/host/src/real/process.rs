//! Resources that this process uses, as reported by the system.

use super::time::boot_seconds;
use std::path::Path;

/// The resources that a process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// Bytes of memory that are in RAM.
    pub resident_bytes: u64,
    /// The greatest number of these bytes so far.
    pub resident_bytes_max: u64,
    /// Seconds of processor time, of all threads.
    pub cpu_s: f64,
    /// Number of open files and sockets.
    pub open_files: u64,
    /// Time at which it started, seconds since the epoch.
    pub started_s: f64,
}

/// The `nice` value of threads of low priority. Linux gives a thread of 10 about a tenth of the processor time of one of 0.
const NICE: i32 = 10;

/// Bytes of the file system that holds a path: those free for this process, and all.
#[must_use]
pub fn disk_space(path: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}

/// Lowers the scheduling priority of the calling thread, so that threads of normal priority run before it.
///
/// A raised `nice` value needs no privilege. Where the system refuses it, the thread keeps its priority.
pub fn lower_thread_priority() {
    // On Linux the priority belongs to a thread, and no process named means the calling thread (`setpriority(2)`).
    if cfg!(target_os = "linux") {
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

/// The resources that this process uses; zero if the system does not tell (`/proc` exists on Linux only).
#[must_use]
pub fn process_usage() -> ProcessUsage {
    let read = |name: &str| std::fs::read_to_string(Path::new("/proc/self").join(name)).unwrap_or_default();
    let status = read("status");
    let (cpu_s, started_s) = times_of(&read("stat"));
    ProcessUsage {
        resident_bytes: kibibytes_of(&status, "VmRSS:"),
        resident_bytes_max: kibibytes_of(&status, "VmHWM:"),
        cpu_s,
        // One of them is the folder that is being read.
        open_files: std::fs::read_dir("/proc/self/fd")
            .map_or(0, |files| files.count().saturating_sub(1) as u64),
        started_s: started_s + boot_seconds(),
    }
}

fn kibibytes_of(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// Ticks per second in `/proc/self/stat`: Linux always shows 100 to processes.
const TICKS_A_SECOND: f64 = 100.0;

/// Seconds of processor time, and seconds from the machine's start to the process's start.
fn times_of(stat: &str) -> (f64, f64) {
    // The second field, the program's name, is in parentheses and may contain blanks. After it, fields 12 and 13 are
    // times and 20 is the start.
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field =
        |number: usize| after.split_whitespace().nth(number - 1).and_then(|text| text.parse::<f64>().ok());
    let ticks = |number| field(number).unwrap_or(0.0);
    ((ticks(12) + ticks(13)) / TICKS_A_SECOND, ticks(20) / TICKS_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_proc_are_read_where_they_stand() {
        assert_eq!(kibibytes_of("VmPeak:\t 9 kB\nVmRSS:\t    1234 kB\n", "VmRSS:"), 1234 * 1024);
        let stat = "17 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 4200 1 2";
        assert_eq!(times_of(stat), (3.0, 42.0));
        assert_eq!(times_of("nonsense"), (0.0, 0.0));
    }

    #[test]
    fn this_process_has_memory_and_a_disk() {
        assert!(process_usage().resident_bytes > 0);
        assert!(disk_space(Path::new("/")).is_some_and(|(free, all)| free <= all));
    }
}
