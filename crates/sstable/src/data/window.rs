//! Provides contiguous bytes of Data.db at a position, across block boundaries.
//!
//! A row that lies in one block is decoded directly from the block, which the window keeps alive. Only the parts of a
//! row that crosses into the next block are first copied together (joined).

use crate::block::ReadContext;
use crate::buffer::Block;
use crate::compression::DataBlocks;
use crate::error::Result;
use helenus_host::account;

/// The least bytes of a block that are loaded, because a row that crosses into a block is joined with more than its own
/// bytes.
const FRONT_BYTES_MIN: usize = 1 << 10;

/// Memory for a row of at least this many bytes is charged to the account before the row is joined.
const LARGE_ROW_BYTES: usize = 64 << 10;

/// If at least this many bytes are joined, it is cheaper to read them again than to keep them while other sources are
/// read.
const PARKED_BYTES_MIN: usize = 512 << 10;

/// The current bytes: those of a block, or joined ones. It keeps the last block, so that the next row in it needs no
/// lookup in the cache.
#[derive(Default)]
pub(super) struct Window {
    block: Option<Block>,
    block_start: u64,
    /// The block before `block` and its position, if `comes_back` is set.
    before: Option<(Block, u64)>,
    comes_back: bool,
    joined: Vec<u8>,
    joined_start: u64,
    in_joined: bool,
    /// Number of joined bytes that `park` released and `unpark` can read again.
    parked: usize,
    /// The read extent: the position at which the current read is expected to end; 0 if it is not known.
    read_extent: u64,
}

impl Window {
    /// Makes the block that holds `position` the current bytes, and returns the offset of `position` in them.
    #[inline]
    pub(super) fn seek(&mut self, data: &DataBlocks, position: u64, cx: &mut ReadContext) -> Result<usize> {
        self.in_joined = false;
        if let Some(block) = &self.block
            && let Some(at) = position.checked_sub(self.block_start)
            && at < block.len() as u64
        {
            return Ok(at as usize);
        }
        self.load(data, position, cx)
    }

    /// Sets the read extent of the read that begins now: the position at which it is expected to end, or 0. Blocks may
    /// be loaded only as far as it reaches.
    #[inline]
    pub(super) fn set_read_extent(&mut self, end: u64) {
        self.read_extent = end;
    }

    /// Sets whether the read that begins now returns to a block after a look into the next one, as backward reads do.
    pub(super) fn set_comes_back(&mut self, comes_back: bool) {
        self.comes_back = comes_back;
    }

    #[cold]
    #[inline(never)]
    fn load(&mut self, data: &DataBlocks, position: u64, cx: &mut ReadContext) -> Result<usize> {
        let block_bytes = data.block_bytes() as u64;
        let number = position / block_bytes;
        if position >= data.data_length() {
            return Err(data.file().corrupt(position, "the data ends before its last partition does"));
        }
        let start = number * block_bytes;
        let at = (position - start) as usize;
        if let Some(short) = self.block.take_if(|_| self.block_start == start) {
            data.fell_short(number, short.len());
        }
        if self.comes_back {
            let last = self.block.take().map(|block| (block, self.block_start));
            let before = std::mem::replace(&mut self.before, last);
            if let Some((block, from)) = before
                && from == start
                && at < block.len()
            {
                (self.block, self.block_start) = (Some(block), start);
                return Ok(at);
            }
        }
        self.block = None;
        let end = match position < self.read_extent {
            true => usize::try_from(self.read_extent - start).unwrap_or(usize::MAX).max(FRONT_BYTES_MIN),
            false => usize::MAX,
        };
        self.block = Some(data.block(number, at..end, cx)?);
        self.block_start = start;
        Ok(at)
    }

    /// The bytes of the current block and the offset of `position` in them; `None` if `seek` must be called.
    #[inline(always)]
    pub(super) fn at(&self, position: u64) -> Option<(&[u8], usize)> {
        let block = self.block.as_deref().filter(|_| !self.in_joined)?;
        let at = position.wrapping_sub(self.block_start);
        (at < block.len() as u64).then_some((block, at as usize))
    }

    /// Joins `len` bytes from `position`, or up to the end of the data, and makes them the current bytes. Returns
    /// whether there were as many.
    pub(super) fn join(
        &mut self,
        data: &DataBlocks,
        (position, len): (u64, usize),
        cx: &mut ReadContext,
    ) -> Result<bool> {
        self.make_room(len.min(usize::try_from(data.data_length().saturating_sub(position)).unwrap_or(len)))?;
        while self.joined.len() < len {
            let next = position + self.joined.len() as u64;
            if next >= data.data_length() {
                break;
            }
            let at = self.seek(data, next, cx)?;
            let rest = self.block.as_deref().and_then(|block| block.get(at..)).unwrap_or(&[]);
            if rest.is_empty() {
                return Err(data.file().corrupt(next, "a block is shorter than it must be"));
            }
            let taken = rest.len().min(len - self.joined.len());
            self.joined.extend_from_slice(rest.get(..taken).unwrap_or(rest));
        }
        self.joined_start = position;
        self.in_joined = true;
        self.parked = 0;
        Ok(self.joined.len() == len)
    }

    /// Reserves memory for a row that will be joined, and charges it to the account if the row is large.
    fn make_room(&mut self, len: usize) -> Result<()> {
        self.joined.clear();
        if self.joined.capacity() >= len {
            return Ok(());
        }
        self.joined = Vec::new();
        if len >= LARGE_ROW_BYTES {
            account::grow(len)?;
        }
        self.joined.reserve(len);
        Ok(())
    }

    /// Releases the current bytes if they are joined and many. Returns the number of bytes released.
    #[inline]
    pub(super) fn park(&mut self) -> usize {
        if !self.in_joined || self.joined.len() < PARKED_BYTES_MIN {
            return 0;
        }
        self.parked = self.joined.len();
        self.joined = Vec::new();
        self.parked
    }

    /// Joins the bytes again that `park` released, after `expected` bytes are charged to the account.
    pub(super) fn unpark(&mut self, data: &DataBlocks, expected: usize, cx: &mut ReadContext) -> Result<()> {
        if self.in_joined && self.parked > 0 {
            account::grow(expected)?;
            let place = (self.joined_start, self.parked);
            self.join(data, place, cx)?;
        }
        Ok(())
    }

    /// Releases joined bytes if they are many, because nothing more is read for now.
    pub(super) fn let_go(&mut self) {
        if self.joined.capacity() > super::cursor::RELEASED_BYTES_MAX {
            (self.joined, self.in_joined, self.parked) = (Vec::new(), false, 0);
        }
    }

    /// Releases the blocks, and joined bytes if they are many.
    pub(super) fn release(&mut self) {
        (self.block, self.before, self.comes_back) = (None, None, false);
        (self.in_joined, self.parked) = (false, 0);
        self.read_extent = 0;
        if self.joined.capacity() > super::cursor::RELEASED_BYTES_MAX {
            self.joined = Vec::new();
        }
    }

    /// The current bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        if self.in_joined { &self.joined } else { self.block.as_deref().unwrap_or(&[]) }
    }

    /// The position in the data at which the current bytes start.
    #[inline]
    pub(super) fn start(&self) -> u64 {
        if self.in_joined { self.joined_start } else { self.block_start }
    }
}
