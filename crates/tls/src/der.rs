//! Reads DER: elements of a tag, a length and their contents, one in another.

/// Tags of the elements that are read here.
pub mod tag {
    pub const INTEGER: u8 = 0x02;
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

    /// The elements of the next one, which has this tag.
    pub fn within(&mut self, tag: u8) -> Option<Elements<'a>> {
        self.one(tag).map(Elements::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
