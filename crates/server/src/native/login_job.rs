//! A login of the native protocol on its way through the login pool.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_cql::audit::EventType;
use helenus_wire::native::{ErrorCode, ErrorMessage, Outgoing};

use super::answer::Tools;
use super::job::{Finished, Job, JobRunner};
use crate::audit::{AuditEntry, AuditUser};
use crate::log::SlowStatements;
use crate::logins::{TOO_MANY_LOGINS, WaitingLogin};

/// A login that waits.
pub(super) struct LoginJob {
    pub runner: Arc<JobRunner>,
    pub job: Job,
    /// The log, for a login that is refused.
    pub slow: Option<Arc<SlowStatements>>,
}

impl WaitingLogin for LoginJob {
    fn is_gone(&self) -> bool {
        self.job.mailbox.gone.load(Ordering::Acquire)
    }

    fn check(self: Box<Self>) {
        let LoginJob { runner, job, .. } = *self;
        runner.run(job, &mut Tools::default());
    }

    fn refuse(self: Box<Self>) {
        let LoginJob { runner, job, slow } = *self;
        let message = note_refusal(&runner, slow.as_deref(), job.client);
        let mut envelope = Vec::new();
        let mut tools = Tools::default();
        let _fits = Outgoing::Error(&message).encode(&job.head, tools.codec(job.compression), &mut envelope);
        job.mailbox.finish(Finished {
            envelope,
            held: None,
            charge: None,
            keyspace: None,
            identity: None,
            registered: None,
            wait: Duration::ZERO,
            reservation: Some(job.reservation),
            error: Some(ErrorCode::Overloaded),
        });
    }
}

/// Writes the refusal of a login that finds no room to the logs; returns the answer.
#[cold]
pub(super) fn note_refusal(
    runner: &JobRunner,
    slow: Option<&SlowStatements>,
    client: Option<SocketAddr>,
) -> ErrorMessage {
    if let Some(slow) = slow {
        slow.overloaded(TOO_MANY_LOGINS);
    }
    if let Some(audit) = runner.audit() {
        audit.write(&AuditEntry {
            event: EventType::LoginError,
            user: AuditUser::Nobody,
            source: client,
            timestamp_ms: audit.now_ms(),
            batch: None,
            keyspace: None,
            is_of_session: false,
            scope: None,
            operation: &format!("LOGIN FAILURE; {TOO_MANY_LOGINS}"),
        });
    }
    ErrorMessage::plain(ErrorCode::Overloaded, TOO_MANY_LOGINS)
}
