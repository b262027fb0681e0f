//! One request on its way: what the client has sent, and how it is put for a node.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use helenus_cluster::{Asks, Extras, WrittenPartitions};
use helenus_model::token::Token;
use helenus_wire::WireError;
use helenus_wire::native::{
    Batch, BatchKind, Consistency, ErrorCode, ErrorDetail, ErrorMessage, Execute, Flags, Opcode, Outgoing,
    QueryParameters, Request, RequestMessage, StatementRef, Statements, Values, Version, WriteType,
    decode_request,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::budget::Held;
use crate::client::Client;
use crate::roles::Role;
use crate::shared::Shared;
use crate::statement_text::{Effect, OwnTable, StatementText, unknown_use};
use crate::statements::GatewayStatement;

/// A request that was received, with all that its answer needs.
pub(crate) struct Job {
    pub shared: Arc<Shared>,
    pub client: Arc<Client>,
    /// As what it runs.
    pub role: Arc<Role>,
    /// The client's version, by which `body` is encoded.
    pub version: Version,
    pub flags: Flags,
    pub stream: i16,
    pub opcode: Opcode,
    pub body: Vec<u8>,
    /// The keyspace in use.
    pub keyspace: Option<Arc<str>>,
    /// Set once a node says that the keyspace in use does not exist any more.
    pub keyspace_is_gone: AtomicBool,
    /// What it does. For EXECUTE this is the prepared statement's.
    pub text: StatementText,
    /// The prepared statements of an EXECUTE or a BATCH, in order; a statement of a batch that is a text has none here.
    pub prepared: Vec<Arc<GatewayStatement>>,
    /// The schema version of each node, by its id, if the answer shows the nodes.
    pub schema_versions: OnceLock<HashMap<Uuid, Uuid>>,
    /// Until when it waits for room at nodes that have too many requests, in all.
    pub until: Instant,
    /// Counts it until it is dropped.
    pub _in_flight: InFlight,
}

/// Why a request cannot be put for a node yet.
pub(crate) enum Unready {
    /// The node must prepare this statement first.
    Unprepared(Arc<GatewayStatement>),
    /// The client's request is wrong.
    Refused(ErrorMessage),
}

impl From<WireError> for Unready {
    fn from(error: WireError) -> Unready {
        Unready::Refused(ErrorMessage::from(&error))
    }
}

/// A request's place among those in flight, from its arrival until it is dropped.
pub(crate) struct InFlight {
    client: Arc<Client>,
    _bytes: Held,
}

impl InFlight {
    /// Counts a request, which has these bytes.
    pub fn begin(client: &Arc<Client>, bytes: Held) -> InFlight {
        client.begin_request();
        InFlight { client: Arc::clone(client), _bytes: bytes }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.client.end_request();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if matches!(self.text.effect, Effect::Write(_) | Effect::Other) {
            self.note_written();
        }
    }
}

impl Job {
    /// The request as the client has sent it.
    pub fn message(&self) -> Result<RequestMessage<'_>, WireError> {
        decode_request(self.version, self.opcode, self.flags, &self.body)
    }

    /// Finds the statements of the request, and checks what can be checked here.
    ///
    /// # Errors
    /// The error for the client: the request is damaged, a statement is not known, a paging state is not the gateway's, or a
    /// statement is one that the gateway refuses.
    pub fn resolve(&mut self) -> Result<(), ErrorMessage> {
        let wrong = |error: WireError| ErrorMessage::from(&error);
        let message = decode_request(self.version, self.opcode, self.flags, &self.body).map_err(wrong)?;
        let (mut prepared, mut text) = (Vec::new(), None);
        let keyspace_in_use = self.keyspace.as_deref();
        match message.request {
            Request::Query(query) => {
                query.parameters.check_page_size().map_err(wrong)?;
                check_state(&self.shared, &query.parameters)?;
                let keyspace = query.parameters.keyspace.or(keyspace_in_use);
                text = Some(StatementText::of(query.query, keyspace));
            }
            Request::Execute(execute) => {
                let statement =
                    self.shared.statements.get(execute.id).ok_or_else(|| unprepared(execute.id))?;
                execute.parameters.check_page_size().map_err(wrong)?;
                check_state(&self.shared, &execute.parameters)?;
                text = Some(statement.text.clone());
                prepared.push(statement);
            }
            Request::Batch(batch) => {
                for statement in batch.statements.iter() {
                    if let StatementRef::Prepared(id) = statement.statement {
                        prepared.push(self.shared.statements.get(id).ok_or_else(|| unprepared(id))?);
                    }
                }
                let kind = match batch.kind {
                    BatchKind::Logged => WriteType::Batch,
                    BatchKind::Unlogged => WriteType::UnloggedBatch,
                    BatchKind::Counter => WriteType::Counter,
                };
                text = Some(StatementText { effect: Effect::Write(kind), own_table: None });
            }
            _ => {}
        }
        self.prepared = prepared;
        if let Some(text) = text {
            self.text = text;
        }
        match (&self.text.effect, &self.text.own_table) {
            (Effect::Explain, _) => Err(no_explain()),
            (Effect::UnknownUse, _) => Err(unknown_use()),
            (Effect::Use(_), _) if self.opcode != Opcode::Query => Err(no_prepared_use()),
            (_, Some(OwnTable::Peers(Err(unsupported)))) if self.shared.options.shows_nodes => {
                Err((*unsupported).into())
            }
            _ => Ok(()),
        }
    }

    /// Notes the partitions that the request has written, if somebody wants to know.
    fn note_written(&self) {
        let written = self.shared.roles.written();
        if !written.is_noting() {
            return;
        }
        match self.message().map(|message| message.request) {
            Ok(Request::Execute(execute)) => {
                if let Some(prepared) = self.prepared.first() {
                    note_values(written, prepared, &execute.parameters.values);
                }
            }
            Ok(Request::Batch(batch)) => {
                let mut known = self.prepared.iter();
                for statement in batch.statements.iter() {
                    match statement.statement {
                        StatementRef::Prepared(_) => {
                            let Some(prepared) = known.next() else { return };
                            note_values(written, prepared, &statement.values);
                        }
                        StatementRef::Query(_) => written.note_unknown(),
                    }
                }
            }
            Ok(Request::Query(_)) => written.note_unknown(),
            _ => {}
        }
    }

    /// The keyspace and the token of the partition that the request is for, if the gateway can tell.
    pub fn partition(&self) -> Option<(&str, Token)> {
        match self.message().ok()?.request {
            Request::Execute(execute) => {
                let statement = &self.prepared.first()?.statement;
                let values = execute.parameters.values;
                if values.has_names() {
                    return None;
                }
                let token = statement.token(|marker| values.iter().nth(marker).map(|(_, value)| value));
                statement.table_keyspace().zip(token)
            }
            Request::Batch(batch) => {
                let mut known = self.prepared.iter();
                batch.statements.iter().find_map(|statement| {
                    let StatementRef::Prepared(_) = statement.statement else {
                        return None;
                    };
                    let prepared = &known.next()?.statement;
                    let values = statement.values;
                    let token = prepared.token(|marker| values.iter().nth(marker).map(|(_, value)| value));
                    prepared.table_keyspace().zip(token)
                })
            }
            _ => None,
        }
    }

    /// The keyspace in use that the node is told of.
    pub fn keyspace_for_node(&self) -> Option<&str> {
        self.keyspace.as_deref().filter(|_| !self.keyspace_is_gone.load(Ordering::Relaxed))
    }

    /// Sends the request without the keyspace in use from now on, as a server does where it was dropped: a statement that names its
    /// keyspaces needs no other.
    pub fn forget_keyspace(&self) {
        self.keyspace_is_gone.store(true, Ordering::Relaxed);
    }

    /// Whether an error says that the keyspace in use does not exist.
    pub fn lacks_keyspace(&self, error: &ErrorMessage) -> bool {
        let is_named = |keyspace: &str| error.message == format!("Keyspace '{keyspace}' does not exist");
        error.detail.code() == ErrorCode::Invalid && self.keyspace_for_node().is_some_and(is_named)
    }

    /// The keyspace that must be in use on the node's connection, because the request cannot name it: before v5, and for statements
    /// other than reads and writes, of which Cassandra looks up some (DESCRIBE, GRANT) in the connection's keyspace alone.
    pub fn keyspace_of_connection(&self, node: Version) -> Option<String> {
        let in_use = self.keyspace_for_node().map(str::to_owned);
        let is_other = self.text.effect == Effect::Other && self.opcode != Opcode::Batch;
        if node >= Version::V5 || self.opcode == Opcode::Execute {
            return in_use.filter(|_| is_other);
        }
        let named = match self.message().ok()?.request {
            Request::Query(query) => query.parameters.keyspace,
            Request::Batch(batch) => batch.parameters.keyspace,
            _ => None,
        };
        named.map(str::to_owned).or(in_use)
    }

    /// Puts the request for a node and calls `with` with it.
    ///
    /// # Errors
    /// The node has not prepared a statement; the request is wrong.
    pub fn for_node<R>(
        &self,
        node: SocketAddr,
        version: Version,
        with: impl FnOnce(&Request<'_>, &Extras<'_>) -> R,
    ) -> Result<R, Unready> {
        let message = self.message()?;
        let payload: Vec<_> = message.custom_payload.iter().flat_map(|payload| payload.iter()).collect();
        let extras = Extras { tracing: message.tracing, custom_payload: &payload, asks: self.asks() };
        match message.request {
            Request::Execute(execute) => {
                let statement = self.prepared.first().ok_or(WireError::ShortOfBytes)?;
                let Some(at_node) = statement.statement.at(node) else {
                    return Err(Unready::Unprepared(Arc::clone(statement)));
                };
                let mut parameters = self.parameters(execute.parameters, version)?;
                parameters.keyspace = None;
                // A client of v5 says which columns it knows. For others it is those of the answer to PREPARE, so that a node tells
                // the columns once they have changed.
                let known = execute.result_metadata_id.unwrap_or(&statement.metadata_id);
                let result_metadata_id = (version >= Version::V5).then_some(known);
                if self.makes_metadata(version) {
                    parameters.skip_metadata = false;
                }
                let request = Request::Execute(Execute { id: &at_node.id, result_metadata_id, parameters });
                Ok(with(&request, &extras))
            }
            Request::Batch(batch) => {
                let mut at_nodes = Vec::with_capacity(self.prepared.len());
                for statement in &self.prepared {
                    let at_node = statement.statement.at(node);
                    at_nodes.push(at_node.ok_or_else(|| Unready::Unprepared(Arc::clone(statement)))?);
                }
                let mut ids = at_nodes.iter();
                let mut statements = Vec::with_capacity(batch.statements.len());
                for mut one in batch.statements.iter() {
                    if let StatementRef::Prepared(_) = one.statement
                        && let Some(at_node) = ids.next()
                    {
                        one.statement = StatementRef::Prepared(&at_node.id);
                    }
                    statements.push(one);
                }
                let parameters = self.parameters(batch.parameters, version)?;
                let batch =
                    Batch { kind: batch.kind, statements: Statements::Slice(&statements), parameters };
                Ok(with(&Request::Batch(batch), &extras))
            }
            Request::Query(mut query) => {
                query.parameters = self.parameters(query.parameters, version)?;
                if self.text.own_table.is_some() {
                    query.parameters.skip_metadata = false;
                }
                Ok(with(&Request::Query(query), &extras))
            }
            other => Ok(with(&other, &extras)),
        }
    }

    /// The results that the statement may have, as the gateway understands it.
    fn asks(&self) -> Asks {
        match self.text.effect {
            Effect::Read => Asks::Rows,
            Effect::Write(_) => Asks::Write,
            Effect::Use(_) | Effect::UnknownUse | Effect::Explain | Effect::Other => Asks::Statement,
        }
    }

    /// Whether the gateway has to see the columns of each answer: to replace cells, or to say whether the columns have changed where the
    /// node cannot.
    pub fn makes_metadata(&self, node: Version) -> bool {
        self.text.own_table.is_some() || (self.version >= Version::V5 && node < Version::V5)
    }

    fn parameters<'a>(
        &'a self,
        parameters: QueryParameters<'a>,
        node: Version,
    ) -> Result<QueryParameters<'a>, Unready> {
        let state = parameters.paging_state.map(|state| self.shared.paging.for_node(state));
        Ok(QueryParameters {
            paging_state: state.transpose().map_err(Unready::Refused)?,
            keyspace: match node >= Version::V5 {
                true => parameters.keyspace.or(self.keyspace_for_node()),
                false => None,
            },
            ..parameters
        })
    }

    /// The table that the gateway answers for itself.
    pub fn own_table(&self) -> Option<&OwnTable> {
        self.text.own_table.as_ref()
    }

    /// Whether the answer tells of the nodes of the cluster.
    pub fn shows_nodes(&self) -> bool {
        self.shared.options.shows_nodes && matches!(self.text.own_table, Some(OwnTable::Peers(_)))
    }

    /// Sends an error to the client.
    pub fn fail(&self, error: &ErrorMessage) {
        self.client.answer(self.version, self.stream, &Outgoing::Error(error));
    }

    /// The consistency of the request.
    pub fn consistency(&self) -> Consistency {
        match self.message().map(|message| message.request) {
            Ok(Request::Query(query)) => query.parameters.consistency,
            Ok(Request::Execute(execute)) => execute.parameters.consistency,
            Ok(Request::Batch(batch)) => batch.parameters.consistency,
            _ => Consistency::One,
        }
    }

    /// The result's columns that a client of v5 knows, and whether it asks to leave them out.
    pub fn known_metadata(&self) -> Option<(&[u8], bool)> {
        match self.message().ok()?.request {
            Request::Execute(execute) => {
                Some((execute.result_metadata_id?, execute.parameters.skip_metadata))
            }
            _ => None,
        }
    }
}

