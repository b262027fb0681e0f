//! Compaction: SSTables become fewer, and what is deleted or overwritten goes.

mod choose;

pub use choose::{parse_percent, parse_scaling_parameters, parse_size};
