//! The answers of a connection that are not sent yet, and their charge on the memory account.
//!
//! A connection may wait long: for its client, for the log, for a thread, for memory. Whatever it keeps meanwhile is charged or
//! little. `connection` and `calls` say when they wait.

use helenus_host::account::{Charge, Share};

/// The buffer that is kept without a charge, bytes.
pub(super) const UNCHARGED_BYTES: usize = 64 << 10;

/// The answers, one after the other.
#[derive(Default)]
pub(super) struct Output {
    pub bytes: Vec<u8>,
    charge: Option<Charge>,
}

impl Output {
    /// Charges the buffer, even beyond the limit, if it is large: its memory is allocated.
    pub fn charge(&mut self) {
        let kept = self.bytes.capacity();
        if kept < UNCHARGED_BYTES {
            return;
        }
        match &mut self.charge {
            Some(charge) if charge.bytes() >= kept as u64 => {}
            Some(charge) => charge.resize(kept as u64),
            none => *none = Some(Charge::force(Share::Answers, kept as u64)),
        }
    }

    /// Called when all answers have been sent.
    pub fn sent(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > UNCHARGED_BYTES {
            self.bytes = Vec::new();
        }
        self.charge = None;
    }

    /// Called before a wait that is not for the sending of these answers: without answers nothing is kept.
    pub fn rest(&mut self) {
        if self.bytes.is_empty() {
            *self = Output::default();
        } else {
            self.charge();
        }
    }

    /// Adds an answer that was made elsewhere, with the charge of its buffer if it is large.
    pub fn add(&mut self, answer: Vec<u8>, charge: Option<Charge>) {
        if self.bytes.is_empty() {
            // Not copied.
            *self = Output { bytes: answer, charge };
        } else {
            self.bytes.extend_from_slice(&answer);
            self.charge();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charged(output: &Output) -> u64 {
        output.charge.as_ref().map_or(0, Charge::bytes)
    }

    #[test]
    fn what_is_kept_is_charged_or_little() {
        for length in [1, 1000, UNCHARGED_BYTES - 1, UNCHARGED_BYTES, 900_000, 1 << 20, 5 << 20] {
            let mut output = Output::default();
            output.bytes.extend_from_slice(&vec![b'x'; length]);
            output.rest();
            let uncharged = |output: &Output| output.bytes.capacity() as u64 - charged(output);
            assert!(uncharged(&output) < UNCHARGED_BYTES as u64, "{length}");
            // More came, as of calls that are answered at once.
            output.bytes.extend_from_slice(&vec![b'x'; 2 << 20]);
            output.charge();
            assert!(uncharged(&output) < UNCHARGED_BYTES as u64, "{length}");
            output.add(vec![b'x'; 1 << 20], None);
            assert!(uncharged(&output) < UNCHARGED_BYTES as u64, "{length}");
            output.sent();
            assert_eq!(charged(&output), 0);
            assert!(output.bytes.capacity() <= UNCHARGED_BYTES, "{length}: {}", output.bytes.capacity());
            output.rest();
            assert_eq!(output.bytes.capacity(), 0, "nothing is kept without answers");
        }
    }

    #[test]
    fn an_answer_that_was_made_elsewhere_keeps_its_charge() {
        let mut output = Output::default();
        let answer = vec![b'x'; 1 << 20];
        let at = answer.as_ptr();
        output.add(answer, Some(Charge::force(Share::Answers, 1 << 20)));
        assert_eq!((output.bytes.as_ptr(), charged(&output)), (at, 1 << 20));
    }
}
