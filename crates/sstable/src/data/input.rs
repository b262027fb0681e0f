//! Reads numbers and lengths from bytes that may be damaged or may end too early.

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The bytes end too early. There may be more in the next block.
    Short,
    /// No writer writes such bytes.
    Bad {
        /// The offset in the bytes.
        at: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

/// Bytes and a position in them, which each read moves.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Input<'a> {
        Input { bytes, at }
    }

    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn bad(&self, problem: &'static str) -> Fault {
        Fault::Bad { at: self.at, problem }
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Short)?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn short(&mut self) -> Result<u16, Fault> {
        Ok(u16::from(self.byte()?) << 8 | u16::from(self.byte()?))
    }

    /// The next `len` bytes.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let end = self.at.checked_add(len).ok_or(Fault::Short)?;
        let taken = self.bytes.get(self.at..end).ok_or(Fault::Short)?;
        self.at = end;
        Ok(taken)
    }

    /// A vint, as in `model::vint`. It is read as one word if eight more bytes follow.
    #[inline]
    pub(super) fn vint(&mut self) -> Result<u64, Fault> {
        let first = *self.bytes.get(self.at).ok_or(Fault::Short)?;
        if first < 0x80 {
            self.at += 1;
            return Ok(u64::from(first));
        }
        self.long_vint(first)
    }

    #[inline]
    fn long_vint(&mut self, first: u8) -> Result<u64, Fault> {
        let extra = first.leading_ones();
        let rest = self.bytes.get(self.at + 1..).ok_or(Fault::Short)?;
        let word = match rest.first_chunk::<8>() {
            Some(word) => u64::from_be_bytes(*word),
            None => {
                let rest = rest.get(..extra as usize).ok_or(Fault::Short)?;
                let mut word = [0; 8];
                for (to, from) in word.iter_mut().zip(rest) {
                    *to = *from;
                }
                u64::from_be_bytes(word)
            }
        };
        self.at += 1 + extra as usize;
        if extra == 8 {
            return Ok(word);
        }
        let high = u64::from(first) & (0xFF_u64 >> extra);
        Ok(high << (8 * extra) | word >> (64 - 8 * extra))
    }

    /// A length; see `length_at`.
    #[inline(always)]
    pub(super) fn quick_length(&mut self) -> Option<usize> {
        let (length, end) = length_at(self.bytes, self.at)?;
        self.at = end;
        Some(length)
    }

    /// A vint that counts bytes or items, at most 2^31 - 1.
    #[inline]
    pub(super) fn length(&mut self) -> Result<usize, Fault> {
        let at = self.at;
        let length = self.vint()?;
        if length > i32::MAX as u64 {
            return Err(Fault::Bad { at, problem: "a length beyond 2 GiB" });
        }
        Ok(length as usize)
    }

    /// A vint whose value is a sign-extended 32-bit integer (`readUnsignedVInt32`).
    #[inline]
    pub(super) fn int(&mut self) -> Result<i32, Fault> {
        let at = self.at;
        let value = self.vint()? as i64;
        i32::try_from(value).map_err(|_| Fault::Bad { at, problem: "a 32-bit number out of range" })
    }
}

/// The byte at an offset.
///
/// This function and the following ones are always inlined, so that the offset stays in a register from one field of a
/// row to the next.
#[inline(always)]
pub(super) fn byte_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// A vint of up to eight bytes, and the offset of its end. `None` if it is longer or, unless it has one byte, if fewer
/// than eight bytes are left; then `Input::vint` must read it. Most vints have one byte.
#[inline(always)]
pub(super) fn vint_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    match bytes.get(at) {
        Some(byte @ 0..0x80) => Some((u64::from(*byte), at + 1)),
        _ => long_vint_at(bytes, at),
    }
}

#[inline(always)]
fn long_vint_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = u64::from_be_bytes(*bytes.get(at..)?.first_chunk::<8>()?);
    // The number of leading ones is the number of bytes after the first. A zero follows them.
    let extra = word.leading_ones();
    if extra > 7 {
        return None;
    }
    Some((word << extra >> extra >> (56 - 8 * extra), at + 1 + extra as usize))
}

/// A length, read by `vint_at`. `None` also for a length beyond 2^31 - 1.
#[inline(always)]
pub(super) fn length_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (length, end) = vint_at(bytes, at)?;
    if length > i32::MAX as u64 { None } else { Some((length as usize, end)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::vint::write_unsigned;

    #[test]
    fn vints_read_as_the_model_writes_them() {
        for bit in 0..64 {
            for value in [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1, u64::MAX >> bit] {
                let mut bytes = vec![0x55];
                write_unsigned(value, &mut bytes);
                let end = bytes.len();
                assert_eq!(Input::new(&bytes[..end - 1], 1).vint(), Err(Fault::Short));
                let mut input = Input::new(&bytes, 1);
                assert_eq!((input.vint(), input.at()), (Ok(value), end));
                bytes.extend_from_slice(&[0xAB; 9]);
                let mut input = Input::new(&bytes, 1);
                assert_eq!((input.vint(), input.at()), (Ok(value), end));
                assert_eq!(vint_at(&bytes, 1), (end <= 9).then_some((value, end)));
            }
        }
    }
}
