//! The buffer pool: the blocks of open files that are kept in memory, and the one way to find them.
//!
//! Each open file has a table of its blocks (`file_blocks`): a slot per block, with the number of the frame that holds
//! it. A read takes the number from the slot and pins the frame (`frames`), without a lock and without a search. If the
//! slot is empty, the caller reads the file into memory from `room` and puts the block into its slot. `eviction` keeps
//! the frames within the pool's bytes.
//!
//! The key cache and the row index cache of the tables have shares of the pool's bytes (`budget`).

mod budget;
mod eviction;
mod file_blocks;
mod frames;
mod key_cache;
mod pool;

pub(crate) use budget::Reserved;
pub use budget::{Budget, Share};
pub(crate) use file_blocks::FileBlocks;
pub use frames::{Block, BlockMut, FrameNumber, FramePool};
pub(crate) use key_cache::KeyCache;
pub use pool::BufferPool;
