//! The shell's connection: login, one request at a time with its pages, warnings and trace, and reconnecting.
//!
//! The answer of a request that timed out or was interrupted may still arrive. Each answer has the stream id of its
//! request, and an answer that no request waits for is dropped.

use super::refusal::Refused;
use crate::commands::client::{Connection, Received, takes_certificates};
use anyhow::{Context, Result, anyhow, bail};
use helenus_server::native::OwnClients;
use helenus_tls::TlsClient;
use helenus_wire::native::{
    ColumnSpec, Consistency, Envelope, ErrorCode, Flags, Opcode, Prepare, Query, QueryParameters, Request,
    RequestHead, Response, ResponseMessage, ResultMessage, Version, decode_response,
};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Interval at which a wait checks for an interrupt. An arriving answer ends the wait at once.
const TICK: Duration = Duration::from_millis(100);

/// A user name and password.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

/// The address of a server and the parameters of the connection.
#[derive(Clone)]
pub struct Endpoint {
    /// `HOST:PORT`.
    pub address: String,
    pub credentials: Option<Credentials>,
    /// The settings of TLS; `None`: in the clear.
    pub tls: Option<TlsClient>,
    /// The required protocol version, if any.
    pub version: Option<Version>,
    pub request_timeout: Duration,
    /// The place of a database that this process has open itself: its connections, and its name for people.
    pub inside: Option<(Arc<OwnClients>, String)>,
}

/// A flag that Ctrl-C sets and the waiting request takes.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Requests an interrupt.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether an interrupt was requested since the last call.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// The error of a request that Ctrl-C interrupted.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: the connection was closed, and with it the statement ends at the server")]
pub struct Interrupted;

/// The parameters of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub consistency: Consistency,
    pub serial_consistency: Consistency,
    /// `None`: all rows at once.
    pub page_size: Option<i32>,
    pub tracing: bool,
}

/// An undecoded answer.
pub struct Reply {
    version: Version,
    opcode: Opcode,
    flags: Flags,
    body: Vec<u8>,
}

impl Reply {
    fn of(envelope: &Envelope<'_>) -> Reply {
        let header = envelope.header;
        let (version, opcode, flags) = (header.version, header.opcode, header.flags);
        Reply { version, opcode, flags, body: envelope.body.to_vec() }
    }

    /// Decodes the answer.
    pub fn message(&self) -> Result<ResponseMessage<'_>> {
        Ok(decode_response(self.version, self.opcode, self.flags, &self.body)?)
    }
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub id: Vec<u8>,
    /// Protocol v5: the id of the result's metadata.
    pub metadata_id: Option<Vec<u8>>,
    pub variables: Vec<ColumnSpec>,
    /// The indexes of the variables that form the partition key, in its order.
    pub partition_key: Vec<u16>,
}

/// A connection with one request in flight.
pub struct Session {
    pub endpoint: Endpoint,
    pub interrupt: Interrupt,
    connection: Connection,
    stream: i16,
    /// The keyspace set by USE.
    keyspace: Option<String>,
    /// Whether the connection is lost; the next request reconnects.
    broken: bool,
}

impl Session {
    /// Connects and logs in.
    ///
    /// # Errors
    /// No server listens, the login is refused, there is no common protocol version.
    pub fn open(endpoint: Endpoint, interrupt: Interrupt) -> Result<Session> {
        let connection = connect(&endpoint, &interrupt)?;
        Ok(Session { endpoint, interrupt, connection, stream: 0, keyspace: None, broken: false })
    }

    /// The protocol version of the connection.
    pub fn version(&self) -> Version {
        self.connection.version
    }

    /// The keyspace of unqualified names.
    pub fn keyspace(&self) -> Option<&str> {
        self.keyspace.as_deref()
    }

    /// Switches to a keyspace, given by its name without quotes.
    ///
    /// # Errors
    /// The keyspace does not exist.
    pub fn use_keyspace(&mut self, name: &str) -> Result<()> {
        let query = format!("USE {}", quoted(name));
        self.query(&query, &Asked::plain(), None)?;
        Ok(())
    }

