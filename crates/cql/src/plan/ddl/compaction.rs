//! The `compaction` option (`CompactionParams` and the strategies' `validateOptions`).

use super::compression::java_double;
use super::java_class;
use crate::error::{CqlError, Result};
use helenus_engine::{parse_percent, parse_scaling_parameters, parse_size};
use std::collections::BTreeMap;

const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

type Options = BTreeMap<String, String>;

fn config<T>(message: String) -> Result<T> {
    Err(CqlError::Config(message))
}

/// The stored form of the options that a statement gives.
pub(super) fn compaction(given: &Options) -> Result<Options> {
    let mut options = given.clone();
    let Some(class) = options.remove("class") else {
        return config("Missing sub-option 'class' for the 'compaction' option".into());
    };
    let full = if class.contains('.') { class } else { format!("{PACKAGE}{class}") };
    let strategy = full.strip_prefix(PACKAGE).unwrap_or_default().to_owned();
    if !matches!(
        strategy.as_str(),
        "SizeTieredCompactionStrategy"
            | "LeveledCompactionStrategy"
            | "TimeWindowCompactionStrategy"
            | "UnifiedCompactionStrategy"
    ) {
        let base = "db.compaction.AbstractCompactionStrategy";
        return Err(java_class::refused(&full, "compaction strategy", base));
    }
    let overlapping =
        options.get("provide_overlapping_tombstones").map_or("NONE".into(), |v| v.to_uppercase());
    if !matches!(overlapping.as_str(), "NONE" | "ROW" | "CELL") {
        return config(format!(
            "Invalid value {overlapping} for 'provide_overlapping_tombstones' compaction sub-option - must be one of \
             the following [NONE, ROW, CELL]."
        ));
    }
    if strategy != "UnifiedCompactionStrategy" {
        options.entry("min_threshold".into()).or_insert_with(|| "4".into());
        options.entry("max_threshold".into()).or_insert_with(|| "32".into());
    }
    check(&strategy, &options)?;
    check_thresholds(&options)?;
    options.insert("class".into(), full);
    Ok(options)
}

/// The options that every strategy accepts.
const COMMON: &[&str] = &[
    "tombstone_threshold",
    "tombstone_compaction_interval",
    "unchecked_tombstone_compaction",
    "log_all",
    "enabled",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
];
const SIZE_TIERED: &[&str] = &["min_sstable_size", "bucket_low", "bucket_high"];
const THRESHOLDS: &[&str] = &["min_threshold", "max_threshold"];
const LEVELED: &[&str] = &["sstable_size_in_mb", "fanout_size", "single_sstable_uplevel"];
const TIME_WINDOW: &[&str] = &[
    "compaction_window_size",
    "compaction_window_unit",
    "timestamp_resolution",
    "expired_sstable_check_frequency_seconds",
    "unsafe_aggressive_sstable_expiration",
];
const UNIFIED: &[&str] = &[
    "scaling_parameters",
    "base_shard_count",
    "target_sstable_size",
    "flush_size_override",
    "max_sstables_to_compact",
    "expired_sstable_check_frequency_seconds",
    "unsafe_aggressive_sstable_expiration",
    "overlap_inclusion_method",
    "min_sstable_size",
    "sstable_growth",
];

fn check(strategy: &str, options: &Options) -> Result<()> {
    check_common(options)?;
    let known: Vec<&[&str]> = match strategy {
        "SizeTieredCompactionStrategy" => vec![COMMON, SIZE_TIERED, THRESHOLDS],
        "LeveledCompactionStrategy" => {
            positive_int(options, "sstable_size_in_mb")?;
            positive_int(options, "fanout_size")?;
            vec![COMMON, SIZE_TIERED, THRESHOLDS, LEVELED]
        }
        "TimeWindowCompactionStrategy" => {
            check_time_window(options)?;
            vec![COMMON, SIZE_TIERED, THRESHOLDS, TIME_WINDOW]
        }
        _ => {
            check_unified(options)?;
            vec![COMMON, UNIFIED]
        }
    };
    if strategy != "UnifiedCompactionStrategy" {
        check_size_tiered(options)?;
    }
    let unknown: Vec<&str> =
        options.keys().map(String::as_str).filter(|name| !known.iter().any(|k| k.contains(name))).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    config(format!("Properties specified [{}] are not understood by {strategy}", unknown.join(", ")))
}

