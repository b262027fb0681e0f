//! Checks the result of a schema change.

use super::feature::Feature;
use super::limits::Guardrails;
use super::statement::{has_zero_ttl_on_twcs, property_names};
use crate::error::Result;
use crate::syntax::ast::StatementKind;
use helenus_engine::is_system_keyspace;
use helenus_model::schema::{Keyspace, Schema, Table};
use helenus_model::types::CqlType;

impl Guardrails {
    /// Checks a change from `before` to `after` by a statement of `kind`.
    ///
    /// # Errors
    /// The new schema exceeds a limit or uses something that is refused.
    pub(crate) fn schema(
        &self,
        kind: &StatementKind<'_>,
        before: &Schema,
        after: &Schema,
    ) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        let properties = property_names(kind);
        let judged = self.table_properties.check("table_properties", "Table Properties", &properties)?;
        warnings.extend(judged);
        if has_zero_ttl_on_twcs(kind) {
            self.ensure(Feature::ZeroTtlOnTwcs)?;
        }
        for keyspace in users(after) {
            let old = before.keyspaces.get(&keyspace.name);
            if old.is_none_or(|old| old.replication != keyspace.replication) {
                self.replication(keyspace, &mut warnings)?;
            }
            if old.is_none() {
                self.keyspace_count(keyspace, after, &mut warnings)?;
            }
            for table in keyspace.tables.values() {
                match old.and_then(|old| old.tables.get(&table.name)) {
                    Some(old) if old == table => {}
                    Some(old) => self.table(table, Some(old), &mut warnings)?,
                    None => {
                        self.table_count(table, after, &mut warnings)?;
                        self.table(table, None, &mut warnings)?;
                    }
                }
            }
            self.types(keyspace, old.map(|old| &**old), &mut warnings)?;
        }
        Ok(warnings)
    }

    fn keyspace_count(&self, keyspace: &Keyspace, after: &Schema, warnings: &mut Vec<String>) -> Result<()> {
        let (name, count) = (&keyspace.name, users(after).count() as u64);
        warnings.extend(self.keyspaces.above(("keyspaces", ""), count, |warning, bound| {
            if warning {
                format!("Creating keyspace {name}, current number of keyspaces {count} exceeds warning threshold of {bound}.")
            } else {
                format!("Cannot have more than {bound} keyspaces, aborting the creation of keyspace {name}")
            }
        })?);
        Ok(())
    }

    fn table_count(&self, table: &Table, after: &Schema, warnings: &mut Vec<String>) -> Result<()> {
        let count: u64 = users(after).map(|keyspace| keyspace.tables.len() as u64).sum();
        let name = &table.name;
        warnings.extend(self.tables.above(("tables", ""), count, |warning, bound| {
            if warning {
                format!("Creating table {name}, current number of tables {count} exceeds warning threshold of {bound}.")
            } else {
                format!("Cannot have more than {bound} tables, aborting the creation of table {name}")
            }
        })?);
        Ok(())
    }

    fn replication(&self, keyspace: &Keyspace, warnings: &mut Vec<String>) -> Result<()> {
        let name = &keyspace.name;
        if keyspace.replication.get("class").is_some_and(|class| class.ends_with(".SimpleStrategy")) {
            self.ensure(Feature::SimpleStrategy)?;
        }
        for (key, factor) in &keyspace.replication {
            let Some(factor) = factor.parse::<u64>().ok().filter(|_| key != "class") else { continue };
            let kind = |warning| if warning { "warning" } else { "failure" };
            let low = ("minimum_replication_factor", "");
            warnings.extend(self.minimum_replication_factor.below(low, factor, |warning, bound| {
                format!(
                    "The keyspace {name} has a replication factor of {factor}, below the {} threshold of {bound}.",
                    kind(warning)
                )
            })?);
            let high = ("maximum_replication_factor", "");
            warnings.extend(self.maximum_replication_factor.above(high, factor, |warning, bound| {
                format!(
                    "The keyspace {name} has a replication factor of {factor}, above the {} threshold of {bound}.",
                    kind(warning)
                )
            })?);
        }
        Ok(())
    }

    fn table(&self, table: &Table, old: Option<&Table>, warnings: &mut Vec<String>) -> Result<()> {
        let (name, count) = (&table.name, table.columns().count() as u64);
        if old.is_none_or(|old| (old.columns().count() as u64) < count) {
            warnings
                .extend(self.columns_per_table.above(("columns_per_table", ""), count, |warning, bound| {
                if warning {
                    format!(
                        "The table {name} has {count} columns, this exceeds the warning threshold of {bound}."
                    )
                } else {
                    format!(
                        "Tables cannot have more than {bound} columns, but {count} provided for table {name}"
                    )
                }
            })?);
        }
        let is_new = |column: &str| old.is_none_or(|old| old.column(column).is_none());
        for column in table.columns().filter(|column| is_new(&column.name)) {
            self.vector(&format!("Column {}", column.name), &column.ty, warnings)?;
        }
        self.index_count(table, old, warnings)?;
        let options = &table.options;
        if options.compression.get("enabled").is_some_and(|enabled| enabled == "false") {
            self.ensure(Feature::UncompressedTables)?;
        }
        Ok(())
    }

    fn index_count(&self, table: &Table, old: Option<&Table>, warnings: &mut Vec<String>) -> Result<()> {
        let is_new = |name: &str| old.is_none_or(|old| !old.indexes.contains_key(name));
        let Some(name) = table.indexes.keys().find(|name| is_new(name)) else { return Ok(()) };
        let (what, count) = (format!("{name} on table {}", table.name), table.indexes.len() as u64);
        let guardrail = ("secondary_indexes_per_table", "");
        warnings.extend(self.secondary_indexes_per_table.above(guardrail, count, |warning, bound| {
            if warning {
                format!("Creating secondary index {what}, current number of indexes {count} exceeds warning threshold of {bound}.")
            } else {
                format!("Tables cannot have more than {bound} secondary indexes, aborting the creation of secondary index {what}")
            }
        })?);
        Ok(())
    }

    fn vector(&self, name: &str, ty: &CqlType, warnings: &mut Vec<String>) -> Result<()> {
        let dimension = match ty {
            CqlType::Vector { dimension, .. } => dimension,
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                return self.vector(name, element, warnings);
            }
            CqlType::Map { key, value, .. } => {
                self.vector(name, key, warnings)?;
                return self.vector(name, value, warnings);
            }
            CqlType::Tuple(types) => {
                return types.iter().try_for_each(|ty| self.vector(name, ty, warnings));
            }
            _ => return Ok(()),
        };
        if self.disabled.contains(&Feature::VectorType) {
            return Feature::VectorType.refuse(Some(name));
        }
        let dimension = u64::from(*dimension);
        warnings
            .extend(self.vector_dimensions.above(("vector_dimensions", ""), dimension, |warning, bound| {
            let kind = if warning { "warning" } else { "failure" };
            format!(
                "{name} has a vector of {dimension} dimensions, this exceeds the {kind} threshold of {bound}."
            )
        })?);
        Ok(())
    }

    fn types(&self, keyspace: &Keyspace, old: Option<&Keyspace>, warnings: &mut Vec<String>) -> Result<()> {
        for ty in keyspace.types.values() {
            let had = old.and_then(|old| old.types.get(&ty.name)).map_or(0, |old| old.fields.len());
            if had >= ty.fields.len() {
                continue;
            }
            for (name, field) in ty.fields.iter().skip(had) {
                self.vector(&format!("Field {name}"), field, warnings)?;
            }
            let (name, count) = (&ty.name, ty.fields.len() as u64);
            warnings.extend(self.fields_per_udt.above(("fields_per_udt", ""), count, |warning, bound| {
                if warning {
                    format!("The user type {name} has {count} columns, this exceeds the warning threshold of {bound}.")
                } else {
                    format!("User types cannot have more than {bound} columns, but {count} provided for user type {name}.")
                }
            })?);
        }
        Ok(())
    }
}

fn users(schema: &Schema) -> impl Iterator<Item = &Keyspace> {
    schema
        .keyspaces
        .values()
        .map(|keyspace| &**keyspace)
        .filter(|keyspace| !is_system_keyspace(&keyspace.name))
}
