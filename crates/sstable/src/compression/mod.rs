//! Data.db in blocks: compression chunks with their CRC32, or 16 KiB blocks of an uncompressed file with CRC.db.
//!
//! `DataWriter` and `DataBlocks` are what the writer and reader of rows use; which of the two kinds a file is stands
//! only here. A compressor is a file; a new one is a file, a variant of `Compressor` and its five lines there.
//!
//! What a read is spared of a chunk: `fronts` end where it does; `pieces` begin where it does too, in files written here
//! (`piecework` makes them, `known_pieces` remembers where they are).

mod blocks;
mod chunk_writer;
mod compressor;
mod data_blocks;
mod data_writer;
mod deflate;
mod dictionary;
mod effort;
mod fronts;
mod info;
mod known_pieces;
mod lz4;
mod noop;
mod offsets;
mod pieces;
mod piecework;
mod plain;
mod sequences;
mod snappy;
mod zstd;

pub use blocks::CompressedBlocks;
pub use chunk_writer::{ChunkWriter, CompressedFile};
pub use compressor::{CodecError, Compressor};
pub use data_blocks::{DataBlocks, EVERYTHING};
pub use data_writer::{DataWriter, WrittenData};
pub use dictionary::Dictionary;
pub use effort::Effort;
pub use info::{Chunk, CompressionInfo};
pub use plain::{BlockCrcs, PLAIN_BLOCK_BYTES, PlainBlocks, PlainFile, PlainWriter};