fn check_common(options: &Options) -> Result<()> {
    if let Some(text) = options.get("tombstone_threshold") {
        match text.parse::<f32>() {
            Err(_) => {
                return config(format!("{text} is not a parsable int (base10) for tombstone_threshold"));
            }
            Ok(value) if value < 0.0 => {
                return config(format!("tombstone_threshold must be greater than 0, but was {value:.6}"));
            }
            Ok(_) => {}
        }
    }
    if let Some(text) = options.get("tombstone_compaction_interval") {
        match text.parse::<i64>() {
            Err(_) => {
                return config(format!(
                    "{text} is not a parsable int (base10) for tombstone_compaction_interval"
                ));
            }
            Ok(value) if value < 0 => {
                return config(format!(
                    "tombstone_compaction_interval must be greater than 0, but was {value}"
                ));
            }
            Ok(_) => {}
        }
    }
    let is_boolean = |text: &str| text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
    for (name, words) in [
        ("unchecked_tombstone_compaction", "should be either 'true' or 'false', not"),
        ("log_all", "should either be 'true' or 'false', not"),
        ("enabled", "should either be 'true' or 'false', not"),
    ] {
        let Some(text) = options.get(name).filter(|text| !is_boolean(text)) else { continue };
        return config(match name {
            "unchecked_tombstone_compaction" => format!("'{name}' {words} '{text}'"),
            "enabled" => format!("enabled {words} {text}"),
            _ => format!("'{name}' {words} {text}"),
        });
    }
    Ok(())
}

fn check_size_tiered(options: &Options) -> Result<()> {
    if let Some(text) = options.get("min_sstable_size") {
        match text.parse::<i64>() {
            Err(_) => return config(format!("{text} is not a parsable int (base10) for min_sstable_size")),
            Ok(value) if value < 0 => {
                return config(format!("min_sstable_size must be non negative: {value}"));
            }
            Ok(_) => {}
        }
    }
    let double = |name: &str, default: f64| match options.get(name) {
        None => Ok(default),
        Some(text) => text
            .trim()
            .parse::<f64>()
            .map_err(|_| CqlError::Config(format!("{text} is not a parsable float for {name}"))),
    };
    let (low, high) = (double("bucket_low", 0.5)?, double("bucket_high", 1.5)?);
    if high <= low {
        return config(format!(
            "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
            java_double(high),
            java_double(low)
        ));
    }
    Ok(())
}

fn positive_int(options: &Options, name: &str) -> Result<()> {
    let Some(text) = options.get(name) else { return Ok(()) };
    match text.parse::<i32>() {
        Err(_) => config(format!("{text} is not a parsable int (base10) for {name}")),
        Ok(value) if value < 1 => config(format!("{name} must be larger than 0, but was {value}")),
        Ok(_) => Ok(()),
    }
}

fn check_time_window(options: &Options) -> Result<()> {
    let one_of = |name: &str, allowed: &[&str]| match options.get(name) {
        Some(text) if !allowed.contains(&text.as_str()) => config(format!("{text} is not valid for {name}")),
        _ => Ok(()),
    };
    one_of("timestamp_resolution", &["SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS"])?;
    one_of("compaction_window_unit", &["MINUTES", "HOURS", "DAYS"])?;
    if let Some(text) = options.get("compaction_window_size") {
        match text.parse::<i32>() {
            Err(_) => {
                return config(format!("{text} is not a parsable int (base10) for compaction_window_size"));
            }
            Ok(value) if value < 1 => {
                return config(format!("{value} must be greater than 1 for compaction_window_size"));
            }
            Ok(_) => {}
        }
    }
    const FREQUENCY: &str = "expired_sstable_check_frequency_seconds";
    if let Some(text) = options.get(FREQUENCY) {
        match text.parse::<i64>() {
            Err(_) => return config(format!("{text} is not a parsable int (base10) for {FREQUENCY}")),
            Ok(value) if value < 0 => {
                return config(format!("{FREQUENCY} must not be negative, but was {value}"));
            }
            Ok(_) => {}
        }
    }
    const UNSAFE: &str = "unsafe_aggressive_sstable_expiration";
    match options.get(UNSAFE).map(|text| text.to_lowercase()) {
        None => Ok(()),
        Some(text) if text == "false" => Ok(()),
        Some(text) if text == "true" => config(format!(
            "{UNSAFE} is not allowed, because dropping an SSTable before those that it shadows brings deleted rows back; \
             set it to false"
        )),
        Some(_) => config(format!("{UNSAFE} is not 'true' or 'false' ({})", options[UNSAFE])),
    }
}

