//! Reads the entries of Index.db one after another.

#![deny(clippy::indexing_slicing)]

use crate::block::{BlockFile, ReadContext};
use crate::buffer::Block;
use crate::error::Result;
use helenus_model::vint;

/// Provides contiguous bytes of a component that is read in pages. Bytes of several pages are joined in a buffer.
#[derive(Default)]
pub(super) struct Pages {
    page: Option<(u64, Block)>,
    joined: Vec<u8>,
}

impl Pages {
    /// The bytes from `position` on: at least `len`, or as many as the file has.
    pub(super) fn bytes(
        &mut self,
        file: &BlockFile,
        position: u64,
        len: usize,
        cx: &mut ReadContext,
    ) -> Result<&[u8]> {
        let left = usize::try_from(file.size().saturating_sub(position)).unwrap_or(usize::MAX);
        let len = len.min(left);
        let from = self.page_of(file, position, cx)?;
        if self.rest(from).len() >= len {
            return Ok(self.rest(from));
        }
        self.joined.clear();
        let mut next = position;
        while self.joined.len() < len {
            let from = self.page_of(file, next, cx)?;
            let rest = self.page.as_ref().and_then(|(_, page)| page.get(from..)).unwrap_or_default();
            let taken = rest.get(..(len - self.joined.len()).min(rest.len())).unwrap_or_default();
            if taken.is_empty() {
                return Err(file.corrupt(next, "a position beyond the end of the file"));
            }
            self.joined.extend_from_slice(taken);
            next += taken.len() as u64;
        }
        Ok(&self.joined)
    }

    /// Releases the page, and joined bytes if they are many.
    pub(super) fn release(&mut self) {
        const KEPT_BYTES_MAX: usize = 4096;
        self.page = None;
        if self.joined.capacity() > KEPT_BYTES_MAX {
            self.joined = Vec::new();
        }
    }

    fn rest(&self, from: usize) -> &[u8] {
        self.page.as_ref().and_then(|(_, page)| page.get(from..)).unwrap_or_default()
    }

    /// Makes the page of a position the current one, and returns the offset of the position in it.
    fn page_of(&mut self, file: &BlockFile, position: u64, cx: &mut ReadContext) -> Result<usize> {
        let page_bytes = file.block_bytes().max(1) as u64;
        let number = position / page_bytes;
        if self.page.as_ref().is_none_or(|(kept, _)| *kept != number) {
            self.page = None;
            self.page = Some((number, file.block(number, cx)?));
        }
        Ok((position % page_bytes) as usize)
    }
}

/// An entry of Index.db.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// The partition's serialised key.
    pub(super) key: &'a [u8],
    /// Its start in Data.db.
    pub(super) data: u64,
    /// The offset of its promoted index in Index.db.
    pub(super) promoted_at: u64,
    /// The size of its promoted index in bytes; 0 if it has none.
    pub(super) promoted_bytes: u64,
}

/// The most bytes of an entry without its key and its promoted index.
const NUMBERS_BYTES_MAX: usize = 2 + 2 * vint::VINT_LENGTH_MAX;

/// A position in Index.db that each read moves to the next entry.
pub(super) struct Entries<'a> {
    file: &'a BlockFile,
    position: u64,
    pages: Pages,
}

impl<'a> Entries<'a> {
    /// Begins at the start of an entry.
    pub(super) fn from(file: &'a BlockFile, position: u64) -> Entries<'a> {
        Entries { file, position, pages: Pages::default() }
    }

    /// The offset of the next entry.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next entry; `None` at the end of the file.
    pub(super) fn next(&mut self, cx: &mut ReadContext) -> Result<Option<Entry<'_>>> {
        let (file, at) = (self.file, self.position);
        if at >= file.size() {
            return Ok(None);
        }
        let front = self.pages.bytes(file, at, 2, cx)?;
        let Some((len, _)) = front.split_first_chunk::<2>() else {
            return Err(file.corrupt(at, "the file ends within a partition key"));
        };
        let key_len = usize::from(u16::from_be_bytes(*len));
        let bytes = self.pages.bytes(file, at, NUMBERS_BYTES_MAX + key_len, cx)?;
        let Some((entry, end)) = parse(bytes, at, key_len) else {
            return Err(file.corrupt(at, "no entry of a partition can be stored here"));
        };
        if end > file.size() {
            return Err(file.corrupt(at, "a partition's index goes beyond the end of the file"));
        }
        self.position = end;
        cx.touched.index_nodes += 1;
        Ok(Some(entry))
    }
}

/// Parses the entry at the start of `bytes`, which begin at offset `at`. Returns it and the offset of the next one.
fn parse(bytes: &[u8], at: u64, key_len: usize) -> Option<(Entry<'_>, u64)> {
    let (key, rest) = bytes.get(2..)?.split_at_checked(key_len)?;
    let (data, data_len) = vint::read_unsigned(rest)?;
    let (promoted_bytes, size_len) = vint::read_unsigned(rest.get(data_len..)?)?;
    if promoted_bytes > i32::MAX as u64 {
        return None;
    }
    let promoted_at = at + (2 + key_len + data_len + size_len) as u64;
    Some((Entry { key, data, promoted_at, promoted_bytes }, promoted_at + promoted_bytes))
}
