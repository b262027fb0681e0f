//! The resources that this process may use: the machine's, or the container's limits if those are lower.

/// Number of cores that may be used (affinity and quota of the container included).
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Memory that may be used, bytes; 1 GiB if the system does not tell.
#[must_use]
pub fn memory_bytes() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let machine = machine.unwrap_or(1 << 30);
    // Half of the address space: the allocator reserves more of it than the memory that is used.
    let space = address_space_allowed().map_or(u64::MAX, |allowed| allowed / 2);
    super::cgroup::memory_limit().map_or(machine, |limit| limit.min(machine)).min(space)
}

/// The address space that this process may use, bytes; `None` without a limit.
#[must_use]
pub fn address_space_allowed() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::As).current
}

/// Parses `MemTotal: N kB`; returns bytes.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// How many files and sockets this process may have open now.
#[must_use]
pub fn open_files_allowed() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the number of files and sockets that this process may have open to the system's maximum; returns it. Systems
/// start processes with a far lower limit (1,024) than they allow.
pub fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let granted = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    granted.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_kibibytes() {
        assert_eq!(total_of("MemTotal:       24590716 kB\nMemFree: 1 kB\n"), Some(24_590_716 * 1024));
        assert_eq!(total_of("nothing"), None);
    }

    #[test]
    fn this_machine_has_memory_and_a_core() {
        assert!(memory_bytes() > 0 && cores() > 0);
    }
}
