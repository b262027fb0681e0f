//! CREATE INDEX and DROP INDEX, with Cassandra's rules and texts (`CreateIndexStatement`, `StorageAttachedIndex`).

use super::create_table::invalid;
use super::java_class;
use super::properties::Properties;
use crate::analysis::undefined_column;
use crate::error::{CqlError, Result};
use crate::syntax::ast::{CreateIndex, IndexTarget, IndexTargetKind};
use helenus_engine::index_id;
use helenus_model::index::AnalyzerOption;
use helenus_model::schema::{
    CLASS_OPTION, Column, ColumnKind, Index, IndexKind, IndexPart, Keyspace, SAI_CLASS, SASI_CLASS, Schema,
    TARGET_OPTION, Table, index_class,
};
use helenus_model::types::{CqlType, composite_class_name, quote_identifier};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The default of `default_secondary_index`, as a class for USING.
const LEGACY: &str = "legacy_local_table";
/// The class for USING of the kind of index that Thrift makes, so that a described statement makes the same kind again.
/// Cassandra has no such class, because only Thrift could make these indexes there.
pub(crate) const KEYS: &str = "KEYS";
/// The greatest length of the name of a custom index's column (`SchemaConstants.NAME_LENGTH`).
const NAME_LENGTH: usize = 48;

const VECTOR_WARNING: &str = "SAI ANN indexes on vector columns are experimental and are not recommended for production use.\nThey don't yet support SELECT queries with:\n * Consistency level higher than ONE/LOCAL_ONE.\n * Paging.\n * No LIMIT clauses.\n * PER PARTITION LIMIT clauses.\n * GROUP BY clauses.\n * Aggregation functions.\n * Filters on columns without a SAI index.";

