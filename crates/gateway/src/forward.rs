//! Sends a request to a node, and decides what is done when that fails.
//!
//! A request goes to another node, or to the same again, in these cases alone:
//! - it did not reach the first node;
//! - the node answered UNPREPARED or IS_BOOTSTRAPPING, so it has done nothing;
//! - it is a SELECT whose connection was lost.
//!
//! A SELECT without an answer in time is not sent again: it would take the time of as many nodes as there are, and more work of a cluster
//! that has too much already.
//!
//! Every other error is the client's, unchanged. A node that answers with another kind of result than the text asks for shows that the gateway
//! has taken the text for another statement than the node has: the connection ends, and the request fails (`helenus_cluster::Asks`).

use std::sync::Arc;

use helenus_cluster::{Answer, CallError, ClusterError, Connection, Node, OwnedAnswer};
use helenus_wire::native::{ErrorCode, ErrorMessage, Opcode, ResultMessage};

use crate::deliver::{AGREEMENT, deliver, fail_lost, fail_unasked, fail_unsent};
use crate::job::{Job, Unready};
use crate::statement_text::Effect;
use crate::translate;

/// The most attempts for one request, so that nodes which disagree do not keep it forever.
const ATTEMPTS_MAX: u32 = 8;

/// Sends a request to the node of its partition. The answer goes to the client.
pub(crate) fn forward(job: Arc<Job>) {
    let node = job.role.cluster.pick(job.partition());
    let ready = node.and_then(|node| node.connection().map(|connection| (node, connection)));
    let Some((node, connection)) = ready else { return with_care(job) };
    // Looked at before the request is put for the node, which is work.
    if connection.is_full() || job.keyspace_of_connection(connection.version()).is_some() {
        return with_care(job);
    }
    let (for_answer, at) = (Arc::clone(&job), Arc::clone(&node));
    let put = job.for_node(node.address, connection.version(), |request, extras| {
        connection.submit(request, extras, Box::new(move |answer| answered(for_answer, &at, answer)))
    });
    match put {
        Ok(Ok(())) => {}
        Err(Unready::Refused(error)) => job.fail(&error),
        Ok(Err(_)) | Err(Unready::Unprepared(_)) => with_care(job),
    }
}

/// Takes the answer to the first attempt, on the task that reads the node's connection.
fn answered(job: Arc<Job>, node: &Node, answer: Result<Answer<'_>, CallError>) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(CallError::Wire(error)) => return job.fail(&ErrorMessage::from(&error)),
        Err(error @ (CallError::Unasked { .. } | CallError::TooLong { .. })) => {
            return fail_unasked(&job, &error);
        }
        Err(error) if ends_request(&job, &error) => return fail_lost(&job, &error),
        Err(_) => return with_care(job),
    };
    match verdict(&job, &answer) {
        Verdict::Deliver => deliver(&job, &answer),
        Verdict::SchemaChange => {
            let answer = answer.to_owned();
            let runtime = job.shared.runtime.clone();
            runtime.spawn(async move { deliver_after_agreement(&job, &answer).await });
        }
        Verdict::Unprepared => {
            forget(&job, node);
            with_care(job);
        }
        Verdict::Elsewhere | Verdict::KeyspaceGone(_) => with_care(job),
    }
}

/// What an answer asks for.
enum Verdict {
    Deliver,
    SchemaChange,
    /// To prepare at this node and send again.
    Unprepared,
    /// To ask another node.
    Elsewhere,
    /// To send again without the keyspace in use, which does not exist any more.
    KeyspaceGone(ErrorMessage),
}

fn verdict(job: &Job, answer: &Answer<'_>) -> Verdict {
    let Ok(parts) = translate::parts(answer) else { return Verdict::Deliver };
    match answer.opcode {
        Opcode::Error => match parts.error_code() {
            Some(ErrorCode::Unprepared) => Verdict::Unprepared,
            Some(ErrorCode::IsBootstrapping) => Verdict::Elsewhere,
            Some(ErrorCode::Invalid) if job.keyspace_for_node().is_some() => {
                let error = translate::error(answer.version, &parts);
                error
                    .filter(|error| job.lacks_keyspace(error))
                    .map_or(Verdict::Deliver, Verdict::KeyspaceGone)
            }
            _ => Verdict::Deliver,
        },
        Opcode::Result if parts.is_schema_change() => Verdict::SchemaChange,
        _ => Verdict::Deliver,
    }
}

fn forget(job: &Job, node: &Node) {
    for statement in &job.prepared {
        statement.statement.forget(node.address);
    }
}

async fn deliver_after_agreement(job: &Job, answer: &OwnedAnswer) {
    // Drivers go on after this time too.
    let _ = job.shared.cluster.wait_for_agreement(AGREEMENT).await;
    // The client that has changed the schema sees no statement as it was before.
    if let Ok(ResultMessage::SchemaChange(change)) = answer.result() {
        job.shared.statements.forget(&change);
    }
    deliver(job, &answer.borrow());
}

/// Sends a request on a task of its own, which prepares statements, waits for room and tries other nodes.
fn with_care(job: Arc<Job>) {
    let runtime = job.shared.runtime.clone();
    runtime.spawn(async move { run(&job).await });
}

