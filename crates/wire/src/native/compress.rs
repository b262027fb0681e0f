//! Compresses the bodies of envelopes in v3 and v4 (v5 compresses segments instead).
//!
//! LZ4 bodies begin with the uncompressed length in big endian, unlike Cassandra's chunks on disk. Snappy bodies
//! contain their own length (Cassandra's `transport.Compressor`). Once a client has asked for compression, Cassandra
//! compresses every response, including the READY to that STARTUP.

use crate::WireError;

use super::{Envelope, Flags, Version};

/// The most bytes that one byte of LZ4 can add to the output (a length byte of 255).
const LZ4_MAX_RATIO: u64 = 255;
/// The same for Snappy: a copy of 64 bytes in 3, rounded up.
const SNAPPY_MAX_RATIO: u64 = 32;

/// A buffer of at most this size is kept for the next body.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// A compression that a client may ask for in STARTUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// LZ4 block format, in all versions.
    Lz4,
    /// Snappy, in v3 and v4.
    Snappy,
}

impl Compression {
    /// The names in the COMPRESSION list of SUPPORTED, in Cassandra's order.
    pub const SUPPORTED: [&str; 2] = ["snappy", "lz4"];

    /// Parses the COMPRESSION of a STARTUP, for a connection of `version`.
    pub fn from_name(name: &str, version: Version) -> Result<Compression, WireError> {
        if name.eq_ignore_ascii_case("lz4") {
            Ok(Compression::Lz4)
        } else if !name.eq_ignore_ascii_case("snappy") {
            Err(WireError::UnknownCompression { name: name.to_ascii_lowercase() })
        } else if version >= Version::V5 {
            Err(WireError::SnappyInV5)
        } else {
            Ok(Compression::Snappy)
        }
    }
}

/// Compresses and decompresses the bodies of a connection. Its buffer is reused.
#[derive(Debug)]
pub struct BodyCodec {
    compression: Compression,
    snappy: snap::raw::Encoder,
    buffer: Vec<u8>,
}

impl BodyCodec {
    /// A codec for connections with `compression`.
    pub fn new(compression: Compression) -> Self {
        BodyCodec { compression, snappy: snap::raw::Encoder::new(), buffer: Vec::new() }
    }

    /// The stated length of the envelope's body after decompression; `None` if it is not compressed.
    #[must_use]
    pub fn decompressed_length(compression: Compression, envelope: &Envelope<'_>) -> Option<u64> {
        if !envelope.header.flags.has(Flags::COMPRESSED) || envelope.header.version >= Version::V5 {
            return None;
        }
        match compression {
            Compression::Lz4 => {
                envelope.body.first_chunk::<4>().map(|length| u64::from(u32::from_be_bytes(*length)))
            }
            Compression::Snappy => snap::raw::decompress_len(envelope.body).ok().map(|length| length as u64),
        }
    }

    /// Frees a buffer that is larger than usual bodies need.
    pub fn trim(&mut self) {
        if self.buffer.capacity() > KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
    }

    /// Returns the body of `envelope`, decompressed if its flag says so. `max` limits the decompressed length, in
    /// bytes. Before anything is allocated, the length is also compared with the most that the compressed bytes could
    /// give.
    pub fn decompress<'a>(&'a mut self, envelope: &Envelope<'a>, max: u64) -> Result<&'a [u8], WireError> {
        if !envelope.header.flags.has(Flags::COMPRESSED) || envelope.header.version >= Version::V5 {
            return Ok(envelope.body);
        }
        match self.compression {
            Compression::Lz4 => self.decompress_lz4(envelope.body, max),
            Compression::Snappy => self.decompress_snappy(envelope.body, max),
        }
    }

    fn decompress_lz4(&mut self, body: &[u8], max: u64) -> Result<&[u8], WireError> {
        let Some((prefix, compressed)) = body.split_first_chunk::<4>() else {
            return Err(WireError::NotLz4 { announced: 0, compressed: body.len() as u64 });
        };
        let announced = u64::from(u32::from_be_bytes(*prefix));
        let wrong = WireError::NotLz4 { announced, compressed: compressed.len() as u64 };
        if announced > max {
            return Err(WireError::UnfoldsTooBig { length: announced, max });
        }
        if announced > compressed.len() as u64 * LZ4_MAX_RATIO {
            return Err(wrong);
        }
        let output = sized(&mut self.buffer, announced as usize);
        match lz4_flex::block::decompress_into(compressed, output) {
            Ok(length) if length as u64 == announced => Ok(output),
            _ => Err(wrong),
        }
    }

    fn decompress_snappy(&mut self, body: &[u8], max: u64) -> Result<&[u8], WireError> {
        let announced = snap::raw::decompress_len(body).map_err(|_| WireError::NotSnappy)? as u64;
        if announced > max {
            return Err(WireError::UnfoldsTooBig { length: announced, max });
        }
        if announced > body.len() as u64 * SNAPPY_MAX_RATIO {
            return Err(WireError::NotSnappy);
        }
        let output = sized(&mut self.buffer, announced as usize);
        match snap::raw::Decoder::new().decompress(body, output) {
            Ok(length) if length as u64 == announced => Ok(output),
            _ => Err(WireError::NotSnappy),
        }
    }

    /// The most bytes that a body of `length` bytes may have while it is compressed.
    #[must_use]
    pub fn compressed_bytes_max(&self, length: usize) -> usize {
        match self.compression {
            Compression::Lz4 => 4 + lz4_flex::block::get_maximum_output_size(length),
            Compression::Snappy => snap::raw::max_compress_len(length),
        }
    }

    /// The bytes that the codec's buffer takes in addition while it compresses a body of `length` bytes.
    #[must_use]
    pub fn bytes_to_compress(&self, length: usize) -> usize {
        let needed = self.compressed_bytes_max(length);
        if needed > self.buffer.capacity() { needed } else { 0 }
    }

    /// Replaces the bytes of `out` from `from` on by their compressed form.
    pub(crate) fn compress_tail(&mut self, out: &mut Vec<u8>, from: usize) -> Result<(), WireError> {
        let body = out.get(from..).unwrap_or_default();
        let too_long = WireError::TooMany {
            count: body.len() as u64,
            max: u64::from(u32::MAX),
            of: "bytes of a body to compress",
        };
        let Ok(length) = u32::try_from(body.len()) else { return Err(too_long) };
        let longest = self.compressed_bytes_max(body.len());
        let buffer = sized(&mut self.buffer, longest);
        let folded = match self.compression {
            Compression::Lz4 => {
                let Some((prefix, output)) = buffer.split_first_chunk_mut::<4>() else {
                    return Err(too_long);
                };
                *prefix = length.to_be_bytes();
                let written = lz4_flex::block::compress_into(body, output).map_err(|_| too_long)?;
                4 + written
            }
            Compression::Snappy => self.snappy.compress(body, buffer).map_err(|_| too_long)?,
        };
        out.truncate(from);
        // Not by doubling, where it has become longer.
        out.reserve_exact(folded);
        out.extend_from_slice(self.buffer.get(..folded).unwrap_or_default());
        Ok(())
    }
}

/// The first `length` bytes of a buffer. The buffer never shrinks, so that it is zeroed only once.
pub(super) fn sized(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if buffer.len() < length {
        if buffer.capacity() < length && length > KEPT_BYTES_MAX {
            // What it holds is not needed any more, and must not exist beside the new bytes.
            *buffer = Vec::with_capacity(length);
        }
        buffer.resize(length, 0);
    }
    buffer.get_mut(..length).unwrap_or_default()
}
