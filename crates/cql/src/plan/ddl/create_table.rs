//! CREATE TABLE and DROP TABLE.

use super::change::DdlSettings;
use super::layout::Layout;
use super::mask;
use super::options::{check_names, new_table_options};
use super::properties::Properties;
use crate::analysis::Resolver;
use crate::analysis::references_duration;
use crate::error::{CqlError, Result};
use crate::syntax::ast::{CreateTable, Ident, PrimaryKey};
use helenus_model::schema::{
    Column, ColumnKind, ColumnMask, FLAGS_EXTENSION, Keyspace, Schema, Table, TableId,
};
use helenus_model::types::CqlType;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

/// The greatest length of a table's name: a file name without a dash and the id (`SchemaConstants.TABLE_NAME_LENGTH`).
const TABLE_NAME_MAX: usize = 255 - 32 - 1;

pub(super) fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(CqlError::Invalid(message.into()))
}

/// The checks of `CreateTableStatement.Raw`, which need no schema.
pub(super) fn check_raw(statement: &CreateTable<'_>) -> Result<()> {
    let table = name_text(statement);
    if let Some(name) = repeated(statement.columns.iter().map(|column| column.name.as_str())) {
        return invalid(format!("Duplicate column '{name}' declaration for table '{table}'"));
    }
    let order = &statement.options.clustering_order;
    if let Some(name) = repeated(order.iter().map(|(column, _)| column.as_str())) {
        return invalid(format!(
            "Duplicate column '{name}' in CLUSTERING ORDER BY clause for table '{table}'"
        ));
    }
    check_count(statement.columns.len(), table.as_str())?;
    match statement.primary_keys.len() {
        0 => invalid(format!("No PRIMARY KEY specifed for table '{table}' (exactly one required)")),
        1 if statement.primary_keys.iter().any(|key| key.clustering.len() > CLUSTERING_MAX) => {
            invalid(format!(
                "Table '{table}' cannot have more than {CLUSTERING_MAX} clustering columns; put some of them into a frozen tuple"
            ))
        }
        1 => Ok(()),
        _ => invalid(format!("Multiple PRIMARY KEY specified for table '{table}' (exactly one required)")),
    }
}

/// The most clustering columns of a table. Comparing two rows may compare all of them; real schemas have far fewer.
const CLUSTERING_MAX: usize = u8::MAX as usize;

/// The first name that occurs a second time.
pub(super) fn repeated<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
}

/// Rejects more columns than a table can number. Cassandra has no limit, and warns above a hundred.
pub(super) fn check_count(count: usize, table: &str) -> Result<()> {
    // A compact table has up to two columns more than were named.
    if count + 2 > Table::COLUMNS_MAX {
        return invalid(format!(
            "Table '{table}' cannot have {count} columns; the most are {}",
            Table::COLUMNS_MAX - 2
        ));
    }
    Ok(())
}

fn name_text(statement: &CreateTable<'_>) -> String {
    match &statement.name.keyspace {
        Some(keyspace) => format!("{}.{}", keyspace.as_str(), statement.name.name.as_str()),
        None => statement.name.name.as_str().to_owned(),
    }
}

/// CREATE TABLE.
pub(super) fn create(
    statement: &CreateTable<'_>,
    keyspace: &str,
    schema: &mut Schema,
    settings: &DdlSettings,
) -> Result<()> {
    if statement.columns.iter().any(|column| column.mask.is_some()) {
        mask::ensure_enabled(settings.masks_columns)?;
    }
    let Some(present) = schema.keyspaces.get(keyspace) else {
        return invalid(format!("Keyspace '{keyspace}' doesn't exist"));
    };
    let name = statement.name.name.as_str();
    if present.tables.contains_key(name) {
        if statement.if_not_exists {
            return Ok(());
        }
        return Err(CqlError::AlreadyExists {
            keyspace: keyspace.to_owned(),
            table: name.to_owned(),
            message: format!("Cannot add already existing table \"{name}\" to keyspace \"{keyspace}\""),
        });
    }
    let table = Builder { statement, keyspace: present, settings, schema }.table()?;
    check_name(keyspace, name)?;
    // Changed in place if the keyspace is not shared, because a script may create many tables one after another.
    if let Some(present) = schema.keyspaces.get_mut(keyspace) {
        Arc::make_mut(present).tables.insert(table.name.clone(), Arc::new(table));
    }
    Ok(())
}

