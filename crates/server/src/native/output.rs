//! The unsent answers of a connection: envelopes in one buffer, in v5 wrapped into segments just before they are sent.
//!
//! A long envelope that is already complete is never copied: it is sent from its own buffer, in v5 a few segments at a
//! time. Its charge on the memory account is released when it has been sent.
//!
//! All answers to requests that arrived together are sent in one write. An idle connection owns no buffer: it borrows
//! one from its event loop while it is polled, and keeps it only if the client does not read its answers in time.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use helenus_host::account::{Charge, Share};
use helenus_wire::native::{MAX_PAYLOAD, OpenSegment, SegmentFormat, SegmentWriter};
use tokio::io::AsyncWrite;

/// From this length on, the open segment is closed; a longer payload would have to be copied to be split.
const RUN_BYTES_MAX: usize = MAX_PAYLOAD / 2;

/// A buffer that has grown beyond this is freed, not given back to the event loop.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A buffer of this size or more is charged to the memory account while its client does not read it.
const CHARGED_BYTES: u64 = 64 << 10;

/// Segments of a long envelope that are encoded at once.
const PARTS_AT_ONCE: usize = 4;

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
    segments: Option<(SegmentFormat, SegmentWriter)>,
    open: Option<(OpenSegment, usize)>,
    /// Long envelopes. Once one is being sent, nothing is sent between its parts.
    whole: VecDeque<Whole>,
    /// Segments of the first long envelope, and how many of their bytes have been sent.
    parts: (Vec<u8>, usize),
    /// Bytes sent since the connection began; wraps around.
    left: usize,
    /// The charge for `bytes` while the client does not read them.
    kept: Option<Charge>,
}

impl Output {
    /// Puts all further envelopes into segments.
    pub fn wrap(&mut self, format: SegmentFormat) {
        self.seal();
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
        self.bytes.len() - self.written + self.parts.0.len() - self.parts.1 + whole
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
            From::Bytes => self.bytes.get(self.written..),
            From::Whole => self.whole.front().and_then(|whole| whole.bytes.get(whole.taken..)),
            From::Parts => self.parts.0.get(self.parts.1..),
        };
        rest.unwrap_or_default()
    }

    /// Records that so many bytes of this source have been sent.
    fn advance(&mut self, from: From, count: usize) {
        self.left = self.left.wrapping_add(count);
        match from {
            From::Bytes => self.written += count,
            From::Whole => self.whole.front_mut().into_iter().for_each(|whole| whole.taken += count),
            From::Parts => self.parts.1 += count,
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
        if self.parts.1 < self.parts.0.len() {
            return Some(From::Parts);
        }
        self.parts = (Vec::new(), 0);
        if self.whole.front().is_some_and(|whole| whole.taken == whole.bytes.len()) {
            self.whole.pop_front();
        }
        let is_under_way = self.whole.front().is_some_and(|whole| whole.taken > 0);
        if !is_under_way && self.written < self.bytes.len() {
            return Some(From::Bytes);
        }
        if !is_under_way {
            self.bytes.clear();
            self.written = 0;
            self.kept = None;
        }
        let whole = self.whole.front_mut()?;
        let Some((_, writer)) = &mut self.segments else {
            return Some(From::Whole);
        };
        let rest = whole.bytes.get(whole.taken..).unwrap_or_default();
        for part in rest.chunks(MAX_PAYLOAD).take(PARTS_AT_ONCE) {
            writer.append_part(part, &mut self.parts.0);
            whole.taken += part.len();
        }
        Some(From::Parts)
    }
}

/// A source of bytes to send.
#[derive(Clone, Copy)]
enum From {
    Bytes,
    /// A long envelope.
    Whole,
    /// Segments of a long envelope.
    Parts,
}
