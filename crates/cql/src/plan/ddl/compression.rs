//! The `compression` option (`CompressionParams` and the compressors' own checks).

use super::java_class;
use crate::error::{CqlError, Result};
use helenus_model::schema::CompressionParams;
use std::collections::BTreeMap;

const PACKAGE: &str = "org.apache.cassandra.io.compress.";

fn config<T>(message: String) -> Result<T> {
    Err(CqlError::Config(message))
}

/// The stored form of the options that a statement gives.
pub(super) fn compression(given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let disabled = || Ok(BTreeMap::from([("enabled".to_owned(), "false".to_owned())]));
    let mut options = given.clone();
    let enabled = given.get("enabled").is_none_or(|value| value.eq_ignore_ascii_case("true"));
    if given.is_empty() {
        return disabled();
    }
    if enabled && !given.contains_key("class") {
        return config("Missing sub-option 'class' for the 'compression' option.".into());
    }
    options.remove("enabled");
    if !enabled {
        if options.is_empty() {
            return disabled();
        }
        return config("If the 'enabled' option is set to false no other options must be specified".into());
    }
    let class = options.remove("class").unwrap_or_default();
    if class.is_empty() {
        return config(
            "The 'class' option must not be empty. To disable compression use 'enabled' : false".into(),
        );
    }
    let chunk_kib = chunk_length(options.remove("chunk_length_in_kb"))?;
    let ratio = match options.remove("min_compress_ratio") {
        None => 0.0,
        Some(text) => match text.trim().parse::<f64>() {
            Ok(ratio) => ratio,
            Err(_) => return config(format!("For input string: \"{text}\"")),
        },
    };
    let full = if class.contains('.') { class.clone() } else { format!("{PACKAGE}{class}") };
    check_compressor(&full, &options)?;
    check_chunk(chunk_kib, ratio)?;
    let mut stored = options;
    stored.insert("class".into(), full);
    stored.insert("chunk_length_in_kb".into(), chunk_kib.to_string());
    if ratio != 0.0 {
        stored.insert("min_compress_ratio".into(), java_double(ratio));
    }
    Ok(stored)
}

fn chunk_length(given: Option<String>) -> Result<i32> {
    let Some(text) = given else { return Ok(16) };
    match text.parse::<i32>() {
        Err(_) => config("Invalid value for chunk_length_in_kb".into()),
        Ok(kib) if kib > i32::MAX / 1024 => {
            config(format!("Value of chunk_length_in_kb is too large ({kib})"))
        }
        Ok(kib) => Ok(kib),
    }
}

fn check_chunk(kib: i32, ratio: f64) -> Result<()> {
    if kib <= 0 {
        return config("Invalid negative or null chunk_length_in_kb".into());
    }
    if kib.count_ones() != 1 {
        return config("chunk_length_in_kb must be a power of 2".into());
    }
    // Cassandra takes up to 1 GiB here.
    let most = CompressionParams::CHUNK_BYTES_MAX >> 10;
    if kib.unsigned_abs() > most {
        return config(format!("chunk_length_in_kb must be less than or equal to {most} (got {kib})"));
    }
    if ratio < 0.0 {
        return config("Invalid negative min_compress_ratio".into());
    }
    if ratio > 0.0 && ratio < 1.0 {
        return config("min_compress_ratio can either be 0 or greater than or equal to 1".into());
    }
    Ok(())
}

fn check_compressor(class: &str, options: &BTreeMap<String, String>) -> Result<()> {
    let known: &[&str] = match class.strip_prefix(PACKAGE) {
        Some("LZ4Compressor") => &["lz4_high_compressor_level", "lz4_compressor_type"],
        Some("ZstdCompressor") => &["compression_level"],
        Some("SnappyCompressor" | "DeflateCompressor" | "NoopCompressor") => &[],
        _ => return Err(java_class::refused_compressor(class)),
    };
    if let Some(kind) = options.get("lz4_compressor_type").filter(|kind| *kind != "fast" && *kind != "high")
        && known.contains(&"lz4_compressor_type")
    {
        return config(format!(
            "Invalid compressor type '{kind}' specified for LZ4 parameter 'lz4_compressor_type'. Valid options are \
             [high, fast]."
        ));
    }
    if let Some(level) = options.get("lz4_high_compressor_level").filter(|_| known.len() == 2)
        && !level.parse::<i32>().is_ok_and(|level| (1..=17).contains(&level))
    {
        return config(format!(
            "Invalid value [{level}] for parameter 'lz4_high_compressor_level'. Value must be between 1 and 17."
        ));
    }
    if let Some(level) = options.get("compression_level").filter(|_| known.contains(&"compression_level")) {
        check_zstd_level(level)?;
    }
    match options.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => config(format!("Unknown compression options {name}")),
        None => Ok(()),
    }
}

/// Checks a Zstd level: from -131072 to 22.
fn check_zstd_level(text: &str) -> Result<()> {
    const PREFIX: &str = "ZstdCompressor.create() threw an error:";
    match text.parse::<i32>() {
        Ok(level) if (-131_072..=22).contains(&level) => Ok(()),
        Ok(level) => config(format!(
            "{PREFIX} java.lang.IllegalArgumentException compression_level={level} is invalid"
        )),
        Err(_) => config(format!("{PREFIX} java.lang.NumberFormatException For input string: \"{text}\"")),
    }
}

/// A double as Java prints it, for the usual magnitudes.
pub(super) fn java_double(value: f64) -> String {
    let text = value.to_string();
    if text.contains(['.', 'e', 'N', 'i']) { text } else { format!("{text}.0") }
}
