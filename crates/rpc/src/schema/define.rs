//! Creates tables from definitions (`ThriftConversion.fromThrift`).
//!
//! A definition without declared columns gives a dense table, one with declared columns a static one. The components of
//! a composite comparator become clustering columns. Both together give a table that only CQL can use, as in Cassandra
//! 3.11: its declared columns are static, and RPC neither describes nor serves it. Columns without a given name are
//! called `key`, `column1`, `value` and so on.

use crate::error::{Result, invalid};
use crate::family::{Family, SUPER_COLUMN_MAP, Shape};
use crate::name::{Comparator, value_text};
use helenus_engine::index_id;
use helenus_model::schema::{
    CLASS_OPTION, Column, ColumnKind, DroppedColumn, Index, IndexKind, IndexPart, TARGET_OPTION, Table,
};
use helenus_model::types::{CqlType, ParsedClass, parse_class_name};
use helenus_wire::thrift::{CfDef, ColumnDef, IndexType};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// An edit of a table that a definition demands. It gets the table and the timestamp of the change.
pub(super) type FamilyEdit<'a> = Box<dyn Fn(&Table, i64) -> Result<Table> + 'a>;

/// The types that the class names of a definition stand for.
struct Types {
    is_super: bool,
    keys: Vec<CqlType>,
    comparator: Comparator,
    subcomparator: CqlType,
    value: CqlType,
}

fn class(name: Option<&str>) -> Result<ParsedClass> {
    let found = parse_class_name(name.unwrap_or_default())?;
    match &found {
        ParsedClass::Plain { ty, .. } => check_type(ty)?,
        ParsedClass::Composite(components) => components.iter().try_for_each(|(ty, _)| check_type(ty))?,
    }
    Ok(found)
}

/// Refuses a type that a name, key or value cannot have, because each of them is a single cell.
fn check_type(ty: &CqlType) -> Result<()> {
    if !ty.is_bounded() {
        return invalid("the class nests too deep or has too many parts; write it flatter");
    }
    if ty.is_multi_cell() {
        let class = ty.class_name();
        return invalid(format!("{class} would be stored as several columns; write FrozenType({class})"));
    }
    Ok(())
}

/// A type that is neither reversed nor composite.
fn plain(name: Option<&str>) -> Result<CqlType> {
    let found = CqlType::from_class_name(name.unwrap_or_default())?;
    check_type(&found)?;
    Ok(found)
}

/// Only values may be counters (`CFMetaData.validate`).
fn check_counters(keys: &[CqlType], comparator: &Comparator) -> Result<()> {
    let is_counter = |ty: &CqlType| *ty == CqlType::Counter;
    if keys.iter().any(is_counter) {
        return invalid("CounterColumnType is not a valid key validator");
    }
    match comparator {
        Comparator::Plain(ty, _) if is_counter(ty) => invalid("CounterColumnType is not a valid comparator"),
        Comparator::Composite(types) if types.iter().any(|(ty, _)| is_counter(ty)) => {
            invalid("CounterColumnType is not a valid comparator")
        }
        _ => Ok(()),
    }
}

/// Maximum number of components of a name or key, which is that of clustering columns.
const COMPONENTS_MAX: usize = u8::MAX as usize;

impl Types {
    fn of(definition: &CfDef<'_>) -> Result<Types> {
        let column_type = definition.column_type.as_deref().unwrap_or("Standard");
        let is_super = match column_type.to_lowercase().as_str() {
            "standard" => false,
            "super" => true,
            _ => return invalid(format!("Invalid column type {column_type}")),
        };
        let keys = match class(definition.key_validation_class.as_deref())? {
            ParsedClass::Plain { ty, .. } => vec![ty],
            ParsedClass::Composite(components) => components.into_iter().map(|(ty, _)| ty).collect(),
        };
        let comparator = match class(definition.comparator_type.as_deref())? {
            ParsedClass::Plain { ty, reversed } => Comparator::Plain(ty, reversed),
            ParsedClass::Composite(_) if is_super => {
                return invalid("a super column family cannot have a comparator of several components");
            }
            ParsedClass::Composite(components) => Comparator::Composite(components),
        };
        check_counters(&keys, &comparator)?;
        let components = match &comparator {
            Comparator::Plain(..) => 1,
            Comparator::Composite(components) => components.len(),
        };
        if components.max(keys.len()) > COMPONENTS_MAX {
            return invalid(format!("a CompositeType cannot have more than {COMPONENTS_MAX} components"));
        }
        Ok(Types {
            is_super,
            keys,
            comparator,
            subcomparator: plain(definition.subcomparator_type.as_deref())?,
            value: plain(definition.default_validation_class.as_deref())?,
        })
    }

