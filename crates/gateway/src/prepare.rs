//! PREPARE and USE, which are answered here.

use std::sync::Arc;

use helenus_cluster::{ClusterError, Statement};
use helenus_wire::native::{
    ColumnSpec, Consistency, ErrorCode, ErrorMessage, Outgoing, Prepare, Prepared, Request, StatementRef,
    Value, Version,
};

use crate::deliver::{fail_lost, fail_unsent};
use crate::job::Job;
use crate::shared::Shared;
use crate::statement_text::{Effect, StatementText};
use crate::statements::{GatewayStatement, StatementId, metadata_id, statement_id};

/// Answers PREPARE. The statement is prepared at one node now, at others when it is executed there.
pub(crate) async fn prepare(job: &Job) {
    let Ok(message) = job.message() else { return };
    let Request::Prepare(Prepare { query, keyspace }) = message.request else {
        return;
    };
    let keyspace = keyspace.or(job.keyspace.as_deref());
    let id = statement_id(keyspace, query);
    let known = job.shared.statements.get(&id);
    let statement = match known {
        Some(statement) => statement,
        None => {
            let text = StatementText::of(query, keyspace);
            if text.effect == Effect::Explain {
                let text = "EXPLAIN cannot be prepared at a gateway, which cannot see into the cluster";
                return job.fail(&ErrorMessage::plain(ErrorCode::Invalid, text));
            }
            let prepared = match prepare_in(job, query, keyspace).await {
                Ok(prepared) => prepared,
                Err(ClusterError::Server(error)) => return job.fail(&error),
                Err(ClusterError::Call(error)) if error.was_sent() => {
                    return fail_lost(job, &error);
                }
                Err(error) => return fail_unsent(job, &error),
            };
            add(&job.shared, id, (prepared, text))
        }
    };
    let found = &statement.statement;
    let partition_key: &[u16] = if job.version >= Version::V4 { &found.partition_key } else { &[] };
    let columns: &[ColumnSpec] = &found.result_columns;
    let prepared = Prepared {
        id: &statement.id,
        result_metadata_id: &statement.metadata_id,
        variables: &found.variables,
        partition_key,
        result_columns: columns,
    };
    job.client.answer(job.version, job.stream, &Outgoing::Prepared(&prepared));
}

/// Prepares a statement at a node. If the keyspace in use does not exist any more, without it: the statement may name its own.
async fn prepare_in(job: &Job, query: &str, keyspace: Option<&str>) -> Result<Arc<Statement>, ClusterError> {
    // A role's connections have another node of events, which may not know yet of a change that clients were told of.
    let first = job.shared.cluster.node_of_events();
    match job.role.cluster.prepare_first_at(first, query, keyspace).await {
        Err(ClusterError::Server(gone))
            if keyspace == job.keyspace.as_deref() && job.lacks_keyspace(&gone) =>
        {
            match job.role.cluster.prepare_first_at(first, query, None).await {
                Err(ClusterError::Server(error)) if error.message.starts_with("No keyspace") => {
                    Err(ClusterError::Server(gone))
                }
                other => other,
            }
        }
        other => other,
    }
}

/// Remembers a statement that was prepared at a node.
fn add(
    shared: &Shared,
    id: StatementId,
    (prepared, text): (Arc<Statement>, StatementText),
) -> Arc<GatewayStatement> {
    let of_cluster = prepared.first_metadata_id();
    let metadata_id = of_cluster.unwrap_or_else(|| metadata_id(&prepared.result_columns));
    let at_node = prepared.first_id().and_then(|id| StatementId::try_from(id).ok());
    // The id of a statement that names its keyspaces is that of its text alone. Whether it does, the node's id tells.
    let of_text = statement_id(None, &prepared.text);
    // A client that sees the nodes executes the statement there by the id that it got here.
    let is_shown = |at_node: &StatementId| shared.options.shows_nodes || *at_node == of_text;
    let shown = at_node.filter(is_shown).unwrap_or(id);
    let statement = Arc::new(GatewayStatement::new(shown, prepared, text, metadata_id));
    shared.statements.add(id, &statement);
    if shown != id {
        shared.statements.add(shown, &statement);
    }
    statement
}

/// Prepares the statements of a request again that are doubtful, and those that this gateway does not know, but the server that it continues
/// has known. Without success the client is asked to prepare them, as always.
pub(crate) async fn prepare_again(job: &Job) {
    let shared = &job.shared;
    let Ok(message) = job.message() else { return };
    let ids: Vec<&[u8]> = match message.request {
        Request::Execute(execute) => vec![execute.id],
        Request::Batch(batch) => {
            let prepared = batch.statements.iter().filter_map(|one| match one.statement {
                StatementRef::Prepared(id) => Some(id),
                StatementRef::Query(_) => None,
            });
            prepared.collect()
        }
        _ => return,
    };
    for id in ids.into_iter().filter_map(|id| StatementId::try_from(id).ok()) {
        if let Some(kept) = shared.statements.find(&id) {
            renew(shared, id, &kept).await;
            continue;
        }
        let Some((keyspace, query)) = shared.options.known_statements.as_ref().and_then(|known| known(&id))
        else {
            return;
        };
        let text = StatementText::of(&query, keyspace.as_deref());
        let Ok(prepared) = shared.cluster.prepare(&query, keyspace.as_deref()).await else {
            return;
        };
        add(shared, id, (prepared, text));
    }
}

/// Prepares a doubtful statement again. It is forgotten if clients would bind or read something else by it now.
async fn renew(shared: &Shared, id: StatementId, kept: &GatewayStatement) {
    let Statement { text, keyspace, .. } = &*kept.statement;
    match shared.cluster.prepare(text, keyspace.as_deref()).await {
        Ok(prepared) if kept.is_like(&prepared) => drop(add(shared, id, (prepared, kept.text.clone()))),
        // Nothing is known of it where no node has answered: it stays doubtful.
        Err(error) if !matches!(error, ClusterError::Server(_)) => {}
        _ => shared.statements.remove(&id),
    }
}

/// Whether the cluster has a keyspace.
///
/// # Errors
/// It has not, or it cannot be asked; the error is for the client.
pub(crate) async fn check_keyspace(shared: &Shared, keyspace: &str) -> Result<(), ErrorMessage> {
    if shared.cluster.topology().keyspaces.contains_key(keyspace) {
        return Ok(());
    }
    // Virtual keyspaces are not in system_schema, and one that was just made is perhaps not known yet.
    for table in ["system_schema.keyspaces", "system_virtual_schema.keyspaces"] {
        let text = format!("SELECT keyspace_name FROM {table} WHERE keyspace_name = ?");
        let values = [Value::Bytes(keyspace.as_bytes())];
        let found = shared.cluster.query(&text, &values, Consistency::One).await;
        if found.is_ok_and(|answer| answer.rows().is_ok_and(|rows| rows.row_count > 0)) {
            return Ok(());
        }
    }
    Err(ErrorMessage::plain(ErrorCode::Invalid, format!("Keyspace '{keyspace}' does not exist")))
}
