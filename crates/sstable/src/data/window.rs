//! Contiguous bytes of Data.db at a position, whatever the block boundaries.
//!
//! A row that lies in one block is decoded straight from the block, which the window keeps alive; only a row that
//! crosses into the next is copied together first.

use crate::block::{Block, ReadContext};
use crate::compression::DataBlocks;
use crate::error::Result;
use helenus_host::account;
use std::ops::Range;

/// Bytes of a block that are had at least: a row that crosses into it is joined, with more than its own bytes.
const FRONT_BYTES_MIN: u64 = 1 << 10;

/// Bytes of a row whose memory is asked for before it is joined.
const LARGE_ROW_BYTES: usize = 64 << 10;

/// Joined bytes from which on it costs less to read them once more than to hold them while other sources are read.
const PARKED_BYTES_MIN: usize = 512 << 10;

/// The bytes in hand. Keeps the last block read, so that neighbours cost no second look into the cache.
#[derive(Default)]
pub(super) struct Window {
    block: Option<Block>,
    block_start: u64,
    /// The block that was in hand before, and where it starts, where blocks are come back to.
    before: Option<(Block, u64)>,
    comes_back: bool,
    joined: Vec<u8>,
    joined_start: u64,
    in_joined: bool,
    /// Joined bytes that were let go of and can be had again.
    parked: usize,
    /// Where in the data the read under way foresees that it begins and ends; it ends at 0 if it does not.
    foreseen: Range<u64>,
    /// Number of the block that was had last since that was said.
    had: Option<u64>,
}

impl Window {
    /// Makes the block that holds `position` the bytes in hand; returns where in them it lies.
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

    /// Says where in the data the read that begins foresees that it goes, if it ends somewhere. No more than that may be had of
    /// blocks.
    #[inline]
    pub(super) fn foresee(&mut self, places: Range<u64>) {
        (self.foreseen, self.had) = (places, None);
    }

    /// Says whether the read that begins comes back to a block after a look into the next one, as reads backwards do.
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
        if let Some(short) = self.block.take_if(|_| self.block_start / block_bytes == number) {
            data.fell_short(number, short.len(), self.had == Some(number));
        }
        if self.comes_back {
            let last = self.block.take().map(|block| (block, self.block_start));
            let before = std::mem::replace(&mut self.before, last);
            if let Some((block, from)) = before
                && let Some(at) = position.checked_sub(from).filter(|at| *at < block.len() as u64)
            {
                (self.block, self.block_start) = (Some(block), from);
                return Ok(at as usize);
            }
        }
        self.block = None;
        let end = match position < self.foreseen.end {
            true => self.foreseen.end.max(start + FRONT_BYTES_MIN),
            false => u64::MAX,
        };
        let (block, from) = data.block(position, &(self.foreseen.start.min(position)..end), cx)?;
        (self.block, self.had) = (Some(block), Some(number));
        self.block_start = from;
        Ok((position - from) as usize)
    }

    /// The bytes of the block in hand and where in them `position` lies; `None` if `seek` has to look.
    #[inline(always)]
    pub(super) fn at(&self, position: u64) -> Option<(&[u8], usize)> {
        let block = self.block.as_deref().filter(|_| !self.in_joined)?;
        let at = position.wrapping_sub(self.block_start);
        (at < block.len() as u64).then_some((block, at as usize))
    }

    /// Copies `len` bytes from `position`, or up to the end of the data, together and makes them the bytes in hand,
    /// `position` first. Returns whether all of them are there.
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

    /// Room for a row that is to be joined, asked for if it is large.
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

    /// Lets go of the bytes in hand if they are many and were joined; returns how many it let go of.
    #[inline]
    pub(super) fn park(&mut self) -> usize {
        if !self.in_joined || self.joined.len() < PARKED_BYTES_MIN {
            return 0;
        }
        self.parked = self.joined.len();
        self.joined = Vec::new();
        self.parked
    }

    /// Joins the bytes again that `park` let go of, once there is room for `expected` bytes.
    pub(super) fn unpark(&mut self, data: &DataBlocks, expected: usize, cx: &mut ReadContext) -> Result<()> {
        if self.in_joined && self.parked > 0 {
            account::grow(expected)?;
            let place = (self.joined_start, self.parked);
            self.join(data, place, cx)?;
        }
        Ok(())
    }

    /// Lets go of joined bytes if they are many: nothing more is read for now.
    pub(super) fn let_go(&mut self) {
        if self.joined.capacity() > super::cursor::RELEASED_BYTES_MAX {
            (self.joined, self.in_joined, self.parked) = (Vec::new(), false, 0);
        }
    }

    /// Lets go of the block, and of joined bytes if they are many.
    pub(super) fn release(&mut self) {
        (self.block, self.before, self.comes_back) = (None, None, false);
        (self.in_joined, self.parked) = (false, 0);
        (self.foreseen, self.had) = (0..0, None);
        if self.joined.capacity() > super::cursor::RELEASED_BYTES_MAX {
            self.joined = Vec::new();
        }
    }

    /// The bytes in hand.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        if self.in_joined { &self.joined } else { self.block.as_deref().unwrap_or(&[]) }
    }

    /// Where the bytes in hand start in the data.
    #[inline]
    pub(super) fn start(&self) -> u64 {
        if self.in_joined { self.joined_start } else { self.block_start }
    }
}
