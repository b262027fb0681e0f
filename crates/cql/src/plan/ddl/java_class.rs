//! Errors for a class that a statement names. `FBUtilities.classForNameWithoutInitialization` distinguishes a class
//! that does not exist from one of another kind.

use crate::error::CqlError;
use helenus_model::types::CqlType;

const PACKAGE: &str = "org.apache.cassandra.";

/// The classes of Cassandra that statements may name, by package.
const CLASSES: [(&str, &[&str]); 5] = [
    ("locator", &["SimpleStrategy", "NetworkTopologyStrategy", "LocalStrategy"]),
    (
        "db.compaction",
        &[
            "SizeTieredCompactionStrategy",
            "LeveledCompactionStrategy",
            "TimeWindowCompactionStrategy",
            "UnifiedCompactionStrategy",
        ],
    ),
    (
        "io.compress",
        &["LZ4Compressor", "ZstdCompressor", "SnappyCompressor", "DeflateCompressor", "NoopCompressor"],
    ),
    ("index.sai", &["StorageAttachedIndex"]),
    ("index.sasi", &["SASIIndex"]),
];

/// Whether Cassandra has a class of this full name, among those that statements may name.
fn exists(class: &str) -> bool {
    let Some((package, name)) = class.strip_prefix(PACKAGE).and_then(|rest| rest.rsplit_once('.')) else {
        return false;
    };
    let is_listed = |(listed, names): &(&str, &[&str])| *listed == package && names.contains(&name);
    CLASSES.iter().any(is_listed) || (package == "db.marshal" && CqlType::from_class_name(class).is_ok())
}

/// The error for a class that does not implement `base`, or that does not exist. `role` is the noun for its kind.
pub(super) fn refused(class: &str, role: &str, base: &str) -> CqlError {
    CqlError::Config(match exists(class) {
        true => format!("Invalid {role} class '{class}': must extend or implement {PACKAGE}{base}"),
        false => format!("Unable to find {role} class '{class}'"),
    })
}

/// The same for a compressor, with another text if it does not exist (`CompressionParams.parseCompressorClass`).
pub(super) fn refused_compressor(class: &str) -> CqlError {
    match exists(class) {
        true => refused(class, "compression", "io.compress.ICompressor"),
        false => CqlError::Config(format!("Could not create Compression for type {class}")),
    }
}
