//! Compresses and decompresses single chunks with the compressor that a Cassandra class name stands for.

use super::effort::Effort;
use super::{deflate, lz4, noop, snappy, zstd};
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// A compressor with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    /// `LZ4Compressor`.
    Lz4,
    /// `SnappyCompressor`.
    Snappy,
    /// `DeflateCompressor`.
    Deflate,
    /// `ZstdCompressor`.
    Zstd {
        /// Its `compression_level`.
        level: i32,
    },
    /// `NoopCompressor`: chunks and checksums, bytes as they are.
    Noop,
}

/// Why a chunk could not be compressed or decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The compressed form does not fit: the caller's buffer is smaller than `Compressor::bound`.
    #[error("the output buffer is too small")]
    OutputTooSmall,
    /// The compressor's context could not be allocated.
    #[error("no memory for the compressor's context")]
    OutOfMemory,
    /// The bytes are not a compressed form that the compressor writes.
    #[error("the chunk does not decompress")]
    Malformed,
    /// The bytes decompress to another length than the chunk's.
    #[error("the chunk decompresses to {found} bytes instead of {expected}")]
    WrongLength {
        /// Length the chunk must have.
        expected: usize,
        /// Length to which it decompresses.
        found: usize,
    },
}

impl Compressor {
    /// The compressor for a class name, short or full, and its options. Errors, which name `file`: `Unsupported` for
    /// another class or an option value that Cassandra refuses.
    pub fn of(class: &str, options: &BTreeMap<String, String>, file: &Path) -> Result<Compressor> {
        let unsupported = |what: String| Error::Unsupported { file: file.to_owned(), what };
        let short = class.strip_prefix("org.apache.cassandra.io.compress.").unwrap_or(class);
        match short {
            "LZ4Compressor" => Ok(Compressor::Lz4),
            "SnappyCompressor" => Ok(Compressor::Snappy),
            "DeflateCompressor" => Ok(Compressor::Deflate),
            "NoopCompressor" => Ok(Compressor::Noop),
            "ZstdCompressor" | "ZstdDictionaryCompressor" => {
                let level = match options.get("compression_level") {
                    None => Some(zstd::LEVEL_DEFAULT),
                    Some(text) => text.parse().ok().filter(|level| zstd::is_level(*level)),
                };
                let level =
                    level.ok_or_else(|| unsupported("compression_level is no level of zstd".to_owned()))?;
                Ok(Compressor::Zstd { level })
            }
            _ => Err(unsupported(format!(
                "compressor {class} is not supported; LZ4, Snappy, Deflate, Zstd and Noop are"
            ))),
        }
    }

