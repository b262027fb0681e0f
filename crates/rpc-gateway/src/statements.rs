//! Prepares the statements of calls once, and sends them as a role of the cluster.

use crate::errors::{Work, cql_error};
use crate::swaps::Conditional;
use crate::texts::Bound;
use helenus_cluster::{
    CallError, Cluster, ClusterError, Extras, Node, NodeStatement, OwnedAnswer, Statement, WrittenPartitions,
};
use helenus_cql::CqlError;
use helenus_cql::backend::{BoundValue, Request as CqlRequest, Values as CqlValues};
use helenus_wire::native::{
    Batch, BatchKind, BatchStatement, Consistency, ErrorCode, Query, QueryParameters, Request, StatementRef,
    Statements, Value, Values, Version,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The most statements that are remembered. If there are more, all are forgotten.
const STATEMENTS_MAX: usize = 10_000;

/// The prepared statements of all families. They are the same for all roles: the cluster checks at each execution what a role may do.
#[derive(Default)]
pub(crate) struct Prepared(Mutex<HashMap<String, Arc<Statement>>>);

impl Prepared {
    /// Forgets all, because tables have changed.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    async fn get(&self, cluster: &Cluster, text: &str) -> Result<Arc<Statement>, ClusterError> {
        if let Some(known) = self.0.lock().get(text) {
            return Ok(Arc::clone(known));
        }
        let statement = cluster.prepare(text, None).await?;
        let mut known = self.0.lock();
        if known.len() >= STATEMENTS_MAX {
            known.clear();
        }
        known.insert(text.to_owned(), Arc::clone(&statement));
        Ok(statement)
    }
}

/// How statements are sent: as which role, and at which consistency level.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) cluster: Cluster,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) consistency: Consistency,
    /// Who is told of writes.
    pub(crate) written: Arc<WrittenPartitions>,
}

impl Sender {
    /// The error of a call.
    pub(crate) fn error(&self, error: ClusterError, work: Work) -> CqlError {
        cql_error(error, work, self.consistency as u16)
    }

