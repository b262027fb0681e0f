//! What the system says of a process.

use std::fs::read_to_string;

/// A figure of memory, KiB: `VmRSS`, or the most that it was, `VmHWM`.
///
/// # Panics
/// If the process has ended.
pub fn memory_kib(process: u32, name: &str) -> u64 {
    let status = read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a figure").trim().trim_end_matches(" kB").parse().expect("a number")
}

/// CPU time, hundredths of seconds.
///
/// # Panics
/// If the process has ended.
pub fn cpu_ticks(process: u32) -> u64 {
    let stat = read_to_string(format!("/proc/{process}/stat")).expect("a running process");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
}
