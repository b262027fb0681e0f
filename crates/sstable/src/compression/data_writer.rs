//! Appends to a data file, compressed or not.

use super::chunk_writer::{ChunkWriter, CompressedFile};
use super::info::CompressionInfo;
use super::plain::{PlainFile, PlainWriter};
use crate::error::{Error, Result};
use crate::sequential_writer::SequentialWriter;
use helenus_model::schema::CompressionParams;
use std::path::Path;

/// Writes Data.db. Positions count bytes before compression, as in the index.
pub enum DataWriter {
    /// Compressed chunks.
    Compressed(ChunkWriter),
    /// Uncompressed.
    Plain(PlainWriter),
}

/// What the other components of the table hold about a finished data file.
#[derive(Clone, Debug)]
pub enum WrittenData {
    /// CompressionInfo.db and Digest.crc32.
    Compressed(CompressedFile),
    /// CRC.db and Digest.crc32.
    Plain(PlainFile),
}

impl DataWriter {
    /// Writes from the start of a file, compressed by the parameters. Errors: `Unsupported` for parameters that are not
    /// supported. The file needs no page checksums, because chunks and blocks have their own.
    pub fn new(out: SequentialWriter, params: &CompressionParams) -> Result<DataWriter> {
        Ok(match &params.class {
            Some(_) => DataWriter::Compressed(ChunkWriter::new(out, params)?),
            None => DataWriter::Plain(PlainWriter::new(out)),
        })
    }

    /// Why data cannot be written with these parameters; `None` if it can.
    pub fn refusal(params: &CompressionParams) -> Option<String> {
        match CompressionInfo::new(params, params.class.as_deref()?, Path::new("")) {
            Err(Error::Unsupported { what, .. }) => Some(what),
            _ => None,
        }
    }

    /// Bytes of data written so far, before compression.
    pub fn position(&self) -> u64 {
        match self {
            DataWriter::Compressed(writer) => writer.position(),
            DataWriter::Plain(writer) => writer.position(),
        }
    }

    /// Size of the file so far in bytes, without the chunk that is being filled.
    pub fn stored_bytes(&self) -> u64 {
        match self {
            DataWriter::Compressed(writer) => writer.stored_bytes(),
            DataWriter::Plain(writer) => writer.position(),
        }
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            DataWriter::Compressed(writer) => writer.write(bytes),
            DataWriter::Plain(writer) => writer.write(bytes),
        }
    }

    /// Writes the rest and makes the file durable. Its name is durable only after the folder is synced.
    pub fn finish(self) -> Result<WrittenData> {
        Ok(match self {
            DataWriter::Compressed(writer) => WrittenData::Compressed(writer.finish()?),
            DataWriter::Plain(writer) => WrittenData::Plain(writer.finish()?),
        })
    }
}

impl WrittenData {
    /// Content of Digest.crc32.
    pub fn digest(&self) -> u32 {
        match self {
            WrittenData::Compressed(file) => file.digest,
            WrittenData::Plain(file) => file.digest,
        }
    }

    /// Size of Data.db in bytes.
    pub fn stored_bytes(&self) -> u64 {
        match self {
            WrittenData::Compressed(file) => file.info.stored_length,
            WrittenData::Plain(file) => file.size,
        }
    }

    /// Size of the data in bytes before compression.
    pub fn data_bytes(&self) -> u64 {
        match self {
            WrittenData::Compressed(file) => file.info.data_length,
            WrittenData::Plain(file) => file.size,
        }
    }

    /// Compressed divided by uncompressed size, for Statistics.db; -1 for an uncompressed file, as in Cassandra.
    pub fn compression_ratio(&self) -> f64 {
        match self {
            WrittenData::Compressed(file) => file.compressed_bytes as f64 / file.info.data_length as f64,
            WrittenData::Plain(_) => -1.0,
        }
    }
}