/// CREATE INDEX. `made_us` is the timestamp of the change; `warnings` receives the warnings for the client.
pub(super) fn create(
    statement: &CreateIndex<'_>,
    keyspace: &str,
    schema: &mut Schema,
    made_us: i64,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let (kind, options) = attributes(statement)?;
    if options.get(CLASS_OPTION).is_some_and(|class| class == SASI_CLASS) {
        return invalid(
            "SASI indexes are not supported yet: create a storage-attached index, with USING 'sai'",
        );
    }
    let Some(present) = schema.keyspaces.get_mut(keyspace) else {
        return invalid(format!("Keyspace '{keyspace}' doesn't exist"));
    };
    let table_name = statement.table.name.as_str();
    let Some(table) = present.tables.get(table_name).cloned() else {
        return invalid(format!("Table '{table_name}' doesn't exist"));
    };
    let given = statement.name.as_ref().map(|name| name.as_str());
    if let Some(name) = given
        && has_index(present, name)
    {
        let exists = || invalid(format!("Index '{name}' already exists"));
        return if statement.if_not_exists { Ok(()) } else { exists() };
    }
    if table.is_counter() {
        return invalid("Secondary indexes on counter tables aren't supported");
    }
    let targets = targets(statement, kind, &table)?;
    for (part, column) in &targets {
        check_target(&table, kind, *part, column)?;
    }
    let name = match given {
        Some(name) => name.to_owned(),
        None => generated_name(present, table_name, &targets),
    };
    let texts: Vec<String> =
        targets.iter().map(|(part, column)| Index::target_text(*part, &column.name)).collect();
    let mut options = options;
    options.insert(TARGET_OPTION.to_owned(), texts.join(", "));
    let name: Arc<str> = name.into();
    let index = Index { id: index_id(table.id, &name, made_us), name: name.clone(), kind, options };
    if let Some(equal) = table.indexes.values().find(|other| other.is_same_but_for_name(&index)) {
        let text = format!("Index {} is a duplicate of existing index {}", index.name, equal.name);
        return if statement.if_not_exists { Ok(()) } else { invalid(text) };
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || name.is_empty() {
        return Err(CqlError::Config(format!("Illegal index name {name}")));
    }
    if kind == IndexKind::Custom {
        check_class(&index, &table, &targets)?;
    }
    let mut changed = Table::clone(&table);
    changed.indexes.insert(name, Arc::new(index));
    warnings.extend(vector_warnings(&changed));
    let mut next = Keyspace::clone(present);
    next.tables.insert(changed.name.clone(), Arc::new(changed));
    *present = Arc::new(next);
    Ok(())
}

/// Rejects an index on one column, requested through Thrift, that CREATE INDEX would reject. Otherwise a copy of the
/// table could not be made with CQL.
///
/// # Errors
/// The same as for CREATE INDEX.
pub fn check_index(table: &Table, index: &Index) -> Result<()> {
    let (part, name) = index.part();
    let column = table.column(&name).ok_or_else(|| undefined_column(table, &name))?;
    check_target(table, index.kind, part, column)?;
    if index.kind == IndexKind::Custom { check_class(index, table, &[(part, column)]) } else { Ok(()) }
}

/// The warnings about a table's vector indexes, one each: when an index is created, and when columns are added.
pub(super) fn vector_warnings(table: &Table) -> Vec<String> {
    let is_vector = |column: &Column| matches!(column.ty, CqlType::Vector { .. });
    let indexes = table.indexes.values();
    let of_vectors = indexes.filter(|index| index.is_sai() && index.column(table).is_some_and(is_vector));
    of_vectors.map(|_| VECTOR_WARNING.to_owned()).collect()
}

/// DROP INDEX.
pub(super) fn drop(name: &str, if_exists: bool, keyspace: &str, schema: &mut Schema) -> Result<()> {
    let found = schema.keyspaces.get_mut(keyspace).and_then(|present| {
        let table = present.tables.values().find(|table| table.indexes.contains_key(name)).cloned();
        table.map(|table| (present, table))
    });
    let Some((present, table)) = found else {
        let missing = || invalid(format!("Index '{keyspace}.{name}' doesn't exist'"));
        return if if_exists { Ok(()) } else { missing() };
    };
    let mut changed = Table::clone(&table);
    changed.indexes.remove(name);
    let mut next = Keyspace::clone(present);
    next.tables.insert(changed.name.clone(), Arc::new(changed));
    *present = Arc::new(next);
    Ok(())
}

/// The names of a column's indexes, for errors that forbid changing the column.
pub(super) fn dependents(table: &Table, column: &str) -> Option<String> {
    let names: Vec<&str> =
        table.indexes.values().filter(|index| index.part().1 == column).map(|index| &*index.name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The kind and options from USING and WITH (`IndexAttributes`).
fn attributes(statement: &CreateIndex<'_>) -> Result<(IndexKind, BTreeMap<String, String>)> {
    let properties = Properties::new(&statement.properties);
    let class = statement.using.as_ref().map_or(LEGACY, |class| &class.text);
    let is_legacy = !statement.custom && class.eq_ignore_ascii_case(LEGACY);
    properties.check_names(&["options"])?;
    if is_legacy {
        return match statement.properties.is_empty() {
            true => Ok((IndexKind::Composites, BTreeMap::new())),
            false => invalid("Cannot specify options for a non-CUSTOM index"),
        };
    }
    let mut options = properties.map("options")?.cloned().unwrap_or_default();
    for own in [CLASS_OPTION, TARGET_OPTION] {
        if options.contains_key(own) {
            return invalid(format!("Cannot specify {own} as a CUSTOM option"));
        }
    }
    if !statement.custom && class.eq_ignore_ascii_case(KEYS) {
        return Ok((IndexKind::Keys, options));
    }
    options.insert(CLASS_OPTION.to_owned(), class.to_owned());
    Ok((IndexKind::Custom, options))
}

fn has_index(keyspace: &Keyspace, name: &str) -> bool {
    keyspace.tables.values().any(|table| table.indexes.contains_key(name))
}

type Target<'t> = (IndexPart, &'t Column);

fn targets<'t>(statement: &CreateIndex<'_>, kind: IndexKind, table: &'t Table) -> Result<Vec<Target<'t>>> {
    let mut found: Vec<Target<'t>> = Vec::new();
    for target in &statement.targets {
        found.push(target_of(target, table)?);
    }
    if found.is_empty() && kind != IndexKind::Custom {
        return invalid("Only CUSTOM indexes can be created without specifying a target column");
    }
    if found.len() > 1 {
        if kind != IndexKind::Custom {
            return invalid("Only CUSTOM indexes support multiple columns");
        }
        for (at, (_, column)) in found.iter().enumerate() {
            if found.iter().take(at).any(|(_, other)| other.name == column.name) {
                return invalid(format!("Duplicate column '{}' in index target list", column.name));
            }
        }
    }
    Ok(found)
}

/// A target's part and column; of a collection its values, if no part is given.
fn target_of<'t>(target: &IndexTarget<'_>, table: &'t Table) -> Result<Target<'t>> {
    let name = target.column.as_str();
    let column = table.column(name).filter(|column| !table.is_hidden(column));
    let column = column.ok_or_else(|| undefined_column(table, name))?;
    let part = match target.kind {
        IndexTargetKind::Simple if is_collection(&column.ty) => IndexPart::Values,
        IndexTargetKind::Simple => IndexPart::Simple,
        IndexTargetKind::Values => IndexPart::Values,
        IndexTargetKind::Keys => IndexPart::Keys,
        IndexTargetKind::Entries => IndexPart::Entries,
        IndexTargetKind::Full => IndexPart::Full,
    };
    Ok((part, column))
}

fn is_collection(ty: &CqlType) -> bool {
    matches!(ty, CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. })
}

fn has_duration(ty: &CqlType) -> bool {
    match ty {
        CqlType::Duration => true,
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            has_duration(element)
        }
        CqlType::Map { key, value, .. } => has_duration(key) || has_duration(value),
        CqlType::Tuple(types) => types.iter().any(has_duration),
        CqlType::Udt(udt) => udt.fields.iter().any(|(_, field)| has_duration(field)),
        _ => false,
    }
}