    /// Runs a statement; `paging_state` requests a later page.
    ///
    /// # Errors
    /// [`Refused`] by the server, [`Interrupted`], no answer in time, a lost connection.
    pub fn query(&mut self, query: &str, asked: &Asked, paging_state: Option<&[u8]>) -> Result<Reply> {
        let parameters = QueryParameters {
            consistency: asked.consistency,
            serial_consistency: Some(asked.serial_consistency),
            page_size: asked.page_size,
            paging_state,
            ..QueryParameters::default()
        };
        let reply = self.ask(&Request::Query(Query { query, parameters }), asked.tracing)?;
        if let Response::Result(ResultMessage::SetKeyspace(name)) = reply.message()?.response {
            self.keyspace = Some(name.to_owned());
        }
        Ok(reply)
    }

    /// All rows of one of the shell's own queries, as serialised cells.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub fn rows(&mut self, query: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
        let mut found = Vec::new();
        let mut state: Option<Vec<u8>> = None;
        loop {
            let asked = Asked { page_size: Some(5_000), ..Asked::plain() };
            let reply = self.query(query, &asked, state.as_deref())?;
            let Response::Result(ResultMessage::Rows(rows)) = reply.message()?.response else {
                return Ok(found);
            };
            for row in rows.iter() {
                found.push(row?.cells().map(|cell| cell.map(<[u8]>::to_vec)).collect());
            }
            match rows.metadata.paging_state {
                Some(next) => state = Some(next.to_vec()),
                None => return Ok(found),
            }
        }
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub fn prepare(&mut self, query: &str) -> Result<Prepared> {
        let reply = self.ask(&Request::Prepare(Prepare { query, keyspace: None }), false)?;
        match reply.message()?.response {
            Response::Result(ResultMessage::Prepared(prepared)) => Ok(Prepared {
                id: prepared.id.to_vec(),
                metadata_id: prepared.result_metadata_id.map(<[u8]>::to_vec),
                variables: prepared.variables.to_vec()?,
                partition_key: prepared.partition_key,
            }),
            other => bail!("an answer to PREPARE that does not fit: {other:?}"),
        }
    }

    /// Sends a request and waits for its answer. An ERROR becomes an error.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub fn ask(&mut self, request: &Request<'_>, tracing: bool) -> Result<Reply> {
        if self.broken {
            self.reconnect()?;
        }
        self.stream = if self.stream == i16::MAX { 1 } else { self.stream + 1 };
        let head = RequestHead {
            version: self.connection.version,
            stream: self.stream,
            tracing,
            custom_payload: &[],
        };
        self.connection.put(|out| request.encode(&head, out))?;
        let sent = self.connection.write_blocking();
        let wait = Wait { stream: self.stream, patience: self.endpoint.request_timeout };
        let answered = sent.and_then(|()| receive(&mut self.connection, &wait, &self.interrupt));
        let reply = match answered {
            Ok(reply) => reply,
            Err(error) => {
                // A server ends the statements of a connection that is closed. The next request connects again.
                if error.is::<Interrupted>() {
                    _ = self.connection.socket().shutdown(std::net::Shutdown::Both);
                }
                self.broken = !error.is::<TooSlow>();
                return Err(error);
            }
        };
        match reply.message()?.response {
            Response::Error(error) => Err(Refused(error).into()),
            _ => Ok(reply),
        }
    }

    fn reconnect(&mut self) -> Result<()> {
        self.connection = connect(&self.endpoint, &self.interrupt)?;
        self.broken = false;
        match self.keyspace.clone() {
            Some(keyspace) => self.use_keyspace(&keyspace),
            None => Ok(()),
        }
    }

    /// Reconnects as another user.
    ///
    /// # Errors
    /// The login is refused; the old connection stays.
    pub fn log_in(&mut self, credentials: Credentials) -> Result<()> {
        let endpoint = Endpoint { credentials: Some(credentials), ..self.endpoint.clone() };
        let connection = connect(&endpoint, &self.interrupt)?;
        self.connection = connection;
        self.endpoint = endpoint;
        match self.keyspace.clone() {
            Some(keyspace) => self.use_keyspace(&keyspace),
            None => Ok(()),
        }
    }

    /// Opens another connection with the same parameters, for pipelining.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn another(&self) -> Result<Session> {
        let mut endpoint = self.endpoint.clone();
        endpoint.version = Some(self.version());
        Session::open(endpoint, self.interrupt.clone())
    }

    /// The underlying connection.
    pub fn into_connection(self) -> Connection {
        self.connection
    }
}

