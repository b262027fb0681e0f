//! Reads the requests of one client, and answers those that need no node.
//!
//! While the client has as much in flight as it may, or all clients together have, nothing is read, so that the client waits too. A
//! message for which there is no room waits as long as one may take to arrive, and is refused then: the parts of many could otherwise take
//! all room and wait for each other.

use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use helenus_wire::WireError;
use helenus_wire::native::{
    AfterRefusal, BEFORE_LOGIN_BYTES_MAX, ErrorCode, ErrorDetail, ErrorMessage, HandedOver, Header, Opcode,
    Outgoing, Refusal, Request, Startup, Version, decode_request,
};
use tokio::io::AsyncRead;
use tokio::time::{Instant, Sleep};

use crate::budget::Held;
use crate::client::Client;
use crate::deliver::fail;
use crate::forward::forward;
use crate::input::{Arrived, Input};
use crate::job::{InFlight, Job};
use crate::newcomers::Entrant;
use crate::patience::{Late, Patience};
use crate::prepare::{prepare, prepare_again};
use crate::roles::{AUTHENTICATOR, Role};
use crate::shared::Shared;
use crate::statement_text::{Effect, StatementText};

/// The CQL version of Cassandra 5.0.
const CQL_VERSION: &str = helenus_wire::native::SUPPORTED_CQL;
/// How long the nodes may take to tell their schema versions, which are part of `system.peers`.
const SCHEMA_VERSIONS: Duration = Duration::from_secs(2);
/// The most bytes that a client may send in all until it has logged in.
const STRANGER_BYTES_MAX: u64 = 128 << 10;

/// Whether the client could send while a request of it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    On,
    /// Not as much as it may have wanted to.
    Stopped,
}

/// Waits until a client is late.
async fn wait_until(late: Option<(Instant, Late)>) -> Late {
    match late {
        Some((at, late)) => {
            tokio::time::sleep_until(at).await;
            late
        }
        None => std::future::pending().await,
    }
}

/// One client's connection.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    client: Arc<Client>,
    input: Input,
    version: Option<Version>,
    /// As what its requests run; `None` before the login.
    role: Option<Arc<Role>>,
    keyspace: Option<Arc<str>>,
    /// Told when the client has begun: has logged in, or has sent STARTUP where nobody logs in.
    entrant: Arc<Entrant>,
    is_encrypted: bool,
}

impl Connection {
    /// `entrant`: its place, and whether it is encrypted.
    pub fn new(
        shared: &Arc<Shared>,
        client: &Arc<Client>,
        (entrant, is_encrypted): (&Arc<Entrant>, bool),
    ) -> Connection {
        let options = &shared.options;
        Connection {
            input: Input::new(
                (options.frame_bytes_max, options.message_bytes_max),
                shared.roles.are_needed().then_some(BEFORE_LOGIN_BYTES_MAX),
                &shared.budgets.requests_of(client.remote.ip()),
            ),
            shared: Arc::clone(shared),
            client: Arc::clone(client),
            version: None,
            role: (!shared.roles.are_needed()).then(|| shared.roles.own()),
            keyspace: None,
            entrant: Arc::clone(entrant),
            is_encrypted,
        }
    }

    /// Goes on where another server of this process has stopped. Where clients log in, nobody has yet: who had logged in there is not
    /// handed over.
    pub fn resume(&mut self, state: HandedOver) {
        if let Some(agreed) = &state.agreed {
            self.client.resume(agreed, &state.unsent);
            self.version = Some(agreed.version);
            self.keyspace.clone_from(&agreed.keyspace);
            if self.role.is_some() {
                self.entrant.begin(self.is_encrypted);
            }
        }
        if let Some(refusal) = self.input.resume(state.agreed.as_ref(), state.unserved) {
            self.client.refuse(&refusal);
        }
    }

    /// Serves the client until one side ends the connection.
    pub async fn run(mut self, mut socket: Box<dyn AsyncRead + Send + Unpin>) {
        let until = tokio::time::sleep(self.shared.options.handshake_timeout);
        tokio::pin!(until);
        let client = Arc::clone(&self.client);
        let options = &self.shared.options;
        let mut patience = Patience::new(options.frame_grace, options.idle_timeout);
        while !client.is_closing() {
            while let Some(arrived) = self.input.next() {
                match arrived {
                    Arrived::Request(header, body, _) if self.version.is_some() && self.role.is_none() => {
                        // What is rare is on the heap meanwhile: the future of a silent connection is small.
                        Box::pin(self.log_in(&header, &body, (&mut *socket, until.as_mut()))).await;
                    }
                    Arrived::Request(header, body, held) => {
                        if self.take(header, (body, held), &mut *socket).await == Read::Stopped {
                            patience.restart();
                        }
                    }
                    Arrived::Refused(refusal) => self.refuse(&refusal),
                }
                if self.client.is_closing() {
                    return;
                }
                if !self.client.may_go_on() {
                    self.input.leave_room();
                    self.client.room().await;
                    patience.restart();
                }
            }
            let has_begun = self.version.is_some() && self.role.is_some();
            if self.has_sent_too_much() {
                return;
            }
            if self.input.is_starved() {
                tokio::select! {
                    () = self.input.room() => {}
                    () = tokio::time::sleep(self.shared.options.frame_grace) => {
                        if let Some(refusal) = self.input.give_up() {
                            self.refuse(&refusal);
                        }
                    }
                    () = &mut until, if !has_begun => return self.end_handshake(),
                    () = client.closing() => return,
                }
                patience.restart();
                continue;
            }
            let late = patience.until(self.input.has_part(), self.input.received());
            // Bytes that are there count before the time, which may have passed while the client had to wait.
            tokio::select! {
                biased;
                read = self.input.fill(&mut socket) => match read {
                    Ok(1..) => patience.heard(),
                    _ => return self.client.end(),
                },
                late = wait_until(late) => match late {
                    // A client that waits for answers is not idle.
                    Late::Idle if !client.is_idle() => patience.heard(),
                    Late::Idle => return client.close_after_answers(),
                    Late::Request => return client.end(),
                },
                () = &mut until, if !has_begun => return self.end_handshake(),
                () = client.closing() => return,
            }
        }
    }

