//! Reads the requests of one client, and answers those that need no node.
//!
//! While the client has as much in flight as it may, or all clients together have, nothing is read, so that the client waits too.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use helenus_wire::WireError;
use helenus_wire::native::{
    AfterRefusal, ErrorCode, ErrorDetail, ErrorMessage, HandedOver, Header, Opcode, Outgoing, Refusal,
    Request, Startup, Version, decode_request,
};
use tokio::io::AsyncRead;

use crate::client::Client;
use crate::forward::forward;
use crate::input::{Arrived, Input};
use crate::job::Job;
use crate::prepare::{check_keyspace, prepare, prepare_again};
use crate::roles::{AUTHENTICATOR, Role};
use crate::shared::Shared;
use crate::statement_text::{Effect, StatementText};

/// The CQL version of Cassandra 5.0.
const CQL_VERSION: &str = "3.4.7";
/// How long the nodes may take to tell their schema versions, which are part of `system.peers`.
const SCHEMA_VERSIONS: Duration = Duration::from_secs(2);
/// The most bytes that a client may send until it has logged in.
const BEFORE_LOGIN_BYTES_MAX: u64 = 128 << 10;

/// One client's connection.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    client: Arc<Client>,
    input: Input,
    version: Option<Version>,
    /// As what its requests run; `None` before the login.
    role: Option<Arc<Role>>,
    keyspace: Option<Arc<str>>,
}

impl Connection {
    pub fn new(shared: &Arc<Shared>, client: &Arc<Client>) -> Connection {
        let options = &shared.options;
        Connection {
            input: Input::new(options.frame_bytes_max, options.message_bytes_max),
            shared: Arc::clone(shared),
            client: Arc::clone(client),
            version: None,
            role: (!shared.roles.are_needed()).then(|| shared.roles.own()),
            keyspace: None,
        }
    }

    /// Goes on where another server of this process has stopped. Where clients log in, nobody has yet: who had logged in there is not
    /// handed over.
    pub fn resume(&mut self, state: HandedOver) {
        if let Some(agreed) = &state.agreed {
            self.client.resume(agreed, &state.unsent);
            self.version = Some(agreed.version);
            self.keyspace.clone_from(&agreed.keyspace);
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
        while !client.is_closing() {
            while let Some(arrived) = self.input.next() {
                match arrived {
                    Arrived::Request(header, body) => self.take(header, body).await,
                    Arrived::Refused(refusal) => {
                        if refusal.then != AfterRefusal::CloseUnanswered {
                            self.client.refuse(&refusal);
                        }
                        if matches!(refusal.then, AfterRefusal::Close | AfterRefusal::CloseUnanswered) {
                            self.client.close_after_answers();
                        }
                    }
                }
                if self.client.is_closing() {
                    return;
                }
                self.client.room().await;
            }
            let has_begun = self.version.is_some() && self.role.is_some();
            if self.role.is_none() && self.input.received() > BEFORE_LOGIN_BYTES_MAX {
                let bytes_max = BEFORE_LOGIN_BYTES_MAX;
                return self.give_up(WireError::TooLongBeforeLogin { bytes_max });
            }
            tokio::select! {
                read = self.input.fill(&mut socket) => if !matches!(read, Ok(1..)) {
                    return self.client.end();
                },
                () = &mut until, if !has_begun => match self.version {
                    None => return self.client.end(),
                    Some(_) => return self.give_up(WireError::NoLogin),
                },
                () = client.closing() => return,
            }
        }
    }

    /// Ends the connection with this error.
    fn give_up(&self, error: WireError) {
        self.client.refuse(&Refusal::fatal(error, 0));
        self.client.close_after_answers();
    }

    async fn take(&mut self, header: Header, body: Vec<u8>) {
        let Some(version) = self.version else { return self.begin(&header, &body) };
        let Some(role) = self.role.clone() else { return self.log_in(&header, &body).await };
        match header.opcode {
            Opcode::Query | Opcode::Execute | Opcode::Batch => self.run_statement(&header, body, role).await,
            Opcode::Prepare => {
                let job = self.job(&header, body, role).counted();
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
                    Some(_) => Outgoing::Ready,
                    None => Outgoing::Authenticate(AUTHENTICATOR),
                };
                self.client.start(version, compression, (header.stream, &answer));
            }
            Err(error) => self.client.error(version, header.stream, &ErrorMessage::from(&error)),
        }
    }

    /// A request before the login, which must be the login.
    async fn log_in(&mut self, header: &Header, body: &[u8]) {
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
        match self.shared.roles.log_in_with_token(token, self.client.remote.ip()).await {
            Ok(role) => {
                self.role = Some(role);
                self.client.answer(version, stream, &Outgoing::AuthSuccess(None));
            }
            Err(refused) => {
                tokio::time::sleep(refused.wait).await;
                self.client.error(version, stream, &refused.error);
            }
        }
    }

    fn supported(&self, header: &Header) {
        let message = Outgoing::Supported { cql_version: CQL_VERSION };
        self.client.answer(header.version, header.stream, &message);
    }

    fn protocol(&self, header: &Header, text: &str) {
        self.client.error(header.version, header.stream, &ErrorMessage::plain(ErrorCode::Protocol, text));
    }

    fn job(&self, header: &Header, body: Vec<u8>, role: Arc<Role>) -> Job {
        Job {
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

    async fn run_statement(&mut self, header: &Header, body: Vec<u8>, role: Arc<Role>) {
        let mut job = self.job(header, body, role);
        let resolved = match job.resolve() {
            Err(ErrorMessage { detail: ErrorDetail::Unprepared { .. }, .. }) => {
                prepare_again(&job).await;
                job.resolve()
            }
            resolved => resolved,
        };
        let job = job.counted();
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
        match check_keyspace(&self.shared, keyspace).await {
            Ok(()) => {
                self.keyspace = Some(keyspace.as_str().into());
                self.client.answer(job.version, job.stream, &Outgoing::SetKeyspace(keyspace));
            }
            Err(error) => job.fail(&error),
        }
    }
}
