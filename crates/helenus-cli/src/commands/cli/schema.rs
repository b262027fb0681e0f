//! Statements on keyspaces and column families: converts their options to definitions of the RPC interface.

use super::ast::{Options, Value};
use super::session::CliSession;
use super::values::{class_of, comparator};
use anyhow::{Context, Result, bail};
use helenus_wire::thrift::{CfDef, ColumnDef, Field, IndexType, KsDef, Map, Method, Text, args};
use std::borrow::Cow;

/// Options of former versions, which are ignored.
const OBSOLETE: [&str; 14] = [
    "keys_cached",
    "rows_cached",
    "key_cache_save_period",
    "row_cache_save_period",
    "row_cache_provider",
    "row_cache_keys_to_save",
    "memtable_flush_after",
    "memtable_throughput",
    "memtable_operations",
    "replicate_on_write",
    "populate_io_cache_on_flush",
    "read_repair_chance",
    "dclocal_read_repair_chance",
    "index_interval",
];

impl CliSession {
    pub(super) fn keyspace(&mut self, is_new: bool, name: &str, options: &Options) -> Result<()> {
        let mut definition = KsDef {
            name: name.into(),
            strategy_class: "org.apache.cassandra.locator.NetworkTopologyStrategy".into(),
            strategy_options: None,
            replication_factor: None,
            cf_defs: Vec::new(),
            durable_writes: Some(true),
        };
        for (option, value) in options {
            match option.as_str() {
                "placement_strategy" => definition.strategy_class = strategy(text(option, value)?),
                "strategy_options" => definition.strategy_options = Some(map(option, value)?),
                "durable_writes" => definition.durable_writes = Some(number(option, value)?),
                "replication_factor" => definition.replication_factor = Some(number(option, value)?),
                _ => bail!("Unknown option of a keyspace: {option}"),
            }
        }
        if definition.strategy_options.is_none() && definition.replication_factor.is_none() {
            // The default of `cassandra-cli`: one replica, in total or in the only datacenter.
            let simple = definition.strategy_class.ends_with("SimpleStrategy");
            let datacenter = if simple { "replication_factor" } else { "datacenter1" };
            definition.strategy_options = Some(Map(vec![(datacenter.into(), "1".into())]));
        }
        let method = if is_new { Method::SystemAddKeyspace } else { Method::SystemUpdateKeyspace };
        let asked = args::WithKsDef { ks_def: definition };
        self.version(method, |out| asked.write(out))
    }

    pub(super) fn family(&mut self, is_new: bool, name: &str, options: &Options) -> Result<()> {
        let used = self.used()?;
        if is_new {
            let mut definition = CfDef::named(&used, name);
            set_options(&mut definition, options)?;
            let asked = args::WithCfDef { cf_def: definition };
            return self.version(Method::SystemAddColumnFamily, |out| asked.write(out));
        }
        // Options that the statement does not name keep their value.
        let mut arguments = Vec::new();
        self.definition(name, |known| {
            // A copy with the lifetime of the options.
            let mut definition = known;
            set_options(&mut definition, options)?;
            args::WithCfDef { cf_def: definition }.write(&mut arguments);
            Ok(())
        })?;
        self.version(Method::SystemUpdateColumnFamily, |out| out.extend_from_slice(&arguments))
    }

    pub(super) fn drop(&mut self, method: Method, name: &str) -> Result<()> {
        let asked = args::OfKeyspace { keyspace: name };
        self.version(method, |out| asked.write(out))?;
        if method == Method::SystemDropKeyspace && self.keyspace.as_deref() == Some(name) {
            self.keyspace = None;
        }
        Ok(())
    }

    /// `drop index on Family.column`.
    pub(super) fn drop_index(&mut self, place: &str) -> Result<()> {
        let Some((family, column)) = place.split_once('.') else {
            bail!("name the index by its column: drop index on <family>.<column>");
        };
        let mut arguments = Vec::new();
        self.definition(family, |mut definition| {
            let names = comparator(definition.comparator_type.as_deref().unwrap_or("BytesType"))?;
            let name = names.bytes_of(column).map_err(anyhow::Error::msg)?;
            let metadata = definition.column_metadata.get_or_insert_default();
            let known = metadata.iter_mut().find(|known| *known.name == name[..]);
            let known = known.with_context(|| {
                format!("Column '{column}' definition was not found in ColumnFamily '{family}'.")
            })?;
            if known.index_type.is_none() {
                bail!("Column '{column}' does not have an index.");
            }
            (known.index_type, known.index_name, known.index_options) = (None, None, None);
            args::WithCfDef { cf_def: definition }.write(&mut arguments);
            Ok(())
        })?;
        self.version(Method::SystemUpdateColumnFamily, |out| out.extend_from_slice(&arguments))
    }

    /// Calls a method that changes the schema, and prints the new schema version.
    fn version(&mut self, method: Method, arguments: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let version = self.client.call::<&str>(method, arguments)?.unwrap_or_default();
        say!("{version}")?;
        Ok(())
    }
}

fn text<'v>(option: &str, value: &'v Value) -> Result<&'v str> {
    match value {
        Value::Text(text) => Ok(text),
        _ => bail!("{option} is a single value"),
    }
}

fn number<T: std::str::FromStr>(option: &str, value: &Value) -> Result<T> {
    let text = text(option, value)?;
    text.to_ascii_lowercase().parse().map_err(|_| anyhow::anyhow!("{option} cannot be {text}"))
}

