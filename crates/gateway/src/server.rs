//! The listener of a gateway.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_tls::Policy;
use helenus_wire::native::{ErrorCode, ErrorMessage, HandedOver, Version};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::client::Client;
use crate::connection::Connection;
use crate::events;
use crate::listeners::{Door, Listeners};
use crate::options::{GatewayError, GatewayOptions};
use crate::roles::Roles;
use crate::shared::Shared;

/// The pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The pause between two looks at the connections that are left.
const DRAIN_PAUSE: Duration = Duration::from_millis(10);
/// The pause between two looks for roles without clients.
const IDLE_PAUSE: Duration = Duration::from_secs(5);
/// The first byte of a client that begins with TLS.
const TLS_HANDSHAKE: u8 = 0x16;

/// A gateway that serves clients until it is dropped or stopped.
pub struct Gateway {
    shared: Arc<Shared>,
    address: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
    /// The sockets that the tasks listen on, a second time.
    listeners: Mutex<Option<Listeners>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Listens for clients of these roles.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub async fn start(roles: Arc<Roles>, options: GatewayOptions) -> Result<Gateway, GatewayError> {
        let listeners = Listeners::bind(&options).await?;
        Gateway::start_on(roles, options, listeners)
    }

    /// Listens for clients on these sockets. The addresses in the options are not used. Called on the runtime that serves the clients.
    ///
    /// # Errors
    /// They cannot be listened on.
    pub fn start_on(
        roles: Arc<Roles>,
        options: GatewayOptions,
        listeners: Listeners,
    ) -> Result<Gateway, GatewayError> {
        let bind = |source| GatewayError::Bind { address: options.listen, source };
        let address = listeners.first.local_addr().map_err(bind)?;
        let kept = listeners.try_clone().map_err(bind)?;
        let mut listening = Vec::new();
        for Door { listener, may_be_tls } in listeners.doors() {
            listener.set_nonblocking(true).map_err(bind)?;
            listening.push((TcpListener::from_std(listener).map_err(bind)?, may_be_tls));
        }
        let told = roles.own().cluster.events();
        let shared = Arc::new(Shared::new(roles, options, address));
        let mut tasks = vec![
            tokio::spawn(events::pass_on(Arc::downgrade(&shared), told)),
            tokio::spawn(drop_idle_roles(Arc::downgrade(&shared))),
        ];
        if shared.options.shows_nodes && !shared.shown.are_all() {
            tasks.push(tokio::spawn(events::show_nodes(Arc::downgrade(&shared))));
        }
        let open = Arc::new(AtomicU64::new(0));
        for listener in listening {
            tasks.push(tokio::spawn(accept(Arc::clone(&shared), listener, Arc::clone(&open))));
        }
        Ok(Gateway { shared, address, tasks, listeners: Mutex::new(Some(kept)) })
    }

    /// Goes on with a connection in the clear that another server of this process has served until now. Its client learns of the nodes of
    /// the cluster, if clients see them.
    pub fn take(&self, socket: std::net::TcpStream, state: HandedOver) {
        let shared = Arc::clone(&self.shared);
        self.shared.runtime.spawn(async move {
            let Ok(socket) = TcpStream::from_std(socket) else {
                return;
            };
            go_on(&shared, socket, state).await;
        });
    }

    /// Stops listening, and gives the sockets away. They stay open, so that no client is refused meanwhile.
    pub fn give_listeners(&self) -> Option<Listeners> {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.listeners.lock().take()
    }

    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The roles of its clients.
    pub fn roles(&self) -> Arc<Roles> {
        Arc::clone(&self.shared.roles)
    }

    /// Stops listening, and waits until all connections have their answers, or until this time is over.
    pub async fn drain(&self, within: Duration) {
        self.stop();
        let drained = async {
            while !self.shared.connected().is_empty() {
                tokio::time::sleep(DRAIN_PAUSE).await;
            }
        };
        // Who has no answer by then gets none.
        let _ = tokio::time::timeout(within, drained).await;
    }

    /// Stops listening and ends all connections once their answers are sent.
    pub fn stop(&self) {
        self.listeners.lock().take();
        self.tasks.iter().for_each(JoinHandle::abort);
        for client in self.shared.connected() {
            client.close_after_answers();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Closes the connections of roles without clients, until the gateway is dropped.
async fn drop_idle_roles(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(IDLE_PAUSE).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.roles.drop_idle();
    }
}

/// Counts an open connection.
struct Counted(Arc<AtomicU64>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn accept(shared: Arc<Shared>, (listener, may_be_tls): (TcpListener, bool), open: Arc<AtomicU64>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let count = open.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(Arc::clone(&open));
        let is_full = shared.options.connections_max.is_some_and(|max| count >= max);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            serve(&shared, (socket, may_be_tls), is_full).await;
            drop(counted);
        });
    }
}

async fn serve(shared: &Arc<Shared>, (socket, may_be_tls): (TcpStream, bool), is_full: bool) {
    let (Ok(local), Ok(remote)) = (socket.local_addr(), socket.peer_addr()) else {
        return;
    };
    let _ = socket.set_nodelay(true);
    let within = shared.options.handshake_timeout;
    let Ok(Some((input, output))) = tokio::time::timeout(within, secure(shared, socket, may_be_tls)).await
    else {
        return;
    };
    let client = Arc::new(Client::new((local, remote), &shared.budget));
    shared.add_client(&client);
    let (writes, grace) = (Arc::clone(&client), shared.options.reader_grace);
    let writer = tokio::spawn(async move { writes.write(output, grace).await });
    if is_full {
        let max = shared.options.connections_max.unwrap_or_default();
        let text = format!("there are {max} connections, as many as there may be; close some");
        client.error(Version::CURRENT, 0, &ErrorMessage::plain(ErrorCode::Overloaded, text));
        client.close_after_answers();
    } else {
        Connection::new(shared, &client).run(input).await;
    }
    // The answer that says why the connection ends is sent before it does.
    let _ = writer.await;
}

async fn go_on(shared: &Arc<Shared>, socket: TcpStream, state: HandedOver) {
    let (Ok(local), Ok(remote)) = (socket.local_addr(), socket.peer_addr()) else {
        return;
    };
    let client = Arc::new(Client::new((local, remote), &shared.budget));
    let mut connection = Connection::new(shared, &client);
    connection.resume(state);
    shared.add_client(&client);
    shared.shown.tell(&shared.cluster, &client);
    let (input, output) = socket.into_split();
    let (writes, grace) = (Arc::clone(&client), shared.options.reader_grace);
    let writer = tokio::spawn(async move { writes.write(Box::new(output), grace).await });
    connection.run(Box::new(input)).await;
    let _ = writer.await;
}

type Halves = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Makes the handshake of TLS, if the client or the settings ask for it.
async fn secure(shared: &Shared, socket: TcpStream, may_be_tls: bool) -> Option<Halves> {
    let clear = |socket: TcpStream| -> Halves {
        let (input, output) = socket.into_split();
        (Box::new(input), Box::new(output))
    };
    let Some(tls) = shared.options.tls.as_ref().filter(|_| may_be_tls) else {
        return Some(clear(socket));
    };
    if tls.policy() == Policy::Optional {
        let mut first = [0];
        if socket.peek(&mut first).await.ok()? == 0 || first != [TLS_HANDSHAKE] {
            return Some(clear(socket));
        }
    }
    let stream = TlsAcceptor::from(tls.config()).accept(socket).await.ok()?;
    let (input, output) = tokio::io::split(stream);
    Some((Box::new(input), Box::new(output)))
}
