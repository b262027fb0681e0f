//! Table options: checks the properties of WITH and converts them to the stored form (`TableAttributes`, `TableParams`,
//! `CachingParams`).

use super::compaction::compaction;
use super::compression::{compression, java_double};
use super::layout::is_layout;
use super::properties::{Properties, syntax_error};
use super::speculative_retry::retry_policy;
use crate::error::{CqlError, Result};
use crate::plan::modify::TTL_SECONDS_MAX;
use helenus_model::schema::{ROW_INDEX_GRANULARITY, TableOptions, row_index_granularity};
use std::collections::BTreeMap;

/// All options of a table, and `id`.
pub(super) const NAMES: &[&str] = &[
    "additional_write_policy",
    "allow_auto_snapshot",
    "auto_repair",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    "crc_check_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "read_repair",
    "speculative_retry",
];

/// The smallest `bloom_filter_fp_chance` (`BloomCalculations.minSupportedBloomFilterFpChance`).
const BLOOM_CHANCE_MIN: f64 = 6.71e-5;

fn config<T>(message: String) -> Result<T> {
    Err(CqlError::Config(message))
}

/// The options `base`, changed by those that a statement gives.
pub(super) fn table_options(properties: &Properties, base: &TableOptions) -> Result<TableOptions> {
    if properties.has("auto_repair") {
        return config(
            "auto_repair option is not supported, because there is no other copy to repair from; leave it out".into(),
        );
    }
    let mut options = base.clone();
    if let Some(value) = properties.boolean("allow_auto_snapshot")? {
        options.allow_auto_snapshot = value;
    }
    if let Some(value) = properties.double("bloom_filter_fp_chance")? {
        options.bloom_filter_fp_chance = value;
    }
    if let Some(map) = properties.map("caching")? {
        options.caching = caching(map)?;
    }
    if let Some(text) = properties.text("comment")? {
        options.comment = text.to_owned();
    }
    if let Some(map) = properties.map("compaction")? {
        options.compaction = compaction(map)?;
    }
    if let Some(map) = properties.map("compression")? {
        options.compression = compression(map)?;
    }
    if let Some(text) = properties.text("memtable")? {
        if text != "default" && text != "skiplist" && text != "trie" {
            return config(format!("Memtable configuration \"{text}\" not found."));
        }
        options.memtable = (text != "default").then(|| text.to_owned());
    }
    for (name, place) in [
        ("default_time_to_live", &mut options.default_time_to_live_s),
        ("gc_grace_seconds", &mut options.gc_grace_seconds),
        ("max_index_interval", &mut options.max_index_interval),
        ("memtable_flush_period_in_ms", &mut options.memtable_flush_period_in_ms),
        ("min_index_interval", &mut options.min_index_interval),
    ] {
        if let Some(value) = properties.int(name)? {
            *place = value;
        }
    }
    if let Some(value) = properties.boolean("incremental_backups")? {
        options.incremental_backups = value;
    }
    for (name, place) in [
        ("speculative_retry", &mut options.speculative_retry),
        ("additional_write_policy", &mut options.additional_write_policy),
    ] {
        if let Some(text) = properties.text(name)? {
            *place = retry_policy(text)?;
        }
    }
    if let Some(value) = properties.double("crc_check_chance")? {
        options.crc_check_chance = value;
    }
    if let Some(value) = properties.boolean("cdc")? {
        options.cdc = value;
    }
    if let Some(text) = properties.text("read_repair")? {
        options.read_repair = read_repair(text)?;
    }
    if let Some(map) = properties.map("extensions")? {
        options.extensions = map.iter().map(|(k, v)| (k.clone(), extension(v))).collect();
        check_own_extensions(&options.extensions)?;
    }
    check(&options)?;
    Ok(options)
}

/// The options of a new table. With leveled compaction the default false positive chance is larger
/// (`CompactionParams.defaultBloomFilterFbChance`); an altered table keeps its own.
pub(super) fn new_table_options(properties: &Properties, base: &TableOptions) -> Result<TableOptions> {
    let mut options = table_options(properties, base)?;
    let class = options.compaction.get("class").map_or("", String::as_str);
    if class.ends_with(".LeveledCompactionStrategy") && !properties.has("bloom_filter_fp_chance") {
        options.bloom_filter_fp_chance = 0.1;
    }
    Ok(options)
}

fn read_repair(text: &str) -> Result<String> {
    match text.to_uppercase().as_str() {
        "NONE" => Ok("NONE".into()),
        "BLOCKING" => Ok("BLOCKING".into()),
        other => Err(CqlError::Server(format!(
            "java.lang.IllegalArgumentException: No enum constant \
             org.apache.cassandra.service.reads.repair.ReadRepairStrategy.{other}"
        ))),
    }
}

