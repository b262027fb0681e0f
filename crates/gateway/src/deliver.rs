//! Gives an answer of the cluster to the client.

use std::time::Duration;

use helenus_cluster::{Answer, CallError, ClusterError};
use helenus_wire::WireError;
use helenus_wire::native::{ErrorCode, ErrorDetail, ErrorMessage, Progress, WriteType};

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
        job.client.send(job.version, flags, job.stream, (answer.opcode, &[prefix, &message]));
        Ok(())
    });
    if let Err(error) = sent {
        job.fail(&damaged(&error));
    }
}

fn damaged(error: &WireError) -> ErrorMessage {
    ErrorMessage::plain(ErrorCode::Server, format!("an answer of the cluster cannot be read: {error}"))
}

/// Tells the client that the answer is lost. A write may have been applied, so the error is the one by which drivers know that.
pub(crate) fn fail_lost(job: &Job, error: &CallError) {
    let progress = Progress { consistency: job.consistency(), received: 0, block_for: 1 };
    let message = match job.text.effect {
        Effect::Write(_) => format!("{error}; the write may have been applied"),
        _ => error.to_string(),
    };
    let detail = match job.text.effect {
        Effect::Read => ErrorDetail::ReadTimeout { progress, data_present: false },
        Effect::Write(write_type) => ErrorDetail::WriteTimeout {
            progress,
            write_type,
            contentions: (write_type == WriteType::Cas).then_some(0),
        },
        _ => ErrorDetail::Plain(ErrorCode::Server),
    };
    job.fail(&ErrorMessage { message, detail });
}

/// Tells the client that no node could be asked; nothing was sent.
pub(crate) fn fail_unsent(job: &Job, error: &ClusterError) {
    let detail = ErrorDetail::Unavailable { consistency: job.consistency(), required: 1, alive: 0 };
    job.fail(&ErrorMessage { message: error.to_string(), detail });
}
