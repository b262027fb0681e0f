//! Compresses each chunk as a Snappy block without framing (Cassandra's `SnappyCompressor`).

use super::compressor::CodecError;
use std::cell::RefCell;

thread_local! {
    // The encoder owns a hash table of up to 32 KiB, so each thread keeps one instead of making one for each chunk.
    static ENCODER: RefCell<snap::raw::Encoder> = RefCell::new(snap::raw::Encoder::new());
}

/// The most bytes that `compress` writes for `len` bytes.
pub(super) fn bound(len: usize) -> usize {
    snap::raw::max_compress_len(len)
}

pub(super) fn compress(input: &[u8], out: &mut [u8]) -> Result<usize, CodecError> {
    ENCODER.with_borrow_mut(|encoder| encoder.compress(input, out)).map_err(|_| CodecError::OutputTooSmall)
}

pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    let declared = snap::raw::decompress_len(input).map_err(|_| CodecError::Malformed)?;
    if declared != out.len() {
        return Err(CodecError::WrongLength { expected: out.len(), found: declared });
    }
    snap::raw::Decoder::new().decompress(input, out).map_err(|_| CodecError::Malformed)?;
    Ok(())
}
