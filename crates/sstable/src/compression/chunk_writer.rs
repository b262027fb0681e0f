//! Writes Data.db in compressed chunks, each followed by the CRC32 of its stored bytes.
//!
//! Follows Cassandra's `CompressedSequentialWriter`, including its padding of a short last chunk.

use super::effort::Effort;
use super::info::{CHUNK_CRC_BYTES, CompressionInfo};
use crate::checksum::crc32;
use crate::error::{Error, Result};
use crate::sequential_writer::SequentialWriter;
use helenus_model::schema::CompressionParams;

/// Writes a compressed Data.db. Positions count uncompressed bytes.
pub struct ChunkWriter {
    out: SequentialWriter,
    info: CompressionInfo,
    chunk: Vec<u8>,
    // Buffer for the compressed form of one chunk, of the largest size that the compressor may need.
    compressed: Vec<u8>,
    effort: Effort,
}

/// What the other components of the table hold about a finished compressed file.
#[derive(Clone, Debug)]
pub struct CompressedFile {
    /// Content of CompressionInfo.db.
    pub info: CompressionInfo,
    /// Content of Digest.crc32: CRC32 of every byte of Data.db.
    pub digest: u32,
    /// Total size of the chunks in bytes, without their CRCs. The compression ratio is computed from it.
    pub compressed_bytes: u64,
}

impl ChunkWriter {
    /// Writes from the start of a file. Errors: `Unsupported` if `params.class` does not name a compressor or if a
    /// parameter is not supported.
    pub fn new(out: SequentialWriter, params: &CompressionParams) -> Result<ChunkWriter> {
        let info = CompressionInfo::new(params, params.class.as_deref().unwrap_or(""), out.path())?;
        let chunk_bytes = info.chunk_bytes as usize;
        let compressed = vec![0; info.compressor.bound(chunk_bytes)];
        Ok(ChunkWriter {
            out,
            info,
            chunk: Vec::with_capacity(chunk_bytes),
            compressed,
            effort: Effort::default(),
        })
    }

    /// Bytes written so far, before compression.
    pub fn position(&self) -> u64 {
        self.info.data_length + self.chunk.len() as u64
    }

    /// Size of the file so far in bytes, without the chunk that is being filled.
    pub fn stored_bytes(&self) -> u64 {
        self.out.position()
    }

    /// Appends bytes.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        let chunk_bytes = self.info.chunk_bytes as usize;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(chunk_bytes - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if self.chunk.len() == chunk_bytes {
                self.end_chunk()?;
            }
        }
        Ok(())
    }

    /// Ends the last chunk and makes the file durable.
    pub fn finish(mut self) -> Result<CompressedFile> {
        if !self.chunk.is_empty() {
            self.end_chunk()?;
        }
        let finished = self.out.finish()?;
        self.info.stored_length = finished.size;
        let compressed_bytes = finished.size - self.info.chunk_count() * CHUNK_CRC_BYTES;
        Ok(CompressedFile { info: self.info, digest: finished.crc32, compressed_bytes })
    }

    fn end_chunk(&mut self) -> Result<()> {
        self.info.push(self.out.position(), self.out.path())?;
        self.info.data_length += self.chunk.len() as u64;
        let compressed = self.info.compressor.compress(&self.chunk, &mut self.compressed, &mut self.effort);
        let len = compressed.map_err(|source| {
            let source = std::io::Error::other(source);
            Error::Io { file: self.out.path().to_owned(), source }
        })?;
        let max = self.info.max_compressed_bytes as usize;
        let stored = if len < max {
            self.compressed.get(..len).unwrap_or(&[])
        } else {
            // Stored uncompressed. A short chunk is padded to `max`, because readers recognise an uncompressed chunk by
            // its stored length.
            self.chunk.resize(self.chunk.len().max(max), 0);
            &self.chunk
        };
        self.out.write(stored)?;
        self.out.write(&crc32(stored).to_be_bytes())?;
        self.chunk.clear();
        Ok(())
    }
}