/// Rejects unknown or invalid extensions of Helenus itself; other extensions are kept unchanged.
fn check_own_extensions(extensions: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    for (name, value) in extensions.iter().filter(|(name, _)| name.starts_with("helenus.")) {
        if is_layout(name) {
            return config(format!(
                "Extension '{name}' says how a table is made: only CREATE TABLE can have it"
            ));
        }
        if name != ROW_INDEX_GRANULARITY {
            return config(format!("Unknown extension '{name}'; Helenus has only '{ROW_INDEX_GRANULARITY}'"));
        }
        if row_index_granularity(value).is_err() {
            return config(format!(
                "Invalid value '{}' for extension '{name}': a size from 1KiB to 16MiB is expected, such as '4KiB'",
                String::from_utf8_lossy(value)
            ));
        }
    }
    Ok(())
}

/// The bytes of an extension, given as a blob or as text.
pub(super) fn extension(text: &str) -> Vec<u8> {
    let hex = text.strip_prefix("0x").filter(|hex| hex.len().is_multiple_of(2) && hex.is_ascii());
    let bytes = hex.and_then(|hex| {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
    });
    bytes.unwrap_or_else(|| text.as_bytes().to_vec())
}

fn caching(given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let allowed = |option: &str, value: &str, words: &str| {
        CqlError::Config(format!("Invalid value '{value}' for caching sub-option '{option}': {words}"))
    };
    let keys = match given.get("keys").map(|value| (value.to_uppercase(), value)) {
        None => "NONE".to_owned(),
        Some((upper, _)) if upper == "ALL" || upper == "NONE" => upper,
        Some((_, value)) => return Err(allowed("keys", value, "only 'ALL' and 'NONE' are allowed")),
    };
    let rows = match given.get("rows_per_partition").map(|value| (value.to_uppercase(), value)) {
        None => "NONE".to_owned(),
        Some((upper, _)) if upper == "ALL" || upper == "NONE" => upper,
        Some((_, value)) => match value.parse::<i32>() {
            Ok(0) => "NONE".to_owned(),
            Ok(i32::MAX) => "ALL".to_owned(),
            Ok(rows) if rows > 0 && !value.starts_with('+') => rows.to_string(),
            _ => {
                let words = "only 'ALL', 'NONE', and integer values are allowed";
                return Err(allowed("rows_per_partition", value, words));
            }
        },
    };
    let unknown: Vec<&str> = given
        .keys()
        .map(String::as_str)
        .filter(|name| *name != "keys" && *name != "rows_per_partition")
        .collect();
    if !unknown.is_empty() {
        return config(format!(
            "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
            unknown.join(", ")
        ));
    }
    Ok(BTreeMap::from([("keys".to_owned(), keys), ("rows_per_partition".to_owned(), rows)]))
}

fn check(options: &TableOptions) -> Result<()> {
    let chance = options.bloom_filter_fp_chance;
    if chance <= BLOOM_CHANCE_MIN || chance > 1.0 {
        return config(format!(
            "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 (got {})",
            java_double(chance)
        ));
    }
    if !(0.0..=1.0).contains(&options.crc_check_chance) {
        return config(format!(
            "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got {})",
            java_double(options.crc_check_chance)
        ));
    }
    let at_least = |name: &str, value: i32, min: i32| {
        if value < min {
            return config(format!("{name} must be greater than or equal to {min} (got {value})"));
        }
        Ok(())
    };
    at_least("default_time_to_live", options.default_time_to_live_s, 0)?;
    if options.default_time_to_live_s > TTL_SECONDS_MAX {
        return config(format!(
            "default_time_to_live must be less than or equal to {TTL_SECONDS_MAX} (got {})",
            options.default_time_to_live_s
        ));
    }
    at_least("gc_grace_seconds", options.gc_grace_seconds, 0)?;
    at_least("min_index_interval", options.min_index_interval, 1)?;
    if options.max_index_interval < options.min_index_interval {
        return config(format!(
            "max_index_interval must be greater than or equal to min_index_interval ({}) (got {})",
            options.min_index_interval, options.max_index_interval
        ));
    }
    at_least("memtable_flush_period_in_ms", options.memtable_flush_period_in_ms, 0)
}

/// Rejects names that are not table options.
pub(super) fn check_names(properties: &Properties) -> Result<()> {
    properties.check_names(NAMES)?;
    if properties.has("id") && properties.text("id")?.is_none() {
        return Err(syntax_error("Invalid value for property 'id'. It should be a string".into()));
    }
    Ok(())
}
