//! What `helenus pull` asks, and what it is answered.

use crate::messages::MoveOrder;
use serde::{Deserialize, Serialize};

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequest {
    /// Starts to copy.
    Start(Box<PullOrder>),
    /// The progress.
    Status,
    /// Ends it. What was copied stays.
    Stop,
}

/// What is to be copied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PullOrder {
    /// How the cluster is reached, the names of keyspaces and tables, the limit in rows a second, and the ranges at once.
    pub cluster: MoveOrder,
    /// The consistency of reads, by its code in the native protocol.
    pub consistency: u16,
    /// The share of the partitions, 0 to 1.
    pub sample: f64,
    /// Partition keys as CQL literals, those of several columns with commas between; all partitions if empty.
    pub partitions: Vec<String>,
    /// A condition of CQL.
    pub condition: Option<String>,
    /// Masks as `KEYSPACE.TABLE.COLUMN=KIND`.
    pub masks: Vec<String>,
    /// What hashes are made with; at random if `None`.
    pub secret: Option<String>,
}

/// The progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PullReport {
    /// Whether it goes on.
    pub is_running: bool,
    /// Why it has ended early.
    pub error: Option<String>,
    /// What is otherwise here than there.
    pub notes: Vec<String>,
    /// The tables.
    pub tables: Vec<PulledTable>,
}

/// A table that is copied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PulledTable {
    /// Keyspace and name.
    pub table: String,
    /// Ranges of tokens, or partitions.
    pub parts: usize,
    /// Those that are copied.
    pub parts_done: usize,
    /// Rows copied.
    pub rows: u64,
    /// Bytes of their values, about.
    pub bytes: u64,
    /// Why it was not copied, or not to its end. The others were.
    #[serde(default)]
    pub error: Option<String>,
}
