//! A server's end of a connection, in the clear or encrypted.
//!
//! What is written is encrypted at once, at most one buffer ahead of the socket: `poll_write` takes more only when the
//! socket has taken what was encrypted before. So a caller that sees all of its bytes taken still has to flush.

use std::cell::Cell;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use helenus_cql::backend::ClientCertificate;
use helenus_host::account::{Charge, Share};
use helenus_tls::rustls::ServerConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The most bytes that are encrypted before the socket has taken them: four records.
const AHEAD_BYTES: usize = 64 << 10;

/// The longest record of TLS, with its header and what encryption adds.
const RECORD_BYTES_MAX: usize = 18 << 10;

/// The most encrypted bytes of one read of the socket.
const INPUT_BYTES: usize = 32 << 10;

thread_local! {
    /// The buffer of such a read, of the event loop of this thread. A connection keeps only what it cannot use yet.
    static INPUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The memory of a handshake: the messages of both sides, with their certificates.
pub(super) const HANDSHAKE_BYTES: u64 = 48 << 10;
/// The memory of a session without bytes on their way: 8 KiB as measured, keys and the client's certificates included, and a
/// half more.
const SESSION_BYTES: u64 = 12 << 10;

/// A session of TLS.
pub(crate) struct Secured {
    /// The session.
    pub session: Box<ServerConnection>,
    /// Its memory, on the account.
    charge: Charge,
}

impl Secured {
    /// A session that begins; `None` if there is no memory for it.
    pub fn begin(session: ServerConnection) -> Option<Secured> {
        let charge = Charge::try_take(Share::Arriving, HANDSHAKE_BYTES)?;
        Some(Secured { session: Box::new(session), charge })
    }

    /// Charges what a session holds now: itself, and these bytes on their way.
    fn note(&mut self, bytes: usize) {
        let bytes = SESSION_BYTES + bytes as u64;
        if self.charge.bytes() != bytes {
            self.charge.resize(bytes);
        }
    }
}

/// A connection.
pub(crate) enum ServerStream {
    /// In the clear.
    Clear(TcpStream),
    /// Encrypted.
    Tls(TlsStream),
}

impl ServerStream {
    /// A connection whose handshake, if it has one, is done.
    pub fn new(socket: TcpStream, secured: Option<Secured>) -> ServerStream {
        match secured {
            None => ServerStream::Clear(socket),
            Some(mut secured) => {
                secured.session.set_buffer_limit(Some(AHEAD_BYTES));
                secured.note(0);
                ServerStream::Tls(TlsStream {
                    socket,
                    secured,
                    kept: Vec::new(),
                    undecrypted: 0,
                    has_input: true,
                    has_ended: false,
                })
            }
        }
    }
}

impl ServerStream {
    /// The socket of a connection in the clear.
    pub fn into_clear(self) -> Option<TcpStream> {
        match self {
            ServerStream::Clear(socket) => Some(socket),
            ServerStream::Tls(_) => None,
        }
    }

    /// Whom the certificate is for that the client has shown in its handshake, if it has shown one.
    pub fn client_certificate(&self) -> Option<ClientCertificate> {
        let ServerStream::Tls(stream) = self else {
            return None;
        };
        let own = stream.secured.session.peer_certificates()?.first()?;
        Some(ClientCertificate { uris: helenus_tls::uris(own), common_name: helenus_tls::common_name(own) })
    }
}

impl ServerStream {
    /// The socket, to be watched for its end.
    pub fn socket(&self) -> &TcpStream {
        match self {
            ServerStream::Clear(socket) => socket,
            ServerStream::Tls(stream) => &stream.socket,
        }
    }

    /// Waits until a read may find something. It may find nothing all the same, and also where the task has used up its turn
    /// on the event loop: a caller that tries again must let others have theirs (`coop::consume_budget`).
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            ServerStream::Tls(stream) if stream.has_input => Ok(()),
            _ => self.socket().readable().await,
        }
    }
}

