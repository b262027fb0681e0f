//! The answer to a client whose connection is refused before anything of it is served: an ERROR in the client's own version, made from its
//! first bytes alone.
//!
//! Called by server and gateway, each on its own sockets.

use super::{AfterRefusal, Refusal};
use crate::WireError;

/// The bytes of a frame with its version and stream: those that a refused client is asked for.
pub const REFUSED_FRONT: usize = 4;
/// The first byte of a client that begins with TLS.
pub const TLS_HANDSHAKE: u8 = 0x16;

/// What a refused client is sent. `front`: its first bytes; `None`: it has sent nothing in time. `None`: it begins with TLS and is closed at
/// once, as a handshake is work that a refused client does not get.
pub fn connection_refusal(front: Option<[u8; REFUSED_FRONT]>, reason: &str) -> Option<Vec<u8>> {
    let [version, _, high, low] = front.unwrap_or([4, 0, 0, 0]);
    if version == TLS_HANDSHAKE {
        return None;
    }
    let version = (version & 0x7F).clamp(1, 5);
    let stream = if version < 3 { i16::from(high as i8) } else { i16::from_be_bytes([high, low]) };
    let error = WireError::Overloaded { text: format!("The connection is refused: {reason}") };
    let refusal = Refusal { error, stream, answer_in: Some(version), then: AfterRefusal::Close };
    let mut out = Vec::new();
    refusal.encode(None, &mut out);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_first_byte_gets_an_answer_in_a_version_or_none_for_tls() {
        for first in 0..=u8::MAX {
            let answer = connection_refusal(Some([first, 0, 7, 9]), "full");
            if first == TLS_HANDSHAKE {
                assert_eq!(answer, None);
                continue;
            }
            let answer = answer.expect("it is told");
            let version = (first & 0x7F).clamp(1, 5);
            let begin: &[u8] = if version < 3 { &[7] } else { &[7, 9] };
            assert_eq!(answer.first(), Some(&(0x80 | version)), "{first}");
            assert_eq!(answer.get(2..2 + begin.len()), Some(begin), "{first}");
            assert!(String::from_utf8_lossy(&answer).contains("refused: full"));
        }
        assert_eq!(connection_refusal(None, "full").and_then(|answer| answer.first().copied()), Some(0x84));
    }
}
