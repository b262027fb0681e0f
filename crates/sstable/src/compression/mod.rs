//! Reads and writes Data.db in blocks: compressed chunks with their CRC32, or 16 KiB blocks of an uncompressed file
//! with CRC.db.
//!
//! Rows are written through `DataWriter` and read through `DataBlocks`; only this module knows whether a file is
//! compressed. Each compressor has its own file. A new one needs a file, a variant of `Compressor` and five lines
//! there.
//!
//! Partial decompression: `partial` stops after the bytes that a read needs.

mod blocks;
mod chunk_writer;
mod compressor;
mod data_blocks;
mod data_writer;
mod deflate;
mod dictionary;
mod effort;
mod info;
mod lz4;
mod noop;
mod offsets;
mod partial;
mod plain;
mod recovery;
mod snappy;
mod zstd;

pub use blocks::CompressedBlocks;
pub use chunk_writer::{ChunkWriter, CompressedFile};
pub use compressor::{CodecError, Compressor};
pub use data_blocks::{DataBlocks, WHOLE};
pub use data_writer::{DataWriter, WrittenData};
pub use dictionary::Dictionary;
pub use effort::Effort;
pub use info::{Chunk, CompressionInfo};
pub use plain::{BlockCrcs, PLAIN_BLOCK_BYTES, PlainBlocks, PlainFile, PlainWriter};
pub(crate) use recovery::{recovered, unreadable_chunks};
