//! Memory and CPU time of a process.

use std::fs::read_to_string;

/// A memory value of the process in KiB: `VmRSS`, or its peak `VmHWM`.
///
/// # Panics
/// The process has ended.
pub fn memory_kib(process: u32, name: &str) -> u64 {
    let status = read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a figure").trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The CPU time, in hundredths of a second.
///
/// # Panics
/// The process has ended.
pub fn cpu_ticks(process: u32) -> u64 {
    let stat = read_to_string(format!("/proc/{process}/stat")).expect("a running process");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
}
