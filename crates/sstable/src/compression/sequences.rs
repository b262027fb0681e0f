//! The sequences of an LZ4 block, without decompressing it.
//!
//! A sequence (LZ4's `lz4_Block_format.md`): a token with two lengths of four bits, what the first says beyond 15, so many
//! literals, how far back the match lies (u16, little endian), what the second says beyond 15. The last sequence has no match.

use super::compressor::CodecError;

/// Least length of a match, which its four bits count from.
const MATCH_MIN: usize = 4;
/// What four bits say where more follows.
const MORE: usize = 15;

/// Where a sequence stands and what it copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    /// Its token, in the block.
    pub(super) at: usize,
    /// Its literals, in the block.
    pub(super) literals_at: usize,
    /// How many they are.
    pub(super) literals: usize,
    /// Where they come to stand in the data.
    pub(super) data_at: usize,
    /// Where in the data its match is copied from; `None` of the last.
    pub(super) source: Option<usize>,
}

/// Reads them from the front.
pub(super) struct Sequences<'a> {
    block: &'a [u8],
    at: usize,
    data_at: usize,
}

impl<'a> Sequences<'a> {
    pub(super) fn of(block: &'a [u8]) -> Sequences<'a> {
        Sequences { block, at: 0, data_at: 0 }
    }

    /// The next one, `None` behind the last. `Malformed` where the block does not go on as one does.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Sequence>, CodecError> {
        let Some(token) = self.block.get(self.at) else { return Ok(None) };
        let (at, data_at) = (self.at, self.data_at);
        self.at += 1;
        let literals = self.length(usize::from(token >> 4))?;
        let literals_at = self.at;
        self.at += literals;
        let source = match self.block.get(self.at..) {
            Some([]) => None,
            Some([low, high, ..]) => {
                let back = usize::from(u16::from_le_bytes([*low, *high]));
                self.at += 2;
                let length = self.length(usize::from(token & 15))? + MATCH_MIN;
                let to = data_at + literals;
                self.data_at = to + length;
                Some(to.checked_sub(back).filter(|from| *from < to).ok_or(CodecError::Malformed)?)
            }
            _ => return Err(CodecError::Malformed),
        };
        Ok(Some(Sequence { at, literals_at, literals, data_at, source }))
    }

    /// A length whose four bits were read.
    #[inline]
    fn length(&mut self, bits: usize) -> Result<usize, CodecError> {
        let mut length = bits;
        let mut more = bits == MORE;
        while more {
            let byte = self.block.get(self.at).ok_or(CodecError::Malformed)?;
            self.at += 1;
            length += usize::from(*byte);
            more = *byte == u8::MAX;
        }
        Ok(length)
    }
}

/// Writes the token of a sequence and the rest of its first length; `match_bits` are the four bits of the second. Returns how many
/// bytes that are, `None` where they do not fit.
pub(super) fn write_literals_head(literals: usize, match_bits: u8, out: &mut [u8]) -> Option<usize> {
    *out.first_mut()? = (literals.min(MORE) as u8) << 4 | match_bits;
    let Some(mut rest) = literals.checked_sub(MORE) else { return Some(1) };
    let mut at = 1;
    loop {
        *out.get_mut(at)? = rest.min(usize::from(u8::MAX)) as u8;
        at += 1;
        match rest.checked_sub(usize::from(u8::MAX)) {
            Some(left) => rest = left,
            None => return Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_of_a_block_add_up_to_its_data() {
        let data: Vec<u8> = (0..9_000_u32).flat_map(|i| format!("{},", i * i % 977).into_bytes()).collect();
        let mut block = vec![0; lzzzz::lz4::max_compressed_size(data.len())];
        let len = lzzzz::lz4::compress(&data, &mut block, 1).unwrap();
        let mut sequences = Sequences::of(&block[..len]);
        let (mut end, mut count) = (0, 0);
        while let Some(sequence) = sequences.next().unwrap() {
            assert!(sequence.data_at >= end);
            let literals = &block[sequence.literals_at..][..sequence.literals];
            assert_eq!(literals, &data[sequence.data_at..][..sequence.literals]);
            end = sequence.data_at + sequence.literals;
            count += 1;
            if let Some(source) = sequence.source {
                assert_eq!(data[source..][..4], data[end..][..4]);
            }
        }
        assert_eq!(end, data.len());
        assert!(count > 100);
    }

    #[test]
    fn what_is_no_block_is_malformed() {
        // Fewer literals than it says, half an offset, a match before the data, lengths that do not end.
        for block in [&[0x20, 1][..], &[0x10, 1, 1], &[0x10, 1, 2, 0, 0], &[0xF0, 255], &[0x1F, 1, 1, 0, 255]]
        {
            let mut sequences = Sequences::of(block);
            let end = loop {
                match sequences.next() {
                    Ok(Some(_)) => {}
                    other => break other,
                }
            };
            assert_eq!(end, Err(CodecError::Malformed), "{block:?}");
        }
    }

    #[test]
    fn heads_of_literals_read_back() {
        for literals in [0, 1, 14, 15, 16, 269, 270, 271, 525, 16_384] {
            let mut out = vec![0; 80 + literals];
            let len = write_literals_head(literals, 0, &mut out).unwrap();
            let sequence = Sequences::of(&out[..len + literals]).next().unwrap().unwrap();
            assert_eq!((sequence.literals_at, sequence.literals), (len, literals));
            assert_eq!(write_literals_head(literals, 0, &mut out[..len - 1]), None);
        }
    }
}