    /// The comparator of the names of declared columns.
    fn of_names(&self) -> Comparator {
        match self.is_super {
            true => Comparator::Plain(self.subcomparator.clone(), false),
            false => self.comparator.clone(),
        }
    }
}

/// The table of a definition. `base` provides its id, names and options.
///
/// # Errors
/// The problem with the definition.
pub(super) fn new_table(base: &Table, definition: &CfDef<'_>, made_us: i64) -> Result<Table> {
    let types = Types::of(definition)?;
    let declared = declared(definition, &types)?;
    let counts = types.value == CqlType::Counter;
    let mut flags = Vec::new();
    let is_dense = declared.is_empty();
    if types.is_super {
        flags.push("super".to_owned());
    }
    if matches!(types.comparator, Comparator::Composite(_)) {
        flags.push("compound".to_owned());
    }
    if is_dense {
        flags.push("dense".to_owned());
    }
    if counts {
        flags.push("counter".to_owned());
    }
    let mut names = Names { taken: declared.iter().map(|column| column.name.to_string()).collect() };
    let partition_key = key_columns(definition, &types, &mut names)?;
    let components = match &types.comparator {
        Comparator::Plain(ty, reversed) => vec![(ty.clone(), *reversed)],
        Comparator::Composite(components) => components.clone(),
    };
    let clustering = components.into_iter().enumerate().map(|(position, (ty, reversed))| Column {
        position,
        reversed,
        ..column(&names.next("column", 1), ColumnKind::Clustering, ty)
    });
    let clustering = clustering.collect();
    let value = match types.is_super {
        true => {
            let (key, value) = (Arc::new(types.subcomparator.clone()), Arc::new(types.value.clone()));
            column(SUPER_COLUMN_MAP, ColumnKind::Regular, CqlType::Map { key, value, frozen: false })
        }
        false => column(&names.next("value", 0), ColumnKind::Regular, types.value.clone()),
    };
    let mut table = Table {
        partition_key,
        clustering,
        statics: Vec::new(),
        regulars: vec![value],
        dropped: BTreeMap::new(),
        flags,
        indexes: BTreeMap::new(),
        next_column_id: 0,
        shapes: Default::default(),
        ..base.clone()
    };
    if types.is_super { &mut table.regulars } else { &mut table.statics }.extend(declared);
    table.arrange();
    set_indexes(&mut table, definition, &types, made_us)?;
    Ok(table)
}

/// The table changed to match a definition: declared columns, their indexes, the type of other values. `base` has the
/// new options already.
///
/// # Errors
/// The problem with the definition, or a change that is not allowed.
pub(super) fn updated_table(base: &Table, definition: &CfDef<'_>, made_us: i64) -> Result<Table> {
    let types = Types::of(definition)?;
    let family = Family::new(&Arc::new(base.clone()))?;
    if types.is_super != family.is_super() {
        return invalid("types do not match.");
    }
    let same_names =
        !types.is_super || family.comparator == Comparator::Plain(types.subcomparator.clone(), false);
    if definition.comparator_type.is_some()
        && (family.comparator_within(None) != &types.comparator || !same_names)
    {
        return invalid(format!(
            "comparators do not match or are not compatible (found {}; expected {}).",
            types.comparator.class_name(),
            family.comparator_within(None).class_name()
        ));
    }
    let mut table = base.clone();
    if definition.default_validation_class.is_some() {
        let value = value_of(&types);
        let column = table.regulars.iter_mut().find(|column| column.id == family.value);
        if let Some(column) = column
            && column.ty != value
        {
            check_change(&column.ty, &value, &column.name)?;
            column.ty = value;
        }
    }
    let kept = declared(definition, &types)?;
    if !kept.is_empty() && family.shape == Shape::Composite {
        return invalid(
            "columns cannot be declared (column_metadata) in a family with a CompositeType that is there already",
        );
    }
    if !kept.is_empty() && family.shape == Shape::Dynamic {
        // Existing values of newly declared columns are not moved; reads look in both positions.
        table.flags.retain(|flag| flag != "dense");
    }
    set_declared(&mut table, &family, kept, made_us)?;
    table.arrange();
    set_indexes(&mut table, definition, &types, made_us)?;
    Ok(table)
}

