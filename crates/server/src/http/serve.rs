//! Serves the HTTP port: one thread, a limited number of connections, only GET.
//!
//! A client that sends half a request, or nothing, is closed after a while, or earlier if others need its connection:
//! when the limit is reached, `connections` says which is closed. So hundreds of such clients neither keep `/health` from
//! being answered nor end a stream of changes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_host::{Host, Next, TaskHandle, Worker};
use helenus_tls::{Policy, ServerTls};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::body::TextBody;
use super::changes::{CHANGES, EVENT_STREAM, EventStream, changes};
use super::connections::{Connections, Progress, Streams};
use super::health::{health, readiness};
use super::hosts::KnownHosts;
use super::logins::{CHALLENGE, check_login};
use super::metrics::metrics;
use super::moving::MovingStream;
use super::state::HttpState;
use crate::ServerError;
use crate::native::bind;
use crate::thread_pool::ThreadPool;
use crate::tls::{Refusal, ServerStream, secure};

/// How long a connection has to send its request before it may be closed for others.
const OWN_TIME: Duration = Duration::from_millis(250);
/// Most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The most answers of figures that wait for their clients when there is no memory for them.
const SPARE_FIGURES: usize = 4;
/// How long a connection may last.
const CONNECTION_MAX: Duration = Duration::from_secs(600);
/// The most threads that read changes: each may wait for memory.
const READERS_MAX: usize = 8;
/// The pause after a failure to accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
/// Prometheus's text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The answer in place of one for which there is no memory.
const NO_MEMORY: &str = "there is no memory for the answer now; try again later, or raise memory_limit\n";

const INDEX: &str = "Helenus\n\n/metrics  figures, for Prometheus\n/health   whether the server is in order\n/ready    whether it serves clients\n/changes/KEYSPACE/TABLE  changes of a table as they come\n";

/// The limits of the HTTP port.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// The most connections at a time; when there are more, one that has sent no request is closed. Half of them may be streams
    /// of changes.
    pub connections_max: usize,
    /// `http_request_timeout`: how long a client may take to send its request, or be idle between two.
    pub request_timeout: Duration,
    /// How long a client may leave its answer unread.
    pub reader_grace: Duration,
    /// Names that requests may use besides the port's address and the names of the loopback (`http_hosts`); `*` for
    /// any.
    pub hosts: Vec<String>,
    /// Whether `/metrics` needs a login: where it is reached from beyond this machine.
    pub asks_for_login: bool,
    /// Whether the tables of the system have samples of their own in `/metrics` (`http_system_tables`).
    pub system_tables: bool,
    /// TLS of the port, and whether it is served in the clear too; `None`: in the clear alone.
    pub tls: Option<(Arc<ServerTls>, Policy)>,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            connections_max: 256,
            request_timeout: Duration::from_secs(10),
            reader_grace: Duration::from_secs(60),
            hosts: Vec::new(),
            asks_for_login: false,
            system_tables: false,
            tls: None,
        }
    }
}

/// A running HTTP port.
pub struct HttpServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Arc<dyn TaskHandle>,
    readers: Arc<ThreadPool>,
}

