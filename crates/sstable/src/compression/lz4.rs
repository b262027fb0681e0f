//! Compresses each chunk as an LZ4 block after its decoded length in four bytes, little endian (Cassandra's
//! `LZ4Compressor`).
//!
//! `lz4_compressor_type: high` only makes Cassandra search longer; the format is the same. Helenus always writes the
//! fast form.

use super::compressor::CodecError;
use super::effort::Effort;

/// Bytes of the decoded length.
const PREFIX_BYTES: usize = 4;

/// The most bytes that `compress` writes for `len` bytes.
pub(super) fn bound(len: usize) -> usize {
    PREFIX_BYTES + lzzzz::lz4::max_compressed_size(len)
}

pub(super) fn compress(input: &[u8], out: &mut [u8], effort: &mut Effort) -> Result<usize, CodecError> {
    let Some((prefix, rest)) = out.split_first_chunk_mut::<PREFIX_BYTES>() else {
        return Err(CodecError::OutputTooSmall);
    };
    *prefix = (input.len() as u32).to_le_bytes();
    if input.is_empty() {
        // A token without literals, because the library writes nothing for empty input.
        *rest.first_mut().ok_or(CodecError::OutputTooSmall)? = 0;
        return Ok(PREFIX_BYTES + 1);
    }
    let written = lzzzz::lz4::compress(input, rest, effort.acceleration());
    let written = written.map_err(|_| CodecError::OutputTooSmall)?;
    effort.learn(input.len(), written);
    Ok(PREFIX_BYTES + written)
}

pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    let block = declaring(input, out.len())?;
    let found = lzzzz::lz4::decompress(block, out).map_err(|_| CodecError::Malformed)?;
    if found != out.len() {
        return Err(CodecError::WrongLength { expected: out.len(), found });
    }
    Ok(())
}

/// Decompresses the first `out.len()` bytes of a chunk of `whole` bytes. The rest of the chunk is not checked.
pub(super) fn decompress_partial(input: &[u8], whole: usize, out: &mut [u8]) -> Result<(), CodecError> {
    let block = declaring(input, whole)?;
    let wanted = out.len();
    let found = lzzzz::lz4::decompress_partial(block, out, wanted).map_err(|_| CodecError::Malformed)?;
    if found != wanted {
        return Err(CodecError::WrongLength { expected: wanted, found });
    }
    Ok(())
}

/// The block after the prefix, if the prefix declares `whole` bytes.
fn declaring(input: &[u8], whole: usize) -> Result<&[u8], CodecError> {
    let Some((prefix, block)) = input.split_first_chunk::<PREFIX_BYTES>() else {
        return Err(CodecError::Malformed);
    };
    let declared = u32::from_le_bytes(*prefix) as usize;
    if declared != whole {
        return Err(CodecError::WrongLength { expected: whole, found: declared });
    }
    Ok(block)
}