/// `validateIndexTarget`.
fn check_target(table: &Table, kind: IndexKind, part: IndexPart, column: &Column) -> Result<()> {
    let (name, ty) = (&column.name, &column.ty);
    if kind == IndexKind::Custom {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return invalid(format!("Column '{name}' contains non-alphanumeric-underscore characters"));
        }
        if name.len() > NAME_LENGTH {
            return invalid(format!(
                "Column '{name}' is longer than the permissible name length of {NAME_LENGTH} characters"
            ));
        }
    }
    if has_duration(ty) {
        return invalid(match ty {
            ty if is_collection(ty) => {
                "Secondary indexes are not supported on collections containing durations"
            }
            CqlType::Tuple(_) => "Secondary indexes are not supported on tuples containing durations",
            CqlType::Udt(_) => "Secondary indexes are not supported on UDTs containing durations",
            _ => "Secondary indexes are not supported on duration columns",
        });
    }
    if table.is_compact() && matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        return invalid(
            "Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE tables",
        );
    }
    if table.compact_value().is_some_and(|value| value.name == *name) {
        return invalid(
            "Secondary indexes are not supported on compact value column of COMPACT STORAGE tables",
        );
    }
    if column.kind == ColumnKind::PartitionKey && table.partition_key.len() == 1 {
        return invalid(format!("Cannot create secondary index on the only partition key column {name}"));
    }
    let is_frozen_collection = is_collection(ty) && !ty.is_multi_cell();
    if is_frozen_collection && part != IndexPart::Full {
        return invalid(format!(
            "Cannot create {part}() index on frozen column {name}. Frozen collections are immutable and must be fully \
             indexed by using the 'full({})' modifier",
            quote_identifier(name)
        ));
    }
    if !is_frozen_collection && part == IndexPart::Full {
        return invalid("full() indexes can only be created on frozen collections");
    }
    if !is_collection(ty) && part != IndexPart::Simple {
        return invalid(format!(
            "Cannot create {part}() index on {name}. Non-collection columns only support simple indexes"
        ));
    }
    let is_map = matches!(ty, CqlType::Map { frozen: false, .. });
    if !is_map && matches!(part, IndexPart::Keys | IndexPart::Entries) {
        return invalid(format!("Cannot create index on {part} of column {name} with non-map type"));
    }
    if matches!(ty, CqlType::Udt(udt) if !udt.frozen) {
        return invalid(format!("Cannot create index on non-frozen UDT column {name}"));
    }
    Ok(())
}

