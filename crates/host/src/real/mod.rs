//! The real machine: the only module that uses std::fs, SystemTime, std::thread and OS randomness.

mod cgroup;
mod file;
mod file_size_limit;
mod files;
mod locks;
mod machine;
mod open_files;
mod places;
mod private;
mod process;
mod size;
mod tasks;
mod time;

pub use file_size_limit::survive_file_size_limit;
pub use machine::{host, read_descriptors_max};
pub use private::{keep_files_private, leave_no_core_dump};
pub use process::{ProcessUsage, disk_space, lower_thread_priority, process_usage};
pub use size::{address_space_allowed, cores, memory_bytes, open_files_allowed, raise_open_files};
pub use tasks::check_threads;
