//! Reads numbers, texts and lists from a part of Statistics.db. If bytes are missing, the error contains the offset.

use crate::error::{Error, Result};
use helenus_model::vint;
use std::path::Path;

pub(super) struct Input<'a> {
    rest: &'a [u8],
    at: u64,
    file: &'a Path,
}

impl<'a> Input<'a> {
    /// Reads `bytes`, which begin at offset `at` of `file`.
    pub(super) fn new(bytes: &'a [u8], at: u64, file: &'a Path) -> Input<'a> {
        Input { rest: bytes, at, file }
    }

    pub(super) fn corrupt(&self, problem: impl Into<String>) -> Error {
        Error::Corrupt { file: self.file.to_owned(), offset: self.at, problem: problem.into() }
    }

    /// The offset of the next byte in the file.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((now, later)) = self.rest.split_at_checked(len) else {
            return Err(self.corrupt(format!("{len} bytes wanted, {} left", self.rest.len())));
        };
        self.rest = later;
        self.at += len as u64;
        Ok(now)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| self.corrupt("too few bytes"))
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(super) fn bool(&mut self) -> Result<bool> {
        Ok(self.u8()? != 0)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(super) fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    pub(super) fn uuid(&mut self) -> Result<uuid::Uuid> {
        Ok(uuid::Uuid::from_bytes(self.array()?))
    }

    pub(super) fn vint(&mut self) -> Result<u64> {
        let Some((value, len)) = vint::read_unsigned(self.rest) else {
            return Err(self.corrupt("a variable-length integer is cut off"));
        };
        self.bytes(len)?;
        Ok(value)
    }

    /// Checks the number of entries that follow, each of which takes at least `least` bytes.
    pub(super) fn count(&mut self, count: u64, least: usize) -> Result<usize> {
        match usize::try_from(count) {
            Ok(count) if count.saturating_mul(least) <= self.rest.len() => Ok(count),
            _ => Err(self.corrupt(format!("{count} entries do not fit"))),
        }
    }

    /// Bytes after their length as a variable-length integer.
    pub(super) fn vint_bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.vint()?;
        let len = self.count(len, 1)?;
        self.bytes(len)
    }

    pub(super) fn vint_text(&mut self) -> Result<String> {
        let bytes = self.vint_bytes()?;
        self.text(bytes)
    }

    /// A list of texts after its length.
    pub(super) fn vint_texts(&mut self) -> Result<Vec<String>> {
        let count = self.vint()?;
        let count = self.count(count, 1)?;
        (0..count).map(|_| self.vint_text()).collect()
    }

    /// A text as in Java's `readUTF`, for texts without NUL and without characters outside the basic plane.
    pub(super) fn short_text(&mut self) -> Result<String> {
        let len = self.u16()?;
        let bytes = self.bytes(usize::from(len))?;
        self.text(bytes)
    }

    fn text(&self, bytes: &[u8]) -> Result<String> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.corrupt("text is not UTF-8")),
        }
    }
}

/// Appends the length of `bytes`, and `bytes`.
pub(super) fn write_vint_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    vint::write_unsigned(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends the length of a list of texts, and the texts.
pub(super) fn write_vint_texts(texts: &[String], out: &mut Vec<u8>) {
    vint::write_unsigned(texts.len() as u64, out);
    texts.iter().for_each(|text| write_vint_bytes(text.as_bytes(), out));
}