fn note_values(written: &WrittenPartitions, prepared: &GatewayStatement, values: &Values<'_>) {
    let statement = &prepared.statement;
    let partition = match values.has_names() {
        true => None,
        false => statement.only_partition(|marker| values.iter().nth(marker).map(|(_, value)| value)),
    };
    written.note(statement, partition);
}

/// The values of a request for one statement.
pub(crate) fn values<'a>(request: &Request<'a>) -> Values<'a> {
    match request {
        Request::Query(query) => query.parameters.values,
        Request::Execute(execute) => execute.parameters.values,
        _ => Values::NONE,
    }
}

fn check_state(shared: &Shared, parameters: &QueryParameters<'_>) -> Result<(), ErrorMessage> {
    match parameters.paging_state {
        Some(state) => shared.paging.for_node(state).map(|_| ()),
        None => Ok(()),
    }
}

fn unprepared(id: &[u8]) -> ErrorMessage {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let message = format!(
        "Prepared query with ID {hex} not found (either the query was not prepared on this host (maybe the host has been \
         restarted?) or you have prepared too many queries and it has been evicted from the internal cache)"
    );
    ErrorMessage { message, detail: ErrorDetail::Unprepared { id: id.to_vec() } }
}

fn no_explain() -> ErrorMessage {
    ErrorMessage::plain(
        ErrorCode::Invalid,
        "EXPLAIN shows the work of Helenus's own engine; this is a gateway to a cluster, into which it cannot see. Trace the \
         statement instead",
    )
}

fn no_prepared_use() -> ErrorMessage {
    ErrorMessage::plain(
        ErrorCode::Invalid,
        "USE cannot be prepared at a gateway, whose connections to the cluster are shared; send it as a query",
    )
}
