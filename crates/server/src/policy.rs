//! The policies for disk failures: `disk_failure_policy` and `commit_failure_policy`.
//!
//! The names and meanings are Cassandra's (`Config`, `DefaultFSErrorHandler`, `CommitLog.handleCommitError`);
//! differences for one machine with one disk are noted below. The engine's journal reports failures, often on threads
//! that event loops and flushes need. So nothing is done there except to set the verdict that the main thread waits
//! for.

use std::sync::Arc;

use helenus_engine::{DiskTrouble, Error};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::log::{Entry, Level, Log};

/// `disk_failure_policy`: what to do about a damaged file, or one that the system refuses to read or write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskFailurePolicy {
    /// The process ends, for damaged files too.
    Die,
    /// Clients are no longer served, for damaged files too. The admin socket and the HTTP port stay.
    StopParanoid,
    /// Clients are no longer served when the system refuses to read or write.
    Stop,
    /// Clients are no longer served when the disk is full; there is no other disk to continue with.
    BestEffort,
    /// Only the statement that met the failure fails.
    #[default]
    Ignore,
}

/// `commit_failure_policy`: what to do when a sync or write of the commit log fails. The log then takes no more writes,
/// whatever the policy is, because its contents may be lost: unlike in Cassandra, `ignore` does not go on writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitFailurePolicy {
    /// The process ends.
    Die,
    /// Clients are no longer served.
    Stop,
    /// Writes are refused, reads go on.
    #[default]
    StopCommit,
    /// As `StopCommit`.
    Ignore,
}

impl DiskFailurePolicy {
    /// The names, as in the option.
    pub const NAMES: &'static [&'static str] = &["ignore", "best_effort", "stop", "stop_paranoid", "die"];

    /// The policy with a name.
    pub fn of_name(name: &str) -> DiskFailurePolicy {
        match name {
            "die" => DiskFailurePolicy::Die,
            "stop_paranoid" => DiskFailurePolicy::StopParanoid,
            "stop" => DiskFailurePolicy::Stop,
            "best_effort" => DiskFailurePolicy::BestEffort,
            _ => DiskFailurePolicy::Ignore,
        }
    }

    /// Whether a server refuses to start if it cannot read some files (`handleStartupFSError`).
    pub fn refuses_to_start(self) -> bool {
        matches!(self, DiskFailurePolicy::Die | DiskFailurePolicy::StopParanoid | DiskFailurePolicy::Stop)
    }

    fn verdict(self, trouble: DiskTrouble) -> Verdict {
        match (self, trouble) {
            (DiskFailurePolicy::Die, _) => Verdict::Die,
            (DiskFailurePolicy::StopParanoid, _)
            | (DiskFailurePolicy::Stop, DiskTrouble::Refused | DiskTrouble::Full)
            | (DiskFailurePolicy::BestEffort, DiskTrouble::Full) => Verdict::StopServing,
            (DiskFailurePolicy::Stop | DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore, _) => {
                Verdict::GoOn
            }
        }
    }
}

impl CommitFailurePolicy {
    /// The names, as in the option.
    pub const NAMES: &'static [&'static str] = &["stop_commit", "ignore", "stop", "die"];

    /// The policy with a name.
    pub fn of_name(name: &str) -> CommitFailurePolicy {
        match name {
            "die" => CommitFailurePolicy::Die,
            "stop" => CommitFailurePolicy::Stop,
            "ignore" => CommitFailurePolicy::Ignore,
            _ => CommitFailurePolicy::StopCommit,
        }
    }

    fn verdict(self) -> Verdict {
        match self {
            CommitFailurePolicy::Die => Verdict::Die,
            CommitFailurePolicy::Stop => Verdict::StopServing,
            CommitFailurePolicy::StopCommit | CommitFailurePolicy::Ignore => Verdict::GoOn,
        }
    }
}

/// The consequence of a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Continue.
    #[default]
    GoOn,
    /// Close the connections of clients and accept no more, but stay.
    StopServing,
    /// End the process at once.
    Die,
}

/// The policies of a server, and their verdict so far.
pub struct FailurePolicies {
    chosen: Mutex<(DiskFailurePolicy, CommitFailurePolicy)>,
    log: Arc<Log>,
    verdict: watch::Sender<Verdict>,
}

impl FailurePolicies {
    /// Policies without a failure yet. The receiver is notified of the verdict.
    pub fn new(
        disk: DiskFailurePolicy,
        commit: CommitFailurePolicy,
        log: &Arc<Log>,
    ) -> (Arc<FailurePolicies>, watch::Receiver<Verdict>) {
        let (verdict, told) = watch::channel(Verdict::GoOn);
        let chosen = Mutex::new((disk, commit));
        (Arc::new(FailurePolicies { chosen, log: Arc::clone(log), verdict }), told)
    }

    /// Changes the policies for future failures.
    pub fn choose(&self, disk: DiskFailurePolicy, commit: CommitFailurePolicy) {
        *self.chosen.lock() = (disk, commit);
    }

    /// The verdict so far.
    pub fn verdict(&self) -> Verdict {
        *self.verdict.borrow()
    }

    /// Applies the policy to a file that is damaged, or could not be read or written.
    pub fn disk_failed(&self, error: &Error) {
        if let Some(trouble) = error.disk_trouble() {
            let (disk, _) = *self.chosen.lock();
            self.decide(disk.verdict(trouble), "disk_failure_policy", &error.to_string());
        }
    }

    /// Applies the policy to a failure of the commit log.
    pub fn log_failed(&self, reason: &str) {
        let (_, commit) = *self.chosen.lock();
        self.decide(commit.verdict(), "commit_failure_policy", reason);
    }

    fn decide(&self, verdict: Verdict, option: &'static str, reason: &str) {
        let is_new = self.verdict.send_if_modified(|before| {
            let is_new = verdict > *before;
            *before = verdict.max(*before);
            is_new
        });
        if is_new {
            let done =
                if verdict == Verdict::Die { "the server ends" } else { "clients are no longer served" };
            let entry = Entry::new("failure_policy", format!("{done}, as {option} says: {reason}"));
            self.log.write(Level::Error, &entry.with("option", option).with("error", reason));
        }
    }
}

#[cfg(test)]
mod tests;
