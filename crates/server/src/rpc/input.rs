//! What a client has sent and nobody has served yet: the messages of one connection, and the room for them.
//!
//! Called by `connection`, which reads into `bytes`. Memory is asked for before it is taken, by the rule of the native protocol
//! (`native::in_flight`): a connection keeps little, or one read while all unfinished messages hold little; for more it needs
//! a reservation. A frame states its length and is reserved whole. A message without a frame does not, so its reservation doubles as it
//! grows, and what is held stays reserved while it waits to grow.

use helenus_wire::thrift::{
    Framing, Limits, MessageHead, MessageScanner, Reader, ThriftError, arriving_message, detect_framing,
};

use crate::native::{ConnectionShare, LITTLE_BYTES, PartialFrame, Reservation};

/// Bytes of a read, and of a buffer that is kept while a client is busy.
const READ_BYTES: usize = 64 << 10;

/// The input of a connection.
pub(super) struct Input {
    pub bytes: Vec<u8>,
    /// How the client frames its messages, once that is known.
    pub framing: Option<Framing>,
    limits: Limits,
    /// How far the first message has been looked through for its end.
    scanner: MessageScanner,
    /// The room for a long message, until it is answered.
    reservation: Option<Reservation>,
    /// The bytes that are kept while there is no reservation.
    partial: PartialFrame,
}

impl Input {
    pub fn new(share: &ConnectionShare, limits: Limits) -> Input {
        let partial = PartialFrame::new(&share.account);
        let scanner = MessageScanner::default();
        Input { bytes: Vec::new(), framing: None, limits, scanner, reservation: None, partial }
    }

    /// Whether a message is complete.
    ///
    /// # Errors
    /// What has come is no message, or a longer one than is allowed.
    pub fn has_message(&mut self) -> Result<bool, ThriftError> {
        if self.framing.is_none() {
            self.framing = detect_framing(&self.bytes)?;
        }
        Ok(arriving_message(&self.bytes, self.framing, self.limits, &mut self.scanner)?.is_some())
    }

    /// The stated length of the incoming message; without a frame, the bytes received so far.
    pub fn announced(&self) -> u64 {
        self.frame_length().unwrap_or(self.bytes.len() as u64)
    }

    fn frame_length(&self) -> Option<u64> {
        match (self.framing, self.bytes.first_chunk::<4>()) {
            (Some(Framing::Framed), Some(length)) => {
                Some(4 + u64::from(u32::from_be_bytes(*length)).min(self.limits.frame))
            }
            _ => None,
        }
    }

    /// The name and the number of the incoming call, once they have come.
    pub fn head(&self) -> Option<(&[u8], i32)> {
        let start = if self.framing == Some(Framing::Framed) { 4 } else { 0 };
        let read = MessageHead::read(&mut Reader::new(self.bytes.get(start..).unwrap_or_default()));
        read.ok().map(|head| (head.name, head.number))
    }

    /// Makes room for the next read. False: there is none at this moment.
    pub fn make_room(&mut self, share: &ConnectionShare) -> bool {
        let unreserved = if self.partial.are_many() { LITTLE_BYTES } else { READ_BYTES };
        let length = self.bytes.len();
        let target = if length < unreserved { unreserved } else { self.target(length) };
        let reserved = self.reservation.as_ref().map_or(0, Reservation::bytes);
        if target > unreserved && target as u64 > reserved {
            let has_room = match &mut self.reservation {
                Some(reservation) => reservation.try_grow(target as u64),
                none => {
                    *none = share.account.try_take(target as u64);
                    none.is_some()
                }
            };
            if !has_room {
                self.note();
                return false;
            }
        }
        self.bytes.reserve_exact(target - length);
        self.note();
        true
    }

    /// The capacity that a message needs of which this many bytes have come.
    fn target(&self, length: usize) -> usize {
        let whole = match self.frame_length() {
            Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
            None => (2 * length).min(usize::try_from(self.limits.message).unwrap_or(usize::MAX)),
        };
        whole.max(length + LITTLE_BYTES)
    }

    /// Counts what is kept without a reservation. A buffer counts with its capacity, which is what it takes.
    fn note(&mut self) {
        let is_counted = self.reservation.is_none() && self.bytes.capacity() > LITTLE_BYTES;
        self.partial.set(if is_counted { self.bytes.capacity() } else { 0 });
    }

