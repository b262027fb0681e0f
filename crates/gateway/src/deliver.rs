//! Gives an answer of the cluster to the client.

use std::time::Duration;

use helenus_cluster::{Answer, CallError, ClusterError};
use helenus_wire::WireError;
use helenus_wire::native::{
    ErrorCode, ErrorDetail, ErrorMessage, Flags, Header, Opcode, Outgoing, Prepared, Progress, WriteType,
};

use crate::client::Unread;
use crate::job::Job;
use crate::statement_text::Effect;
use crate::translate;

/// How long a client waits for the answer to a schema change until the nodes agree. Drivers wait as long by themselves.
pub(crate) const AGREEMENT: Duration = Duration::from_secs(10);

/// Sends an answer to the client of `job`.
pub(crate) fn deliver(job: &Job, answer: &Answer<'_>) {
    let sent = translate::parts(answer).and_then(|parts| {
        let message = translate::message(job, answer.version, answer.opcode, parts.message)?;
        let (flags, prefix) = parts.for_client(job.version);
        let header =
            Header { version: job.version, flags, stream: job.stream, opcode: answer.opcode, length: 0 };
        Ok(job.client.send(header, &[prefix, &message], answer.room))
    });
    match sent {
        Ok(Ok(())) => {}
        Ok(Err(unread)) => fail_unread(job, &unread),
        Err(WireError::Overloaded { text }) => match &job.text.effect {
            Effect::Write(write_type) => fail_written(job, *write_type, &text),
            // No error by which drivers try again: it may never have room.
            _ => job.fail(&ErrorMessage::plain(ErrorCode::Server, text)),
        },
        Err(error) => job.fail(&damaged(&error)),
    }
}

/// Sends the answer to PREPARE, whose columns may make it long.
pub(crate) fn deliver_prepared(job: &Job, prepared: &Prepared<'_>) {
    let header = Header {
        version: job.version,
        flags: Flags(0),
        stream: job.stream,
        opcode: Opcode::Result,
        length: 0,
    };
    match translate::encoded(&Outgoing::Prepared(prepared), job.version) {
        Ok(message) => {
            if let Err(unread) = job.client.send(header, &[&message], None) {
                fail_unread(job, &unread);
            }
        }
        Err(error) => job.fail(&ErrorMessage::from(&error)),
    }
}

/// Tells the client that it has to take its other answers first, or to ask for less.
fn fail_unread(job: &Job, unread: &Unread) {
    match (&job.text.effect, unread) {
        (Effect::Write(write_type), _) => fail_written(job, *write_type, &unread.to_string()),
        (_, Unread::Earlier { .. }) => {
            job.fail(&ErrorMessage::plain(ErrorCode::Overloaded, unread.to_string()))
        }
        // No error by which drivers try again: it would be as long.
        (_, Unread::TooLong { .. }) => job.fail(&ErrorMessage::plain(ErrorCode::Server, unread.to_string())),
    }
}

fn damaged(error: &WireError) -> ErrorMessage {
    ErrorMessage::plain(ErrorCode::Server, format!("an answer of the cluster cannot be read: {error}"))
}

/// Tells the client why a statement of the gateway's own for its request has failed.
pub(crate) fn fail(job: &Job, error: &ClusterError) {
    match error {
        ClusterError::Server(error) => job.fail(error),
        ClusterError::Call(error) if error.was_sent() => fail_lost(job, error),
        error => fail_unsent(job, error),
    }
}

/// Tells the client that the answer is lost. A write may have been applied, so the error is the one by which drivers know that.
pub(crate) fn fail_lost(job: &Job, error: &CallError) {
    let message = error.to_string();
    let detail = match job.text.effect {
        Effect::Write(write_type) => return fail_written(job, write_type, &message),
        Effect::Read => ErrorDetail::ReadTimeout { progress: progress(job), data_present: false },
        _ => ErrorDetail::Plain(ErrorCode::Server),
    };
    job.fail(&ErrorMessage { message, detail });
}

/// Tells the client of a write that its answer does not come, and why.
fn fail_written(job: &Job, write_type: WriteType, why: &str) {
    let contentions = (write_type == WriteType::Cas).then_some(0);
    let detail = ErrorDetail::WriteTimeout { progress: progress(job), write_type, contentions };
    job.fail(&ErrorMessage { message: format!("{why}; the write may have been applied"), detail });
}

fn progress(job: &Job) -> Progress {
    Progress { consistency: job.consistency(), received: 0, block_for: 1 }
}

/// Tells the client that the node's answer is not passed on: it shows that the node has run another statement than the one that the gateway
/// has seen, or it is too long. No error by which drivers try again; for a write whose answer is too long, the one that says that it may
/// have been applied.
pub(crate) fn fail_unasked(job: &Job, error: &CallError) {
    match (error, &job.text.effect) {
        (CallError::TooLong { .. }, Effect::Write(_)) => fail_lost(job, error),
        _ => job.fail(&ErrorMessage::plain(ErrorCode::Server, error.to_string())),
    }
}

/// Tells the client that no node could be asked; nothing was sent. Where the nodes do not take the login of its role any more, its session
/// ends.
pub(crate) fn fail_unsent(job: &Job, error: &ClusterError) {
    if job.shared.roles.are_needed()
        && let Some(refusal) = job.role.cluster.login_refusal()
    {
        let message =
            format!("The role of this session cannot log in at the cluster any more: {}", refusal.message);
        job.fail(&ErrorMessage::plain(ErrorCode::Unauthorized, message));
        return job.client.close_after_answers();
    }
    let detail = match error {
        ClusterError::Call(CallError::Full { .. }) => ErrorDetail::Plain(ErrorCode::Overloaded),
        _ => ErrorDetail::Unavailable { consistency: job.consistency(), required: 1, alive: 0 },
    };
    job.fail(&ErrorMessage { message: error.to_string(), detail });
}
