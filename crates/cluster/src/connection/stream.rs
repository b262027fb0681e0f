//! The socket of a connection, in the clear or over TLS.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::ConnectError;
use crate::options::{ClusterOptions, HostPort};

/// Reads the bytes of a node.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Writes bytes to a node.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Both sides of a socket.
pub(super) struct Stream {
    pub input: Input,
    pub output: Output,
}

/// Connects, and makes the handshake of TLS. `to` is the address; certificates are for the host of `name`.
pub(super) async fn connect(
    to: std::net::SocketAddr,
    name: &HostPort,
    options: &ClusterOptions,
) -> Result<Stream, ConnectError> {
    let host = || name.to_string();
    let socket = TcpStream::connect(to).await;
    let socket = socket.map_err(|source| ConnectError::Socket { host: host(), source })?;
    // Requests are small and are gathered before they are written.
    let _ = socket.set_nodelay(true);
    let Some(tls) = &options.tls else {
        let (input, output) = socket.into_split();
        return Ok(Stream { input: Box::new(input), output: Box::new(output) });
    };
    let unusable = |reason: String| ConnectError::Tls { host: host(), reason };
    let server = helenus_tls::server_name(&name.host).map_err(|error| unusable(error.to_string()))?;
    let connector = TlsConnector::from(tls.config());
    match connector.connect(server, socket).await {
        Ok(stream) => {
            let (input, output) = tokio::io::split(stream);
            Ok(Stream { input: Box::new(input), output: Box::new(output) })
        }
        Err(error) => {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<helenus_tls::rustls::Error>());
            Err(match inner {
                Some(inner) => unusable(tls.reason(&name.host, inner)),
                None => ConnectError::Socket { host: host(), source: error },
            })
        }
    }
}
