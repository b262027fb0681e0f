//! The unsent answers of a connection: envelopes in one buffer, in v5 wrapped into segments just before they are sent.
//!
//! A long envelope that is already complete is sent from its own buffer, in v5 one segment at a time. Its charge on the
//! memory account is released when it has been sent.
//!
//! All answers to requests that arrived together are sent in one write, in v5 one a segment: so each segment begins a
//! record of TLS, and no header is cut (see [`PART_PAYLOAD`]). An idle connection owns no buffer: it borrows
//! one from its event loop while it is polled, and keeps it only if the client does not read its answers in time.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use helenus_host::account::{self, Charge, Share};
use helenus_wire::native::{MAX_PAYLOAD, OpenSegment, PART_PAYLOAD, SegmentFormat, SegmentWriter};
use tokio::io::AsyncWrite;

/// From this length on, the open segment is closed; a longer payload would have to be copied to be split.
const RUN_BYTES_MAX: usize = MAX_PAYLOAD / 2;

/// A buffer that has grown beyond this is freed, not given back to the event loop.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// When a client has more unread answers than this, its requests are not read.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// The same limit while the memory for requests is used up.
const UNSENT_BYTES_MAX_SHORT: usize = 64 << 10;
/// A buffer of this size or more is charged to the memory account while its client does not read it.
const CHARGED_BYTES: u64 = 64 << 10;

/// A long envelope that is being sent.
struct Whole {
    bytes: Vec<u8>,
    /// The number of bytes that have been sent or are in segments.
    taken: usize,
    _charge: Option<Charge>,
}

/// The unsent answers of a connection.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// The number of bytes of `bytes` that have been sent.
    written: usize,
    /// In v5 the end of the segment that is being sent, or of what was sent before the first one.
    segment_end: usize,
    segments: Option<(SegmentFormat, SegmentWriter)>,
    open: Option<(OpenSegment, usize)>,
    /// Long envelopes. Once one is being sent, nothing is sent between its parts.
    whole: VecDeque<Whole>,
    /// The next segment of the first long envelope, and how many of its bytes have been sent.
    part: (Vec<u8>, usize),
    /// Bytes sent since the connection began; wraps around.
    left: usize,
    /// The charge for `bytes` while the client does not read them.
    kept: Option<Charge>,
}

impl Output {
    /// Puts all further envelopes into segments.
    pub fn wrap(&mut self, format: SegmentFormat) {
        self.seal();
        self.segment_end = self.bytes.len();
        self.segments = Some((format, SegmentWriter::new(format)));
    }

    /// The buffer to append complete envelopes to; the caller calls [`Output::appended`] after them.
    pub fn envelopes(&mut self) -> &mut Vec<u8> {
        if let (Some((_, writer)), None) = (&self.segments, &self.open) {
            self.open = Some((writer.open(&mut self.bytes), self.bytes.len()));
        }
        &mut self.bytes
    }

    /// Takes a complete envelope and its charge on the memory account.
    pub fn take_whole(&mut self, envelope: Vec<u8>, charge: Option<Charge>) {
        if envelope.len() <= MAX_PAYLOAD {
            self.envelopes().extend_from_slice(&envelope);
            self.appended();
        } else {
            self.whole.push_back(Whole { bytes: envelope, taken: 0, _charge: charge });
        }
    }

    /// Closes the open segment if it is long enough.
    #[inline]
    pub fn appended(&mut self) {
        if self.open.as_ref().is_some_and(|(_, start)| self.bytes.len() - start >= RUN_BYTES_MAX) {
            self.seal();
        }
    }

    /// Closes the open segment.
    fn seal(&mut self) {
        if let (Some((open, _)), Some((_, writer))) = (self.open.take(), &mut self.segments) {
            writer.close(open, &mut self.bytes);
        }
    }

    /// Bytes that have not been sent yet.
    pub fn unsent(&self) -> usize {
        let whole: usize = self.whole.iter().map(|whole| whole.bytes.len() - whole.taken).sum();
        self.bytes.len() - self.written + self.part.0.len() - self.part.1 + whole
    }

    /// Whether the client has left so much unread that its next requests wait.
    pub fn is_full(&self) -> bool {
        let most = if account::is_full() { UNSENT_BYTES_MAX_SHORT } else { UNSENT_BYTES_MAX };
        self.unsent() >= most
    }

    /// Bytes that have been sent. While this does not grow, the client takes nothing.
    pub fn left_bytes(&self) -> usize {
        self.left
    }

