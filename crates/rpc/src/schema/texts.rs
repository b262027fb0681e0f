//! Converts the options of a definition to CQL text, so that CQL validates them.

use crate::error::{Result, invalid};
use helenus_wire::thrift::{CfDef, KsDef, Map, Text};
use std::fmt::Write as _;

/// The compaction thresholds of a definition that leaves compaction to the server.
const THRESHOLDS: (i32, i32) = (4, 32);

/// `TableParams.DEFAULT_GC_GRACE_SECONDS`.
const GC_GRACE_S: i32 = 864_000;

/// Maximum length of a keyspace's or column family's name (`SchemaConstants.NAME_LENGTH`).
const NAME_LENGTH_MAX: usize = 48;

/// Checks a name. `what` is the kind of the named object for the error.
pub(super) fn check_name(what: &str, name: &str) -> Result<()> {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !name.is_empty() && name.len() <= NAME_LENGTH_MAX && is_word {
        return Ok(());
    }
    invalid(format!(
        "{what} name must not be empty, more than {NAME_LENGTH_MAX} characters long, or contain \
         non-alphanumeric-underscore characters (got \"{name}\")"
    ))
}

/// Checks that a strategy which needs a replication factor has one.
pub(super) fn check_replicas(definition: &KsDef<'_>) -> Result<()> {
    let has_factor = definition.replication_factor.is_some()
        || pairs(&definition.strategy_options).any(|(name, _)| name == "replication_factor");
    if definition.strategy_class.ends_with("SimpleStrategy") && !has_factor {
        return invalid("SimpleStrategy requires a replication_factor strategy option.");
    }
    Ok(())
}

/// A quoted CQL string.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn map<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value))).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn pairs<'m>(map: &'m Option<Map<Text<'_>, Text<'_>>>) -> impl Iterator<Item = (&'m str, &'m str)> {
    map.iter().flat_map(|map| &map.0).map(|(name, value)| (&**name, &**value))
}

/// `WITH replication = .. AND durable_writes = ..` of a keyspace. An old definition may have `replication_factor`
/// outside the strategy's options.
pub(super) fn keyspace(definition: &KsDef<'_>) -> String {
    let mut options: Vec<(&str, &str)> = pairs(&definition.strategy_options).collect();
    let factor = definition.replication_factor.map(|factor| factor.to_string());
    if let Some(factor) = &factor
        && options.is_empty()
    {
        options.push(("replication_factor", factor));
    }
    options.push(("class", &definition.strategy_class));
    format!(
        "WITH replication = {} AND durable_writes = {}",
        map(options),
        definition.durable_writes.unwrap_or(true)
    )
}

/// The options of a column family, joined by ` AND `; at least one.
pub(super) fn family(definition: &CfDef<'_>) -> Result<String> {
    let mut out = format!("comment = {}", quoted(definition.comment.as_deref().unwrap_or_default()));
    let numbers = [
        // Missing options get the defaults of a new family.
        ("gc_grace_seconds", definition.gc_grace_seconds.or(Some(GC_GRACE_S))),
        ("memtable_flush_period_in_ms", definition.memtable_flush_period_in_ms),
        ("default_time_to_live", definition.default_time_to_live),
        ("min_index_interval", definition.min_index_interval.or(definition.index_interval)),
        ("max_index_interval", definition.max_index_interval),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            _ = write!(out, " AND {name} = {value}");
        }
    }
    if let Some(chance) = definition.bloom_filter_fp_chance {
        _ = write!(out, " AND bloom_filter_fp_chance = {chance:?}");
    }
    if let Some(policy) = &definition.speculative_retry {
        _ = write!(out, " AND speculative_retry = {}", quoted(policy));
    }
    if definition.caching.is_some() {
        _ = write!(out, " AND caching = {}", caching(definition)?);
    }
    if let Some(compaction) = compaction(definition) {
        _ = write!(out, " AND compaction = {compaction}");
    }
    if definition.compression_options.is_some() {
        let mut options: Vec<(&str, &str)> = pairs(&definition.compression_options)
            .map(|(name, value)| match name {
                "sstable_compression" => ("class", value),
                "chunk_length_kb" => ("chunk_length_in_kb", value),
                other => (other, value),
            })
            .collect();
        if options.iter().all(|(name, value)| *name != "class" || value.is_empty()) {
            options = vec![("enabled", "false")];
        }
        _ = write!(out, " AND compression = {}", map(options));
    }
    Ok(out)
}

fn caching(definition: &CfDef<'_>) -> Result<String> {
    let text = definition.caching.as_deref().unwrap_or("keys_only");
    let (keys, rows) = match text.to_uppercase().as_str() {
        "ALL" => ("ALL", true),
        "ROWS_ONLY" => ("NONE", true),
        "KEYS_ONLY" => ("ALL", false),
        "NONE" => ("NONE", false),
        _ => return invalid(format!("Invalid value {text} for caching parameter")),
    };
    let cells = if rows { definition.cells_per_row_to_cache.as_deref().unwrap_or("ALL") } else { "NONE" };
    Ok(map([("keys", keys), ("rows_per_partition", cells)]))
}

/// The compaction option of a definition; `None` if the server chooses it.
fn compaction(definition: &CfDef<'_>) -> Option<String> {
    let (min, max) = (
        definition.min_compaction_threshold.unwrap_or(THRESHOLDS.0),
        definition.max_compaction_threshold.unwrap_or(THRESHOLDS.1),
    );
    let class = match definition.compaction_strategy.as_deref() {
        Some(class) if !class.is_empty() => class,
        // Thresholds without a strategy mean the default strategy of that time.
        _ if (min, max) != THRESHOLDS => "SizeTieredCompactionStrategy",
        _ => return None,
    };
    let (min, max) = (min.to_string(), max.to_string());
    let mut options: Vec<(&str, &str)> = vec![("class", class)];
    options.extend(pairs(&definition.compaction_strategy_options));
    if class.ends_with("SizeTieredCompactionStrategy") {
        for (name, value) in [("min_threshold", &min), ("max_threshold", &max)] {
            if options.iter().all(|(given, _)| *given != name) {
                options.push((name, value));
            }
        }
    }
    Some(map(options))
}
