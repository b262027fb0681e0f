//! The machine that the program runs on, described in words, for results that are compared later.

/// The processor's name and the number of cores.
pub fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("a processor without a name", |(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores")
}
