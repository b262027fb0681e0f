//! The sockets that a gateway listens on.

use std::net::{SocketAddr, TcpListener};

use crate::options::{GatewayError, GatewayOptions};

/// Sockets that clients connect to.
#[derive(Debug)]
pub struct Listeners {
    /// For all connections, or for those in the clear if there is a socket for TLS.
    pub first: TcpListener,
    /// For connections by TLS alone, while the first is in the clear.
    pub encrypted: Option<TcpListener>,
    /// For the same connections as the first.
    pub also: Option<TcpListener>,
}

/// A socket, and whether its clients may use TLS.
pub(crate) struct Door {
    pub listener: TcpListener,
    pub may_be_tls: bool,
}

impl Listeners {
    /// Opens the sockets of these options. Called on a runtime.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub(crate) async fn bind(options: &GatewayOptions) -> Result<Listeners, GatewayError> {
        let also = async |address: Option<SocketAddr>| match address {
            Some(address) => bind(address).await.map(Some),
            None => Ok(None),
        };
        Ok(Listeners {
            first: bind(options.listen).await?,
            encrypted: also(options.listen_encrypted).await?,
            also: also(options.listen_also).await?,
        })
    }

    /// The same sockets once more.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn try_clone(&self) -> std::io::Result<Listeners> {
        let also = |listener: &Option<TcpListener>| listener.as_ref().map(TcpListener::try_clone).transpose();
        Ok(Listeners {
            first: self.first.try_clone()?,
            encrypted: also(&self.encrypted)?,
            also: also(&self.also)?,
        })
    }

    /// Each socket by itself; the first comes first.
    pub(crate) fn doors(self) -> impl Iterator<Item = Door> {
        let may_be_tls = self.encrypted.is_none();
        let first = std::iter::once(self.first).chain(self.also);
        let first = first.map(move |listener| Door { listener, may_be_tls });
        first.chain(self.encrypted.map(|listener| Door { listener, may_be_tls: true }))
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, GatewayError> {
    let listener = tokio::net::TcpListener::bind(address).await;
    let listener = listener.and_then(tokio::net::TcpListener::into_std);
    listener.map_err(|source| GatewayError::Bind { address, source })
}
