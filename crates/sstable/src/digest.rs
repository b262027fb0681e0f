//! Digest.crc32: the CRC32 of all bytes of Data.db, as a decimal number without a line break.

use crate::error::{Error, Result};
use std::path::Path;

/// The component's bytes.
pub fn to_bytes(crc32: u32) -> Vec<u8> {
    crc32.to_string().into_bytes()
}

/// Parses the component. Errors: `Corrupt`, which names `file`.
pub fn parse(bytes: &[u8], file: &Path) -> Result<u32> {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.trim_end().parse().ok()).ok_or_else(|| Error::Corrupt {
        file: file.to_owned(),
        offset: 0,
        problem: "not a decimal CRC32".into(),
    })
}
