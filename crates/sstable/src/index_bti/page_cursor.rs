//! Reads consecutive values from a component, across its blocks.

#![deny(clippy::indexing_slicing)]

use crate::block::{BlockFile, ReadContext};
use crate::buffer::Block;
use crate::error::Result;
use helenus_model::deletion::DeletionTime;
use helenus_model::vint;

/// A position in a component that moves with each read. Reads beyond the end are `Corrupt`.
pub struct PageCursor<'a> {
    file: &'a BlockFile,
    position: u64,
    block: Option<(u64, Block)>,
}

impl<'a> PageCursor<'a> {
    /// A cursor at a position.
    pub fn new(file: &'a BlockFile, position: u64) -> PageCursor<'a> {
        PageCursor { file, position, block: None }
    }

    /// The position at which the next read begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads a byte.
    pub fn u8(&mut self, cx: &mut ReadContext) -> Result<u8> {
        self.array(cx).map(|[byte]| byte)
    }

    /// Reads two bytes, big endian.
    pub fn u16(&mut self, cx: &mut ReadContext) -> Result<u16> {
        self.array(cx).map(u16::from_be_bytes)
    }

    /// Reads eight bytes, big endian.
    pub fn u64(&mut self, cx: &mut ReadContext) -> Result<u64> {
        self.array(cx).map(u64::from_be_bytes)
    }

    /// Reads an unsigned variable-length integer.
    pub fn unsigned_vint(&mut self, cx: &mut ReadContext) -> Result<u64> {
        self.parse(cx, vint::VINT_LENGTH_MAX, vint::read_unsigned)
    }

    /// Reads a variable-length integer in zigzag form.
    pub fn signed_vint(&mut self, cx: &mut ReadContext) -> Result<i64> {
        self.parse(cx, vint::VINT_LENGTH_MAX, vint::read_signed)
    }

    /// Reads a deletion time in the form of `da`.
    pub fn deletion_time(&mut self, cx: &mut ReadContext) -> Result<DeletionTime> {
        self.parse(cx, super::DeletionTimeBytes::LENGTH_MAX, super::read_deletion_time)
    }

    /// Reads a length of two bytes and that many bytes, the format of a partition key.
    pub fn short_bytes(&mut self, cx: &mut ReadContext) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::from(self.u16(cx)?)];
        self.fill(&mut bytes, cx)?;
        Ok(bytes)
    }

    /// Fills `out`.
    pub fn fill(&mut self, mut out: &mut [u8], cx: &mut ReadContext) -> Result<()> {
        while !out.is_empty() {
            let here = self.rest_of_block(cx)?;
            let len = here.len().min(out.len());
            let (now, later) = out.split_at_mut(len);
            now.copy_from_slice(here.get(..len).unwrap_or_default());
            self.position += len as u64;
            out = later;
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self, cx: &mut ReadContext) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, cx)?;
        Ok(bytes)
    }

    /// Reads a value of unknown length, of at most `len_max` (and 16) bytes.
    fn parse<T>(
        &mut self,
        cx: &mut ReadContext,
        len_max: usize,
        read: fn(&[u8]) -> Option<(T, usize)>,
    ) -> Result<T> {
        let start = self.position;
        let mut bytes = [0; 16];
        let in_file = usize::try_from(self.file.size().saturating_sub(start)).unwrap_or(usize::MAX);
        let len = len_max.min(in_file);
        let bytes = bytes.get_mut(..len).unwrap_or_default();
        self.fill(bytes, cx)?;
        let Some((value, used)) = read(bytes) else {
            return Err(self.file.corrupt(start, "no such value can be stored here"));
        };
        self.position = start + used as u64;
        Ok(value)
    }

    fn rest_of_block(&mut self, cx: &mut ReadContext) -> Result<&[u8]> {
        let block_bytes = self.file.block_bytes().max(1) as u64;
        let number = self.position / block_bytes;
        if self.block.as_ref().is_none_or(|(kept, _)| *kept != number) {
            self.block = Some((number, self.file.block(number, cx)?));
        }
        let from = (self.position % block_bytes) as usize;
        let rest = self.block.as_ref().and_then(|(_, block)| block.get(from..)).unwrap_or_default();
        if rest.is_empty() {
            return Err(self.file.corrupt(self.position, "a position beyond the end of the file"));
        }
        Ok(rest)
    }
}
