//! The beginning of a connection: its version, its compression and the login.

use std::io::ErrorKind;

use helenus_wire::native::{
    COMPRESSION, CQL_VERSION, DRIVER_NAME, ErrorCode, Header, Opcode, Request, RequestHead, Response,
    Version, decode_response, encode_startup,
};
use tokio::io::AsyncWriteExt;

use super::framing::{Deframer, Framer};
use super::stream::Stream;
use crate::options::ClusterOptions;
use crate::{ConnectError, OwnedAnswer};

/// A connection that is ready for requests.
pub(super) struct Ready {
    pub stream: Stream,
    pub deframer: Deframer,
    pub framer: Framer,
    pub version: Version,
}

/// How a handshake ended that did not fail for good.
pub(super) enum Outcome {
    /// The connection is ready.
    Ready(Box<Ready>),
    /// The node does not speak this version; an older one may do.
    OlderVersion(ConnectError),
}

struct Handshake<'a> {
    stream: Stream,
    deframer: Deframer,
    framer: Option<Framer>,
    version: Version,
    host: String,
    options: &'a ClusterOptions,
}

/// Sends STARTUP in this version, and logs in if the node asks for it.
pub(super) async fn start(
    stream: Stream,
    version: Version,
    host: String,
    options: &ClusterOptions,
) -> Result<Outcome, ConnectError> {
    let deframer = Deframer::new(options.answer_bytes_max, &options.answers);
    Handshake { stream, deframer, framer: None, version, host, options }.run().await
}

impl Handshake<'_> {
    async fn run(mut self) -> Result<Outcome, ConnectError> {
        let mut settings = vec![(CQL_VERSION, "3.0.0"), (DRIVER_NAME, self.options.driver_name.as_str())];
        if self.options.compress {
            settings.push((COMPRESSION, "lz4"));
            if self.version < Version::V5 {
                self.deframer.expect_compressed();
            }
        }
        let mut startup = Vec::new();
        encode_startup(&settings, &RequestHead::new(self.version, 0), &mut startup)
            .map_err(|error| self.protocol(error.to_string()))?;
        self.write(&startup).await?;
        let answer = self.read().await?;
        let decoded = answer.decode().map_err(|error| self.protocol(error.to_string()))?;
        let authenticator = match decoded.response {
            Response::Ready => None,
            Response::Authenticate(class) => Some(class.to_owned()),
            Response::Error(error) => {
                let is_version = error.detail.code() == ErrorCode::Protocol && self.version > Version::V3;
                let refused = ConnectError::Refused { host: self.host.clone(), error };
                return if is_version { Ok(Outcome::OlderVersion(refused)) } else { Err(refused) };
            }
            _ => return Err(self.protocol(format!("{} in answer to STARTUP", answer.opcode))),
        };
        self.deframer.start(self.version, self.options.compress);
        self.framer = Some(Framer::new(self.version, self.options.compress));
        match authenticator {
            Some(class) => self.log_in(class).await?,
            None if self.options.must_log_in => {
                return Err(ConnectError::LoginUnchecked { host: self.host.clone() });
            }
            None => {}
        }
        let Handshake { stream, deframer, framer, version, options, .. } = self;
        let framer = framer.unwrap_or_else(|| Framer::new(version, options.compress));
        Ok(Outcome::Ready(Box::new(Ready { stream, deframer, framer, version })))
    }

    /// PLAIN of SASL, as `PasswordAuthenticator` takes it.
    async fn log_in(&mut self, authenticator: String) -> Result<(), ConnectError> {
        let Some(login) = &self.options.login else {
            return Err(ConnectError::NoLogin { host: self.host.clone(), authenticator });
        };
        let token = format!("\0{}\0{}", login.user, login.password);
        let mut challenges = 0;
        loop {
            let mut request = Vec::new();
            Request::AuthResponse(Some(token.as_bytes()))
                .encode(&RequestHead::new(self.version, 0), &mut request)
                .map_err(|error| self.protocol(error.to_string()))?;
            self.write(&request).await?;
            let answer = self.read().await?;
            let decoded = answer.decode().map_err(|error| self.protocol(error.to_string()))?;
            match decoded.response {
                Response::AuthSuccess(_) => return Ok(()),
                // DataStax's and other authenticators first ask which mechanism is meant.
                Response::AuthChallenge(_) if challenges == 0 => challenges += 1,
                Response::Error(error) => {
                    return Err(ConnectError::Refused { host: self.host.clone(), error });
                }
                _ => return Err(self.protocol(format!("{} in answer to the login", answer.opcode))),
            }
        }
    }

    async fn write(&mut self, envelope: &[u8]) -> Result<(), ConnectError> {
        let mut buffer = Vec::new();
        let bytes = match &mut self.framer {
            Some(framer) => framer.frame(envelope, &mut buffer),
            None => envelope,
        };
        let written = async {
            self.stream.output.write_all(bytes).await?;
            self.stream.output.flush().await
        };
        written.await.map_err(|source| self.socket(source))
    }

    async fn read(&mut self) -> Result<OwnedAnswer, ConnectError> {
        loop {
            let mut found = None;
            let took = self.deframer.each(|header: &Header, body: &[u8], _| {
                let Header { version, flags, opcode, .. } = *header;
                found = Some(OwnedAnswer { version, flags, opcode, body: body.to_vec(), room: None });
                false
            });
            took.map_err(|error| self.protocol(error.to_string()))?;
            if let Some(answer) = found {
                // An error of the version comes in the node's own version.
                if answer.opcode != Opcode::Error && answer.version != self.version {
                    return Err(self.protocol(format!("an answer in version {}", answer.version)));
                }
                if decode_response(answer.version, answer.opcode, answer.flags, &answer.body).is_err() {
                    return Err(self.protocol("an answer that cannot be read".to_owned()));
                }
                return Ok(answer);
            }
            let filled = self.deframer.fill(&mut self.stream.input).await;
            let read = filled.map_err(|source| self.socket(source))?;
            if read == 0 {
                return Err(self.protocol("the connection was closed".to_owned()));
            }
        }
    }

    /// A failure of the socket. A node that takes TLS alone closes a connection in the clear at its first message.
    fn socket(&self, source: std::io::Error) -> ConnectError {
        let is_closed = matches!(source.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
        let source = match is_closed && self.options.tls.is_none() {
            true => {
                let text = format!("{source}; a node that takes clients by TLS alone answers so");
                std::io::Error::new(source.kind(), text)
            }
            false => source,
        };
        ConnectError::Socket { host: self.host.clone(), source }
    }

    fn protocol(&self, reason: String) -> ConnectError {
        ConnectError::Protocol { host: self.host.clone(), reason }
    }
}