    /// Forgets the first bytes, which have been served. An empty buffer is freed, and its room with it.
    pub fn served(&mut self, bytes: usize) {
        if bytes > 0 {
            self.bytes.drain(..bytes.min(self.bytes.len()));
            self.scanner = MessageScanner::default();
        }
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
            self.reservation = None;
        }
        self.note();
    }

    /// Takes the message that is all of the input, behind its first `before` bytes, with its room. A long one is not copied.
    pub fn take_whole(&mut self, before: usize) -> (Vec<u8>, Option<Reservation>) {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.scanner = MessageScanner::default();
        bytes.drain(..before.min(bytes.len()));
        if bytes.capacity() > 2 * bytes.len() {
            bytes.shrink_to_fit();
        }
        let reservation = self.reservation.take();
        self.note();
        (bytes, reservation)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::native::InFlightBytes;

    /// The beginnings of a long message: framed, and not, both strict and not.
    const BEGINNINGS: [&[u8]; 4] = [
        &[0, 14, 0, 0, 0x80, 1, 0, 1, 0, 0, 0, 3, b'g', b'e', b't', 0, 0, 0, 1, 11, 0, 1, 0, 13, 0, 0],
        &[0, 14, 0, 0, 0, 0, 0, 3, b'g', b'e', b't', 1, 0, 0, 0, 1, 11, 0, 1, 0, 13, 0, 0],
        &[0x80, 1, 0, 1, 0, 0, 0, 3, b'g', b'e', b't', 0, 0, 0, 1, 11, 0, 1, 0, 13, 0, 0],
        &[0, 0, 0, 3, b'g', b'e', b't', 1, 0, 0, 0, 1, 11, 0, 1, 0, 13, 0, 0],
    ];

    /// However many connections send a part of a message, and however long that is, they hold what the limit allows and a
    /// little each.
    #[test]
    fn unfinished_messages_of_all_connections_stay_within_the_limit() {
        const LIMIT: u64 = 4 << 20;
        const CONNECTIONS: usize = 2000;
        for beginning in BEGINNINGS {
            for sent in [100, 5_000, 60_000, 120_000, 500_000] {
                let in_flight = InFlightBytes::new(LIMIT, LIMIT);
                let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
                let shares: Vec<_> =
                    (0..CONNECTIONS).map(|_| in_flight.enter(address, None).expect("no limit")).collect();
                let mut inputs: Vec<_> =
                    shares.iter().map(|share| Input::new(share, Limits::default())).collect();
                // Every connection reads what it has room for, in turns, as on an event loop.
                for _round in 0..20 {
                    for (input, share) in inputs.iter_mut().zip(&shares) {
                        if input.bytes.len() >= sent || !input.make_room(share) {
                            continue;
                        }
                        let count =
                            (input.bytes.capacity() - input.bytes.len()).min(sent - input.bytes.len());
                        let from = input.bytes.len();
                        let more = (from..from + count).map(|at| beginning.get(at).copied().unwrap_or(b'x'));
                        input.bytes.extend(more);
                        assert!(!input.has_message().expect("the beginning of a message"));
                    }
                }
                let held: usize = inputs.iter().map(|input| input.bytes.capacity()).sum();
                let bound = LIMIT as usize + LIMIT as usize / 8 + CONNECTIONS * LITTLE_BYTES + READ_BYTES;
                assert!(held <= bound, "{sent} bytes each of {beginning:?}: {held} bytes, bound {bound}");
            }
        }
    }

    #[test]
    fn a_message_that_is_served_gives_its_room_back() {
        let in_flight = InFlightBytes::new(1 << 20, 1 << 20);
        let share = in_flight.enter(IpAddr::V4(Ipv4Addr::LOCALHOST), None).expect("no limit");
        let mut input = Input::new(&share, Limits::default());
        let message = [&[0, 2, 0, 0, 0x80][..], &vec![0; (2 << 16) - 1]].concat();
        while !input.has_message().expect("a message") {
            assert!(input.make_room(&share));
            let from = input.bytes.len();
            let to = message.len().min(input.bytes.capacity());
            input.bytes.extend_from_slice(&message[from..to]);
        }
        assert_eq!(input.bytes.len(), message.len());
        assert!(in_flight.in_flight().0 >= message.len() as u64);
        input.served(message.len());
        assert_eq!(in_flight.in_flight().0, 0);
    }
}
