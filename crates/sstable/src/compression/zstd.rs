//! Compresses each chunk as a Zstandard frame with content checksum (Cassandra's `ZstdCompressor`).

use super::compressor::CodecError;
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// The level that Cassandra uses when the table names none.
pub(super) const LEVEL_DEFAULT: i32 = 3;

thread_local! {
    // A context takes hundreds of KiB, so each thread keeps one. A table of another level replaces it.
    static COMPRESSOR: RefCell<Option<(i32, Compressor<'static>)>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Whether `level` is a valid level of zstd.
pub(super) fn is_level(level: i32) -> bool {
    zstd::compression_level_range().contains(&level)
}

/// The most bytes that `compress` writes for `len` bytes.
pub(super) fn bound(len: usize) -> usize {
    zstd::zstd_safe::compress_bound(len)
}

pub(super) fn compress(level: i32, input: &[u8], out: &mut [u8]) -> Result<usize, CodecError> {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(kept_level, _)| *kept_level != level) {
            let mut made = Compressor::new(level).map_err(|_| CodecError::OutOfMemory)?;
            made.include_checksum(true).map_err(|_| CodecError::OutOfMemory)?;
            *kept = Some((level, made));
        }
        let Some((_, compressor)) = kept else { return Err(CodecError::OutOfMemory) };
        compressor.compress_to_buffer(input, out).map_err(|_| CodecError::OutputTooSmall)
    })
}

pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    let found = DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Some(Decompressor::new().map_err(|_| CodecError::OutOfMemory)?);
        }
        let Some(decompressor) = kept else { return Err(CodecError::OutOfMemory) };
        decompressor.decompress_to_buffer(input, out).map_err(|_| CodecError::Malformed)
    })?;
    if found != out.len() {
        return Err(CodecError::WrongLength { expected: out.len(), found });
    }
    Ok(())
}
