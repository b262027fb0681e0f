//! The commands of the binary. Each command is thin: it reads its options, calls a library, and prints.

mod access;
pub mod admin;
#[cfg(feature = "analysis")]
mod analysis;
pub mod backup;
pub mod cert;
pub mod changes;
pub mod cli;
mod client;
mod cluster_access;
pub mod container;
pub mod export;
mod held_files;
pub mod import;
mod machine;
pub mod moving;
mod numbers;
mod overlay;
mod page;
mod passwords;
pub mod profile;
mod progress;
mod progress_watch;
pub mod pull;
pub mod restore;
mod rewrite;
mod running;
mod schema_text;
pub mod serve;
mod server_address;
pub mod shell;
pub mod shell_help;
pub mod sstable;
pub mod stress;
mod target;