    /// Borrows the empty `buffer`, unless an own buffer has unsent bytes.
    pub fn borrow(&mut self, buffer: &mut Vec<u8>) {
        if self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, buffer);
        }
    }

    /// Gives the buffer back if all of it has been sent.
    pub fn give_back(&mut self, buffer: &mut Vec<u8>) {
        if !self.bytes.is_empty() {
            return;
        }
        let own = std::mem::take(&mut self.bytes);
        if own.capacity() <= KEPT_BYTES_MAX && buffer.capacity() < own.capacity() {
            *buffer = own;
        }
        if let Some((format, writer)) = &mut self.segments {
            *writer = SegmentWriter::new(*format);
        }
    }

    /// Writes until everything has been sent (`Ready(Ok)`) or the socket takes no more (`Pending`).
    pub fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.seal();
        while let Some(from) = self.next() {
            let count = match Pin::new(&mut *stream).poll_write(context, self.rest(from)) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.charge_kept();
                    return Poll::Pending;
                }
            };
            self.advance(from, count);
        }
        // An encrypted stream may hold what it has taken.
        Pin::new(stream).poll_flush(context)
    }

    /// All that has not been sent, as it goes to the socket.
    pub fn into_unsent(mut self) -> Vec<u8> {
        self.seal();
        let mut unsent = Vec::new();
        while let Some(from) = self.next() {
            let rest = self.rest(from);
            unsent.extend_from_slice(rest);
            let count = rest.len();
            self.advance(from, count);
        }
        unsent
    }

    /// The bytes of this source that have not been sent.
    fn rest(&self, from: From) -> &[u8] {
        let rest = match from {
            From::Bytes if self.segments.is_some() => self.bytes.get(self.written..self.segment_end),
            From::Bytes => self.bytes.get(self.written..),
            From::Whole => self.whole.front().and_then(|whole| whole.bytes.get(whole.taken..)),
            From::Part => self.part.0.get(self.part.1..),
        };
        rest.unwrap_or_default()
    }

    /// Records that so many bytes of this source have been sent.
    fn advance(&mut self, from: From, count: usize) {
        self.left = self.left.wrapping_add(count);
        match from {
            From::Bytes => self.written += count,
            From::Whole => self.whole.front_mut().into_iter().for_each(|whole| whole.taken += count),
            From::Part => self.part.1 += count,
        }
    }

    /// Charges the bytes that the client does not read to the memory account. Not called for a client that reads its
    /// answers at once.
    fn charge_kept(&mut self) {
        let bytes = self.bytes.capacity() as u64;
        let is_charged = self.kept.as_ref().is_some_and(|kept| kept.bytes() >= bytes);
        if bytes >= CHARGED_BYTES && !is_charged {
            self.kept = None;
            self.kept = Some(Charge::force(Share::Answers, bytes));
        }
    }

    /// The source of the next bytes to send; `None` when everything has been sent.
    fn next(&mut self) -> Option<From> {
        if self.part.1 < self.part.0.len() {
            return Some(From::Part);
        }
        self.part = (Vec::new(), 0);
        if self.whole.front().is_some_and(|whole| whole.taken == whole.bytes.len()) {
            self.whole.pop_front();
        }
        let is_under_way = self.whole.front().is_some_and(|whole| whole.taken > 0);
        if !is_under_way && self.written < self.bytes.len() {
            if let Some((format, _)) = &self.segments
                && self.written >= self.segment_end
            {
                let rest = self.bytes.get(self.written..).unwrap_or_default();
                let size = format.size_of_first(rest).unwrap_or(rest.len());
                self.segment_end = self.bytes.len().min(self.written + size);
            }
            return Some(From::Bytes);
        }
        if !is_under_way {
            self.bytes.clear();
            self.written = 0;
            self.segment_end = 0;
            self.kept = None;
        }
        let whole = self.whole.front_mut()?;
        let Some((_, writer)) = &mut self.segments else {
            return Some(From::Whole);
        };
        let rest = whole.bytes.get(whole.taken..).unwrap_or_default();
        let part = rest.get(..PART_PAYLOAD).unwrap_or(rest);
        writer.append_part(part, &mut self.part.0);
        whole.taken += part.len();
        Some(From::Part)
    }
}

/// A source of bytes to send.
#[derive(Clone, Copy)]
enum From {
    Bytes,
    /// A long envelope.
    Whole,
    /// A segment of a long envelope.
    Part,
}

#[cfg(test)]
mod tests {
    use helenus_wire::native::Segment;

    use super::*;

    /// Takes what is written, at most `room` bytes of each write, and notes where each write begins.
    struct Recorder {
        room: usize,
        bytes: Vec<u8>,
        starts: Vec<usize>,
    }

    impl AsyncWrite for Recorder {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.room);
            let start = self.bytes.len();
            self.starts.push(start);
            self.bytes.extend_from_slice(bytes.get(..count).unwrap_or_default());
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Sends a long envelope, built in the buffer for all or in its own, and checks how it is written.
    fn check(format: SegmentFormat, envelope: &[u8], is_copied: bool) {
        let before = b"before the first segment";
        let mut output = Output::default();
        output.envelopes().extend_from_slice(before);
        output.appended();
        output.wrap(format);
        if is_copied {
            output.envelopes().extend_from_slice(envelope);
            output.appended();
        } else {
            output.take_whole(envelope.to_vec(), None);
        }
        let mut recorder = Recorder { room: 64 << 10, bytes: Vec::new(), starts: Vec::new() };
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(output.poll_write(&mut recorder, &mut context), Poll::Ready(Ok(()))));

        let (mut at, mut count) = (before.len(), 0);
        while let Some(rest) = recorder.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            assert!(recorder.starts.contains(&at), "no write begins with the segment at {at}");
            let is_at_border = (at - before.len()).is_multiple_of(4096);
            assert!(format == SegmentFormat::Lz4 || is_at_border, "a segment at {at}");
            let segment = Segment::read(rest, format).expect("a segment").expect("a whole segment");
            at += segment.size;
            count += segment.decompressed_length.unwrap_or(segment.payload.len());
        }
        assert_eq!(count, envelope.len());
    }

    /// Each segment begins a write, so that no header is divided between records of TLS, and the plain segments of a
    /// long envelope begin at multiples of 4096 bytes.
    #[test]
    fn the_header_of_a_segment_is_sent_whole() {
        let noise: Vec<u8> =
            (0..1_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for length in [MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD, 2 * PART_PAYLOAD, 654_321, 4_000_000] {
            let mut envelope = noise.get(..length).expect("noise").to_vec();
            envelope.get_mut(..length / 3).expect("a third").fill(7); // compressible
            let header = [&[0x85, 0, 0, 1, 8][..], &(length as u32 - 9).to_be_bytes()].concat();
            envelope.splice(..9, header);
            for is_copied in [false, true] {
                check(SegmentFormat::Plain, &envelope, is_copied);
                check(SegmentFormat::Lz4, &envelope, is_copied);
            }
        }
    }
}