/// `Controller.validateOptions`.
fn check_unified(options: &Options) -> Result<()> {
    check_unified_sizes(options)?;
    if let Some(text) = options.get("base_shard_count") {
        match text.parse::<i32>() {
            Err(_) => return config(format!("{text} is not a parsable int (base10) for base_shard_count")),
            Ok(value) if value <= 0 => {
                return config(format!(
                    "Invalid configuration, base_shard_count should be positive: {value}"
                ));
            }
            Ok(_) => {}
        }
    }
    if let Some(text) = options.get("max_sstables_to_compact").filter(|text| text.parse::<i32>().is_err()) {
        return config(format!("{text} is not a parsable int (base10) for max_sstables_to_compact"));
    }
    const FREQUENCY: &str = "expired_sstable_check_frequency_seconds";
    if let Some(text) = options.get(FREQUENCY) {
        match text.parse::<i64>() {
            Err(_) => return config(format!("{text} is not a parsable long (base10) for {FREQUENCY}")),
            Ok(value) if value <= 0 => {
                return config(format!("Invalid configuration, {FREQUENCY} should be positive: {value}"));
            }
            Ok(_) => {}
        }
    }
    if let Some(text) = options.get("overlap_inclusion_method")
        && !matches!(text.to_uppercase().as_str(), "NONE" | "SINGLE" | "TRANSITIVE")
    {
        return config(format!(
            "Invalid overlap inclusion method {text}. The valid options are [NONE, SINGLE, TRANSITIVE]."
        ));
    }
    if let Some(text) = options.get("sstable_growth") {
        match parse_percent(text) {
            None => return config(format!("sstable_growth is not a valid number between 0 and 1: {text}")),
            Some(value) if !(0.0..=1.0).contains(&value) => {
                return config(format!("sstable_growth {text} must be between 0 and 1"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn check_unified_sizes(options: &Options) -> Result<()> {
    const LEAST: f64 = 1_048_576.0;
    if let Some(text) = options.get("scaling_parameters") {
        parse_scaling_parameters(text).map_err(CqlError::Config)?;
    }
    let size = |name: &str| match options.get(name) {
        None => Ok(None),
        Some(text) => match parse_size(text) {
            Some(bytes) => Ok(Some((text, bytes))),
            None if name == "min_sstable_size" => {
                config(format!("{text} is not a valid size in bytes for {name}"))
            }
            None => config(format!("{name} {text} is not a valid size in bytes: {}", wrong_size(text))),
        },
    };
    let mut target = f64::from(1 << 30);
    for name in ["target_sstable_size", "flush_size_override"] {
        let Some((text, bytes)) = size(name)? else { continue };
        if name == "target_sstable_size" {
            if bytes >= i64::MAX as f64 {
                return config(format!("{name} {text} is out of range of Long."));
            }
            target = bytes.ceil();
        }
        if bytes < LEAST {
            return config(format!("{name} {text} is not acceptable, size must be at least 1.000MiB"));
        }
    }
    let Some((_, least)) = size("min_sstable_size")? else { return Ok(()) };
    let least = least.trunc();
    if least < 0.0 {
        return config(
            "Invalid configuration, min_sstable_size should be greater than or equal to 0 (zero)".into(),
        );
    }
    if least >= (target * 0.5f64.sqrt()).ceil() {
        return config(format!(
            "Invalid configuration, min_sstable_size ({}) should be less than 70% of the targetSSTableSize ({})",
            memory_text(least),
            memory_text(target)
        ));
    }
    Ok(())
}

/// The text of Java's exception for a wrong size.
fn wrong_size(text: &str) -> String {
    if text.ends_with('B') { "null".into() } else { format!("{text} does not end in unit B") }
}

/// `FBUtilities.prettyPrintMemory`.
fn memory_text(bytes: f64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes >= 2f64.powi(*shift));
    unit.map_or_else(
        || format!("{bytes:.0}B"),
        |(shift, name)| format!("{:.3}{name}", bytes / 2f64.powi(*shift)),
    )
}

fn check_thresholds(options: &Options) -> Result<()> {
    let threshold = |name: &str, default: i32| match options.get(name) {
        None => Ok(default),
        Some(text) => match text.parse::<i32>() {
            Ok(value) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(value),
            _ => config(format!(
                "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
            )),
        },
    };
    let (min, max) = (threshold("min_threshold", 4)?, threshold("max_threshold", 32)?);
    if min <= 0 || max <= 0 {
        return config(
            "Disabling compaction by setting compaction thresholds to 0 has been removed, set the compaction option \
             'enabled' to false instead."
                .into(),
        );
    }
    if min <= 1 {
        return config(format!("Min compaction threshold cannot be less than 2 (got {min})"));
    }
    if min > max {
        return config(format!(
            "Min compaction threshold (got {min}) cannot be greater than max compaction threshold (got {max})"
        ));
    }
    Ok(())
}
