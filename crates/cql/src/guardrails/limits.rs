//! What is configured.

use super::feature::{Feature, decorated};
use crate::error::{CqlError, Result};
use std::collections::BTreeSet;

/// A bound to be warned of, and one not to be passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// From where on clients are warned.
    pub warn: Option<u64>,
    /// From where on they are refused.
    pub fail: Option<u64>,
}

/// Words that clients are warned of, and those they may not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Not recommended.
    pub warned: BTreeSet<String>,
    /// Taken and left aside.
    pub ignored: BTreeSet<String>,
    /// Not allowed.
    pub disallowed: BTreeSet<String>,
}

/// All guardrails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guardrails {
    /// Keyspaces of users.
    pub keyspaces: Threshold,
    /// Their tables.
    pub tables: Threshold,
    /// Columns of a table.
    pub columns_per_table: Threshold,
    /// Fields of a user type.
    pub fields_per_udt: Threshold,
    /// Elements of a vector.
    pub vector_dimensions: Threshold,
    /// Secondary indexes of a table.
    pub secondary_indexes_per_table: Threshold,
    /// Partitions of a SELECT with IN.
    pub partition_keys_in_select: Threshold,
    /// Combinations of the values of several IN.
    pub in_select_cartesian_product: Threshold,
    /// Rows of a page.
    pub page_size: Threshold,
    /// Elements of a collection in a write.
    pub items_per_collection: Threshold,
    /// Bytes of a collection in a write.
    pub collection_size: Threshold,
    /// Bytes of a value.
    pub column_value_size: Threshold,
    /// How far before now a timestamp may lie, microseconds.
    pub minimum_timestamp_us: Threshold,
    /// How far behind now.
    pub maximum_timestamp_us: Threshold,
    /// Least replication factor.
    pub minimum_replication_factor: Threshold,
    /// Greatest.
    pub maximum_replication_factor: Threshold,
    /// Names of table options.
    pub table_properties: Words,
    /// Consistency levels of reads.
    pub read_consistency_levels: Words,
    /// Consistency levels of writes.
    pub write_consistency_levels: Words,
    /// What is switched off.
    pub disabled: BTreeSet<Feature>,
}

impl Guardrails {
    /// Refuses a feature that is switched off.
    ///
    /// # Errors
    /// It is.
    pub(super) fn ensure(&self, feature: Feature) -> Result<()> {
        if self.disabled.contains(&feature) { feature.refuse(None) } else { Ok(()) }
    }
}

impl Words {
    /// Whether a word is to be left aside.
    pub(super) fn ignores(&self, word: &str) -> bool {
        self.ignored.contains(word)
    }

    /// What is told of those that were.
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
    /// Whether there is a bound.
    pub(super) fn is_set(&self) -> bool {
        self.warn.is_some() || self.fail.is_some()
    }

    /// Judges a value that may not be greater. `message` is given whether it is a warning, and the bound.
    ///
    /// # Errors
    /// The value is over the bound that may not be passed.
    pub(super) fn above(
        &self,
        (guardrail, reason): (&str, &str),
        value: u64,
        message: impl Fn(bool, u64) -> String,
    ) -> Result<Option<String>> {
        self.judge((guardrail, reason), |bound| value > bound, message)
    }

    /// Judges a value that may not be less.
    ///
    /// # Errors
    /// The value is under the bound that may not be passed.
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

impl Words {
    /// Judges words (`Values.guard`); `what` names their kind.
    ///
    /// # Errors
    /// One of them is not allowed.
    pub(super) fn judge(
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
