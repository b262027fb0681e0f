//! The configuration of guardrails.

use super::feature::{Feature, decorated};
use crate::error::{CqlError, Result};
use std::collections::BTreeSet;

/// A limit for warnings, and one for refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// The limit above (or below) which clients are warned.
    pub warn: Option<u64>,
    /// The limit above (or below) which requests are refused.
    pub fail: Option<u64>,
}

/// Words that cause a warning, are ignored, or are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedValues {
    /// Cause a warning.
    pub warned: BTreeSet<String>,
    /// Accepted but ignored.
    pub ignored: BTreeSet<String>,
    /// Refused.
    pub disallowed: BTreeSet<String>,
}

/// All guardrails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guardrails {
    /// Number of user keyspaces.
    pub keyspaces: Threshold,
    /// Number of user tables.
    pub tables: Threshold,
    /// Columns of a table.
    pub columns_per_table: Threshold,
    /// Fields of a user-defined type.
    pub fields_per_udt: Threshold,
    /// Elements of a vector.
    pub vector_dimensions: Threshold,
    /// Secondary indexes of a table.
    pub secondary_indexes_per_table: Threshold,
    /// Partitions of a SELECT with IN.
    pub partition_keys_in_select: Threshold,
    /// Combinations of the values of several INs.
    pub in_select_cartesian_product: Threshold,
    /// Rows of a page.
    pub page_size: Threshold,
    /// Elements of a collection in a write.
    pub items_per_collection: Threshold,
    /// Bytes of a collection in a write.
    pub collection_size: Threshold,
    /// Bytes of a value.
    pub column_value_size: Threshold,
    /// Bytes of a partition in an SSTable.
    pub partition_size: Threshold,
    /// Tombstones of a partition in an SSTable.
    pub partition_tombstones: Threshold,
    /// Percent of the data's disk that are used.
    pub data_disk_usage: Threshold,
    /// The size of the disk for this percentage, if it counts as smaller than it is.
    pub data_disk_usage_max_bytes: Option<u64>,
    /// How far in the past a timestamp may be, microseconds.
    pub minimum_timestamp_us: Threshold,
    /// How far in the future a timestamp may be, microseconds.
    pub maximum_timestamp_us: Threshold,
    /// Minimum replication factor.
    pub minimum_replication_factor: Threshold,
    /// Maximum replication factor.
    pub maximum_replication_factor: Threshold,
    /// Names of table options.
    pub table_properties: ListedValues,
    /// Consistency levels of reads.
    pub read_consistency_levels: ListedValues,
    /// Consistency levels of writes.
    pub write_consistency_levels: ListedValues,
    /// Disabled features.
    pub disabled: BTreeSet<Feature>,
}

impl Guardrails {
    /// Refuses a disabled feature.
    ///
    /// # Errors
    /// It is disabled.
    pub(super) fn ensure(&self, feature: Feature) -> Result<()> {
        if self.disabled.contains(&feature) { feature.refuse(None) } else { Ok(()) }
    }
}

impl ListedValues {
    /// Whether a word is to be ignored.
    pub(super) fn ignores(&self, word: &str) -> bool {
        self.ignored.contains(word)
    }

    /// The warning about ignored words.
    pub(super) fn ignoring(&self, guardrail: &str, what: &str, words: &BTreeSet<String>) -> Option<String> {
        let found: Vec<&String> = words.intersection(&self.ignored).collect();
        (!found.is_empty()).then(|| {
            let (found, all) = (listed(found.into_iter()), listed(self.ignored.iter()));
            let text = format!(
                "Ignoring provided values {found} as they are not supported for {what} (ignored values are: {all})"
            );
            decorated(guardrail, &text, "")
        })
    }
}

impl Threshold {
    /// Whether there is a limit.
    pub(super) fn is_set(&self) -> bool {
        self.warn.is_some() || self.fail.is_some()
    }

    /// Checks a value against maximums. `message` gets whether it is for a warning, and the limit.
    ///
    /// # Errors
    /// The value is above the limit for refusals.
    pub(super) fn above(
        &self,
        (guardrail, reason): (&str, &str),
        value: u64,
        message: impl Fn(bool, u64) -> String,
    ) -> Result<Option<String>> {
        self.judge((guardrail, reason), |bound| value > bound, message)
    }

    /// Checks a value against minimums.
    ///
    /// # Errors
    /// The value is below the limit for refusals.
    pub(super) fn below(
        &self,
        (guardrail, reason): (&str, &str),
        value: u64,
        message: impl Fn(bool, u64) -> String,
    ) -> Result<Option<String>> {
        self.judge((guardrail, reason), |bound| value < bound, message)
    }

    fn judge(
        &self,
        (guardrail, reason): (&str, &str),
        passes: impl Fn(u64) -> bool,
        message: impl Fn(bool, u64) -> String,
    ) -> Result<Option<String>> {
        if let Some(bound) = self.fail.filter(|bound| passes(*bound)) {
            return Err(CqlError::Invalid(decorated(guardrail, &message(false, bound), reason)));
        }
        let warned = self.warn.filter(|bound| passes(*bound));
        Ok(warned.map(|bound| decorated(guardrail, &message(true, bound), reason)))
    }
}

/// `[a, b]`, as Java prints a list or a set.
fn listed<'a>(words: impl Iterator<Item = &'a String>) -> String {
    format!("[{}]", words.cloned().collect::<Vec<_>>().join(", "))
}

impl ListedValues {
    /// Checks words (`Values.guard`); `what` names their kind.
    ///
    /// # Errors
    /// One of them is refused.
    pub(super) fn check(
        &self,
        guardrail: &str,
        what: &str,
        words: &BTreeSet<String>,
    ) -> Result<Option<String>> {
        let found = |among: &BTreeSet<String>| {
            let both: Vec<&String> = words.intersection(among).collect();
            (!both.is_empty()).then(|| listed(both.into_iter()))
        };
        if let Some(found) = found(&self.disallowed) {
            let all = listed(self.disallowed.iter());
            let text =
                format!("Provided values {found} are not allowed for {what} (disallowed values are: {all})");
            return Err(CqlError::Invalid(decorated(guardrail, &text, "")));
        }
        Ok(found(&self.warned).map(|found| {
            let all = listed(self.warned.iter());
            let text =
                format!("Provided values {found} are not recommended for {what} (warned values are: {all})");
            decorated(guardrail, &text, "")
        }))
    }
}
