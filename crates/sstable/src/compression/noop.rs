//! Stores chunks uncompressed, but with checksums (Cassandra's `NoopCompressor`).

use super::compressor::CodecError;

pub(super) fn compress(input: &[u8], out: &mut [u8]) -> Result<usize, CodecError> {
    out.get_mut(..input.len()).ok_or(CodecError::OutputTooSmall)?.copy_from_slice(input);
    Ok(input.len())
}

pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    if input.len() != out.len() {
        return Err(CodecError::WrongLength { expected: out.len(), found: input.len() });
    }
    out.copy_from_slice(input);
    Ok(())
}
