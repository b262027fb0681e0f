//! Writes Data.db in compressed chunks, each followed by the CRC32 of its stored bytes.
//!
//! Chunks compress straight into the buffer of the file's end: no copy between. Follows Cassandra's
//! `CompressedSequentialWriter`, its padding of a short last chunk included.

use super::appender::Appender;
use super::info::CompressionInfo;
use crate::checksum::crc32;
use crate::error::Result;
use helenus_host::File;
use helenus_model::schema::CompressionParams;
use std::path::Path;
use std::sync::Arc;

/// A writer of chunks. Positions are those of the uncompressed bytes.
pub struct ChunkWriter {
    out: Appender,
    info: CompressionInfo,
    chunk: Vec<u8>,
}

/// What a finished compressed file needs beside it.
#[derive(Clone, Debug)]
pub struct CompressedFile {
    /// Content of CompressionInfo.db.
    pub info: CompressionInfo,
    /// Content of Digest.crc32: CRC32 of every byte of Data.db.
    pub digest: u32,
    /// Bytes of the chunks without their CRCs, as the compression ratio counts them.
    pub compressed_bytes: u64,
}

impl ChunkWriter {
    /// Writes into an empty file. `params.class` must name a compressor; else and for unsupported parameters
    /// `Unsupported`.
    pub fn new(file: Arc<dyn File>, path: &Path, params: &CompressionParams) -> Result<ChunkWriter> {
        let class = params.class.as_deref().unwrap_or("");
        let info = CompressionInfo::new(params, class, path)?;
        let chunk = Vec::with_capacity(info.chunk_bytes as usize);
        Ok(ChunkWriter { out: Appender::new(file, path), info, chunk })
    }

    /// Bytes written so far, before compression.
    pub fn position(&self) -> u64 {
        self.info.data_length + self.chunk.len() as u64
    }

    /// Bytes of the file so far, without the chunk that is being filled.
    pub fn stored_bytes(&self) -> u64 {
        self.out.size()
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
        let (size, digest) = self.out.finish()?;
        self.info.stored_length = size;
        let compressed_bytes = size - self.info.chunk_count() * super::info::CHUNK_CRC_BYTES;
        Ok(CompressedFile { info: self.info, digest, compressed_bytes })
    }

    fn end_chunk(&mut self) -> Result<()> {
        let (compressor, chunk) = (self.info.compressor, &self.chunk);
        self.info.push(self.out.size(), self.out.path())?;
        let compressed =
            self.out.append_with(compressor.bound(chunk.len()), |room| compressor.compress(chunk, room));
        let mut stored = compressed.map_err(|source| self.out.io(std::io::Error::other(source)))?;
        let max = self.info.max_compressed_bytes as usize;
        if stored >= max {
            // Stored as it is; a short one is padded, for its stored length tells that it is not compressed.
            self.out.take_back(stored);
            self.out.append(chunk);
            stored = chunk.len().max(max);
            self.out.pad(stored - chunk.len());
        }
        let crc = crc32(self.out.tail(stored));
        self.info.data_length += chunk.len() as u64;
        self.chunk.clear();
        self.out.append(&crc.to_be_bytes());
        self.out.write_if_full()
    }
}
