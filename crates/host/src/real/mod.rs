//! The machine as it is: the only place that names std::fs, SystemTime, std::thread and OS randomness.

mod files;
mod locks;
mod machine;
mod process;
mod size;
mod tasks;
mod time;

pub use machine::host;
pub use process::{ProcessUsage, disk_space, process_usage};
pub use size::{cores, memory_bytes, raise_open_files};