    /// The short class name, as it is stored in files.
    pub fn class_name(self) -> &'static str {
        match self {
            Compressor::Lz4 => "LZ4Compressor",
            Compressor::Snappy => "SnappyCompressor",
            Compressor::Deflate => "DeflateCompressor",
            Compressor::Zstd { .. } => "ZstdCompressor",
            Compressor::Noop => "NoopCompressor",
        }
    }

    /// The most bytes that the compressed form of `len` bytes can take.
    pub fn bound(self, len: usize) -> usize {
        match self {
            Compressor::Lz4 => lz4::bound(len),
            Compressor::Snappy => snappy::bound(len),
            Compressor::Deflate => deflate::bound(len),
            Compressor::Zstd { .. } => zstd::bound(len),
            Compressor::Noop => len,
        }
    }

    /// Compresses a chunk into the start of `out`, which has at least `bound` bytes, and returns the length written.
    /// `effort` comes from the chunks before it and is updated.
    pub fn compress(
        self,
        input: &[u8],
        out: &mut [u8],
        effort: &mut Effort,
    ) -> std::result::Result<usize, CodecError> {
        match self {
            Compressor::Lz4 => lz4::compress(input, out, effort),
            Compressor::Snappy => snappy::compress(input, out),
            Compressor::Deflate => deflate::compress(input, out),
            Compressor::Zstd { level } => zstd::compress(level, input, out),
            Compressor::Noop => noop::compress(input, out),
        }
    }

    /// Whether `decompress_partial` does less than `decompress`.
    pub fn decompresses_partially(self) -> bool {
        matches!(self, Compressor::Lz4)
    }

    /// Decompresses the first `out.len()` bytes of a chunk of `whole` bytes. Without partial decompression
    /// (`decompresses_partially`) `out` must take the whole chunk.
    pub fn decompress_partial(
        self,
        input: &[u8],
        whole: usize,
        out: &mut [u8],
    ) -> std::result::Result<(), CodecError> {
        match self {
            Compressor::Lz4 if out.len() < whole => lz4::decompress_partial(input, whole, out),
            _ => self.decompress(input, out),
        }
    }

    /// Decompresses a chunk that fills `out` exactly.
    pub fn decompress(self, input: &[u8], out: &mut [u8]) -> std::result::Result<(), CodecError> {
        match self {
            Compressor::Lz4 => lz4::decompress(input, out),
            Compressor::Snappy => snappy::decompress(input, out),
            Compressor::Deflate => deflate::decompress(input, out),
            Compressor::Zstd { .. } => zstd::decompress(input, out),
            Compressor::Noop => noop::decompress(input, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Compressor; 5] = [
        Compressor::Lz4,
        Compressor::Snappy,
        Compressor::Deflate,
        Compressor::Zstd { level: 3 },
        Compressor::Noop,
    ];

    fn samples() -> Vec<Vec<u8>> {
        let mut state = 1_u64;
        let mut noise = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        let random: Vec<u8> = (0..16384).map(|_| noise()).collect();
        let text: Vec<u8> = b"the quick brown fox ".iter().copied().cycle().take(16384).collect();
        vec![vec![], vec![0], vec![7; 16384], text, random]
    }

    #[test]
    fn every_compressor_gives_back_what_it_took() {
        for compressor in ALL {
            // The last sample is compressed twice, because it does not shrink and so changes the effort.
            let mut effort = Effort::default();
            for sample in samples().into_iter().chain(samples().pop()) {
                let mut packed = vec![0; compressor.bound(sample.len())];
                let len = compressor.compress(&sample, &mut packed, &mut effort).unwrap();
                let mut out = vec![0; sample.len()];
                compressor.decompress(&packed[..len], &mut out).unwrap();
                assert_eq!(out, sample, "{compressor:?}");
                let fronts = (1..=sample.len()).step_by(97).filter(|_| compressor.decompresses_partially());
                for front in fronts.chain([sample.len()]) {
                    let mut out = vec![0; front];
                    compressor.decompress_partial(&packed[..len], sample.len(), &mut out).unwrap();
                    assert_eq!(out, sample[..front], "{compressor:?}");
                }
            }
        }
    }

    #[test]
    fn a_chunk_of_another_length_is_refused() {
        for compressor in ALL {
            let sample = vec![7; 1000];
            let mut packed = vec![0; compressor.bound(sample.len())];
            let len = compressor.compress(&sample, &mut packed, &mut Effort::default()).unwrap();
            for wrong in [0, 999, 1001] {
                assert!(
                    compressor.decompress(&packed[..len], &mut vec![0; wrong]).is_err(),
                    "{compressor:?}"
                );
            }
            assert!(compressor.decompress(&packed[..len / 2], &mut vec![0; 1000]).is_err());
            assert!(compressor.decompress(&[], &mut vec![0; 1000]).is_err());
            if compressor.decompresses_partially() {
                assert!(compressor.decompress_partial(&packed[..len], 1001, &mut [0; 10]).is_err());
                assert!(compressor.decompress_partial(&[], 1000, &mut [0; 10]).is_err());
                assert!(compressor.decompress_partial(&packed[..len - 6], 1000, &mut vec![0; 999]).is_err());
            }
        }
    }

    #[test]
    fn an_unknown_class_is_refused_by_name() {
        let refused = Compressor::of("BrotliCompressor", &BTreeMap::new(), Path::new("t")).unwrap_err();
        assert!(refused.to_string().contains("BrotliCompressor"));
        let options = BTreeMap::from([("compression_level".to_owned(), "99".to_owned())]);
        assert!(Compressor::of("ZstdCompressor", &options, Path::new("t")).is_err());
    }
}
