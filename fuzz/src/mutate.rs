//! Unsound inputs from sound ones.

/// Values that decoders get wrong: ends of ranges, lengths.
const INTERESTING: [u32; 12] =
    [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF];
/// No input grows beyond this.
const BYTES_MAX: usize = 1 << 18;

/// Makes inputs; one seed names them all.
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Mutator {
        Mutator { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// An input made of one of the corpus, perhaps with parts of another, by one to eight changes.
    pub fn input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut bytes, corpus);
        }
        bytes.truncate(BYTES_MAX);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        if bytes.is_empty() {
            bytes.push(self.next() as u8);
        }
        let at = self.below(bytes.len());
        let length = 1 + self.below((bytes.len() - at).min(64));
        match self.below(9) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.next() as u8,
            2 => bytes[at] = bytes[at].wrapping_add(if self.below(2) == 0 { 1 } else { 255 }),
            3 => self.put_number(bytes, at),
            4 => bytes.truncate(at),
            5 => drop(bytes.drain(at..at + length)),
            6 => {
                let copy = bytes[at..at + length].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            7 => {
                let new: Vec<u8> = (0..length).map(|_| self.next() as u8).collect();
                bytes.splice(at..at, new);
            }
            _ => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len());
                let part = &other[from..(from + length).min(other.len())];
                bytes.splice(at..at, part.iter().copied());
            }
        }
    }

    /// A number of one, two or four bytes, in either order.
    fn put_number(&mut self, bytes: &mut [u8], at: usize) {
        let number = INTERESTING[self.below(INTERESTING.len())];
        let width = [1, 2, 4][self.below(3)];
        let big = number.to_be_bytes();
        let little = number.to_le_bytes();
        let digits = if self.below(2) == 0 { &big[4 - width..] } else { &little[..width] };
        for (place, digit) in bytes[at..].iter_mut().zip(digits) {
            *place = *digit;
        }
    }
}
