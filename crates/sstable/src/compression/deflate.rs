//! Compresses each chunk as a zlib stream at zlib's default level (Cassandra's `DeflateCompressor`).

use super::compressor::CodecError;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::cell::RefCell;

thread_local! {
    static DEFLATER: RefCell<Compress> = RefCell::new(Compress::new(Compression::default(), true));
    static INFLATER: RefCell<Decompress> = RefCell::new(Decompress::new(true));
}

/// The most bytes that `compress` writes for `len` bytes: the larger of zlib's `deflateBound` for any level and window,
/// which holds for zlib-rs too (an eighth and a bit for level 0 and fixed blocks).
pub(super) fn bound(len: usize) -> usize {
    len + len.div_ceil(8) + len.div_ceil(64) + 64
}

pub(super) fn compress(input: &[u8], out: &mut [u8]) -> Result<usize, CodecError> {
    DEFLATER.with_borrow_mut(|deflater| {
        deflater.reset();
        match deflater.compress(input, out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => Ok(deflater.total_out() as usize),
            _ => Err(CodecError::OutputTooSmall),
        }
    })
}

pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    INFLATER.with_borrow_mut(|inflater| {
        inflater.reset(true);
        match inflater.decompress(input, out, FlushDecompress::Finish) {
            Ok(Status::StreamEnd) => {}
            _ => return Err(CodecError::Malformed),
        }
        let found = inflater.total_out() as usize;
        if found != out.len() {
            return Err(CodecError::WrongLength { expected: out.len(), found });
        }
        Ok(())
    })
}
