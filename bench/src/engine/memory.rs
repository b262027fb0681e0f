//! What the process and its directory come to.

use anyhow::{Result, anyhow};
use std::path::Path;

/// MiB that the process has resident now, and the most it ever had.
pub fn resident_mib() -> Result<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.map(|kib| kib / 1024).ok_or_else(|| anyhow!("/proc/self/status has no {name}"))
    };
    Ok((field("VmRSS:")?, field("VmHWM:")?))
}

/// KiB of the files below a folder whose names end so.
pub fn files_kib(folder: &Path, ending: &str) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path.is_dir() {
            bytes += files_kib(&path, ending)? * 1024;
        } else if path.to_string_lossy().ends_with(ending) {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes.div_ceil(1024))
}
