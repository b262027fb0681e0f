//! A statement before it is run: what it uses, and what goes with its request.

use super::feature::Feature;
use super::limits::Guardrails;
use crate::backend::Request;
use crate::error::Result;
use crate::syntax::ast::{BatchItem, Property, StatementKind, TableChange};
use helenus_model::schema::Table;
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

impl Guardrails {
    /// Judges what a statement says, when it is analysed.
    ///
    /// # Errors
    /// It uses what is switched off.
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
            StatementKind::Delete(delete) => self.timestamp(delete.timestamp.is_some()),
            StatementKind::Batch(batch) => {
                let stamped = batch.items.iter().any(|item| match item {
                    BatchItem::Insert(insert, _) => insert.using.timestamp.is_some(),
                    BatchItem::Update(update, _) => update.using.timestamp.is_some(),
                    BatchItem::Delete(delete, _) => delete.timestamp.is_some(),
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
            StatementKind::CreateTable(create) if create.options.compact_storage => {
                self.ensure(Feature::CompactTables)
            }
            StatementKind::Explain(explain) => self.statement(&explain.statement),
            _ => Ok(()),
        }
    }

    fn timestamp(&self, given: bool) -> Result<()> {
        if given { self.ensure(Feature::UserTimestamps) } else { Ok(()) }
    }

    /// Judges a read of `table` by what goes with its request.
    ///
    /// # Errors
    /// Page or level are not allowed.
    pub(crate) fn read(&self, table: &Table, request: &Request<'_>) -> Result<Vec<String>> {
        let levels = level(request.consistency);
        let mut warnings = Vec::new();
        warnings.extend(self.read_consistency_levels.judge(
            "read_consistency_levels",
            "read consistency levels",
            &levels,
        )?);
        let size = request.page_size.map_or(0, u64::from);
        let name = &table.name;
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

    /// Judges the level of a write.
    ///
    /// # Errors
    /// It is not allowed.
    pub(crate) fn write_level(&self, request: &Request<'_>) -> Result<Option<String>> {
        let mut levels = level(request.consistency);
        // The protocol's default of conditional writes (`QueryOptions`).
        levels.extend(level(request.serial_consistency.unwrap_or(8)));
        self.write_consistency_levels.judge("write_consistency_levels", "write consistency levels", &levels)
    }
}

fn level(code: u16) -> BTreeSet<String> {
    LEVELS.get(usize::from(code)).map(|level| (*level).to_owned()).into_iter().collect()
}

/// The name of a consistency level of the protocol; empty for none of it.
pub(crate) fn level_name(code: u16) -> &'static str {
    LEVELS.get(usize::from(code)).copied().unwrap_or_default()
}

/// The names of options that a statement gives.
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
