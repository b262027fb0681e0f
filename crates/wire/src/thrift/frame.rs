//! Finds the messages in a client's input, with or without frames.
//!
//! A frame is a length (i32) and a message. The first bytes show whether a client uses frames: a strict message begins
//! with 0x80, a frame with the high byte of a length below 2^31, and a name with letters:
//!
//! ```text
//! 80 01 ..              without frames, strict
//! len len len len 80    frames, strict          len len len len 00   frames, not strict
//! len len len len a-z   without frames, not strict
//! ```

use super::ThriftError;
use super::scan::MessageScanner;

/// Whether a client puts its messages into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A length precedes each message.
    Framed,
    /// There are no frames.
    Unframed,
}

/// Limits in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest frame.
    pub frame: u64,
    /// The longest message without a frame.
    pub message: u64,
}

impl Default for Limits {
    /// Cassandra's limits: `thrift_framed_transport_size_in_mb` 15, `thrift_max_message_length_in_mb` 16.
    fn default() -> Limits {
        Limits { frame: 15 << 20, message: 16 << 20 }
    }
}

/// A message found in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Bytes of the input that it occupies, including its frame's length.
    pub size: usize,
    /// Whether it was framed.
    pub framing: Framing,
}

/// Finds the first message of the input; `None` while it is incomplete. `framing` is how the client framed earlier
/// messages, if known.
///
/// # Errors
/// No message can be found: `FrameTooLong`, `MessageTooLong`, `NotAMessage`, and the errors of a message without a
/// frame, which must be parsed to find its end.
pub fn next_message<'a>(
    input: &'a [u8],
    framing: Option<Framing>,
    limits: Limits,
) -> Result<Option<Message<'a>>, ThriftError> {
    arriving_message(input, framing, limits, &mut MessageScanner::default())
}

/// The same for a message that arrives: each call gets the input of the one before and what has come since, and the same
/// scanner, so that no part of the message is read twice.
///
/// # Errors
/// As `next_message`.
pub fn arriving_message<'a>(
    input: &'a [u8],
    framing: Option<Framing>,
    limits: Limits,
    scanner: &mut MessageScanner,
) -> Result<Option<Message<'a>>, ThriftError> {
    let found = match framing {
        Some(framing) => Some(framing),
        None => detect_framing(input)?,
    };
    match found {
        None => Ok(None),
        Some(Framing::Framed) => framed(input, limits),
        Some(Framing::Unframed) => unframed(input, limits, scanner),
    }
}

/// Whether a client frames its messages, by the first bytes of its input; `None` while they are too few.
///
/// # Errors
/// `NotAMessage`.
pub fn detect_framing(input: &[u8]) -> Result<Option<Framing>, ThriftError> {
    match (input.first(), input.get(4)) {
        (None, _) => Ok(None),
        (Some(0x80), _) => Ok(Some(Framing::Unframed)),
        (Some(0x81..), _) => Err(ThriftError::NotAMessage),
        (_, None) => Ok(None),
        (_, Some(0x80 | 0)) => Ok(Some(Framing::Framed)),
        (_, Some(byte)) if byte.is_ascii_lowercase() => Ok(Some(Framing::Unframed)),
        _ => Err(ThriftError::NotAMessage),
    }
}

fn framed(input: &[u8], limits: Limits) -> Result<Option<Message<'_>>, ThriftError> {
    let Some((length, rest)) = input.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length);
    if u64::from(length) > limits.frame {
        return Err(ThriftError::FrameTooLong { bytes: u64::from(length), max: limits.frame });
    }
    let Some(bytes) = rest.get(..length as usize) else { return Ok(None) };
    Ok(Some(Message { bytes, size: 4 + bytes.len(), framing: Framing::Framed }))
}

fn unframed<'a>(
    input: &'a [u8],
    limits: Limits,
    scanner: &mut MessageScanner,
) -> Result<Option<Message<'a>>, ThriftError> {
    match scanner.end(input)? {
        Some(size) if size as u64 <= limits.message => {
            Ok(Some(Message { bytes: input.get(..size).unwrap_or(input), size, framing: Framing::Unframed }))
        }
        None if (input.len() as u64) < limits.message => Ok(None),
        Some(_) | None => Err(ThriftError::MessageTooLong { max: limits.message }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thrift::{MessageHead, Method, Reader, begin_call, end_message};

    fn call() -> Vec<u8> {
        let mut out = Vec::new();
        let at = begin_call(Method::DescribeVersion, 7, &mut out);
        out.push(0);
        end_message(at, &mut out);
        out
    }

    #[test]
    fn a_client_is_found_to_frame_or_not_by_its_first_bytes() {
        let framed = call();
        let strict = &framed[4..];
        let mut old = b"\0\0\0\x10describe_version\x01\0\0\0\x07\0".to_vec();
        let mut old_framed = (old.len() as u32).to_be_bytes().to_vec();
        old_framed.extend_from_slice(&old);
        for (input, framing) in [
            (&framed[..], Framing::Framed),
            (strict, Framing::Unframed),
            (&old[..], Framing::Unframed),
            (&old_framed[..], Framing::Framed),
        ] {
            for end in 0..input.len() {
                assert_eq!(next_message(&input[..end], None, Limits::default()), Ok(None));
            }
            let found = next_message(input, None, Limits::default()).unwrap().unwrap();
            assert_eq!((found.framing, found.size), (framing, input.len()));
            let head = MessageHead::read(&mut Reader::new(found.bytes)).unwrap();
            assert_eq!((head.name, head.number), (&b"describe_version"[..], 7));
        }
        old.splice(0..0, [b'G', b'E', b'T', b' ', b'/']);
        assert_eq!(next_message(&old, None, Limits::default()), Err(ThriftError::NotAMessage));
    }

    #[test]
    fn more_than_the_limits_is_refused_as_soon_as_it_is_known() {
        let limits = Limits { frame: 10, message: 10 };
        let long = [0, 0, 0, 11, 0x80];
        assert!(matches!(next_message(&long, None, limits), Err(ThriftError::FrameTooLong { .. })));
        let strict = &call()[4..];
        assert!(matches!(next_message(&strict[..10], None, limits), Err(ThriftError::MessageTooLong { .. })));
    }
}