fn strategy(class: &str) -> Text<'_> {
    if class.contains('.') {
        return class.into();
    }
    format!("org.apache.cassandra.locator.{class}").into()
}

/// Reads a map: `{k: v, ..}`, or `[{k: v}, ..]` in the oldest form.
fn map<'v>(option: &str, value: &'v Value) -> Result<Map<Text<'v>, Text<'v>>> {
    let mut pairs = Vec::new();
    match value {
        Value::Map(map) => {
            for (name, value) in map {
                pairs.push((Cow::from(name.as_str()), Cow::from(text(option, value)?)));
            }
        }
        Value::List(list) => {
            for value in list {
                pairs.extend(self::map(option, value)?.0);
            }
        }
        Value::Text(_) => bail!("'{option}' format - {{k:v, k:v, ..}}"),
    }
    Ok(Map(pairs))
}

fn set_options<'d>(definition: &mut CfDef<'d>, options: &'d Options) -> Result<()> {
    // Column metadata comes last, because its column names are interpreted by the comparator, which another option
    // sets.
    for (option, value) in options.iter().filter(|(option, _)| option != "column_metadata") {
        set_option(definition, option, value)?;
    }
    for (_, value) in options.iter().filter(|(option, _)| option == "column_metadata") {
        definition.column_metadata = Some(metadata(definition, value)?);
    }
    Ok(())
}

fn set_option<'d>(definition: &mut CfDef<'d>, option: &str, value: &'d Value) -> Result<()> {
    let class = || Ok::<_, anyhow::Error>(Some(Text::from(class_of(text(option, value)?))));
    match option {
        "column_type" => definition.column_type = Some(text(option, value)?.into()),
        "comparator" => definition.comparator_type = class()?,
        "subcomparator" => definition.subcomparator_type = class()?,
        "default_validation_class" => definition.default_validation_class = class()?,
        "key_validation_class" => definition.key_validation_class = class()?,
        "comment" => definition.comment = Some(text(option, value)?.into()),
        "gc_grace" | "gc_grace_seconds" => definition.gc_grace_seconds = Some(number(option, value)?),
        "min_compaction_threshold" => definition.min_compaction_threshold = Some(number(option, value)?),
        "max_compaction_threshold" => definition.max_compaction_threshold = Some(number(option, value)?),
        "compaction_strategy" => definition.compaction_strategy = Some(text(option, value)?.into()),
        "compaction_strategy_options" => definition.compaction_strategy_options = Some(map(option, value)?),
        "compression_options" => {
            definition.compression_options = Some(match value {
                Value::Text(none) if none.is_empty() || none.eq_ignore_ascii_case("null") => Map(Vec::new()),
                other => map(option, other)?,
            });
        }
        "bloom_filter_fp_chance" => definition.bloom_filter_fp_chance = Some(number(option, value)?),
        "memtable_flush_period_in_ms" => {
            definition.memtable_flush_period_in_ms = Some(number(option, value)?)
        }
        "caching" => definition.caching = Some(text(option, value)?.into()),
        "cells_per_row_to_cache" => definition.cells_per_row_to_cache = Some(text(option, value)?.into()),
        "default_time_to_live" => definition.default_time_to_live = Some(number(option, value)?),
        "speculative_retry" => definition.speculative_retry = Some(text(option, value)?.into()),
        obsolete if OBSOLETE.contains(&obsolete) => {}
        _ => bail!("Unknown option of a column family: {option}"),
    }
    Ok(())
}

/// Reads `[{column_name: .., validation_class: .., index_type: .., index_name: ..}, ..]`.
fn metadata<'d>(definition: &CfDef<'_>, value: &'d Value) -> Result<Vec<ColumnDef<'d>>> {
    let Value::List(list) = value else {
        bail!("'column_metadata' format - [{{ k:v, k:v, ..}}, {{ ... }}, ...]")
    };
    let of_columns = match definition.column_type.as_deref() {
        Some(kind) if kind.eq_ignore_ascii_case("super") => &definition.subcomparator_type,
        _ => &definition.comparator_type,
    };
    let names = comparator(of_columns.as_deref().unwrap_or("BytesType"))?;
    let mut columns = Vec::new();
    for entry in list {
        let Value::Map(pairs) = entry else {
            bail!("'column_metadata' format - [{{ k:v, k:v, ..}}, {{ ... }}, ...]")
        };
        let mut column = ColumnDef {
            name: Cow::from(Vec::new()),
            validation_class: "BytesType".into(),
            index_type: None,
            index_name: None,
            index_options: None,
        };
        for (key, value) in pairs {
            match key.to_ascii_lowercase().as_str() {
                "column_name" => {
                    let name = names.bytes_of(text(key, value)?);
                    column.name = name.map_err(anyhow::Error::msg)?.into();
                }
                "validation_class" => column.validation_class = class_of(text(key, value)?).into(),
                "index_type" => column.index_type = Some(index_type(text(key, value)?)?),
                "index_name" => column.index_name = Some(text(key, value)?.into()),
                "index_options" => column.index_options = Some(map(key, value)?),
                other => bail!("Unsupported column_metadata pair given => {other}"),
            }
        }
        columns.push(column);
    }
    Ok(columns)
}

fn index_type(text: &str) -> Result<IndexType> {
    match text.to_ascii_uppercase().as_str() {
        "KEYS" | "0" => Ok(IndexType::Keys),
        "CUSTOM" | "1" => Ok(IndexType::Custom),
        "COMPOSITES" | "2" => Ok(IndexType::Composites),
        _ => bail!("IndexType '{text}' is unsupported."),
    }
}