/// A name that no index of the keyspace has, without characters that are not allowed.
fn generated_name(keyspace: &Keyspace, table: &str, targets: &[Target<'_>]) -> String {
    let base = match targets {
        [(_, column)] => format!("{table}_{}_idx", column.name),
        _ => format!("{table}_idx"),
    };
    let base: String = base.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    if !has_index(keyspace, &base) {
        return base;
    }
    let names = (1..).map(|number: u64| format!("{base}_{number}"));
    names.into_iter().find(|name| !has_index(keyspace, name)).unwrap_or(base)
}

/// The checks that the class of a custom index makes.
fn check_class(index: &Index, table: &Table, targets: &[Target<'_>]) -> Result<()> {
    let class = index.options.get(CLASS_OPTION).map_or("", String::as_str);
    if index_class(class) != SAI_CLASS {
        return Err(java_class::refused(class, "custom indexer", "index.Index"));
    }
    let known =
        ["similarity_function", "optimize_for", "maximum_node_connections", "construction_beam_width"];
    let analysis = AnalyzerOption::ALL.map(AnalyzerOption::as_str);
    let own = [TARGET_OPTION, CLASS_OPTION];
    let is_known = |name: &&String| {
        known.contains(&name.as_str()) || analysis.contains(&name.as_str()) || own.contains(&name.as_str())
    };
    let unknown: Vec<&str> =
        index.options.keys().filter(|name| !is_known(name)).map(String::as_str).collect();
    if !unknown.is_empty() {
        return Err(CqlError::Config(format!(
            "Properties specified [{}] are not understood by StorageAttachedIndex",
            unknown.join(", ")
        )));
    }
    let target = index.target();
    let [(part, column)] = targets else {
        return match targets {
            [] => invalid(format!("Failed to retrieve target column for: {target}")),
            _ => {
                invalid(format!("A storage-attached index cannot be created over multiple columns: {target}"))
            }
        };
    };
    if table.indexes.values().any(|other| other.is_sai() && same_target(other, *part, column)) {
        return invalid(format!(
            "Cannot create more than one storage-attached index on the same column: {}",
            column.name
        ));
    }
    check_analysis(index, column)?;
    check_vector_options(index, column)?;
    let refused = match (part, &column.ty) {
        (IndexPart::Entries, CqlType::Map { key, value, .. }) => {
            [key, value].into_iter().find(|ty| !is_supported(ty)).map(|ty| (**ty).clone())
        }
        _ => index.term_type(column).filter(|ty| !is_supported(ty)).cloned(),
    };
    if let Some(ty) = refused {
        return invalid(format!("Unsupported type: {ty}"));
    }
    if let CqlType::Vector { element, dimension } = &column.ty {
        if **element != CqlType::Float {
            return invalid("SAI ANN indexes are only allowed on vector columns with float elements");
        }
        let function = index.options.get("similarity_function").map_or("COSINE", String::as_str);
        if *dimension == 1 && function.eq_ignore_ascii_case("COSINE") {
            return invalid("Cosine similarity is not supported for single-dimension vectors");
        }
    }
    Ok(())
}

/// Whether another index is on the same part of the same column; a plain column counts as `values`.
fn same_target(other: &Index, part: IndexPart, column: &Column) -> bool {
    let plain = |part| if part == IndexPart::Simple { IndexPart::Values } else { part };
    let (other_part, name) = other.part();
    name == *column.name && plain(other_part) == plain(part)
}

fn check_analysis(index: &Index, column: &Column) -> Result<()> {
    let given: Vec<(&str, &str)> = AnalyzerOption::ALL
        .iter()
        .filter_map(|option| {
            index.options.get(option.as_str()).map(|value| (option.as_str(), value.as_str()))
        })
        .collect();
    if given.is_empty() {
        return Ok(());
    }
    if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        let pairs: Vec<String> = given.iter().map(|(name, value)| format!("'{name}': '{value}'")).collect();
        return invalid(format!(
            "Analysis options are not supported on primary key columns, but found {{{}}}",
            pairs.join(", ")
        ));
    }
    let ty = index.term_type(column);
    if !matches!(ty, Some(CqlType::Text | CqlType::Ascii)) {
        // The terms of an index on entries are pairs of a key and a value.
        let entries = match (ty, &column.ty) {
            (None, CqlType::Map { key, value, .. }) => {
                let pair = [(CqlType::clone(key), false), (CqlType::clone(value), false)];
                Some(CqlType::Custom(composite_class_name(&pair).into()))
            }
            _ => None,
        };
        let ty = entries.as_ref().or(ty).unwrap_or(&column.ty);
        return invalid(format!("CQL type {ty} cannot be analyzed."));
    }
    for (name, value) in given {
        if value.is_empty() {
            return invalid(format!("Empty value for boolean option '{name}'"));
        }
        if !value.eq_ignore_ascii_case("true") && !value.eq_ignore_ascii_case("false") {
            return invalid(format!("Illegal value for boolean option '{name}': {value}"));
        }
    }
    Ok(())
}

fn check_vector_options(index: &Index, column: &Column) -> Result<()> {
    let option = |name: &str| index.options.get(name);
    let names =
        ["maximum_node_connections", "construction_beam_width", "similarity_function", "optimize_for"];
    if names.iter().all(|name| option(name).is_none()) {
        return Ok(());
    }
    if !matches!(column.ty, CqlType::Vector { .. }) {
        let ty = index.term_type(column).unwrap_or(&column.ty);
        return invalid(format!("CQL type {ty} cannot have vector options"));
    }
    for (name, what) in [
        ("maximum_node_connections", "Maximum node connections"),
        ("construction_beam_width", "Construction beam width"),
    ] {
        if option(name).is_some() {
            return invalid(format!(
                "{what} cannot be set, because ANN searches are exact and need no graph; leave {name} out"
            ));
        }
    }
    let check = |name: &str, known: &[&str]| match option(name).map(|value| value.to_uppercase()) {
        Some(value) if !known.contains(&value.as_str()) => Some(value),
        _ => None,
    };
    let functions = ["EUCLIDEAN", "DOT_PRODUCT", "COSINE"];
    if let Some(value) = check("similarity_function", &functions) {
        return invalid(format!(
            "Similarity function {value} was not recognized for index null. Valid values are: {}",
            functions.join(", ")
        ));
    }
    let aims = ["LATENCY", "RECALL"];
    if let Some(value) = check("optimize_for", &aims) {
        return invalid(format!(
            "optimize_for '{value}' was not recognized for index null. Valid values are: {}",
            aims.join(", ")
        ));
    }
    Ok(())
}

/// `SUPPORTED_TYPES`, and every frozen type.
fn is_supported(ty: &CqlType) -> bool {
    match ty {
        CqlType::Ascii
        | CqlType::BigInt
        | CqlType::Date
        | CqlType::Double
        | CqlType::Float
        | CqlType::Int
        | CqlType::SmallInt
        | CqlType::Text
        | CqlType::Time
        | CqlType::Timestamp
        | CqlType::TimeUuid
        | CqlType::TinyInt
        | CqlType::Uuid
        | CqlType::Inet
        | CqlType::Varint
        | CqlType::Decimal
        | CqlType::Boolean
        | CqlType::Tuple(_)
        | CqlType::Vector { .. } => true,
        ty => (is_collection(ty) || matches!(ty, CqlType::Udt(_))) && !ty.is_multi_cell(),
    }
}
