//! A cursor over encoded bytes, for values in ascending or descending order.

use crate::types::TypeError;

/// A position in encoded bytes. A value in descending order has every bit flipped; `mask` flips the bits back.
pub(super) struct Source<'a> {
    bytes: &'a [u8],
    position: usize,
    mask: u8,
}

impl<'a> Source<'a> {
    pub(super) fn new(bytes: &'a [u8], position: usize) -> Source<'a> {
        Source { bytes, position, mask: 0 }
    }

    /// Sets whether the following bytes are in descending order.
    pub(super) fn set_reversed(&mut self, reversed: bool) {
        self.mask = if reversed { 0xFF } else { 0 };
    }

    /// Changes the order of the following bytes if `reversed`.
    pub(super) fn flip(&mut self, reversed: bool) {
        self.mask ^= if reversed { 0xFF } else { 0 };
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.position >= self.bytes.len()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).map(|byte| byte ^ self.mask)
    }

    pub(super) fn skip(&mut self) {
        self.position += 1;
    }

    pub(super) fn next(&mut self) -> Result<u8, TypeError> {
        let byte = self.peek().ok_or_else(|| self.error("unexpected end"))?;
        self.position += 1;
        Ok(byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], TypeError> {
        let mut array = [0; N];
        let taken = self.bytes.get(self.position..).and_then(|rest| rest.first_chunk::<N>());
        let taken = taken.ok_or_else(|| self.error("unexpected end"))?;
        for (to, from) in array.iter_mut().zip(taken) {
            *to = from ^ self.mask;
        }
        self.position += N;
        Ok(array)
    }

    /// Appends the next `length` bytes to `out`.
    pub(super) fn copy(&mut self, length: usize, out: &mut Vec<u8>) -> Result<(), TypeError> {
        let end = self.position.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.position..end));
        let taken = taken.ok_or_else(|| self.error("unexpected end"))?;
        out.extend(taken.iter().map(|byte| byte ^ self.mask));
        self.position += length;
        Ok(())
    }

    pub(super) fn error(&self, problem: &'static str) -> TypeError {
        TypeError::Ordered { position: self.position, problem }
    }
}