fn value_of(types: &Types) -> CqlType {
    match types.is_super {
        false => types.value.clone(),
        true => CqlType::Map {
            key: Arc::new(types.subcomparator.clone()),
            value: Arc::new(types.value.clone()),
            frozen: false,
        },
    }
}

/// A type may only be changed to bytes, because stored values may be invalid in any other type.
fn check_change(from: &CqlType, to: &CqlType, name: &str) -> Result<()> {
    if *to == CqlType::Blob || from == to {
        return Ok(());
    }
    invalid(format!(
        "Column {name} cannot be changed from {} to {}: what is stored may be no value of that",
        from.class_name(),
        to.class_name()
    ))
}

fn set_declared(table: &mut Table, family: &Family, kept: Vec<Column>, made_us: i64) -> Result<()> {
    let kind = if family.is_super() { ColumnKind::Regular } else { ColumnKind::Static };
    let present: Vec<Column> =
        table.columns_of(kind).iter().filter(|column| column.id != family.value).cloned().collect();
    let mut columns: Vec<Column> =
        table.columns_of(kind).iter().filter(|column| column.id == family.value).cloned().collect();
    let by_name: HashMap<&str, &Column> = present.iter().map(|column| (&*column.name, column)).collect();
    for wanted in kept {
        match by_name.get(&*wanted.name) {
            Some(known) => {
                check_change(&known.ty, &wanted.ty, &known.name)?;
                columns.push(Column { ty: wanted.ty, ..Column::clone(known) });
            }
            None => {
                if table.column(&wanted.name).is_some() {
                    return invalid(format!("Column {} is part of the table already", wanted.name));
                }
                columns.push(wanted);
            }
        }
    }
    let names: HashSet<Arc<str>> = columns.iter().map(|column| column.name.clone()).collect();
    for gone in present.iter().filter(|column| !names.contains(&column.name)) {
        let dropped = DroppedColumn {
            name: gone.name.clone(),
            ty: gone.ty.clone(),
            kind: gone.kind,
            dropped_us: made_us,
        };
        table.dropped.insert(gone.name.clone(), dropped);
    }
    *(if family.is_super() { &mut table.regulars } else { &mut table.statics }) = columns;
    Ok(())
}

fn column(name: &str, kind: ColumnKind, ty: CqlType) -> Column {
    Column { name: name.into(), kind, position: 0, ty, reversed: false, id: Table::UNNUMBERED }
}

fn declared(definition: &CfDef<'_>, types: &Types) -> Result<Vec<Column>> {
    let metadata = definition.column_metadata.as_deref().unwrap_or_default();
    if metadata.is_empty() {
        return Ok(Vec::new());
    }
    let names = types.of_names();
    let kind = if types.is_super { ColumnKind::Regular } else { ColumnKind::Static };
    if metadata.len() + 2 > Table::COLUMNS_MAX {
        return invalid(format!("{} columns are more than a column family can declare", metadata.len()));
    }
    let mut columns: Vec<Column> = Vec::with_capacity(metadata.len());
    let mut seen = HashSet::with_capacity(metadata.len());
    for ColumnDef { name, validation_class, .. } in metadata {
        if names.validate(name).is_err() {
            return invalid(format!(
                "Column name {} is not valid for comparator {}",
                value_text(&CqlType::Blob, name),
                names.class_name()
            ));
        }
        let found = column(&names.text_of(name), kind, plain(Some(validation_class))?);
        let name = &found.name;
        match (found.ty == CqlType::Counter, types.value == CqlType::Counter) {
            (true, false) => {
                return invalid(format!(
                    "Cannot add a counter column ({name}) in a non counter column family"
                ));
            }
            (false, true) => {
                return invalid(format!(
                    "Cannot add a non counter column ({name}) in a counter column family"
                ));
            }
            _ => {}
        }
        if !seen.insert(found.name.clone()) {
            return invalid(format!("Duplicate column {}", found.name));
        }
        columns.push(found);
    }
    Ok(columns)
}

