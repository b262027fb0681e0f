//! What a connection has yet to send: envelopes in one buffer, in v5 wrapped into segments just before they leave.
//!
//! A long envelope that is whole already is never copied: it leaves from where it was made, in v5 a few segments at a time,
//! and what it holds on the account of memory is given back when it has left.
//!
//! All answers to requests that arrived together leave in one write. An idle connection owns no buffer: it borrows its
//! door's while it is polled and keeps it only if the client reads slower than it asks.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use helenus_host::account::{Charge, Share};
use helenus_wire::native::{MAX_PAYLOAD, OpenSegment, SegmentFormat, SegmentWriter};
use tokio::io::AsyncWrite;

/// A run of envelopes this long is closed into a segment; a longer run would be copied to be cut.
const RUN_BYTES_MAX: usize = MAX_PAYLOAD / 2;

/// A buffer that has grown beyond this is given back to the system, not to the door.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A buffer of this size or more is on the account while its client does not take what is in it.
const CHARGED_BYTES: u64 = 64 << 10;

/// Segments of a long envelope that are made at once.
const PARTS_AT_ONCE: usize = 4;

/// A long envelope on its way out.
struct Whole {
    bytes: Vec<u8>,
    /// How much of it has left, or is in segments.
    taken: usize,
    _charge: Option<Charge>,
}

/// Answers on their way out.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// How much of `bytes` has left.
    written: usize,
    segments: Option<(SegmentFormat, SegmentWriter)>,
    open: Option<(OpenSegment, usize)>,
    /// Long envelopes; once one is under way, nothing comes between its parts.
    whole: VecDeque<Whole>,
    /// Segments of the first of them, and how much of them has left.
    parts: (Vec<u8>, usize),
    /// Bytes that have left since the connection began; comes round.
    left: usize,
    /// `bytes` on the account, while its client does not take them.
    kept: Option<Charge>,
}

impl Output {
    /// From here on envelopes go into segments.
    pub fn wrap(&mut self, format: SegmentFormat) {
        self.seal();
        self.segments = Some((format, SegmentWriter::new(format)));
    }

    /// Where to append envelopes; whole ones only, and [`Output::appended`] after them.
    pub fn envelopes(&mut self) -> &mut Vec<u8> {
        if let (Some((_, writer)), None) = (&self.segments, &self.open) {
            self.open = Some((writer.open(&mut self.bytes), self.bytes.len()));
        }
        &mut self.bytes
    }

    /// Takes an envelope that is whole, and what it holds on the account.
    pub fn take_whole(&mut self, envelope: Vec<u8>, charge: Option<Charge>) {
        if envelope.len() <= MAX_PAYLOAD {
            self.envelopes().extend_from_slice(&envelope);
            self.appended();
        } else {
            self.whole.push_back(Whole { bytes: envelope, taken: 0, _charge: charge });
        }
    }

    /// Closes the segment under way if it is long enough.
    #[inline]
    pub fn appended(&mut self) {
        if self.open.as_ref().is_some_and(|(_, start)| self.bytes.len() - start >= RUN_BYTES_MAX) {
            self.seal();
        }
    }

    /// Closes the segment under way.
    fn seal(&mut self) {
        if let (Some((open, _)), Some((_, writer))) = (self.open.take(), &mut self.segments) {
            writer.close(open, &mut self.bytes);
        }
    }

    /// Bytes that have not left yet.
    pub fn unsent(&self) -> usize {
        let whole: usize = self.whole.iter().map(|whole| whole.bytes.len() - whole.taken).sum();
        self.bytes.len() - self.written + self.parts.0.len() - self.parts.1 + whole
    }

    /// Bytes that have left: as long as this does not grow, the client takes nothing.
    pub fn left_bytes(&self) -> usize {
        self.left
    }

    /// Borrows `buffer`, which is empty, unless there is something unsent in a buffer of our own.
    pub fn borrow(&mut self, buffer: &mut Vec<u8>) {
        if self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, buffer);
        }
    }

    /// Gives the buffer back if everything has left.
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

    /// Writes until everything has left (`Ready(Ok)`) or the socket takes no more (`Pending`).
    pub fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.seal();
        while let Some(from) = self.next() {
            let rest = match from {
                From::Bytes => self.bytes.get(self.written..),
                From::Whole => self.whole.front().and_then(|whole| whole.bytes.get(whole.taken..)),
                From::Parts => self.parts.0.get(self.parts.1..),
            };
            let count = match Pin::new(&mut *stream).poll_write(context, rest.unwrap_or_default()) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.charge_kept();
                    return Poll::Pending;
                }
            };
            self.left = self.left.wrapping_add(count);
            match from {
                From::Bytes => self.written += count,
                From::Whole => self.whole.front_mut().into_iter().for_each(|whole| whole.taken += count),
                From::Parts => self.parts.1 += count,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Puts what the client does not take on the account. A client that takes its answers at once never comes here.
    fn charge_kept(&mut self) {
        let bytes = self.bytes.capacity() as u64;
        let is_charged = self.kept.as_ref().is_some_and(|kept| kept.bytes() >= bytes);
        if bytes >= CHARGED_BYTES && !is_charged {
            self.kept = None;
            self.kept = Some(Charge::force(Share::Answers, bytes));
        }
    }

    /// Where the next bytes come from; `None` when everything has left.
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
        let Some((_, writer)) = &mut self.segments else { return Some(From::Whole) };
        let rest = whole.bytes.get(whole.taken..).unwrap_or_default();
        for part in rest.chunks(MAX_PAYLOAD).take(PARTS_AT_ONCE) {
            writer.append_part(part, &mut self.parts.0);
            whole.taken += part.len();
        }
        Some(From::Parts)
    }
}

/// Where bytes leave from.
#[derive(Clone, Copy)]
enum From {
    Bytes,
    /// A long envelope.
    Whole,
    /// Segments of one.
    Parts,
}
