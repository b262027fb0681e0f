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
            let prepared = match job.role.cluster.prepare(query, keyspace).await {
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

/// Remembers a statement that was prepared at a node.
fn add(
    shared: &Shared,
    id: StatementId,
    (prepared, text): (Arc<Statement>, StatementText),
) -> Arc<GatewayStatement> {
    let of_cluster = prepared.first_metadata_id();
    let metadata_id = of_cluster.unwrap_or_else(|| metadata_id(&prepared.result_columns));
    // A client that sees the nodes executes the statement there by the id that it got here.
    let at_node = prepared.first_id().and_then(|id| StatementId::try_from(id).ok());
    let shown = at_node.filter(|_| shared.options.shows_nodes).unwrap_or(id);
    let statement = Arc::new(GatewayStatement { id: shown, statement: prepared, text, metadata_id });
    shared.statements.add(id, &statement);
    if shown != id {
        shared.statements.add(shown, &statement);
    }
    statement
}

/// Prepares the statements of a request that this gateway does not know, but the server that it continues has known. Without success the
/// client is asked to prepare them, as always.
pub(crate) async fn prepare_known(job: &Job) {
    let shared = &job.shared;
    let Some(known) = &shared.options.known_statements else {
        return;
    };
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
        if shared.statements.get(&id).is_some() {
            continue;
        }
        let Some((keyspace, query)) = known(&id) else {
            return;
        };
        let text = StatementText::of(&query, keyspace.as_deref());
        let Ok(prepared) = shared.cluster.prepare(&query, keyspace.as_deref()).await else {
            return;
        };
        add(shared, id, (prepared, text));
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