fn key_columns(definition: &CfDef<'_>, types: &Types, names: &mut Names) -> Result<Vec<Column>> {
    let alias = definition.key_alias.as_deref().filter(|alias| !alias.is_empty());
    if let ([only], Some(alias)) = (&types.keys[..], alias) {
        let name = value_text(&CqlType::Text, alias);
        if !names.taken.insert(name.clone()) {
            return invalid(format!("Column {name} cannot be declared: the key's alias is the same name"));
        }
        return Ok(vec![column(&name, ColumnKind::PartitionKey, only.clone())]);
    }
    let columns = types.keys.iter().enumerate().map(|(position, ty)| {
        let name = if position == 0 { names.first("key") } else { names.next("key", position + 1) };
        Column { position, ..column(&name, ColumnKind::PartitionKey, ty.clone()) }
    });
    Ok(columns.collect())
}

/// Default column names (`CompactTables.DefaultNames`).
struct Names {
    taken: HashSet<String>,
}

impl Names {
    fn first(&mut self, word: &str) -> String {
        if !self.taken.insert(word.to_owned()) {
            return self.next(word, 2);
        }
        word.to_owned()
    }

    /// The word with the first number from `first` on that gives a free name; number 0 is omitted.
    fn next(&mut self, word: &str, first: usize) -> String {
        let mut numbers = first..;
        loop {
            let number = numbers.next().unwrap_or(usize::MAX);
            let name = if number == 0 { word.to_owned() } else { format!("{word}{number}") };
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Sets the indexes that the declared columns ask for. An unchanged index keeps its id and its stored data.
fn set_indexes(table: &mut Table, definition: &CfDef<'_>, types: &Types, made_us: i64) -> Result<()> {
    let mut indexes: BTreeMap<Arc<str>, Arc<Index>> = BTreeMap::new();
    for wanted in definition.column_metadata.as_deref().unwrap_or_default() {
        let Some(kind) = wanted.index_type else { continue };
        if matches!(types.comparator, Comparator::Composite(_)) {
            return invalid("Secondary indexes are not supported where the comparator is a CompositeType");
        }
        let column = types.of_names().text_of(&wanted.name);
        let name: Arc<str> = match wanted.index_name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => name.into(),
            None => generated_name(table, &column).into(),
        };
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return invalid(format!("Illegal index name {name}"));
        }
        if types.value == CqlType::Counter || types.is_super {
            return invalid("Secondary indexes are not supported on super column families and on counters");
        }
        let mut options: BTreeMap<String, String> = wanted
            .index_options
            .iter()
            .flat_map(|map| &map.0)
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        if options.contains_key(TARGET_OPTION) {
            return invalid("Reserved index option 'target' cannot be used");
        }
        if kind == IndexType::Custom && !options.contains_key(CLASS_OPTION) {
            return invalid("Required index option missing: class_name");
        }
        options.insert(TARGET_OPTION.to_owned(), Index::target_text(IndexPart::Simple, &column));
        let kind = match kind {
            IndexType::Keys => IndexKind::Keys,
            IndexType::Custom => IndexKind::Custom,
            IndexType::Composites => IndexKind::Composites,
        };
        let made = Index { name: name.clone(), id: index_id(table.id, &name, made_us), kind, options };
        helenus_cql::check_index(table, &made)?;
        let known = table.indexes.get(&name).filter(|known| known.is_same_but_for_name(&made));
        let index = known.cloned().unwrap_or_else(|| Arc::new(made));
        if indexes.insert(name.clone(), index).is_some() {
            return invalid(format!("Duplicate index name {name}"));
        }
    }
    table.indexes = indexes;
    Ok(())
}

fn generated_name(table: &Table, column: &str) -> String {
    let word =
        |text: &str| text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
    format!("{}_{}_idx", word(&table.name), word(column))
}
