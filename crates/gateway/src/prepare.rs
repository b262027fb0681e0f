//! PREPARE and USE, which are answered here.

use std::collections::HashSet;
use std::sync::Arc;

use helenus_cluster::{ClusterError, Statement};
use helenus_wire::native::{
    ColumnSpec, ErrorCode, ErrorMessage, Prepare, Prepared, Request, StatementRef, Version,
};

use tokio::time::{Instant, timeout_at};

use crate::deliver::{deliver_prepared, fail};
use crate::job::Job;
use crate::shared::Shared;
use crate::statement_text::{Effect, StatementText, unknown_use};
use crate::statements::{GatewayStatement, StatementId, metadata_id, statement_id};

/// Answers PREPARE. The statement is prepared at one node now, at others when it is executed there.
pub(crate) async fn prepare(job: &Job) {
    let Ok(message) = job.message() else { return };
    let Request::Prepare(Prepare { query, keyspace }) = message.request else {
        return;
    };
    let keyspace = keyspace.or(job.keyspace.as_deref());
    let id = statement_id(keyspace, query);
    let statements = &job.shared.statements;
    let mut turn = None;
    let mut known = statements.get(&id);
    if known.is_none() {
        // Many clients prepare the same statements when they start. Where the first has failed, the others do not wait for each other.
        // Nor for longer than their own time.
        turn = timeout_at(job.until, statements.turn(id)).await.ok().filter(|turn| !turn.has_failed());
        known = statements.get(&id);
    }
    let statement = match known {
        Some(statement) => statement,
        None => {
            let text = StatementText::of(query, keyspace);
            match text.effect {
                Effect::Explain => {
                    let text = "EXPLAIN cannot be prepared at a gateway, which cannot see into the cluster";
                    return job.fail(&ErrorMessage::plain(ErrorCode::Invalid, text));
                }
                Effect::UnknownUse => return job.fail(&unknown_use()),
                _ => {}
            }
            let prepared = match prepare_in(job, query, keyspace).await {
                Ok(prepared) => prepared,
                Err(error) => {
                    if let Some(turn) = &mut turn {
                        turn.fail();
                    }
                    return fail(job, &error);
                }
            };
            if let Some(refusal) = statements.refusal(&prepared) {
                // Others who wait for it come one after the other: together their answers would take much memory.
                return job.fail(&ErrorMessage::plain(ErrorCode::Invalid, refusal));
            }
            add(&job.shared, id, (prepared, text))
        }
    };
    drop(turn);
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
    deliver_prepared(job, &prepared);
}

/// Prepares a statement at a node. If the keyspace in use does not exist any more, without it: the statement may name its own.
async fn prepare_in(job: &Job, query: &str, keyspace: Option<&str>) -> Result<Arc<Statement>, ClusterError> {
    // A role's connections have another node of events, which may not know yet of a change that clients were told of.
    let first = job.shared.cluster.node_of_events();
    match job.role.cluster.prepare_first_at(first, (query, keyspace), job.until).await {
        Err(ClusterError::Server(gone))
            if keyspace == job.keyspace.as_deref() && job.lacks_keyspace(&gone) =>
        {
            match job.role.cluster.prepare_first_at(first, (query, None), job.until).await {
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
/// has known; each once, however often the request names it. Without success the client is asked to prepare them, as always.
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
    let mut seen = HashSet::new();
    let ids = ids.into_iter().filter_map(|id| StatementId::try_from(id).ok());
    for id in ids.filter(|id| seen.insert(*id)) {
        if shared.statements.get(&id).is_some() {
            continue;
        }
        let Ok(mut turn) = timeout_at(job.until, shared.statements.turn(id)).await else { return };
        if shared.statements.get(&id).is_some() {
            continue;
        }
        // Only who has tried says so: those who come later try again.
        if turn.has_failed() {
            return;
        }
        if !prepare_known(shared, id, job.until).await {
            turn.fail();
            return;
        }
    }
}

/// Prepares a doubtful statement again, or one that the server before has known. Returns whether clients can use it.
async fn prepare_known(shared: &Shared, id: StatementId, until: Instant) -> bool {
    let first = shared.cluster.node_of_events();
    if let Some(kept) = shared.statements.find(&id) {
        let Statement { text, keyspace, .. } = &*kept.statement;
        match shared.cluster.prepare_first_at(first, (text, keyspace.as_deref()), until).await {
            Ok(prepared) if kept.is_like(&prepared) => {
                add(shared, id, (prepared, kept.text.clone()));
                return true;
            }
            // Nothing is known of it where no node has answered, or one that could not just now: it stays doubtful.
            Err(error) if error.server().is_none() || error.may_repeat(true) => {}
            // Clients would bind or read something else by it now.
            _ => shared.statements.remove(&id),
        }
        return false;
    }
    let known = shared.options.known_statements.as_ref().and_then(|known| known(&id));
    let Some((keyspace, query)) = known else { return false };
    let text = StatementText::of(&query, keyspace.as_deref());
    let prepared = shared.cluster.prepare_first_at(first, (&query, keyspace.as_deref()), until).await;
    prepared.is_ok_and(|prepared| {
        add(shared, id, (prepared, text));
        true
    })
}