/// DROP TABLE.
pub(super) fn drop(name: &str, if_exists: bool, keyspace: &str, schema: &mut Schema) -> Result<()> {
    let found = schema.keyspaces.get_mut(keyspace).filter(|keyspace| keyspace.tables.contains_key(name));
    let Some(present) = found else {
        if if_exists {
            return Ok(());
        }
        return invalid(format!("Table '{keyspace}.{name}' doesn't exist"));
    };
    let mut changed = Keyspace::clone(present);
    changed.tables.remove(name);
    *present = Arc::new(changed);
    Ok(())
}

struct Builder<'a> {
    statement: &'a CreateTable<'a>,
    keyspace: &'a Keyspace,
    settings: &'a DdlSettings,
    schema: &'a Schema,
}

impl Builder<'_> {
    fn table(&self) -> Result<Table> {
        let statement = self.statement;
        let mut properties = Properties::new(&statement.options.properties);
        check_names(&properties)?;
        let layout = Layout::take(&mut properties, &Resolver::new(self.keyspace))?;
        if statement.options.compact_storage && layout.flags.is_some() {
            return invalid(format!(
                "COMPACT STORAGE and extension '{FLAGS_EXTENSION}' both say how rows are stored; leave one of them out"
            ));
        }
        let options = new_table_options(&properties, &self.settings.table_options)?;
        let types = self.column_types()?;
        let Some(key) = statement.primary_keys.first() else {
            return invalid(format!(
                "No PRIMARY KEY specifed for table '{}' (exactly one required)",
                name_text(statement)
            ));
        };
        self.check_key(key, &types, layout.flags.is_some())?;
        self.check_order(key)?;
        if statement.options.compact_storage {
            self.check_compact(key, &types)?;
        }
        let has_counters = types.values().any(|ty| *ty == CqlType::Counter);
        if layout.flags.is_none() {
            self.check_others(key, &types, has_counters, options.default_time_to_live_s)?;
        }
        let id = match properties.text("id")? {
            None => (self.settings.new_id)(),
            Some(text) => Uuid::try_parse(text).map_err(|_| CqlError::Config("Invalid table id".into()))?,
        };
        let flags = layout.flags.clone();
        let flags = flags.unwrap_or_else(|| self.flags(key.clustering.len(), has_counters));
        let mut table = Table {
            options,
            flags,
            masks: self.masks(&types)?,
            ..Table::new((&self.keyspace.name, statement.name.name.as_str()), TableId(id), [])
        };
        self.add_columns(key, types, &mut table);
        if statement.options.compact_storage {
            complete_compact(&mut table);
        }
        layout.apply(&mut table)?;
        table.arrange();
        Ok(table)
    }

    fn flags(&self, clustering: usize, has_counters: bool) -> Vec<String> {
        if self.statement.options.compact_storage {
            return compact_flags(clustering, has_counters);
        }
        let words = std::iter::once("compound").chain(has_counters.then_some("counter"));
        words.map(str::to_owned).collect()
    }

    fn masks(&self, types: &BTreeMap<String, CqlType>) -> Result<BTreeMap<Arc<str>, ColumnMask>> {
        let (keyspace, table) = (&*self.keyspace.name, self.statement.name.name.as_str());
        let mut masks = BTreeMap::new();
        for column in &self.statement.columns {
            let name = column.name.as_str();
            if let (Some(given), Some(ty)) = (&column.mask, types.get(name)) {
                masks.insert(name.into(), mask::prepare(given, (name, ty), (keyspace, table), self.schema)?);
            }
        }
        Ok(masks)
    }

    fn column_types(&self) -> Result<BTreeMap<String, CqlType>> {
        let (mut types, resolver) = (BTreeMap::new(), Resolver::new(self.keyspace));
        for column in &self.statement.columns {
            types.insert(column.name.as_str().to_owned(), resolver.resolved(&column.data_type)?);
        }
        let nested = |ty: &CqlType| match ty {
            CqlType::Udt(udt) if !udt.frozen => udt.fields.iter().any(|(_, field)| field.is_multi_cell()),
            _ => false,
        };
        if types.values().any(nested) {
            return invalid("Non-frozen UDTs with nested non-frozen collections are not supported");
        }
        Ok(types)
    }

    /// `is_family`: the table was made through Thrift, which compares durations as bytes.
    fn check_key(
        &self,
        key: &PrimaryKey<'_>,
        types: &BTreeMap<String, CqlType>,
        is_family: bool,
    ) -> Result<()> {
        let table = self.statement.name.name.as_str();
        let mut seen = HashSet::new();
        let statics: HashSet<&str> =
            self.statement.columns.iter().filter(|def| def.is_static).map(|def| def.name.as_str()).collect();
        for column in key.partition.iter().chain(&key.clustering).map(Ident::as_str) {
            let Some(ty) = types.get(column) else {
                return invalid(format!(
                    "Unknown column '{column}' referenced in PRIMARY KEY for table '{table}'"
                ));
            };
            if !seen.insert(column) {
                return invalid(format!(
                    "Duplicate column '{column}' in PRIMARY KEY clause for table '{table}'"
                ));
            }
            if ty.is_multi_cell() {
                let what =
                    if matches!(ty, CqlType::Udt(_)) { "user-defined type" } else { "collection type" };
                let text = match ty {
                    CqlType::Udt(udt) => format!("\"{}.{}\"", udt.keyspace, udt.name),
                    other => other.to_string(),
                };
                return invalid(format!(
                    "Invalid non-frozen {what} {text} for PRIMARY KEY column '{column}'"
                ));
            }
            if *ty == CqlType::Counter {
                return invalid(format!("counter type is not supported for PRIMARY KEY column '{column}'"));
            }
            if references_duration(ty) && !is_family {
                return invalid(format!("duration type is not supported for PRIMARY KEY column '{column}'"));
            }
            if statics.contains(column) {
                return invalid(format!("Static column '{column}' cannot be part of the PRIMARY KEY"));
            }
        }
        Ok(())
    }

    fn check_order(&self, key: &PrimaryKey<'_>) -> Result<()> {
        let order = &self.statement.options.clustering_order;
        let known: HashSet<&str> = key.clustering.iter().map(Ident::as_str).collect();
        let named = order.iter().map(|(column, _)| column.as_str());
        let strangers: Vec<&str> = named.filter(|column| !known.contains(column)).collect();
        if !strangers.is_empty() {
            return invalid(format!(
                "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not clustering \
                 columns",
                strangers.join(", ")
            ));
        }
        for ((column, _), expected) in order.iter().zip(&key.clustering) {
            if column == expected {
                continue;
            }
            let expected = expected.as_str();
            if order.iter().any(|(other, _)| other.as_str() == expected) {
                return invalid(format!(
                    "The order of columns in the CLUSTERING ORDER directive must match that of the clustering columns \
                     ({expected} must appear before {})",
                    column.as_str()
                ));
            }
            return invalid(format!("Missing CLUSTERING ORDER for column {expected}"));
        }
        Ok(())
    }

    /// Rejects columns that a compact table cannot have (`validateCompactTable`).
    fn check_compact(&self, key: &PrimaryKey<'_>, types: &BTreeMap<String, CqlType>) -> Result<()> {
        let keys = names_of(key);
        let others: Vec<&str> =
            types.keys().map(String::as_str).filter(|name| !keys.contains(name)).collect();
        if others.iter().any(|name| types.get(*name).is_some_and(CqlType::is_multi_cell)) {
            return invalid("Non-frozen collections and UDTs are not supported with COMPACT STORAGE");
        }
        if self.statement.columns.iter().any(|column| column.is_static) {
            return invalid("Static columns are not supported in COMPACT STORAGE tables");
        }
        if key.clustering.is_empty() && others.is_empty() {
            return invalid("No definition found that is not part of the PRIMARY KEY");
        }
        if !key.clustering.is_empty() && others.len() > 1 {
            return invalid(format!(
                "COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not part of the PRIMARY KEY \
                 (got: {})",
                others.join(", ")
            ));
        }
        Ok(())
    }

    fn check_others(
        &self,
        key: &PrimaryKey<'_>,
        types: &BTreeMap<String, CqlType>,
        has_counters: bool,
        default_ttl_s: i32,
    ) -> Result<()> {
        if !self.statement.options.compact_storage
            && key.clustering.is_empty()
            && self.statement.columns.iter().any(|column| column.is_static)
        {
            return invalid(
                "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
            );
        }
        if !has_counters {
            return Ok(());
        }
        let keys = names_of(key);
        if types.iter().any(|(name, ty)| *ty != CqlType::Counter && !keys.contains(name.as_str())) {
            return invalid("Cannot mix counter and non counter columns in the same table");
        }
        if default_ttl_s > 0 {
            return invalid("Cannot set default_time_to_live on a table with counters");
        }
        Ok(())
    }

    fn add_columns(&self, key: &PrimaryKey<'_>, mut types: BTreeMap<String, CqlType>, table: &mut Table) {
        let column = |name: &str, kind: ColumnKind, position: usize, ty: CqlType| Column {
            name: name.into(),
            kind,
            position,
            ty,
            reversed: false,
            id: Table::UNNUMBERED,
        };
        for (position, name) in key.partition.iter().map(Ident::as_str).enumerate() {
            if let Some(ty) = types.remove(name) {
                table.partition_key.push(column(name, ColumnKind::PartitionKey, position, ty));
            }
        }
        let order = self.statement.options.clustering_order.iter();
        let descending: HashSet<&str> =
            order.filter(|(_, descends)| *descends).map(|(column, _)| column.as_str()).collect();
        let by_class = self.statement.columns.iter().filter(|def| Resolver::is_reversed(&def.data_type));
        let by_class: HashSet<&str> = by_class.map(|def| def.name.as_str()).collect();
        for (position, name) in key.clustering.iter().map(Ident::as_str).enumerate() {
            if let Some(ty) = types.remove(name) {
                let descends = descending.contains(name) || by_class.contains(name);
                let found = column(name, ColumnKind::Clustering, position, ty);
                table.clustering.push(Column { reversed: descends, ..found });
            }
        }
        for def in &self.statement.columns {
            let name = def.name.as_str();
            let Some(ty) = types.remove(name) else { continue };
            if def.is_static || self.statement.options.compact_storage && table.is_static_compact() {
                table.statics.push(column(name, ColumnKind::Static, 0, ty));
            } else {
                table.regulars.push(column(name, ColumnKind::Regular, 0, ty));
            }
        }
    }
}