async fn run(job: &Job) {
    let mut attempts = 0;
    let (mut last, mut gone) = (None, None);
    for node in job.role.cluster.plan_by_room(job.partition()) {
        loop {
            attempts += 1;
            if attempts > ATTEMPTS_MAX {
                break;
            }
            match attempt(job, &node).await {
                Attempt::Answered(answer) => match verdict(job, &answer.borrow()) {
                    Verdict::Deliver => return deliver_or(gone, job, &answer.borrow()),
                    Verdict::SchemaChange => return deliver_after_agreement(job, &answer).await,
                    Verdict::Unprepared if attempts < ATTEMPTS_MAX => {
                        forget(job, &node);
                        continue;
                    }
                    Verdict::Unprepared | Verdict::Elsewhere if attempts >= ATTEMPTS_MAX => {
                        return deliver(job, &answer.borrow());
                    }
                    Verdict::Unprepared | Verdict::Elsewhere => {}
                    Verdict::KeyspaceGone(error) => {
                        job.forget_keyspace();
                        gone = Some(error);
                        continue;
                    }
                },
                Attempt::KeyspaceGone(error) => {
                    job.forget_keyspace();
                    gone = Some(error);
                    continue;
                }
                Attempt::Done => return,
                Attempt::Next(error) => last = Some(error),
            }
            break;
        }
    }
    match last {
        Some(ClusterError::Call(error)) if error.was_sent() => fail_lost(job, &error),
        Some(error) => fail_unsent(job, &error),
        None => fail_unsent(job, &ClusterError::NoNode { reason: None }),
    }
}

/// Delivers an answer. `gone`: the keyspace in use does not exist, as this error says; it is the answer to a statement that needs one.
fn deliver_or(gone: Option<ErrorMessage>, job: &Job, answer: &Answer<'_>) {
    let Some(gone) = gone.filter(|_| answer.opcode == Opcode::Error) else { return deliver(job, answer) };
    let error = translate::parts(answer).ok().and_then(|parts| translate::error(answer.version, &parts));
    match error.is_some_and(|error| error.message.starts_with("No keyspace")) {
        true => job.fail(&gone),
        false => deliver(job, answer),
    }
}

enum Attempt {
    Answered(OwnedAnswer),
    /// The keyspace in use cannot be used on a connection, because it does not exist.
    KeyspaceGone(ErrorMessage),
    /// The client has its answer.
    Done,
    /// Another node may be asked.
    Next(ClusterError),
}

async fn attempt(job: &Job, node: &Node) -> Attempt {
    let Some(connection) = node.connection_with_room() else {
        return Attempt::Next(ClusterError::NoNode { reason: node.error() });
    };
    let connection = match in_keyspace(job, node, connection).await {
        Ok(connection) => connection,
        Err(attempt) => return attempt,
    };
    for statement in &job.prepared {
        match job.role.cluster.prepare_at(node, &statement.statement, job.until).await {
            Ok(_) => {}
            Err(error) => return failed(job, error),
        }
    }
    loop {
        // One that waits is put for the node once it can be sent, not each time that another is.
        let turn = match connection.is_full() {
            true => match connection.turn(job.until).await {
                Ok(turn) => Some(turn),
                Err(full) => return failed(job, full.into()),
            },
            false => None,
        };
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let put = job.for_node(node.address, connection.version(), |request, extras| {
            let done = Box::new(move |answer: Result<Answer<'_>, CallError>| {
                // Nobody waits any more if the gateway ends.
                let _ = sender.send(answer.map(|answer| answer.to_owned()));
            });
            connection.submit_in(turn.as_ref(), request, extras, done)
        });
        // Who is next need not wait for this one's answer, nor for a statement that it has to prepare on the same connection.
        drop(turn);
        match put {
            Ok(Ok(())) => {
                return match receiver.await {
                    Ok(Ok(answer)) => Attempt::Answered(answer),
                    Ok(Err(error)) => failed(job, error.into()),
                    Err(_) => Attempt::Done,
                };
            }
            Ok(Err(refused)) if matches!(refused.error, CallError::Full { .. }) => {}
            Ok(Err(refused)) => return failed(job, refused.error.into()),
            Err(Unready::Refused(error)) => {
                job.fail(&error);
                return Attempt::Done;
            }
            Err(Unready::Unprepared(statement)) => {
                let prepared = job.role.cluster.prepare_at(node, &statement.statement, job.until).await;
                if let Err(error) = prepared {
                    return failed(job, error);
                }
            }
        }
    }
}

async fn in_keyspace(job: &Job, node: &Node, connection: Connection) -> Result<Connection, Attempt> {
    match job.keyspace_of_connection(connection.version()) {
        None => Ok(connection),
        Some(keyspace) => node.connection_in(&keyspace, job.until).await.map_err(|error| match error {
            ClusterError::Server(error) if job.lacks_keyspace(&error) => Attempt::KeyspaceGone(error),
            error => failed(job, error),
        }),
    }
}

/// Whether a request fails with a call: it may have had an effect, or the time for it is over.
fn ends_request(job: &Job, error: &CallError) -> bool {
    let is_late = matches!(error, CallError::Timeout { .. });
    error.was_sent() && (job.text.effect != Effect::Read || is_late)
}

/// Decides about a failure: the cluster's error is the client's; a request that was not sent, or a read whose connection was
/// lost, goes to the next node.
fn failed(job: &Job, error: ClusterError) -> Attempt {
    match error {
        ClusterError::Server(error) if error.detail.code() == ErrorCode::IsBootstrapping => {
            Attempt::Next(ClusterError::Server(error))
        }
        ClusterError::Server(error) => {
            job.fail(&error);
            Attempt::Done
        }
        ClusterError::Call(CallError::Wire(error)) => {
            job.fail(&ErrorMessage::from(&error));
            Attempt::Done
        }
        ClusterError::Call(error @ (CallError::Unasked { .. } | CallError::TooLong { .. })) => {
            fail_unasked(job, &error);
            Attempt::Done
        }
        ClusterError::Call(error) if ends_request(job, &error) => {
            fail_lost(job, &error);
            Attempt::Done
        }
        error => Attempt::Next(error),
    }
}
