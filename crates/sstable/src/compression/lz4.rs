//! LZ4 blocks behind the decoded length, four bytes little endian (Cassandra's `LZ4Compressor`).
//!
//! `lz4_compressor_type: high` differs only in effort: what it writes is read alike, and what is written here is
//! always the fast form.

use super::compressor::CodecError;
use super::effort::Effort;
use super::pieces;

/// Bytes of the decoded length.
pub(super) const PREFIX_BYTES: usize = 4;

/// Most bytes that `compress` appends for `len` bytes.
pub(super) fn bound(len: usize) -> usize {
    PREFIX_BYTES + lzzzz::lz4::max_compressed_size(len)
}

pub(super) fn compress(input: &[u8], out: &mut [u8], effort: &mut Effort) -> Result<usize, CodecError> {
    let Some((prefix, rest)) = out.split_first_chunk_mut::<PREFIX_BYTES>() else {
        return Err(CodecError::OutputTooSmall);
    };
    *prefix = (input.len() as u32).to_le_bytes();
    if input.is_empty() {
        // A token without literals; the library writes nothing.
        *rest.first_mut().ok_or(CodecError::OutputTooSmall)? = 0;
        return Ok(PREFIX_BYTES + 1);
    }
    let written = lzzzz::lz4::compress(input, rest, effort.acceleration());
    let written = written.map_err(|_| CodecError::OutputTooSmall)?;
    effort.learn(input.len(), written);
    Ok(PREFIX_BYTES + written)
}

/// Compresses a chunk so that what begins at `starts` can be decompressed by itself. `None` where that does not fit.
pub(super) fn compress_pieces(
    input: &[u8],
    starts: &[usize],
    out: &mut [u8],
    memory: &mut Vec<u8>,
) -> Result<Option<usize>, CodecError> {
    let Some((prefix, rest)) = out.split_first_chunk_mut::<PREFIX_BYTES>() else {
        return Err(CodecError::OutputTooSmall);
    };
    *prefix = (input.len() as u32).to_le_bytes();
    Ok(pieces::compress(input, starts, rest, memory)?.map(|written| PREFIX_BYTES + written))
}

pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    let block = declaring(input, out.len())?;
    let found = lzzzz::lz4::decompress(block, out).map_err(|_| CodecError::Malformed)?;
    if found != out.len() {
        return Err(CodecError::WrongLength { expected: out.len(), found });
    }
    Ok(())
}

/// The front of a chunk of `whole` bytes, as much of it as `out` takes. What is behind it is not looked at.
pub(super) fn decompress_front(input: &[u8], whole: usize, out: &mut [u8]) -> Result<(), CodecError> {
    decompress_from(declaring(input, whole)?, out)
}

/// As much as `out` takes of what begins with the sequences of `block`, behind which there are bytes to spare: any, the last of them 0.
/// Nothing outside of it is read.
pub(super) fn decompress_from(block: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    let wanted = out.len();
    let found = lzzzz::lz4::decompress_partial(block, out, wanted).map_err(|_| CodecError::Malformed)?;
    if found != wanted {
        return Err(CodecError::WrongLength { expected: wanted, found });
    }
    Ok(())
}

/// The block behind a prefix that says `whole`.
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
