//! The end of a data file being written, whether compressed or not.

use super::chunk_writer::{ChunkWriter, CompressedFile};
use super::plain::{PlainFile, PlainWriter};
use crate::error::Result;
use crate::sequential_writer::SequentialWriter;
use helenus_model::schema::CompressionParams;

/// Writes Data.db. Positions are those of the data before compression, as the index holds them.
pub enum DataWriter {
    /// Compressed chunks.
    Compressed(ChunkWriter),
    /// As it is.
    Plain(PlainWriter),
}

/// What a finished data file needs beside it.
#[derive(Clone, Debug)]
pub enum WrittenData {
    /// CompressionInfo.db and Digest.crc32.
    Compressed(CompressedFile),
    /// CRC.db and Digest.crc32.
    Plain(PlainFile),
}

impl DataWriter {
    /// Writes from the start of a file, compressed as the parameters say. `Unsupported` for parameters not handled.
    /// The file needs no page checksums: chunks and blocks have their own.
    pub fn new(out: SequentialWriter, params: &CompressionParams) -> Result<DataWriter> {
        Ok(match &params.class {
            Some(_) => DataWriter::Compressed(ChunkWriter::new(out, params)?),
            None => DataWriter::Plain(PlainWriter::new(out)),
        })
    }

    /// Bytes of data written so far.
    pub fn position(&self) -> u64 {
        match self {
            DataWriter::Compressed(writer) => writer.position(),
            DataWriter::Plain(writer) => writer.position(),
        }
    }

    /// Bytes of the file so far, about.
    pub fn stored_bytes(&self) -> u64 {
        match self {
            DataWriter::Compressed(writer) => writer.stored_bytes(),
            DataWriter::Plain(writer) => writer.position(),
        }
    }

    /// Says that reads begin at the place of what is written next.
    pub fn mark(&mut self) {
        match self {
            DataWriter::Compressed(writer) => writer.mark(),
            DataWriter::Plain(_) => {}
        }
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            DataWriter::Compressed(writer) => writer.write(bytes),
            DataWriter::Plain(writer) => writer.write(bytes),
        }
    }

    /// Writes what is left and makes the file durable (its name is not: sync the folder).
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

    /// Bytes of Data.db.
    pub fn stored_bytes(&self) -> u64 {
        match self {
            WrittenData::Compressed(file) => file.info.stored_length,
            WrittenData::Plain(file) => file.size,
        }
    }

    /// Bytes of the data before compression.
    pub fn data_bytes(&self) -> u64 {
        match self {
            WrittenData::Compressed(file) => file.info.data_length,
            WrittenData::Plain(file) => file.size,
        }
    }

    /// Compressed over uncompressed size for Statistics.db; -1 for an uncompressed file, as Cassandra has it.
    pub fn compression_ratio(&self) -> f64 {
        match self {
            WrittenData::Compressed(file) => file.compressed_bytes as f64 / file.info.data_length as f64,
            WrittenData::Plain(_) => -1.0,
        }
    }
}