impl Asked {
    /// The parameters of the shell's own queries.
    pub fn plain() -> Asked {
        let (consistency, serial_consistency) = (Consistency::One, Consistency::Serial);
        Asked { consistency, serial_consistency, page_size: None, tracing: false }
    }
}

/// The warnings and the trace id of an answer.
pub fn notes(message: &ResponseMessage<'_>) -> (Vec<String>, Option<Uuid>) {
    (message.warnings.iter().map(str::to_owned).collect(), message.tracing_id)
}

/// A name in double quotes, also if it needs none.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The error of a request without an answer in time; the seconds waited.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0} s; --request-timeout gives it more time")]
pub struct TooSlow(u64);

struct Wait {
    stream: i16,
    patience: Duration,
}

fn receive(connection: &mut Connection, wait: &Wait, interrupt: &Interrupt) -> Result<Reply> {
    let begun = Instant::now();
    loop {
        let mut found = None;
        connection.envelopes(|envelope| {
            if envelope.header.stream == wait.stream {
                found = Some(Reply::of(envelope));
            }
            Ok(())
        })?;
        if let Some(reply) = found {
            return Ok(reply);
        }
        if interrupt.take() {
            return Err(Interrupted.into());
        }
        if begun.elapsed() > wait.patience {
            return Err(TooSlow(wait.patience.as_secs()).into());
        }
        match connection.read()? {
            Received::Bytes | Received::Nothing => {}
        }
    }
}

/// Connects with the newest version that both sides support.
fn connect(endpoint: &Endpoint, interrupt: &Interrupt) -> Result<Connection> {
    if let Some(version) = endpoint.version {
        return start(endpoint, version, interrupt);
    }
    for version in [Version::V5, Version::V4] {
        match start(endpoint, version, interrupt) {
            Err(error) if is_version_trouble(&error) => {}
            done => return done,
        }
    }
    start(endpoint, Version::V3, interrupt)
}

/// Whether an older version may succeed: the server refused the version, or its answer cannot be decoded in this
/// version.
fn is_version_trouble(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Refused>() {
        Some(Refused(message)) => message.detail.code() == ErrorCode::Protocol,
        None => error.is::<helenus_wire::WireError>(),
    }
}

/// Says how to start a server, if none listens.
fn with_advice(error: anyhow::Error) -> anyhow::Error {
    let cause = error.downcast_ref::<std::io::Error>();
    match cause.is_some_and(|cause| cause.kind() == ErrorKind::ConnectionRefused) {
        true => error.context("is a server running there? `helenus serve` starts one"),
        false => error,
    }
}

fn start(endpoint: &Endpoint, version: Version, interrupt: &Interrupt) -> Result<Connection> {
    let mut connection = match &endpoint.inside {
        Some((clients, _)) => {
            let socket = clients.connect(endpoint.address.parse()?).context("cannot reach the database")?;
            Connection::over(socket, version)?
        }
        None => Connection::open(&endpoint.address, version, endpoint.tls.as_ref()).map_err(with_advice)?,
    };
    connection.socket().set_read_timeout(Some(TICK))?;
    let wait = Wait { stream: 0, patience: endpoint.request_timeout };
    loop {
        let reply = receive(&mut connection, &wait, interrupt)?;
        match reply.message()?.response {
            Response::Ready => {
                connection.started();
                return Ok(connection);
            }
            Response::AuthSuccess(_) => return Ok(connection),
            Response::Authenticate(class) => {
                connection.started();
                let shows_certificate = endpoint.tls.as_ref().is_some_and(TlsClient::shows_certificate);
                let token = match &endpoint.credentials {
                    // SASL PLAIN (RFC 4616): no authorisation identity, user name, password.
                    Some(login) => format!("\0{}\0{}", login.user, login.password),
                    None if takes_certificates(class) && shows_certificate => String::new(),
                    None => {
                        return Err(anyhow!(
                            "the server wants a login ({class}): give --username and --password"
                        ));
                    }
                };
                put_login(&mut connection, &token)?;
            }
            Response::AuthChallenge(_) => {
                bail!("the server wants another login than SASL PLAIN, which is all this shell has")
            }
            Response::Error(error) => return Err(Refused(error).into()),
            other => bail!("an answer to STARTUP that does not fit: {other:?}"),
        }
    }
}