    /// Ends a connection that sends no STARTUP or no login in time.
    fn end_handshake(&self) {
        match self.version {
            None => self.client.end(),
            Some(_) => self.give_up(WireError::NoLogin),
        }
    }

    fn refuse(&self, refusal: &Refusal) {
        if refusal.then != AfterRefusal::CloseUnanswered {
            self.client.refuse(refusal);
        }
        if matches!(refusal.then, AfterRefusal::Close | AfterRefusal::CloseUnanswered) {
            self.client.close_after_answers();
        }
    }

    /// Whether the client has sent more than it may before its login; then the connection ends.
    fn has_sent_too_much(&self) -> bool {
        let is_too_much = self.role.is_none() && self.input.received() > STRANGER_BYTES_MAX;
        if is_too_much {
            self.give_up(WireError::TooLongBeforeLogin { bytes_max: STRANGER_BYTES_MAX });
        }
        is_too_much
    }

    /// Ends the connection with this error.
    fn give_up(&self, error: WireError) {
        self.client.refuse(&Refusal::fatal(error, 0));
        self.client.close_after_answers();
    }

    async fn take(
        &mut self,
        header: Header,
        (body, held): (Vec<u8>, Held),
        socket: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Read {
        let Some(version) = self.version else {
            self.begin(&header, &body);
            return Read::On;
        };
        let Some(role) = self.role.clone() else { return Read::On };
        match header.opcode {
            Opcode::Query | Opcode::Execute | Opcode::Batch => {
                return self.run_statement(self.job(&header, (body, held), role), socket).await;
            }
            Opcode::Prepare => {
                let job = Arc::new(self.job(&header, (body, held), role));
                match job.message() {
                    Ok(_) => {
                        let runtime = self.shared.runtime.clone();
                        runtime.spawn(async move { prepare(&job).await });
                    }
                    Err(error) => job.fail(&ErrorMessage::from(&error)),
                }
            }
            Opcode::Register => match decode_request(version, header.opcode, header.flags, &body) {
                Ok(message) => {
                    if let Request::Register(events) = message.request {
                        self.client.register(events);
                    }
                    self.client.answer(version, header.stream, &Outgoing::Ready);
                }
                Err(error) => self.client.error(version, header.stream, &ErrorMessage::from(&error)),
            },
            Opcode::Options => self.supported(&header),
            Opcode::Startup => {
                self.protocol(&header, "Unexpected message STARTUP, the connection is already initialized");
            }
            other => self.protocol(&header, &format!("Unexpected message {other}")),
        }
        Read::On
    }

    /// OPTIONS and STARTUP; a client that sends something else first is told so and loses the connection.
    fn begin(&mut self, header: &Header, body: &[u8]) {
        let version = header.version;
        match decode_request(version, header.opcode, header.flags, body).map(|message| message.request) {
            Ok(Request::Options) => self.supported(header),
            Ok(Request::Startup(startup)) => self.start(header, &startup),
            Ok(_) => {
                let text = format!("Unexpected message {}, expecting STARTUP or OPTIONS", header.opcode);
                self.protocol(header, &text);
                self.client.close_after_answers();
            }
            Err(error) => self.client.error(version, header.stream, &ErrorMessage::from(&error)),
        }
    }

    fn start(&mut self, header: &Header, startup: &Startup<'_>) {
        let version = header.version;
        match startup.check(version) {
            Ok(compression) => {
                self.version = Some(version);
                self.input.start(version, compression);
                let answer = match self.role {
                    Some(_) => {
                        self.entrant.begin(self.is_encrypted);
                        Outgoing::Ready
                    }
                    None => Outgoing::Authenticate(AUTHENTICATOR),
                };
                self.client.start(version, compression, (header.stream, &answer));
            }
            Err(error) => self.client.error(version, header.stream, &ErrorMessage::from(&error)),
        }
    }

    /// A request before the login, which must be the login. While it waits for its turn and is checked, the socket is read on: a login
    /// whose client has gone is given up, as is one that takes longer than a client has for it. Little is read: a client that sends more
    /// behind its login is listened to once that is answered.
    async fn log_in(
        &mut self,
        header: &Header,
        body: &[u8],
        (socket, mut until): (&mut (dyn AsyncRead + Send + Unpin), Pin<&mut Sleep>),
    ) {
        let (version, stream) = (header.version, header.stream);
        let decoded = decode_request(version, header.opcode, header.flags, body);
        let token = match decoded.map(|message| message.request) {
            Ok(Request::AuthResponse(token)) => token.unwrap_or_default(),
            Ok(_) => {
                let text = format!("Unexpected message {}, expecting SASL_RESPONSE", header.opcode);
                return self.protocol(header, &text);
            }
            Err(error) => return self.client.error(version, stream, &ErrorMessage::from(&error)),
        };
        let (roles, client) = (Arc::clone(&self.shared.roles), Arc::clone(&self.client));
        let checked = async move {
            let checked = roles.log_in_with_token(token, client.remote.ip()).await;
            if let Err(refused) = &checked {
                tokio::time::sleep(refused.wait).await;
            }
            checked
        };
        tokio::pin!(checked);
        let checked = loop {
            let client = Arc::clone(&self.client);
            let may_read = self.input.may_read_ahead();
            tokio::select! {
                checked = &mut checked => break checked,
                read = self.input.fill(socket), if may_read => if !matches!(read, Ok(1..)) {
                    return self.client.end();
                },
                () = &mut until => return self.give_up(WireError::NoLogin),
                () = client.closing() => return,
            }
            if self.has_sent_too_much() {
                return;
            }
        };
        match checked {
            Ok(role) => {
                self.role = Some(role);
                self.entrant.begin(self.is_encrypted);
                self.input.log_in();
                self.client.answer(version, stream, &Outgoing::AuthSuccess(None));
            }
            Err(refused) => self.client.error(version, stream, &refused.error),
        }
    }

    fn supported(&self, header: &Header) {
        let message = Outgoing::Supported { cql_version: CQL_VERSION };
        self.client.answer(header.version, header.stream, &message);
    }

    fn protocol(&self, header: &Header, text: &str) {
        self.client.error(header.version, header.stream, &ErrorMessage::plain(ErrorCode::Protocol, text));
    }

    fn job(&self, header: &Header, (body, held): (Vec<u8>, Held), role: Arc<Role>) -> Job {
        Job {
            _in_flight: InFlight::begin(&self.client, held),
            until: role.cluster.until(),
            shared: Arc::clone(&self.shared),
            client: Arc::clone(&self.client),
            role,
            version: header.version,
            flags: header.flags,
            stream: header.stream,
            opcode: header.opcode,
            body,
            keyspace: self.keyspace.clone(),
            keyspace_is_gone: AtomicBool::new(false),
            text: StatementText { effect: Effect::Other, own_table: None },
            prepared: Vec::new(),
            schema_versions: OnceLock::new(),
        }
    }

    /// Prepares the statements of a request again. While that lasts the socket is read on, as far as it may be: it is given up for a client
    /// that has gone, and for one whose connection is to close.
    async fn prepare_again(&mut self, job: &Job, socket: &mut (dyn AsyncRead + Send + Unpin)) {
        let client = Arc::clone(&self.client);
        let prepared = prepare_again(job);
        tokio::pin!(prepared);
        loop {
            let may_read = self.input.may_read_ahead();
            tokio::select! {
                () = &mut prepared => return,
                read = self.input.fill(socket), if may_read => if !matches!(read, Ok(1..)) {
                    return self.client.end();
                },
                () = client.closing() => return,
            }
        }
    }

    async fn run_statement(&mut self, mut job: Job, socket: &mut (dyn AsyncRead + Send + Unpin)) -> Read {
        match job.resolve() {
            Err(ErrorMessage { detail: ErrorDetail::Unprepared { .. }, .. }) => {
                Box::pin(self.prepare_again(&job, socket)).await;
                let resolved = job.resolve();
                self.run_resolved(Arc::new(job), resolved).await;
                Read::Stopped
            }
            resolved => {
                self.run_resolved(Arc::new(job), resolved).await;
                Read::On
            }
        }
    }

    async fn run_resolved(&mut self, job: Arc<Job>, resolved: Result<(), ErrorMessage>) {
        if let Err(error) = resolved {
            return job.fail(&error);
        }
        if job.shows_nodes() {
            let runtime = self.shared.runtime.clone();
            runtime.spawn(async move {
                let versions = job.shared.cluster.schema_versions(SCHEMA_VERSIONS).await;
                // Set once, here.
                let _ = job.schema_versions.set(versions);
                forward(job);
            });
            return;
        }
        let Effect::Use(keyspace) = &job.text.effect else {
            return forward(job);
        };
        match Box::pin(self.shared.cluster.check_keyspace(keyspace, job.until)).await {
            Ok(()) => {
                self.keyspace = Some(keyspace.as_str().into());
                self.client.answer(job.version, job.stream, &Outgoing::SetKeyspace(keyspace));
            }
            Err(error) => fail(&job, &error),
        }
    }
}
