//! Checks a statement before it runs: the features that it uses, and its request's parameters.

use super::feature::Feature;
use super::limits::Guardrails;
use crate::error::Result;
use crate::request::Request;
use crate::syntax::ast::{
    BatchItem, Literal, Property, PropertyValue, StatementKind, TableChange, TableOptions,
};
use helenus_model::schema::FLAGS_EXTENSION;
use std::collections::BTreeSet;

/// Consistency levels by the protocol's numbers.
const LEVELS: [&str; 11] = [
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
    "SERIAL",
    "LOCAL_SERIAL",
    "LOCAL_ONE",
];

/// The properties of a SELECT that guardrails limit.
pub(crate) struct Reading<'a> {
    /// The table's name.
    pub(crate) table: &'a str,
    /// Number of partitions of an IN; `None` without IN on the partition key.
    pub(crate) partitions: Option<u64>,
    /// Number of rows of an IN in each partition; `None` without IN on the clustering.
    pub(crate) rows: Option<u64>,
    /// Whether an index is searched in all partitions.
    pub(crate) index_without_partition: bool,
    /// Rows of a page; `None` without paging.
    pub(crate) page_size: Option<u32>,
}

impl Guardrails {
    /// Checks a statement during its analysis.
    ///
    /// # Errors
    /// It uses a disabled feature.
    pub(crate) fn statement(&self, kind: &StatementKind<'_>) -> Result<()> {
        match kind {
            StatementKind::Select(select) => {
                if select.allow_filtering {
                    self.ensure(Feature::AllowFiltering)?;
                }
                if select.group_by.is_empty() { Ok(()) } else { self.ensure(Feature::GroupBy) }
            }
            StatementKind::Insert(insert) => self.timestamp(insert.using.timestamp.is_some()),
            StatementKind::Update(update) => self.timestamp(update.using.timestamp.is_some()),
            StatementKind::Delete(delete) => self.timestamp(delete.using.timestamp.is_some()),
            StatementKind::Batch(batch) => {
                let stamped = batch.items.iter().any(|item| match item {
                    BatchItem::Insert(insert, _) => insert.using.timestamp.is_some(),
                    BatchItem::Update(update, _) => update.using.timestamp.is_some(),
                    BatchItem::Delete(delete, _) => delete.using.timestamp.is_some(),
                });
                self.timestamp(stamped)
            }
            StatementKind::Truncate(_) | StatementKind::DropTable(_) => {
                self.ensure(Feature::DropTruncateTable)
            }
            StatementKind::DropKeyspace { .. } => self.ensure(Feature::DropKeyspace),
            StatementKind::AlterTable(alter) if !matches!(alter.change, TableChange::Properties(_)) => {
                self.ensure(Feature::AlterTable)
            }
            StatementKind::CreateIndex(_) => self.ensure(Feature::SecondaryIndexes),
            StatementKind::CreateTable(create) if makes_compact(&create.options) => {
                self.ensure(Feature::CompactTables)
            }
            StatementKind::Explain(explain) => self.statement(&explain.statement),
            _ => Ok(()),
        }
    }

    fn timestamp(&self, given: bool) -> Result<()> {
        if given { self.ensure(Feature::UserTimestamps) } else { Ok(()) }
    }

    /// Checks the consistency level of a read.
    ///
    /// # Errors
    /// It is refused.
    pub(crate) fn read_level(&self, request: &Request<'_>) -> Result<Option<String>> {
        let levels = level(request.consistency);
        self.read_consistency_levels.check("read_consistency_levels", "read consistency levels", &levels)
    }

    /// Checks a SELECT with its bound values.
    ///
    /// # Errors
    /// Too many partitions or rows, too large pages, or an index without a restricted partition key.
    pub(crate) fn read(&self, read: &Reading<'_>) -> Result<Vec<String>> {
        let (mut warnings, name) = (Vec::new(), read.table);
        let product = ("in_select_cartesian_product", "");
        for (keys, what) in [(read.partitions, "partition key"), (read.rows, "clustering key")] {
            let Some(count) = keys else { continue };
            warnings.extend(self.in_select_cartesian_product.above(product, count, |warning, bound| {
                if warning {
                    format!("The cartesian product of the IN restrictions on {what} produces {count} values, this exceeds warning threshold of {bound}.")
                } else {
                    format!("Aborting query because the cartesian product of the IN restrictions on {what} produces {count} values, this exceeds fail threshold of {bound}.")
                }
            })?);
        }
        if let Some(keys) = read.partitions {
            let guardrail = ("partition_keys_in_select", "");
            warnings.extend(self.partition_keys_in_select.above(guardrail, keys, |warning, bound| {
                if warning {
                    format!("Query with partition keys in IN clause on table {name}, with number of partition keys {keys} exceeds warning threshold of {bound}.")
                } else {
                    format!("Aborting query with partition keys in IN clause on table {name}, number of partition keys {keys} exceeds fail threshold of {bound}.")
                }
            })?);
        }
        if read.index_without_partition {
            self.ensure(Feature::IndexWithoutPartition)?;
        }
        let size = read.page_size.map_or(0, u64::from);
        warnings.extend(self.page_size.above(("page_size", ""), size, |warning, bound| {
            if warning {
                format!("Query for table {name} with page size {size} exceeds warning threshold of {bound}.")
            } else {
                format!(
                    "Aborting query for table {name}, page size {size} exceeds fail threshold of {bound}."
                )
            }
        })?);
        Ok(warnings)
    }