/// Sends the token of a login.
fn put_login(connection: &mut Connection, token: &str) -> Result<()> {
    let head = RequestHead::new(connection.version, 0);
    connection.put(|out| Request::AuthResponse(Some(token.as_bytes())).encode(&head, out))?;
    connection.write_blocking()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Reads a request's envelope: its opcode and body.
    fn request(socket: &mut TcpStream) -> (u8, Vec<u8>) {
        let mut header = [0; 9];
        socket.read_exact(&mut header).unwrap();
        let [.., opcode, a, b, c, d] = header;
        let mut body = vec![0; u32::from_be_bytes([a, b, c, d]) as usize];
        socket.read_exact(&mut body).unwrap();
        (opcode, body)
    }

    fn answer(socket: &mut TcpStream, opcode: u8, body: &[u8]) {
        let mut bytes = vec![0x84, 0, 0, 0, opcode];
        bytes.extend_from_slice(&(body.len() as u32).to_be_bytes());
        bytes.extend_from_slice(body);
        socket.write_all(&bytes).unwrap();
    }

    fn endpoint(listener: &TcpListener, credentials: Option<Credentials>) -> Endpoint {
        Endpoint {
            address: listener.local_addr().unwrap().to_string(),
            credentials,
            tls: None,
            version: Some(Version::V4),
            request_timeout: Duration::from_secs(30),
            inside: None,
        }
    }

    #[test]
    fn a_login_is_sent_as_sasl_plain_and_asked_for_when_it_is_missing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let credentials = Some(Credentials { user: "me".to_owned(), password: "secret".to_owned() });
        let (with, without) = (endpoint(&listener, credentials), endpoint(&listener, None));
        let server = std::thread::spawn(move || {
            let class = b"\0\x29org.apache.cassandra.auth.PasswordAuthent";
            let (mut socket, _) = listener.accept().unwrap();
            assert_eq!(request(&mut socket).0, 0x01);
            answer(&mut socket, 0x03, class);
            let (opcode, token) = request(&mut socket);
            assert_eq!((opcode, &token[4..]), (0x0F, &b"\0me\0secret"[..]));
            answer(&mut socket, 0x10, &(-1_i32).to_be_bytes());
            let (mut socket, _) = listener.accept().unwrap();
            request(&mut socket);
            answer(&mut socket, 0x03, class);
        });
        assert!(Session::open(with, Interrupt::default()).is_ok());
        let refused = Session::open(without, Interrupt::default()).map(drop).unwrap_err().to_string();
        assert!(refused.contains("--username"), "{refused}");
        server.join().unwrap();
    }

    #[test]
    fn an_interrupt_closes_the_connection_and_the_next_request_opens_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = endpoint(&listener, None);
        let interrupt = Interrupt::default();
        let raised = interrupt.clone();
        let server = std::thread::spawn(move || {
            let accept = || {
                let (mut socket, _) = listener.accept().unwrap();
                assert_eq!(request(&mut socket).0, 0x01);
                answer(&mut socket, 0x02, &[]);
                socket
            };
            let mut first = accept();
            assert_eq!(request(&mut first).0, 0x07);
            raised.raise();
            // The statement is not answered: the server sees the end of the connection, by which it stops the work.
            assert_eq!(first.read(&mut [0; 9]).unwrap(), 0);
            let mut second = accept();
            assert_eq!(request(&mut second).0, 0x07);
            let mut result = vec![0x84, 0, 0, 2, 0x08, 0, 0, 0, 4];
            result.extend_from_slice(&1_i32.to_be_bytes());
            second.write_all(&result).unwrap();
        });
        let mut session = Session::open(at, interrupt).unwrap();
        let error = session.query("SELECT", &Asked::plain(), None).map(drop).unwrap_err();
        assert!(error.is::<Interrupted>(), "{error}");
        session.query("SELECT", &Asked::plain(), None).unwrap();
        server.join().unwrap();
    }
}
