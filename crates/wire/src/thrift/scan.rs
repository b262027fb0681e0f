//! Finds the end of a message without a frame while it arrives, and reads no part of it twice.
//!
//! Such a message states its length nowhere: it ends where its outermost struct ends. A server looks for that end after
//! each read. A scanner keeps its place between two looks, so the work for a message is in proportion to its bytes,
//! in however many pieces they arrive.

use super::ThriftError;
use super::binary::{DEPTH_MAX, Reader, Type};
use super::message::MessageHead;

/// A struct or container whose end has not come.
#[derive(Clone, Copy, Debug)]
enum Open {
    Struct,
    /// Elements of a list or set, or keys and values of a map. `types`: of the next one if an even number is left, and
    /// if an odd number is.
    Elements {
        types: [Type; 2],
        left: usize,
    },
}

/// The place in a message up to which it has been read.
#[derive(Clone, Debug, Default)]
pub struct MessageScanner {
    /// Bytes that are read: the head and whole values.
    offset: usize,
    /// The outermost struct first; empty before the head has come. At most `DEPTH_MAX`.
    open: Vec<Open>,
    /// Values that this has tried to read, for a test of the work.
    #[cfg(test)]
    tried: usize,
}

impl MessageScanner {
    /// The size of the message at the start of `input`; `None` while it is incomplete. Each call gets the input of the one
    /// before and what has come since. After the end of a message the next one is scanned from its start.
    ///
    /// # Errors
    /// It is no message.
    pub fn end(&mut self, input: &[u8]) -> Result<Option<usize>, ThriftError> {
        loop {
            #[cfg(test)]
            {
                self.tried += 1;
            }
            let mut reader = Reader::new(input.get(self.offset..).unwrap_or_default());
            match self.pass(&mut reader) {
                Ok(()) => self.offset = input.len() - reader.rest().len(),
                Err(ThriftError::Short) => return Ok(None),
                Err(error) => return Err(error),
            }
            if self.open.is_empty() {
                return Ok(Some(std::mem::take(self).offset));
            }
        }
    }

    /// Passes over the head, a value with what stands before it, or the end of a struct or container. Changes nothing if it
    /// is `Short`.
    fn pass(&mut self, reader: &mut Reader<'_>) -> Result<(), ThriftError> {
        let at = self.open.len().wrapping_sub(1);
        match self.open.last().copied() {
            None => {
                MessageHead::read(reader)?;
                self.open.push(Open::Struct);
            }
            Some(Open::Struct) => match reader.field()? {
                None => self.leave(),
                Some((ty, _)) => self.pass_value(ty, reader)?,
            },
            Some(Open::Elements { left: 0, .. }) => self.leave(),
            Some(Open::Elements { types: [even, odd], left }) => {
                self.pass_value(if left % 2 == 0 { even } else { odd }, reader)?;
                if let Some(Open::Elements { left, .. }) = self.open.get_mut(at) {
                    *left -= 1;
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self) {
        let _ended = self.open.pop();
    }

    /// Passes over a value; of a struct or container, over its beginning.
    fn pass_value(&mut self, ty: Type, reader: &mut Reader<'_>) -> Result<(), ThriftError> {
        if self.open.len() >= DEPTH_MAX {
            return Err(ThriftError::TooDeep(DEPTH_MAX));
        }
        match ty {
            Type::Struct => self.open.push(Open::Struct),
            Type::Map => {
                let (key, value, count) = reader.map()?;
                self.open.push(Open::Elements { types: [key, value], left: 2 * count });
            }
            Type::Set | Type::List => {
                let (ty, count) = reader.list()?;
                self.open.push(Open::Elements { types: [ty, ty], left: count });
            }
            other => reader.skip(other)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The beginning of a call, strict and not, without its struct.
    const HEADS: [&[u8]; 2] = [
        &[0x80, 1, 0, 1, 0, 0, 0, 3, b'g', b'e', b't', 0, 0, 0, 1],
        &[0, 0, 0, 3, b'g', b'e', b't', 1, 0, 0, 0, 1],
    ];

    /// The size by the reader that must have all of a message.
    fn whole(input: &[u8]) -> Result<Option<usize>, ThriftError> {
        let mut reader = Reader::new(input);
        match MessageHead::read(&mut reader).and_then(|_| reader.skip(Type::Struct)) {
            Ok(()) => Ok(Some(input.len() - reader.rest().len())),
            Err(ThriftError::Short) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn string(bytes: usize) -> Vec<u8> {
        [&[11, 0, 1][..], &(bytes as u32).to_be_bytes(), &vec![b'x'; bytes]].concat()
    }

    /// Messages of each kind of content: one long text, many fields, a list of numbers, of structs, a map, deep lists.
    fn messages() -> Vec<Vec<u8>> {
        let many_fields = string(1).repeat(2000);
        let numbers = [&[15, 0, 1, 10][..], &4000_u32.to_be_bytes(), &[7; 8 * 4000]].concat();
        let structs = [&[14, 0, 1, 12][..], &3000_u32.to_be_bytes(), &[2, 0, 1, 1, 0].repeat(3000)].concat();
        let pair = [0, 0, 0, 1, b'k', 12, 0, 1, 0, 0];
        let maps = [&[13, 0, 1, 11, 12][..], &2000_u32.to_be_bytes(), &pair.repeat(2000)].concat();
        let empty = [&[15, 0, 1, 15][..], &5000_u32.to_be_bytes(), &[3, 0, 0, 0, 0].repeat(5000)].concat();
        let nested = [&[15, 0, 1][..], &[15, 0, 0, 0, 1].repeat(DEPTH_MAX - 3), &[3, 0, 0, 0, 1, 9]].concat();
        let bodies = [string(60_000), many_fields, numbers, structs, maps, empty, nested];
        let with = |head: &&[u8]| bodies.iter().map(|body| [*head, body, &[0]].concat()).collect::<Vec<_>>();
        HEADS.iter().flat_map(with).collect()
    }

    #[test]
    fn the_work_for_a_message_that_arrives_byte_by_byte_is_linear() {
        for message in messages() {
            let (mut scanner, mut tried) = (MessageScanner::default(), 0);
            for end in 0..message.len() {
                assert_eq!(scanner.end(&message[..end]), Ok(None), "{end} of {}", message.len());
                tried = scanner.tried;
            }
            assert_eq!(scanner.end(&message), Ok(Some(message.len())));
            assert!(tried <= 3 * message.len() + 100, "{tried} values tried for {} bytes", message.len());
        }
    }

    proptest! {
        #[test]
        fn a_scan_in_pieces_finds_what_a_reader_of_the_whole_finds(
            message in prop::sample::select(messages()),
            changed in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![0_u8, 1, 2, 3, 11, 12, 13, 14, 15, 0x7F, 0xFF])), 0..4),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut message = message;
            let length = message.len().min(400);
            for (at, byte) in changed {
                message[at.index(length)] = byte;
            }
            message.extend_from_slice(b"rest");
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(message.len())).collect();
            ends.sort_unstable();
            ends.push(message.len());
            let mut scanner = MessageScanner::default();
            for end in ends {
                let found = scanner.end(&message[..end]);
                prop_assert_eq!(&found, &whole(&message[..end]));
                if found != Ok(None) {
                    break;
                }
            }
        }
    }
}
