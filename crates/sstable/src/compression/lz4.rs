//! LZ4 blocks behind the decoded length, four bytes little endian (Cassandra's `LZ4Compressor`).
//!
//! `lz4_compressor_type: high` differs only in effort: what it writes is read alike, and what is written here is
//! always the fast form.

use super::compressor::CodecError;

const PREFIX_BYTES: usize = 4;

/// Most bytes that `compress` appends for `len` bytes.
pub(super) fn bound(len: usize) -> usize {
    PREFIX_BYTES + lz4_flex::block::get_maximum_output_size(len)
}

pub(super) fn compress(input: &[u8], out: &mut [u8]) -> Result<usize, CodecError> {
    let Some((prefix, rest)) = out.split_first_chunk_mut::<PREFIX_BYTES>() else {
        return Err(CodecError::OutputTooSmall);
    };
    *prefix = (input.len() as u32).to_le_bytes();
    let written = lz4_flex::block::compress_into(input, rest).map_err(|_| CodecError::OutputTooSmall)?;
    Ok(PREFIX_BYTES + written)
}

pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    let Some((prefix, rest)) = input.split_first_chunk::<PREFIX_BYTES>() else {
        return Err(CodecError::Malformed);
    };
    let declared = u32::from_le_bytes(*prefix) as usize;
    if declared != out.len() {
        return Err(CodecError::WrongLength { expected: out.len(), found: declared });
    }
    let found = lz4_flex::block::decompress_into(rest, out).map_err(|_| CodecError::Malformed)?;
    if found != out.len() {
        return Err(CodecError::WrongLength { expected: out.len(), found });
    }
    Ok(())
}
