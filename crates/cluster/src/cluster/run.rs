//! Runs statements: picks a node, prepares where it is needed, and hands back the answer.
//!
//! The next node is asked only if the request did not reach the one before. An UNPREPARED is answered by preparing there and sending the
//! request again, because a node that does not know a statement has done nothing.

use std::net::SocketAddr;
use std::sync::Arc;

use helenus_model::token::Token;
use helenus_wire::native::{
    Consistency, ErrorCode, Execute, Prepare, Query, QueryParameters, Request, ResultMessage, Value, Values,
    Version,
};

use tokio::time::Instant;

use super::cluster_handle::Cluster;
use crate::known_keyspace::check_keyspace;
use crate::{CallError, ClusterError, Connection, Extras, Node, NodeStatement, OwnedAnswer, Statement};

impl Cluster {
    /// Runs a statement, with values for its markers, on any node. The answer is a RESULT.
    ///
    /// # Errors
    /// No node can be asked; there is no answer; the answer is an ERROR.
    pub async fn query(
        &self,
        text: &str,
        values: &[Value<'_>],
        consistency: Consistency,
    ) -> Result<OwnedAnswer, ClusterError> {
        let values = Values::positional(values);
        let parameters = QueryParameters { consistency, values, ..QueryParameters::default() };
        let request = Request::Query(Query { query: text, parameters });
        self.send(&request, None).await
    }

    /// Sends a request that needs no preparation to the nodes of a partition. The answer is a RESULT.
    ///
    /// # Errors
    /// Those of [`Cluster::query`].
    pub async fn send(
        &self,
        request: &Request<'_>,
        partition: Option<(&str, Token)>,
    ) -> Result<OwnedAnswer, ClusterError> {
        let (mut last, until) = (None, self.until());
        for node in self.plan_by_room(partition) {
            match call(&node, request, until).await {
                Ok(answer) => return checked(answer),
                Err(error) if error.was_sent() || matches!(error, CallError::Wire(_)) => {
                    return Err(error.into());
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| self.no_node(), ClusterError::Call))
    }

    /// Whether the cluster has a keyspace, a virtual one included. A node is asked if the topology does not know it: it may just have been
    /// made. Waits for room until this time.
    ///
    /// # Errors
    /// It has not, which is a node's own error for USE; no node answers, or one answers with another error.
    pub async fn check_keyspace(&self, keyspace: &str, until: Instant) -> Result<(), ClusterError> {
        if self.topology().keyspaces.contains_key(keyspace) {
            return Ok(());
        }
        let mut last = None;
        for node in self.plan(None) {
            match has_keyspace(&node, keyspace, until).await {
                // The next node would take as long.
                Err(error @ ClusterError::Call(CallError::Timeout { .. })) => return Err(error),
                Err(error) if error.may_repeat(true) => last = Some(error),
                answered => return answered,
            }
        }
        Err(last.unwrap_or_else(|| self.no_node()))
    }

    /// Prepares a statement at one node; others prepare it when it is first executed there. `keyspace`: of unqualified names.
    ///
    /// The node that tells of events is asked first: it knows every change of the schema that it has told of, others may not yet.
    ///
    /// # Errors
    /// No node can be asked; there is no answer; the answer is an ERROR.
    pub async fn prepare(&self, text: &str, keyspace: Option<&str>) -> Result<Arc<Statement>, ClusterError> {
        self.prepare_first_at(self.node_of_events(), (text, keyspace), self.until()).await
    }

    /// Like [`Cluster::prepare`], at this node if it is connected. Waits for room until this time.
    ///
    /// # Errors
    /// Those of [`Cluster::prepare`].
    pub async fn prepare_first_at(
        &self,
        first: Option<SocketAddr>,
        (text, keyspace): (&str, Option<&str>),
        until: Instant,
    ) -> Result<Arc<Statement>, ClusterError> {
        let mut last = None;
        let mut nodes = self.plan(None);
        nodes.sort_by_key(|node| Some(node.address) != first);
        for node in nodes {
            match prepare(&node, (text, keyspace), until).await {
                Ok(answer) => {
                    let ResultMessage::Prepared(prepared) = answer.result()? else {
                        return Err(ClusterError::Unexpected { opcode: answer.opcode });
                    };
                    let (text, keyspace) = (text.to_owned(), keyspace.map(str::to_owned));
                    let statement = Statement::new(text, keyspace, &prepared, &self.options().answers)?;
                    statement.prepared_at(node.address, &prepared);
                    return Ok(Arc::new(statement));
                }
                Err(ClusterError::Call(error)) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.map_or_else(|| self.no_node(), ClusterError::Call))
    }

    /// The statement at this node, which is asked to prepare it if it has not yet. Waits for room until this time.
    ///
    /// # Errors
    /// There is no answer; the answer is an ERROR.
    pub async fn prepare_at(
        &self,
        node: &Node,
        statement: &Statement,
        until: Instant,
    ) -> Result<Arc<NodeStatement>, ClusterError> {
        if let Some(known) = statement.at(node.address) {
            return Ok(known);
        }
        let answer = prepare(node, (&statement.text, statement.keyspace.as_deref()), until).await?;
        match answer.result()? {
            ResultMessage::Prepared(prepared) => Ok(statement.prepared_at(node.address, &prepared)),
            _ => Err(ClusterError::Unexpected { opcode: answer.opcode }),
        }
    }

    /// Executes a prepared statement on a node that holds its partition, if its values tell which. The answer is a RESULT.
    ///
    /// # Errors
    /// No node can be asked; there is no answer; the answer is an ERROR.
    pub async fn execute(
        &self,
        statement: &Statement,
        parameters: &QueryParameters<'_>,
    ) -> Result<OwnedAnswer, ClusterError> {
        let values: Vec<Value<'_>> = match statement.partition_key.is_empty() || parameters.values.has_names()
        {
            true => Vec::new(),
            false => parameters.values.iter().map(|(_, value)| value).collect(),
        };
        let token = statement.token(|marker| values.get(marker).copied());
        let partition = statement.table_keyspace().zip(token);
        let (mut last, until) = (None, self.until());
        for node in self.plan_by_room(partition) {
            match self.execute_until((&node, until), statement, parameters).await {
                Err(ClusterError::Call(error))
                    if !error.was_sent() && !matches!(error, CallError::Wire(_)) =>
                {
                    last = Some(error);
                }
                other => return other,
            }
        }
        Err(last.map_or_else(|| self.no_node(), ClusterError::Call))
    }

    /// Executes a prepared statement on this node. The answer is a RESULT.
    ///
    /// # Errors
    /// There is no answer; the answer is an ERROR.
    pub async fn execute_at(
        &self,
        node: &Node,
        statement: &Statement,
        parameters: &QueryParameters<'_>,
    ) -> Result<OwnedAnswer, ClusterError> {
        self.execute_until((node, self.until()), statement, parameters).await
    }

    async fn execute_until(
        &self,
        (node, until): (&Node, Instant),
        statement: &Statement,
        parameters: &QueryParameters<'_>,
    ) -> Result<OwnedAnswer, ClusterError> {
        let mut is_repeated = false;
        loop {
            let known = self.prepare_at(node, statement, until).await?;
            let result_metadata_id = known.result_metadata_id.as_deref();
            let execute = Execute { id: &known.id, result_metadata_id, parameters: *parameters };
            match checked(call(node, &Request::Execute(execute), until).await?) {
                Err(ClusterError::Server(error))
                    if error.detail.code() == ErrorCode::Unprepared && !is_repeated =>
                {
                    statement.forget(node.address);
                    is_repeated = true;
                }
                other => return other,
            }
        }
    }
}

async fn has_keyspace(node: &Node, keyspace: &str, until: Instant) -> Result<(), ClusterError> {
    let connection = node.connection_with_room().ok_or_else(|| node.pool.none())?;
    check_keyspace(&connection, keyspace, until).await
}

async fn call(node: &Node, request: &Request<'_>, until: Instant) -> Result<OwnedAnswer, CallError> {
    let connection = node.connection_with_room().ok_or_else(|| node.pool.none())?;
    connection.call_until(request, &Extras::default(), until).await
}

/// PREPARE; before v5, a keyspace is that of the connection.
async fn prepare(
    node: &Node,
    (text, keyspace): (&str, Option<&str>),
    until: Instant,
) -> Result<OwnedAnswer, ClusterError> {
    let connection: Connection = node.connection_with_room().ok_or_else(|| node.pool.none())?;
    let connection = match keyspace {
        Some(keyspace) if connection.version() < Version::V5 => node.connection_in(keyspace, until).await?,
        _ => connection,
    };
    let request = Request::Prepare(Prepare { query: text, keyspace });
    checked(connection.call_until(&request, &Extras::default(), until).await?)
}

fn checked(answer: OwnedAnswer) -> Result<OwnedAnswer, ClusterError> {
    match answer.error()? {
        Some(error) => Err(ClusterError::Server(error)),
        None => Ok(answer),
    }
}
