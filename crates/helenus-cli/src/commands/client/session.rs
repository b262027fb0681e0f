//! A client of the native protocol with one request at a time, for the preparation of a run: creates tables, prepares
//! statements.

use super::{Connection, Received};
use crate::commands::access::Access;
use crate::commands::passwords::Login;
use anyhow::{Context, Result, bail};
use helenus_model::types::CqlType;
use helenus_tls::TlsClient;
use helenus_wire::native::{
    Prepare, Query, QueryParameters, Request, RequestHead, Response, ResultMessage, Version, decode_response,
};
use std::time::{Duration, Instant};

/// A connection with one request in flight.
pub struct Session {
    connection: Connection,
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub struct PreparedStatement {
    pub id: Vec<u8>,
    /// Protocol v5: the id of the result's metadata.
    pub result_metadata_id: Option<Vec<u8>>,
    /// Names and types of the bind markers.
    pub variables: Vec<(String, CqlType)>,
}

/// Whether a client may log in by its certificate, with an empty token, where this class of Cassandra asks it to.
pub fn takes_certificates(class: &str) -> bool {
    class.ends_with(".MutualTlsAuthenticator")
        || class.ends_with(".MutualTlsWithPasswordFallbackAuthenticator")
}

impl Session {
    /// Connects, logs in if the server asks for it, and waits until the server is ready for requests.
    pub fn open(address: &str, version: Version, access: Access<'_>) -> Result<Session> {
        let login = access.login;
        let shows_certificate = access.tls.is_some_and(TlsClient::shows_certificate);
        let mut session = Session { connection: Connection::open(address, version, access.tls)? };
        let is_ready = session.answer(|response| match (response, login) {
            (Response::Ready, _) => Ok(true),
            (Response::Authenticate(_), Some(_)) => Ok(false),
            (Response::Authenticate(class), None) if takes_certificates(class) && shows_certificate => Ok(false),
            (Response::Authenticate(class), None) => {
                bail!("{address} wants a login ({class}): give --username, and --password-file or HELENUS_PASSWORD")
            }
            (other, _) => Err(unexpected(other)),
        })?;
        session.connection.started();
        if !is_ready {
            let token =
                login.map(|Login { user, password }| format!("\0{user}\0{password}")).unwrap_or_default();
            session.ask(&Request::AuthResponse(Some(token.as_bytes())), |response| match response {
                Response::AuthSuccess(_) => Ok(()),
                other => Err(unexpected(other)),
            })?;
        }
        Ok(session)
    }

    /// The underlying connection, for pipelining.
    pub fn into_connection(self) -> Connection {
        self.connection
    }

    /// Runs a statement and ignores its result.
    pub fn run(&mut self, query: &str) -> Result<()> {
        let request = Request::Query(Query { query, parameters: QueryParameters::default() });
        self.ask(&request, |response| match response {
            Response::Result(_) => Ok(()),
            other => Err(unexpected(other)),
        })
        .with_context(|| query.to_owned())
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, query: &str) -> Result<PreparedStatement> {
        self.ask(&Request::Prepare(Prepare { query, keyspace: None }), |response| match response {
            Response::Result(ResultMessage::Prepared(prepared)) => {
                let variables = prepared.variables.to_vec()?.into_iter();
                Ok(PreparedStatement {
                    id: prepared.id.to_vec(),
                    result_metadata_id: prepared.result_metadata_id.map(<[u8]>::to_vec),
                    variables: variables.map(|column| (column.name.to_string(), column.ty)).collect(),
                })
            }
            other => Err(unexpected(other)),
        })
        .with_context(|| query.to_owned())
    }

    /// The protocol version of the connection.
    pub fn version(&self) -> Version {
        self.connection.version
    }

    /// Sends the request that `fill` appends, and passes its answer to `look`. Returns the time from the first byte
    /// written to the last byte read.
    pub fn exchange(
        &mut self,
        fill: impl FnOnce(&mut Vec<u8>),
        mut look: impl FnMut(Response<'_>) -> Result<()>,
    ) -> Result<Duration> {
        self.connection.put(fill);
        let begun = Instant::now();
        self.connection.write_blocking()?;
        self.answer(|response| {
            let took = begun.elapsed();
            look(response).map(|()| took)
        })
    }

    fn ask<T>(&mut self, request: &Request<'_>, look: impl FnMut(Response<'_>) -> Result<T>) -> Result<T> {
        let head = RequestHead::new(self.connection.version, 0);
        self.connection.put(|out| request.encode(&head, out))?;
        self.connection.write_blocking()?;
        self.answer(look)
    }

    fn answer<T>(&mut self, mut look: impl FnMut(Response<'_>) -> Result<T>) -> Result<T> {
        let mut answer = None;
        while answer.is_none() {
            if let Received::Nothing = self.connection.read()? {
                bail!("no answer");
            }
            self.connection.envelopes(|envelope| {
                let header = envelope.header;
                let message = decode_response(header.version, header.opcode, header.flags, envelope.body)?;
                answer = Some(look(message.response)?);
                Ok(())
            })?;
        }
        answer.context("no answer")
    }
}

fn unexpected(response: Response<'_>) -> anyhow::Error {
    match response {
        Response::Error(error) => {
            anyhow::anyhow!("{}: {}", error.detail.code().name(), error.message)
        }
        other => anyhow::anyhow!("an answer that does not fit: {other:?}"),
    }
}