    /// Checks the consistency levels of a write.
    ///
    /// # Errors
    /// One of them is refused.
    pub(crate) fn write_level(&self, request: &Request<'_>) -> Result<Option<String>> {
        let mut levels = level(request.consistency);
        // The protocol's default for conditional writes (`QueryOptions`).
        levels.extend(level(request.serial_consistency.unwrap_or(8)));
        self.write_consistency_levels.check("write_consistency_levels", "write consistency levels", &levels)
    }
}

fn level(code: u16) -> BTreeSet<String> {
    LEVELS.get(usize::from(code)).map(|level| (*level).to_owned()).into_iter().collect()
}

/// The name of a protocol consistency level; empty for an unknown code.
pub(crate) fn level_name(code: u16) -> &'static str {
    LEVELS.get(usize::from(code)).copied().unwrap_or_default()
}

impl Guardrails {
    /// Removes ignored options from a statement, and returns the warning about them.
    pub(crate) fn ignore_properties(&self, kind: &mut StatementKind<'_>) -> Option<String> {
        let words = &self.table_properties;
        if words.ignored.is_empty() {
            return None;
        }
        let warning = words.ignoring("table_properties", "Table Properties", &property_names(kind));
        let properties = match kind {
            StatementKind::CreateTable(create) => &mut create.options.properties,
            StatementKind::AlterTable(alter) => match &mut alter.change {
                TableChange::Properties(properties) => properties,
                _ => return None,
            },
            _ => return None,
        };
        properties.retain(|property| !words.ignores(property.name.as_str()));
        warning
    }

    /// Refuses a list operation that reads first; `what` is its name in Cassandra's message.
    ///
    /// # Errors
    /// Such operations are disabled.
    pub(crate) fn list_operation(&self, what: &str) -> Result<()> {
        match self.disabled.contains(&Feature::ReadBeforeWriteLists) {
            true => Feature::ReadBeforeWriteLists.refuse(Some(what)),
            false => Ok(()),
        }
    }
}

/// Whether a CREATE TABLE may make a compact table, judged only by its options.
fn makes_compact(options: &TableOptions<'_>) -> bool {
    let gives_flags = |property: &Property<'_>| match &property.value {
        PropertyValue::Map(pairs, _) => pairs.iter().any(|(name, _)| name.text == FLAGS_EXTENSION),
        _ => false,
    };
    options.compact_storage || options.properties.iter().any(gives_flags)
}

/// Whether a statement gives a table time windows and no TTL. As in Cassandra (`validateDefaultTimeToLive`), its own
/// properties count: an ALTER TABLE to time windows does, although the table has a TTL.
pub(crate) fn has_zero_ttl_on_twcs(kind: &StatementKind<'_>) -> bool {
    let properties = match kind {
        StatementKind::CreateTable(create) => &create.options.properties,
        StatementKind::AlterTable(alter) => match &alter.change {
            TableChange::Properties(properties) => properties,
            _ => return false,
        },
        _ => return false,
    };
    let value = |name: &str| {
        properties.iter().find(|property| property.name.as_str() == name).map(|property| &property.value)
    };
    let Some(PropertyValue::Map(pairs, _)) = value("compaction") else { return false };
    let is_windows = |(name, class): &(Literal<'_>, Literal<'_>)| {
        name.text == "class" && class.text.rsplit('.').next() == Some("TimeWindowCompactionStrategy")
    };
    let has_ttl = match value("default_time_to_live") {
        Some(PropertyValue::Literal(literal)) => literal.text.parse() != Ok(0_u64),
        Some(_) => true,
        None => false,
    };
    pairs.iter().any(is_windows) && !has_ttl
}

/// The names of the options in a statement.
pub(super) fn property_names(kind: &StatementKind<'_>) -> BTreeSet<String> {
    let names = |properties: &[Property<'_>]| {
        properties.iter().map(|property| property.name.as_str().to_owned()).collect()
    };
    match kind {
        StatementKind::CreateTable(create) => names(&create.options.properties),
        StatementKind::AlterTable(alter) => match &alter.change {
            TableChange::Properties(properties) => names(properties),
            _ => BTreeSet::new(),
        },
        _ => BTreeSet::new(),
    }
}