/// An encrypted connection.
pub(crate) struct TlsStream {
    socket: TcpStream,
    secured: Secured,
    /// Encrypted input that has no room yet, because the reader's buffer was full.
    kept: Vec<u8>,
    /// Bytes in the session of a record that is not complete; about, and too many rather than too few.
    undecrypted: usize,
    /// Decrypted input may wait in the session. Set until a read finds none.
    has_input: bool,
    /// The client sends no more.
    has_ended: bool,
}

/// The socket for rustls, whose writes must return `WouldBlock` where tokio's return `Pending`.
struct Writes<'a, 'b>(&'a mut TcpStream, &'a mut Context<'b>);

impl Write for Writes<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Pin::new(&mut *self.0).poll_write(self.1, bytes) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match Pin::new(&mut *self.0).poll_write_vectored(self.1, parts) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    /// Moves what is decrypted into the buffer. Returns whether the client has ended the connection.
    fn take_decrypted(&mut self, into: &mut ReadBuf<'_>) -> io::Result<bool> {
        while into.remaining() > 0 {
            match self.secured.session.reader().read(into.initialize_unfilled()) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    into.advance(count);
                    self.has_input = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.has_input = false;
                    return Ok(false);
                }
                // An end without close_notify cuts no message, because messages have lengths.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Decrypts bytes as far as the session has room for what is in them. Returns the number of bytes used.
    fn decrypt(&mut self, mut bytes: &[u8], context: &mut Context<'_>) -> io::Result<usize> {
        let used = self.secured.session.read_tls(&mut bytes)?;
        match self.secured.session.process_new_packets() {
            Ok(state) if state.plaintext_bytes_to_read() > 0 => self.undecrypted = 0,
            Ok(_) => self.undecrypted = (self.undecrypted + used).min(RECORD_BYTES_MAX),
            Err(error) => {
                // The alert that says why. The connection ends whether it gets through or not.
                let _told = self.poll_send(context);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
        // A client may send a part of a record and stop.
        self.secured.note(self.kept.capacity() + self.undecrypted);
        Ok(used)
    }

    /// Fills the buffer from what has been received: first what was kept, then what the socket has.
    fn poll_fill(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        loop {
            if self.take_decrypted(into)? || self.has_ended || into.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if !self.kept.is_empty() {
                let kept = std::mem::take(&mut self.kept);
                let used = self.decrypt(&kept, context)?;
                self.kept.extend_from_slice(kept.get(used..).unwrap_or_default());
                continue;
            }
            if into.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
            let mut input = INPUT.take();
            input.resize(INPUT_BYTES, 0);
            let received = self.poll_receive(context, &mut input);
            INPUT.set(input);
            ready!(received)?;
        }
    }

    /// Reads the socket once and decrypts what has come; keeps the rest.
    fn poll_receive(&mut self, context: &mut Context<'_>, input: &mut [u8]) -> Poll<io::Result<()>> {
        let mut buffer = ReadBuf::new(input);
        ready!(Pin::new(&mut self.socket).poll_read(context, &mut buffer))?;
        let mut rest = buffer.filled();
        if rest.is_empty() {
            self.has_ended = true;
        }
        // One call takes a part; the rest is taken as long as nothing decrypted waits.
        while !rest.is_empty() {
            let used = self.decrypt(rest, context)?;
            rest = rest.get(used..).unwrap_or_default();
            if used == 0
                || self
                    .secured
                    .session
                    .process_new_packets()
                    .is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
            {
                self.kept.extend_from_slice(rest);
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what is encrypted.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.secured.session.wants_write() {
            match self.secured.session.write_tls(&mut Writes(&mut self.socket, context)) {
                Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.secured.note(self.kept.capacity() + AHEAD_BYTES);
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.secured.note(self.kept.capacity() + self.undecrypted);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_fill(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(context))?;
        let count = self.secured.session.writer().write(bytes)?;
        match self.poll_send(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(count)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.secured.session.send_close_notify();
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ServerStream::Clear(socket) => Pin::new(socket).poll_read(context, buffer),
            ServerStream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ServerStream::Clear(socket) => Pin::new(socket).poll_write(context, bytes),
            ServerStream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ServerStream::Clear(_) => Poll::Ready(Ok(())),
            ServerStream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ServerStream::Clear(socket) => Pin::new(socket).poll_shutdown(context),
            ServerStream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
