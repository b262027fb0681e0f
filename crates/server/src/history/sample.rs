//! The figures of a server at one moment.

use serde::{Deserialize, Serialize};

/// The figures of a server at one moment. Rates are averages since the sample before; they are `None` in the first sample of a
/// process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was taken, seconds since the epoch.
    pub time_s: i64,
    /// Bytes of all SSTables.
    pub data_bytes: u64,
    /// Bytes that are free for the server on the disk of its data.
    pub disk_free_bytes: u64,
    /// Bytes of that disk.
    pub disk_bytes: u64,
    /// Processors of the machine.
    pub cores: u32,
    /// Processors that the server kept busy.
    pub cores_busy: Option<f64>,
    /// Resident memory of the process, bytes.
    pub resident_bytes: u64,
    /// Requests that were refused for lack of memory, a second.
    pub refused_per_s: Option<f64>,
    /// Reads of single partitions and of ranges, a second.
    pub reads_per_s: Option<f64>,
    /// Writes, a second.
    pub writes_per_s: Option<f64>,
    /// The 99th percentile of recent reads of single partitions, microseconds.
    pub read_p99_us: u64,
    /// The same of writes.
    pub write_p99_us: u64,
}
