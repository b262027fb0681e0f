//! A socket on which TLS is agreed: bounds what its client sends meanwhile.
//!
//! A handshake message may have 64 KiB, and rustls keeps what has come of it, with a buffer that grows by doubling. What a client sends by
//! itself is much shorter: a ClientHello has up to 2 KiB, a chain of certificates some more. So a handshake takes what `newcomers` charges
//! for it, whatever its client says.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that a client sends in a row until the handshake is over.
const FLIGHT_BYTES_MAX: usize = 16 << 10;

/// A socket, and the bytes that its client may still send before it gets an answer.
pub(crate) struct HandshakeSocket<S> {
    socket: S,
    /// `None`: the handshake is over.
    left: Option<usize>,
}

impl<S> HandshakeSocket<S> {
    pub fn new(socket: S) -> HandshakeSocket<S> {
        HandshakeSocket { socket, left: Some(FLIGHT_BYTES_MAX) }
    }

    /// The handshake is over: nothing is bounded here any more.
    pub fn finish(&mut self) {
        self.left = None;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HandshakeSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == Some(0) {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        self.left = self.left.map(|left| left.saturating_sub(read));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HandshakeSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(context, bytes))?;
        self.left = self.left.map(|_| FLIGHT_BYTES_MAX);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(context, parts))?;
        self.left = self.left.map(|_| FLIGHT_BYTES_MAX);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_client_sends_little_in_a_row_until_the_handshake_is_over() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        far.write_all(&vec![22; 400 << 10]).await.unwrap();
        let mut socket = HandshakeSocket::new(near);
        let mut part = vec![0; 4 << 10];
        for _ in 0..2 {
            let mut read = 0;
            let error = loop {
                match socket.read(&mut part).await {
                    Ok(bytes) => read += bytes,
                    Err(error) => break error,
                }
            };
            assert_eq!((read, error.kind()), (FLIGHT_BYTES_MAX, io::ErrorKind::InvalidData));
            // An answer: the client may send its next messages.
            socket.write_all(&[22; 100]).await.unwrap();
        }
        socket.finish();
        let mut rest = vec![0; (400 << 10) - 2 * FLIGHT_BYTES_MAX];
        socket.read_exact(&mut rest).await.unwrap();
    }

    /// A real handshake whose ClientHello is said to be long: it ends, and rustls has kept no more than is charged.
    #[tokio::test]
    async fn a_long_hello_is_refused() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        // A record of 16 KiB each, of a ClientHello of 65,280 bytes.
        let mut hello = vec![1, 0, 0xff, 0];
        hello.resize(64_000, 0);
        for part in hello.chunks(16 << 10) {
            let [high, low] = (part.len() as u16).to_be_bytes();
            far.write_all(&[22, 3, 1, high, low]).await.unwrap();
            far.write_all(part).await.unwrap();
        }
        let acceptor = tokio_rustls::LazyConfigAcceptor::new(
            tokio_rustls::rustls::server::Acceptor::default(),
            HandshakeSocket::new(near),
        );
        let ended = tokio::time::timeout(std::time::Duration::from_secs(30), acceptor).await;
        assert!(ended.expect("it does not wait for the rest").is_err());
    }
}