impl HttpServer {
    /// Binds `address` (port 0: a free one) and starts to serve.
    ///
    /// # Errors
    /// The address cannot be bound, or a runtime cannot be built.
    pub fn start(
        host: &Host,
        address: SocketAddr,
        limits: HttpLimits,
        state: Arc<HttpState>,
    ) -> Result<HttpServer, ServerError> {
        let refused = |source| ServerError::BindHttp { address, source };
        let listener = bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| ServerError::Runtime { source })?;
        let (stop, stopped) = watch::channel(false);
        let hosts = KnownHosts::new(address, &limits.hosts);
        let streams = Streams::of(limits.connections_max);
        let (asks_for_login, system_tables) = (limits.asks_for_login, limits.system_tables);
        let spare_figures = Arc::new(Semaphore::new(SPARE_FIGURES));
        let readers = Arc::new(ThreadPool::new(host.clone(), "http-reader", READERS_MAX));
        let of_server = Arc::clone(&readers);
        let asked =
            RequestContext { hosts, streams, readers, asks_for_login, system_tables, spare_figures, state };
        let asked = Arc::new(asked);
        let worker = HttpThread { work: Some((runtime, listener, (limits, asked), stopped)) };
        let thread = host.tasks.try_start("http", Box::new(worker));
        let thread = thread.map_err(|source| ServerError::Runtime { source })?;
        Ok(HttpServer { address, stop, thread, readers: of_server })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server.
    pub fn stop(&self) {
        let _thread_may_be_gone = self.stop.send(true);
        self.thread.join();
        self.readers.stop();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What is needed to answer requests.
struct RequestContext {
    hosts: KnownHosts,
    /// The places for streams of changes.
    streams: Streams,
    /// Reads changes.
    readers: Arc<ThreadPool>,
    /// Whether `/metrics` needs a login.
    asks_for_login: bool,
    /// Whether `/metrics` has the tables of the system.
    system_tables: bool,
    /// The answers of figures that may wait for their clients beyond the memory account.
    spare_figures: Arc<Semaphore>,
    state: Arc<HttpState>,
}

type Work = (
    tokio::runtime::Runtime,
    std::net::TcpListener,
    (HttpLimits, Arc<RequestContext>),
    watch::Receiver<bool>,
);

struct HttpThread {
    work: Option<Work>,
}

impl Worker for HttpThread {
    fn step(&mut self) -> Next {
        if let Some((runtime, listener, (limits, asked), stopped)) = self.work.take() {
            runtime.block_on(accept(listener, limits, asked, stopped));
        }
        Next::Done
    }
}

async fn accept(
    listener: std::net::TcpListener,
    limits: HttpLimits,
    asked: Arc<RequestContext>,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let limits = Arc::new(limits);
    let mut connections = JoinSet::new();
    let mut open = Connections::default();
    loop {
        open.forget_ended();
        let is_full = connections.len() >= limits.connections_max;
        let room = async {
            match open.next_to_close().filter(|_| is_full) {
                Some((came, task)) => {
                    tokio::time::sleep_until(came + OWN_TIME).await;
                    // It may have asked meanwhile.
                    open.next_to_close().map_or(task, |(_, task)| task).abort();
                }
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            accepted = listener.accept(), if !is_full => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            () = room => {
                // Waits until it has ended, so that it is not counted any more.
                let _ended = connections.join_next().await;
                continue;
            }
            _ = stopped.changed() => return,
        };
        let Ok((stream, client)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let progress = Arc::<Progress>::default();
        let serving = connections.spawn(serve(
            (stream, client),
            Arc::clone(&limits),
            Arc::clone(&progress),
            Arc::clone(&asked),
        ));
        open.add(progress, serving);
    }
}

async fn serve(
    (stream, client): (TcpStream, SocketAddr),
    limits: Arc<HttpLimits>,
    progress: Arc<Progress>,
    asked: Arc<RequestContext>,
) {
    let request_timeout = limits.request_timeout;
    let first_due = tokio::time::Instant::now() + request_timeout;
    let secured = match &limits.tls {
        None => None,
        Some((tls, policy)) => {
            match timeout(request_timeout, secure(&stream, (tls, *policy), client)).await {
                Ok(Ok(secured)) => secured,
                Ok(Err(Refusal::Gone)) => return,
                // The handshake failed or took too long.
                Ok(Err(Refusal::Because(_))) | Err(_) => {
                    asked.state.handshakes_failed.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    };
    let stream = MovingStream::new(ServerStream::new(stream, secured), limits.reader_grace);
    let service = service_fn(|request| {
        progress.has_asked();
        let (asked, progress) = (Arc::clone(&asked), Arc::clone(&progress));
        async move { Ok::<_, Infallible>(answer(&request, client, (&asked, &progress)).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(request_timeout).max_buf_size(HEAD_BYTES_MAX);
    let serving = protocol.serve_connection(TokioIo::new(stream), service);
    let silent = async {
        tokio::time::sleep_until(first_due).await;
        if !progress.is_silent() {
            std::future::pending::<()>().await;
        }
    };
    // Errors of a connection are ignored: the client has left, or sent something that is not HTTP.
    tokio::select! {
        _ended = timeout(CONNECTION_MAX, serving) => {}
        () = silent => {}
    }
}

async fn answer(
    request: &Request<Incoming>,
    client: SocketAddr,
    (asked, progress): (&RequestContext, &Arc<Progress>),
) -> Response<Body> {
    let state = &asked.state;
    if let Err(text) = asked.hosts.check(request) {
        return response(StatusCode::MISDIRECTED_REQUEST, TEXT, text);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET and HEAD only\n".to_owned());
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let judged = |(is_well, value): (bool, serde_json::Value)| {
        let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        response(status, JSON, format!("{value}\n"))
    };
    match request.uri().path() {
        "/metrics" => {
            let refusal = match asked.asks_for_login {
                true => check_login(request, client, state).await.map(|_| progress.has_logged_in()).err(),
                false => None,
            };
            match refusal {
                Some((StatusCode::UNAUTHORIZED, text)) => unauthorized(text),
                Some((status, text)) => response(status, TEXT, text),
                None => {
                    let figures =
                        TextBody::of_figures(metrics(state, asked.system_tables), &asked.spare_figures);
                    with_body(StatusCode::OK, METRICS, figures)
                }
            }
        }
        path if path.starts_with(CHANGES) => {
            match changes(request, client, (state, &asked.streams, &asked.readers), progress).await {
                Ok(events) => {
                    let mut answer = Response::new(Either::Right(events));
                    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
                    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                    answer
                }
                Err((StatusCode::UNAUTHORIZED, text)) => unauthorized(text),
                Err((status, text)) => response(status, TEXT, text),
            }
        }
        "/health" => judged(health(state)),
        "/ready" => judged(readiness(state)),
        "/" => response(StatusCode::OK, TEXT, INDEX.to_owned()),
        _ => response(StatusCode::NOT_FOUND, TEXT, format!("not here\n\n{INDEX}")),
    }
}

/// A text, or a stream of events.
type Body = Either<TextBody, EventStream>;

fn unauthorized(text: String) -> Response<Body> {
    let mut refused = response(StatusCode::UNAUTHORIZED, TEXT, text);
    refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    refused
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Body> {
    with_body(status, kind, TextBody::new(body))
}

/// An answer with a body; `None`: there is no memory for it.
fn with_body(status: StatusCode, kind: &'static str, body: Option<TextBody>) -> Response<Body> {
    let (status, kind, body) = match body {
        Some(body) => (status, kind, body),
        None => (StatusCode::SERVICE_UNAVAILABLE, TEXT, TextBody::of_static(NO_MEMORY)),
    };
    let mut response = Response::new(Either::Left(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
