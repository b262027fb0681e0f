//! A stream whose other end must move: a write that makes no progress for too long is an error.
//!
//! Used by `serve`, whose protocol code (hyper) has a time limit for reads alone. The native protocol and RPC keep the same
//! promise with `reader_grace`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A stream of which the reader takes something at least once in a while.
pub(crate) struct MovingStream<S> {
    stream: S,
    grace: Duration,
    /// When the reader is given up; `None` while it takes everything.
    due: Option<Pin<Box<Sleep>>>,
}

impl<S> MovingStream<S> {
    /// A stream that ends if its reader takes nothing for so long.
    pub fn new(stream: S, grace: Duration) -> MovingStream<S> {
        MovingStream { stream, grace, due: None }
    }

    /// Passes on what a write came to. One that waits is given up in time.
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.due = None;
            return written;
        }
        let grace = self.grace;
        let due = self.due.get_or_insert_with(|| Box::pin(tokio::time::sleep(grace)));
        match due.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MovingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MovingStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, ended)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn run(work: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap().block_on(work);
    }

    #[test]
    fn a_reader_that_takes_nothing_for_long_is_given_up() {
        run(async {
            let (ours, _theirs) = tokio::io::duplex(1000);
            let mut stream = MovingStream::new(ours, Duration::from_millis(20));
            let error = stream.write_all(&[7; 1001]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn a_reader_that_takes_a_little_now_and_then_gets_everything() {
        run(async {
            let grace = Duration::from_millis(200);
            let (ours, mut theirs) = tokio::io::duplex(10);
            let mut stream = MovingStream::new(ours, grace);
            let begin = tokio::time::Instant::now();
            let writing = tokio::spawn(async move { stream.write_all(&[7; 100]).await });
            let mut got = [0; 10];
            for _ in 0..10 {
                tokio::time::sleep(grace / 5).await;
                theirs.read_exact(&mut got).await.unwrap();
            }
            assert!(begin.elapsed() > grace);
            writing.await.unwrap().unwrap();
        });
    }
}
