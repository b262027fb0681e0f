//! The guardrails on the size and the tombstones of partitions in new SSTables. They only write to the log, as Cassandra's do
//! (`SortedTableWriter.guardPartitionThreshold`).

use super::feature::decorated;
use super::limits::{Guardrails, Threshold};
use helenus_engine::{LargePartition, PartitionLimits};

/// A threshold that a partition has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedThreshold {
    /// Whether it is the higher one, for failures.
    pub is_failure: bool,
    /// What is said about it.
    pub text: String,
}

impl Guardrails {
    /// The limits beyond which partitions are to be noted.
    pub fn partition_limits(&self) -> PartitionLimits {
        let least =
            |threshold: Threshold| threshold.warn.into_iter().chain(threshold.fail).min().unwrap_or(u64::MAX);
        PartitionLimits { bytes: least(self.partition_size), tombstones: least(self.partition_tombstones) }
    }

    /// What a partition has passed. `name` is its table, its key and its file.
    pub fn partition(&self, name: &str, partition: &LargePartition) -> Vec<PassedThreshold> {
        let size = passed(self.partition_size, partition.bytes, |kind, bound| {
            let text = format!(
                "Partition {name} has size {}, this exceeds the {kind} threshold of {bound}.",
                partition.bytes
            );
            decorated("partition_size", &text, "Too large partitions can cause performance problems.")
        });
        let tombstones = passed(self.partition_tombstones, partition.tombstones, |kind, bound| {
            let text = format!(
                "Partition {name} has {} tombstones, this exceeds the {kind} threshold of {bound}.",
                partition.tombstones
            );
            let reason = "Partitions with too many tombstones can cause performance problems.";
            decorated("partition_tombstones", &text, reason)
        });
        size.into_iter().chain(tombstones).collect()
    }
}

fn passed(
    threshold: Threshold,
    value: u64,
    text: impl Fn(&'static str, u64) -> String,
) -> Option<PassedThreshold> {
    let beyond = |bound: Option<u64>| bound.filter(|bound| value > *bound);
    match (beyond(threshold.fail), beyond(threshold.warn)) {
        (Some(bound), _) => Some(PassedThreshold { is_failure: true, text: text("failure", bound) }),
        (None, Some(bound)) => Some(PassedThreshold { is_failure: false, text: text("warning", bound) }),
        (None, None) => None,
    }
}
