//! Lets in only the connections of this process, for a server inside a tool: any user of the machine could reach its
//! listener on the loopback.
//!
//! A connection is known by its local port, which it has before it connects, and which no other process can have at the
//! same time.

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, TcpStream};

use parking_lot::Mutex;
use socket2::{Domain, Socket, Type};

/// The connections that were begun in this process and have not been accepted yet.
#[derive(Debug, Default)]
pub struct OwnClients(Mutex<HashSet<SocketAddr>>);

impl OwnClients {
    /// Connects to a server that has these clients in its limits.
    ///
    /// # Errors
    /// There is no free port, or no server.
    pub fn connect(&self, server: SocketAddr) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(server.ip(), 0).into())?;
        let own = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        self.0.lock().insert(own);
        let connected = socket.connect(&server.into());
        if connected.is_err() {
            self.0.lock().remove(&own);
        }
        connected.map(|()| socket.into())
    }

    /// Whether a connection was begun here. Each is known once, because its port may belong to another process later.
    pub(super) fn admit(&self, client: SocketAddr) -> bool {
        self.0.lock().remove(&client)
    }
}
