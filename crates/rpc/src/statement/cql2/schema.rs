//! CREATE, ALTER, DROP and TRUNCATE of CQL 2: converted to definitions of the RPC interface.

use super::ast::{Alteration, Statement, Term};
use crate::context::{CallContext, Rpc};
use crate::error::{Result, invalid};
use crate::family::Family;
use crate::name::Comparator;
use helenus_model::types::quote_identifier;
use helenus_wire::thrift::{CfDef, ColumnDef, IndexType, KsDef, Map, Text};
use std::borrow::Cow;

/// The type names of CQL 2 (`CFPropDefs.comparators`).
const TYPES: [(&str, &str); 14] = [
    ("ascii", "AsciiType"),
    ("bigint", "LongType"),
    ("blob", "BytesType"),
    ("boolean", "BooleanType"),
    ("counter", "CounterColumnType"),
    ("decimal", "DecimalType"),
    ("double", "DoubleType"),
    ("float", "FloatType"),
    ("int", "Int32Type"),
    ("text", "UTF8Type"),
    ("timestamp", "DateType"),
    ("uuid", "UUIDType"),
    ("varchar", "UTF8Type"),
    ("varint", "IntegerType"),
];

/// Options of former versions, which are ignored.
const OBSOLETE: [&str; 10] = [
    "row_cache_size",
    "key_cache_size",
    "row_cache_save_period_in_seconds",
    "key_cache_save_period_in_seconds",
    "memtable_throughput_in_mb",
    "memtable_operations_in_millions",
    "memtable_flush_after_mins",
    "row_cache_provider",
    "replicate_on_write",
    "populate_io_cache_on_flush",
];

fn class(ty: &str) -> Text<'static> {
    let known = TYPES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(ty));
    known.map_or_else(|| Cow::from(ty.to_owned()), |(_, class)| Cow::from(class))
}

impl Rpc {
    pub(super) fn first_schema(&self, statement: &Statement, work: &mut CallContext<'_>) -> Result<()> {
        match statement {
            Statement::CreateKeyspace(name, properties) => {
                self.define_keyspace(&keyspace(name, properties)?, work)
            }
            Statement::DropKeyspace(name) => {
                self.run_statement(&format!("DROP KEYSPACE {}", quote_identifier(name)), work)
            }
            Statement::CreateFamily { name, key, columns, properties } => {
                let used = self.used(work)?;
                let mut definition = CfDef::named(&used, name);
                definition.comparator_type = Some("UTF8Type".into());
                definition.default_validation_class = Some("UTF8Type".into());
                set_properties(&mut definition, properties)?;
                let Some((key_name, key_type)) = key else {
                    return invalid("You must specify a PRIMARY KEY");
                };
                definition.key_validation_class = Some(class(key_type));
                if !key_name.text().eq_ignore_ascii_case("KEY") {
                    definition.key_alias = Some(key_name.text().as_bytes().to_vec().into());
                }
                let comparator = comparator(&definition)?;
                let mut metadata = Vec::new();
                for (column, ty) in columns {
                    metadata.push(column_def(&comparator, column, ty)?);
                }
                definition.column_metadata = Some(metadata);
                self.add_family(&definition, work)
            }
            Statement::DropFamily(name) => {
                let used = self.used(work)?;
                let family = self.family(work.session, name)?;
                let (used, name) = (quote_identifier(&used), quote_identifier(&family.table.name));
                self.run_statement(&format!("DROP TABLE {used}.{name}"), work)
            }
            Statement::AlterFamily(name, alteration) => self.alter_family(name, alteration, work),
            Statement::CreateIndex { name, family, column } => {
                self.create_index(name.as_deref(), family, column, work)
            }
            Statement::DropIndex(name) => self.drop_index(name, work),
            Statement::Truncate(name) => {
                let family = self.named(name, work)?;
                let table = &family.table;
                let (keyspace, name) = (quote_identifier(&table.keyspace), quote_identifier(&table.name));
                self.run_statement(&format!("TRUNCATE {keyspace}.{name}"), work)
            }
            Statement::Use(_) | Statement::Select(_) | Statement::Modify(_) | Statement::Batch(..) => Ok(()),
        }
    }

    fn alter_family(&self, name: &str, alteration: &Alteration, work: &mut CallContext<'_>) -> Result<()> {
        let family = self.family(work.session, name)?;
        let mut definition = self.described(&family)?;
        let metadata = definition.column_metadata.get_or_insert_default();
        match alteration {
            Alteration::Column(column, ty, is_new) => {
                let wanted = column_def(&family.comparator, column, ty)?;
                let known = metadata.iter().position(|known| known.name == wanted.name);
                match (known, is_new) {
                    (Some(_), true) => {
                        return invalid(format!("Column '{}' already exists.", column.text()));
                    }
                    (None, false) => {
                        return invalid(format!("Column '{}' was not found in CF '{name}'", column.text()));
                    }
                    (None, true) => metadata.push(wanted),
                    (Some(known), false) => metadata[known].validation_class = wanted.validation_class,
                }
            }
            Alteration::Drop(column) => {
                let bytes = column.column(&family.comparator, &[])?;
                let before = metadata.len();
                metadata.retain(|known| *known.name != bytes[..]);
                if metadata.len() == before {
                    return invalid(format!("Column '{}' was not found in CF '{name}'", column.text()));
                }
            }
            Alteration::With(properties) => set_properties(&mut definition, properties)?,
        }
        self.update_family(&definition, work)
    }

