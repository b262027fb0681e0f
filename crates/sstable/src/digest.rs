//! Digest.crc32: the CRC32 of all bytes of Data.db, as a decimal number without a line break.

use crate::block::{BlockFile, ReadContext};
use crate::checksum::Crc32;
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

/// Number of bytes that are read at once.
const PIECE_BYTES: usize = 256 * 1024;

/// The CRC32 of all bytes of a file. Calls `progress` with the number of bytes read.
pub(crate) fn of(file: &BlockFile, cx: &mut ReadContext, progress: &mut dyn FnMut(u64)) -> Result<u32> {
    let mut crc = Crc32::default();
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < file.size() {
        let len = (file.size() - offset).min(PIECE_BYTES as u64);
        let bytes = piece.get_mut(..len as usize).unwrap_or_default();
        file.read_into(offset, bytes, cx)?;
        crc.update(bytes);
        offset += len;
        progress(offset);
    }
    Ok(crc.value())
}