/// The columns of a primary key.
fn names_of<'k>(key: &'k PrimaryKey<'_>) -> HashSet<&'k str> {
    key.partition.iter().chain(&key.clustering).map(Ident::as_str).collect()
}

/// The flags of a table WITH COMPACT STORAGE (`fixupCompactTable`).
pub(crate) fn compact_flags(clustering: usize, has_counters: bool) -> Vec<String> {
    let words = [("compound", clustering > 1), ("dense", clustering > 0), ("counter", has_counters)];
    words.iter().filter(|(_, is_set)| *is_set).map(|(word, _)| (*word).to_owned()).collect()
}

/// Adds the implicit columns of a compact table: a clustering column and a value for undeclared names, or the value of
/// rows that have only key columns (`fixupCompactTable`, `DefaultNames`).
pub(crate) fn complete_compact(table: &mut Table) {
    let free = |table: &Table, first: &str, rest: &dyn Fn(u32) -> String| {
        let mut names = std::iter::once(first.to_owned()).chain((1_u32..).map(rest));
        names.find(|name| table.column(name).is_none()).unwrap_or_default()
    };
    let column = |name: String, kind, ty| Column {
        name: name.into(),
        kind,
        position: 0,
        ty,
        reversed: false,
        id: Table::UNNUMBERED,
    };
    let value = free(table, "value", &|number| format!("value{number}"));
    if table.is_static_compact() {
        let clustering = free(table, "column1", &|number| format!("column{}", number + 1));
        table.clustering.push(column(clustering, ColumnKind::Clustering, CqlType::Text));
        let ty = if table.is_counter() { CqlType::Counter } else { CqlType::Blob };
        table.regulars.push(column(value, ColumnKind::Regular, ty));
    } else if table.regulars.is_empty() {
        table.regulars.push(column(value, ColumnKind::Regular, CqlType::Empty));
    }
}

fn check_name(keyspace: &str, name: &str) -> Result<()> {
    let config = |message: String| Err(CqlError::Config(format!("{keyspace}.{name}: {message}")));
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return config(format!(
            "Table name must not be empty or not contain non-alphanumeric-underscore characters (got \"{name}\")"
        ));
    }
    if name.len() > TABLE_NAME_MAX {
        return config(format!(
            "Table name must not be more than {TABLE_NAME_MAX} characters long (got {} characters for \"{name}\")",
            name.len()
        ));
    }
    Ok(())
}
