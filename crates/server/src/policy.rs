//! What the server does when its disk fails: `disk_failure_policy` and `commit_failure_policy`.
//!
//! The names and what they mean are Cassandra's (`Config`, `DefaultFSErrorHandler`, `CommitLog.handleCommitError`); where one
//! machine with one disk makes a difference, it says so below. Failures are told by the engine's journal, often on threads that
//! doors and flushes need: nothing is done there but to set what the main thread waits for.

use std::sync::Arc;

use helenus_engine::{DiskTrouble, Error};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::log::{Entry, Level, Log};

/// `disk_failure_policy`: what a damaged file, or one that the system refuses to read or write, means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskFailurePolicy {
    /// The process ends, for damaged files too.
    Die,
    /// Clients are no longer served, for damaged files too; the admin socket and the HTTP port stay.
    StopParanoid,
    /// Clients are no longer served when the system refuses to read or write.
    Stop,
    /// Clients are no longer served when the disk is full. There is no other disk to go on with.
    BestEffort,
    /// The statement that met it fails, everything else goes on.
    #[default]
    Ignore,
}

/// `commit_failure_policy`: what a failed sync or write of the commit log means. The log takes no more writes after one whatever
/// the policy, since what it held may be lost: `ignore` does not go on writing here, as it does in Cassandra.
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
    /// The names, as the option takes them.
    pub const NAMES: &'static [&'static str] = &["ignore", "best_effort", "stop", "stop_paranoid", "die"];

    /// The policy of a name.
    pub fn of_name(name: &str) -> DiskFailurePolicy {
        match name {
            "die" => DiskFailurePolicy::Die,
            "stop_paranoid" => DiskFailurePolicy::StopParanoid,
            "stop" => DiskFailurePolicy::Stop,
            "best_effort" => DiskFailurePolicy::BestEffort,
            _ => DiskFailurePolicy::Ignore,
        }
    }

    /// Whether a server refuses to start on files that it cannot read (`handleStartupFSError`).
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
    /// The names, as the option takes them.
    pub const NAMES: &'static [&'static str] = &["stop_commit", "ignore", "stop", "die"];

    /// The policy of a name.
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

/// What the server is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing.
    #[default]
    GoOn,
    /// Close the doors to clients and stay.
    StopServing,
    /// End at once.
    Die,
}

/// The policies of a server, and what they have come to.
pub struct FailurePolicies {
    chosen: Mutex<(DiskFailurePolicy, CommitFailurePolicy)>,
    log: Arc<Log>,
    verdict: watch::Sender<Verdict>,
}

impl FailurePolicies {
    /// With nothing failed yet. The receiver is told what to do.
    pub fn new(
        disk: DiskFailurePolicy,
        commit: CommitFailurePolicy,
        log: &Arc<Log>,
    ) -> (Arc<FailurePolicies>, watch::Receiver<Verdict>) {
        let (verdict, told) = watch::channel(Verdict::GoOn);
        let chosen = Mutex::new((disk, commit));
        (Arc::new(FailurePolicies { chosen, log: Arc::clone(log), verdict }), told)
    }

    /// Other policies for what fails from now on.
    pub fn choose(&self, disk: DiskFailurePolicy, commit: CommitFailurePolicy) {
        *self.chosen.lock() = (disk, commit);
    }

    /// What has been decided so far.
    pub fn verdict(&self) -> Verdict {
        *self.verdict.borrow()
    }

    /// A file is damaged, or could not be read or written.
    pub fn disk_failed(&self, error: &Error) {
        if let Some(trouble) = error.disk_trouble() {
            let (disk, _) = *self.chosen.lock();
            self.decide(disk.verdict(trouble), "disk_failure_policy", &error.to_string());
        }
    }

    /// The commit log has failed.
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
