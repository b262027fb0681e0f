//! The listener of a gateway.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_tls::Policy;
use helenus_wire::native::{HandedOver, TLS_HANDSHAKE};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::client::Client;
use crate::connection::Connection;
use crate::events;
use crate::handshake_socket::HandshakeSocket;
use crate::listeners::{Door, Listeners};
use crate::newcomers::Entrant;
use crate::open_connections::Opened;
use crate::options::{GatewayError, GatewayOptions, Newcomer};
use crate::refused::Refused;
use crate::roles::Roles;
use crate::shared::Shared;

/// The pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The pause between two looks at the connections that are left.
const DRAIN_PAUSE: Duration = Duration::from_millis(10);
/// The pause between two looks for roles without clients.
const IDLE_PAUSE: Duration = Duration::from_secs(5);

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
        for listener in listening {
            tasks.push(tokio::spawn(accept(Arc::clone(&shared), listener)));
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
            while !self.shared.is_at_rest() {
                tokio::time::sleep(DRAIN_PAUSE).await;
            }
        };
        // Who has no answer by then gets none.
        let _ = tokio::time::timeout(within, drained).await;
    }

    /// Stops listening and ends all connections once their answers are sent. One that is in its handshake, or comes to be served in any
    /// other way, is not served any more.
    pub fn stop(&self) {
        self.listeners.lock().take();
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.stop();
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

async fn accept(shared: Arc<Shared>, (listener, may_be_tls): (TcpListener, bool)) {
    let mut refused = Refused::default();
    loop {
        let Ok((socket, remote)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        match admit(&shared, remote.ip()) {
            Ok(admitted) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let (opened, entrant) = admitted;
                    serve(&shared, (socket, may_be_tls), entrant).await;
                    drop(opened);
                });
            }
            Err(reason) => refused.tell(socket, reason),
        }
    }
}

/// The place of a connection, which it has until it is dropped.
type Admitted = (Opened, Arc<Entrant>);

/// Checks the limits on connections: first those of the gateway, then those of the process, and the memory of one more.
fn admit(shared: &Shared, address: IpAddr) -> Result<Admitted, String> {
    let options = &shared.options;
    let (max, max_of_address) = (options.connections_max, options.connections_max_per_address);
    let opened = shared.open.open(address, max, max_of_address)?;
    let entrant =
        shared.newcomers.enter(options.admission.as_ref().map(|admits| admits(address)).transpose()?);
    shared.newcomers.add(&entrant)?;
    Ok((opened, entrant))
}

async fn serve(shared: &Arc<Shared>, (socket, may_be_tls): (TcpStream, bool), entrant: Arc<Entrant>) {
    let (Ok(local), Ok(remote)) = (socket.local_addr(), socket.peer_addr()) else {
        return;
    };
    let _ = socket.set_nodelay(true);
    let within = shared.options.handshake_timeout;
    let secured = tokio::select! {
        secured = tokio::time::timeout(within, Box::pin(secure(shared, (socket, may_be_tls), &entrant))) => secured,
        () = shared.stopped() => return,
        () = entrant.displaced() => return,
    };
    let Ok(Some(Secured { halves, is_encrypted })) = secured else {
        return;
    };
    let client = Arc::new(Client::new((local, remote), &shared.budgets.of_client(remote.ip())));
    shared.add_client(&client);
    let connection = Connection::new(shared, &client, (&entrant, is_encrypted));
    run(shared, (&client, connection, &entrant), halves).await;
}

/// Serves a client until its connection ends. Both halves of the socket are dropped then.
async fn run(
    shared: &Shared,
    (client, connection, entrant): (&Arc<Client>, Connection, &Entrant),
    (input, output): Halves,
) {
    let (writes, grace) = (Arc::clone(client), shared.options.reader_grace);
    let mut writer = tokio::spawn(async move { writes.write(output, grace).await });
    tokio::select! {
        // The answer that says why the connection ends is sent before it does.
        () = connection.run(input) => drop(writer.await),
        // A client that takes nothing is not listened to either.
        _ = &mut writer => {}
        () = entrant.displaced() => client.end(),
    }
}

async fn go_on(shared: &Arc<Shared>, socket: TcpStream, state: HandedOver) {
    let (Ok(local), Ok(remote)) = (socket.local_addr(), socket.peer_addr()) else {
        return;
    };
    // Counted, but not refused: the server that had it until now has let it in, and may still count it for the process.
    let _opened = shared.open.go_on(remote.ip());
    let place = shared.options.admission.as_ref().and_then(|admits| admits(remote.ip()).ok());
    let entrant = shared.newcomers.enter(place);
    let client = Arc::new(Client::new((local, remote), &shared.budgets.of_client(remote.ip())));
    let mut connection = Connection::new(shared, &client, (&entrant, false));
    connection.resume(state);
    if !entrant.has_begun() {
        // It has to log in once more.
        let _counted = shared.newcomers.add(&entrant);
    }
    shared.add_client(&client);
    shared.shown.tell(&shared.cluster, &client);
    let (input, output) = socket.into_split();
    run(shared, (&client, connection, &entrant), (Box::new(input), Box::new(output))).await;
}

type Halves = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// A connection that may be read.
struct Secured {
    halves: Halves,
    is_encrypted: bool,
}

/// Makes the handshake of TLS, if the client or the settings ask for it. `None`: it failed, or there is no memory for it.
async fn secure(
    shared: &Shared,
    (socket, may_be_tls): (TcpStream, bool),
    entrant: &Arc<Entrant>,
) -> Option<Secured> {
    let clear = |socket: TcpStream| {
        let (input, output) = socket.into_split();
        Secured { halves: (Box::new(input), Box::new(output)), is_encrypted: false }
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
    if !shared.newcomers.begin_handshake(entrant) {
        return None;
    }
    let mut stream = TlsAcceptor::from(tls.config()).accept(HandshakeSocket::new(socket)).await.ok()?;
    stream.get_mut().0.finish();
    let (input, output) = tokio::io::split(stream);
    Some(Secured { halves: (Box::new(input), Box::new(output)), is_encrypted: true })
}
