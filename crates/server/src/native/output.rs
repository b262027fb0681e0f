//! What a connection has yet to send: envelopes in one buffer, in v5 wrapped into segments just before they leave.
//!
//! All answers to requests that arrived together leave in one write. An idle connection owns no buffer: it borrows its
//! door's while it is polled and keeps it only if the client reads slower than it asks.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use helenus_wire::native::{MAX_PAYLOAD, OpenSegment, SegmentFormat, SegmentWriter};
use tokio::io::AsyncWrite;

/// A run of envelopes this long is closed into a segment; a longer run would be copied to be cut.
const RUN_BYTES_MAX: usize = MAX_PAYLOAD / 2;

/// A buffer that has grown beyond this is given back to the system, not to the door.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Answers on their way out.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// How much of `bytes` has left.
    written: usize,
    segments: Option<(SegmentFormat, SegmentWriter)>,
    open: Option<(OpenSegment, usize)>,
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
        self.bytes.len() - self.written
    }

    /// Bytes of what is under way that have left: as long as this does not grow, the client takes nothing.
    pub fn left_bytes(&self) -> usize {
        self.written
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
        while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut *stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.bytes.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}