    /// Runs a statement that reads, or a page of it.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(crate) async fn page(
        &self,
        bound: &Bound,
        state: Option<&[u8]>,
        rows: i32,
    ) -> Result<OwnedAnswer, CqlError> {
        let values: Vec<Value<'_>> = bound.values.iter().map(|value| Value::Bytes(value)).collect();
        let parameters = QueryParameters {
            consistency: self.consistency,
            values: Values::positional(&values),
            page_size: Some(rows),
            paging_state: state,
            ..QueryParameters::default()
        };
        self.execute(&bound.text, &parameters).await.map_err(|error| self.error(error, Work::Read))
    }

    /// Runs a statement with conditions, whose answer says whether they held.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(crate) async fn conditional(
        &self,
        asked: &Conditional,
        serial: Consistency,
    ) -> Result<OwnedAnswer, CqlError> {
        let values: Vec<Value<'_>> = asked
            .values
            .iter()
            .map(|value| value.as_ref().map_or(Value::Unset, |value| Value::Bytes(value)))
            .collect();
        let parameters = QueryParameters {
            consistency: self.consistency,
            serial_consistency: Some(serial),
            values: Values::positional(&values),
            ..QueryParameters::default()
        };
        let sent = match self.prepared.get(&self.cluster, &asked.text).await {
            Ok(statement) => {
                let sent = self.cluster.execute(&statement, &parameters).await;
                // Whatever the answer was: the write may have been done.
                self.written.note(&statement, Some(asked.partition));
                sent
            }
            Err(error) => Err(error),
        };
        sent.map_err(|error| self.error(error, Work::Write))
    }

    async fn execute(
        &self,
        text: &str,
        parameters: &QueryParameters<'_>,
    ) -> Result<OwnedAnswer, ClusterError> {
        let statement = self.prepared.get(&self.cluster, text).await?;
        self.cluster.execute(&statement, parameters).await
    }

    /// Runs statements that write: one by itself, several as a batch.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(crate) async fn write(&self, kind: BatchKind, bound: &[Bound]) -> Result<(), CqlError> {
        let sent = match bound {
            [] => return Ok(()),
            [one] => {
                let values: Vec<Value<'_>> = one.values.iter().map(|value| Value::Bytes(value)).collect();
                let parameters = QueryParameters {
                    consistency: self.consistency,
                    values: Values::positional(&values),
                    ..QueryParameters::default()
                };
                self.execute(&one.text, &parameters).await.map(drop)
            }
            several if several.len() > usize::from(u16::MAX) => {
                return Err(CqlError::Invalid(format!(
                    "the call makes {} changes of a row; at most {} can be sent to the cluster at once",
                    several.len(),
                    u16::MAX
                )));
            }
            several => self.batch(kind, several).await,
        };
        // Whatever the answer was: the write may have been done.
        self.note(bound).await;
        sent.map_err(|error| self.error(error, Work::Write))
    }

    /// Notes the partitions of writes, if somebody wants to know.
    async fn note(&self, bound: &[Bound]) {
        if !self.written.is_noting() {
            return;
        }
        for one in bound {
            match self.prepared.get(&self.cluster, &one.text).await {
                Ok(statement) => {
                    let value = |marker: usize| one.values.get(marker).map(|value| Value::Bytes(value));
                    self.written.note(&statement, statement.only_partition(value));
                }
                // It was forgotten meanwhile, and cannot be prepared again.
                Err(_) => self.written.note_unknown(),
            }
        }
    }

    /// Sends a batch to a holder of the first statement's partition.
    async fn batch(&self, kind: BatchKind, bound: &[Bound]) -> Result<(), ClusterError> {
        let mut statements = Vec::with_capacity(bound.len());
        for one in bound {
            statements.push(self.prepared.get(&self.cluster, &one.text).await?);
        }
        let values: Vec<Vec<Value<'_>>> =
            bound.iter().map(|one| one.values.iter().map(|value| Value::Bytes(value)).collect()).collect();
        let first = statements.first().zip(values.first());
        let token =
            first.and_then(|(statement, values)| statement.token(|marker| values.get(marker).copied()));
        let keyspace = first.and_then(|(statement, _)| statement.table_keyspace());
        let mut last = None;
        for node in self.cluster.plan(keyspace.zip(token)) {
            match self.batch_at(&node, kind, (&statements, &values)).await {
                Err(ClusterError::Call(error))
                    if !error.was_sent() && !matches!(error, CallError::Wire(_)) =>
                {
                    last = Some(error);
                }
                other => return other,
            }
        }
        Err(last.map_or(ClusterError::NoNode { reason: None }, ClusterError::Call))
    }

    async fn batch_at(
        &self,
        node: &Node,
        kind: BatchKind,
        (statements, values): (&[Arc<Statement>], &[Vec<Value<'_>>]),
    ) -> Result<(), ClusterError> {
        let mut is_repeated = false;
        loop {
            let mut known: Vec<Arc<NodeStatement>> = Vec::with_capacity(statements.len());
            for statement in statements {
                known.push(self.cluster.prepare_at(node, statement).await?);
            }
            let each = known.iter().zip(values).map(|(statement, values)| BatchStatement {
                statement: StatementRef::Prepared(&statement.id),
                values: Values::positional(values),
            });
            let each: Vec<_> = each.collect();
            let parameters = QueryParameters { consistency: self.consistency, ..QueryParameters::default() };
            let batch = Batch { kind, statements: Statements::Slice(&each), parameters };
            let connection =
                node.connection().ok_or_else(|| ClusterError::NoNode { reason: node.error() })?;
            let answer = connection.call(&Request::Batch(batch), &Extras::default()).await?;
            match answer.error()? {
                None => return Ok(()),
                Some(error) if error.detail.code() == ErrorCode::Unprepared && !is_repeated => {
                    is_repeated = true;
                    statements.iter().for_each(|statement| statement.forget(node.address));
                }
                Some(error) => return Err(ClusterError::Server(error)),
            }
        }
    }
}

/// The consistency level that the native protocol numbers so.
pub(crate) fn consistency(number: u16) -> Consistency {
    Consistency::from_code(number).unwrap_or(Consistency::One)
}

/// Runs a statement of CQL 3 on the first node that can be asked.
///
/// # Errors
/// Those of the cluster.
pub(crate) async fn run(
    cluster: &Cluster,
    text: &str,
    request: &CqlRequest<'_>,
) -> Result<OwnedAnswer, ClusterError> {
    let bound: &[BoundValue<'_>] = match request.values {
        CqlValues::Positional(values) => values,
        CqlValues::Named(_) => &[],
    };
    let values: Vec<Value<'_>> = bound
        .iter()
        .map(|value| match value {
            BoundValue::Bytes(bytes) => Value::Bytes(bytes),
            BoundValue::Null => Value::Null,
            BoundValue::Unset => Value::Unset,
        })
        .collect();
    let mut last = ClusterError::NoNode { reason: None };
    for node in cluster.plan(None) {
        let Some(mut connection) = node.connection() else { continue };
        if let Some(keyspace) = request.keyspace.filter(|_| connection.version() < Version::V5) {
            connection = node.connection_in(keyspace).await?;
        }
        let parameters = QueryParameters {
            consistency: consistency(request.consistency),
            values: Values::positional(&values),
            keyspace: request.keyspace.filter(|_| connection.version() >= Version::V5),
            ..QueryParameters::default()
        };
        let query = Request::Query(Query { query: text, parameters });
        match connection.call(&query, &Extras::default()).await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.was_sent() => return Err(error.into()),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}
