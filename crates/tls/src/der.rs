//! Reads and writes DER: elements of a tag, a length and their contents, one in another.

/// Tags of the elements that are read here.
pub mod tag {
    pub const BOOLEAN: u8 = 0x01;
    pub const INTEGER: u8 = 0x02;
    pub const BITS: u8 = 0x03;
    pub const OCTETS: u8 = 0x04;
    pub const NULL: u8 = 0x05;
    pub const OBJECT_ID: u8 = 0x06;
    pub const UTF8_TEXT: u8 = 0x0C;
    pub const PRINTABLE_TEXT: u8 = 0x13;
    pub const T61_TEXT: u8 = 0x14;
    pub const IA5_TEXT: u8 = 0x16;
    pub const BMP_TEXT: u8 = 0x1E;
    pub const SET: u8 = 0x31;
    pub const UTC_TIME: u8 = 0x17;
    pub const GENERALIZED_TIME: u8 = 0x18;
    pub const SEQUENCE: u8 = 0x30;
    /// `[0]`, of other elements.
    pub const CONTEXT_0: u8 = 0xA0;
}

/// The elements that follow each other in some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    pub fn of(bytes: &'a [u8]) -> Elements<'a> {
        Elements { rest: bytes }
    }

    /// The tag of the next element.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The tag and the contents of the next element; `None` at the end, or if it is damaged.
    pub fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, after) = self.rest.split_first()?;
        let (&first, after) = after.split_first()?;
        let (length, after) = match first {
            0..=0x7F => (usize::from(first), after),
            0x81..=0x84 => {
                let (digits, after) = after.split_at_checked(usize::from(first & 0x7F))?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), after)
            }
            // A length of more bytes, or none, as in BER.
            _ => return None,
        };
        let (contents, rest) = after.split_at_checked(length)?;
        self.rest = rest;
        Some((tag, contents))
    }

    /// The contents of the next element, which has this tag.
    pub fn one(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let (found, contents) = ahead.any()?;
        (found == tag).then(|| {
            *self = ahead;
            contents
        })
    }

    /// Whether nothing follows.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next element, which is a number that is not negative and below 2^31.
    pub fn number(&mut self) -> Option<u32> {
        let digits = self.one(tag::INTEGER)?;
        let value = match digits {
            [0, rest @ ..] | rest if rest.len() <= 4 => rest,
            _ => return None,
        };
        let value = value.iter().fold(0_u64, |value, digit| value << 8 | u64::from(*digit));
        u32::try_from(value).ok().filter(|value| i32::try_from(*value).is_ok())
    }

    /// The elements of the next one, which has this tag.
    pub fn within(&mut self, tag: u8) -> Option<Elements<'a>> {
        self.one(tag).map(Elements::of)
    }
}

/// An element.
pub fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(contents.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let digits = contents.len().to_be_bytes();
            let zeros = digits.iter().take_while(|digit| **digit == 0).count();
            let digits = digits.get(zeros..).unwrap_or_default();
            out.push(0x80 | digits.len() as u8);
            out.extend_from_slice(digits);
        }
    }
    out.extend_from_slice(contents);
    out
}

/// A sequence of these elements.
pub fn sequence(elements: &[&[u8]]) -> Vec<u8> {
    element(tag::SEQUENCE, &elements.concat())
}

/// A number below 2^31.
pub fn number(value: u32) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    // A first byte of zero stays only where the first bit would make the number negative.
    let start = (0..3).find(|at| bytes[*at] != 0 || bytes[at + 1] >= 0x80).unwrap_or(3);
    element(tag::INTEGER, bytes.get(start..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_long_elements_are_read_back() {
        for value in [0, 1, 127, 128, 255, 256, 10_000, 65_535, 8_388_608, i32::MAX as u32] {
            let bytes = number(value);
            assert_eq!(Elements::of(&bytes).number(), Some(value), "{bytes:?}");
            assert!(bytes.len() == 3 || bytes[2] != 0 || bytes[3] >= 0x80, "{bytes:?}");
        }
        for length in [0, 127, 128, 255, 256, 70_000] {
            let bytes = element(tag::OCTETS, &vec![7; length]);
            assert_eq!(Elements::of(&bytes).one(tag::OCTETS).map(<[u8]>::len), Some(length));
        }
        assert_eq!(Elements::of(&[2, 5, 1, 0, 0, 0, 0]).number(), None);
        assert_eq!(Elements::of(&[2, 4, 0x80, 0, 0, 0]).number(), None);
    }

    #[test]
    fn elements_follow_each_other_and_damage_ends_them() {
        let bytes = [0x30, 3, 2, 1, 7, 0x04, 0x81, 2, b'a', b'b'];
        let mut elements = Elements::of(&bytes);
        assert_eq!(elements.one(tag::INTEGER), None);
        assert_eq!(elements.within(tag::SEQUENCE).unwrap().one(tag::INTEGER), Some(&[7][..]));
        assert_eq!(elements.any(), Some((4, &b"ab"[..])));
        assert_eq!((elements.any(), elements.peek()), (None, None));
        for damaged in
            [&[0x30][..], &[0x30, 1], &[0x30, 0x80, 0, 0], &[0x30, 0x84, 255, 255, 255, 255], &[0x30, 0x85]]
        {
            assert_eq!(Elements::of(damaged).any(), None, "{damaged:?}");
        }
    }
}