    fn create_index(
        &self,
        name: Option<&str>,
        family: &str,
        column: &Term,
        work: &mut CallContext<'_>,
    ) -> Result<()> {
        let family = self.family(work.session, family)?;
        let mut definition = self.described(&family)?;
        let bytes = column.column(&family.comparator, &[])?;
        let metadata = definition.column_metadata.get_or_insert_default();
        let Some(known) = metadata.iter_mut().find(|known| *known.name == bytes[..]) else {
            return invalid(format!("No column definition found for column {}", column.text()));
        };
        if known.index_type.is_some() {
            return invalid("Index already exists");
        }
        known.index_type = Some(IndexType::Keys);
        known.index_name = name.map(|name| Cow::from(name.to_owned()));
        self.update_family(&definition, work)
    }

    fn drop_index(&self, name: &str, work: &mut CallContext<'_>) -> Result<()> {
        let used = self.used(work)?;
        let schema = self.storage.schema();
        let keyspace = schema.keyspaces.get(&used);
        let mut tables = keyspace.into_iter().flat_map(|keyspace| keyspace.tables.values());
        let Some(table) = tables.find(|table| table.indexes.contains_key(name)) else {
            return invalid(format!(
                "Index '{name}' could not be found in any of the column families of keyspace '{used}'"
            ));
        };
        let family = Family::new(table)?;
        let mut definition = self.described(&family)?;
        for known in definition.column_metadata.iter_mut().flatten() {
            if known.index_name.as_deref() == Some(name) {
                (known.index_type, known.index_name, known.index_options) = (None, None, None);
            }
        }
        self.update_family(&definition, work)
    }
}

fn keyspace<'s>(name: &'s str, properties: &'s [(String, String)]) -> Result<KsDef<'s>> {
    let mut definition = KsDef {
        name: name.into(),
        strategy_class: "".into(),
        strategy_options: None,
        replication_factor: None,
        cf_defs: Vec::new(),
        durable_writes: Some(true),
    };
    let mut options = Vec::new();
    for (key, value) in properties {
        match key.split_once(':') {
            Some(("strategy_options", option)) => {
                options.push((Cow::from(option), Cow::from(value.as_str())));
            }
            None if key == "strategy_class" => definition.strategy_class = value.as_str().into(),
            _ => return invalid(format!("{key} is not a valid keyword argument for CREATE KEYSPACE")),
        }
    }
    if definition.strategy_class.is_empty() {
        return invalid("missing required argument \"strategy_class\"");
    }
    definition.strategy_options = Some(Map(options));
    Ok(definition)
}

fn comparator(definition: &CfDef<'_>) -> Result<Comparator> {
    use helenus_model::types::{ParsedClass, parse_class_name};
    Ok(match parse_class_name(definition.comparator_type.as_deref().unwrap_or_default())? {
        ParsedClass::Plain { ty, reversed } => Comparator::Plain(ty, reversed),
        ParsedClass::Composite(components) => Comparator::Composite(components),
    })
}

fn column_def(comparator: &Comparator, column: &Term, ty: &str) -> Result<ColumnDef<'static>> {
    Ok(ColumnDef {
        name: column.column(comparator, &[])?.into(),
        validation_class: class(ty),
        index_type: None,
        index_name: None,
        index_options: None,
    })
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<Option<T>> {
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => invalid(format!("{text} not valid for \"{name}\"")),
    }
}

fn set_properties<'d>(definition: &mut CfDef<'d>, properties: &'d [(String, String)]) -> Result<()> {
    for (name, value) in properties {
        let text = || Some(Cow::from(value.as_str()));
        if let Some((group, option)) = name.split_once(':') {
            let options = match group {
                "compaction_strategy_options" => &mut definition.compaction_strategy_options,
                "compression_parameters" => &mut definition.compression_options,
                _ => {
                    return invalid(format!(
                        "{name} is not a valid keyword argument for CREATE COLUMNFAMILY"
                    ));
                }
            };
            let options = &mut options.get_or_insert_with(|| Map(Vec::new())).0;
            options.push((Cow::from(option), Cow::from(value.as_str())));
            continue;
        }
        match name.as_str() {
            "comparator" => definition.comparator_type = Some(class(value)),
            "comment" => definition.comment = text(),
            "default_validation" => definition.default_validation_class = Some(class(value)),
            "read_repair_chance" => definition.read_repair_chance = number(name, value)?,
            "dclocal_read_repair_chance" => definition.dclocal_read_repair_chance = number(name, value)?,
            "gc_grace_seconds" => definition.gc_grace_seconds = number(name, value)?,
            "min_compaction_threshold" => definition.min_compaction_threshold = number(name, value)?,
            "max_compaction_threshold" => definition.max_compaction_threshold = number(name, value)?,
            "compaction_strategy_class" => definition.compaction_strategy = text(),
            "caching" => definition.caching = text(),
            "rows_per_partition_to_cache" => definition.cells_per_row_to_cache = text(),
            "default_time_to_live" => definition.default_time_to_live = number(name, value)?,
            "speculative_retry" => definition.speculative_retry = text(),
            "bloom_filter_fp_chance" => definition.bloom_filter_fp_chance = number(name, value)?,
            "memtable_flush_period_in_ms" => definition.memtable_flush_period_in_ms = number(name, value)?,
            obsolete if OBSOLETE.contains(&obsolete) => {}
            other => {
                return invalid(format!("{other} is not a valid keyword argument for CREATE COLUMNFAMILY"));
            }
        }
    }
    Ok(())
}
