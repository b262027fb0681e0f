//! The admin socket: a Unix socket beside the data, for the owner's tools on the same machine.
//!
//! A request is one line of JSON, and so is an answer; a connection carries any number of them. `request`, `answer` and
//! `metrics` define the lines. `socket` decides where the socket is and who may use it, `serve` reads and writes it,
//! `dispatcher` runs the requests, and `client` is the tools' side. `collect_metrics` collects metrics and `snapshots` manages
//! snapshots; `networks` has the requests about groups of networks, `changes` reads the feed of changes. `compactions`, `jobs`
//! and `exports` hold what takes longer than an answer may.

mod answer;
mod changes;
mod client;
mod collect_metrics;
mod compactions;
mod dispatcher;
mod exports;
mod jobs;
mod metrics;
mod networks;
mod request;
mod serve;
mod snapshots;
mod socket;

pub use crate::audit::AuditOverrides;
pub use crate::backup::{RestoreOrder, Restored, RestoredTable};
pub use answer::{
    AdminAnswer, AuditState, ChangeConsumerLine, ChangesLines, CidrStats, ClientLine, ClientsSeen,
    Compaction, ExportedFiles, Flushed, Growth, Import, Job, Outcome, ProtocolClient, Reloaded,
    RunningCompaction, ServerStatus, SnapshotLine, TableLine, VerifiedTable,
};
pub use changes::answer_changes;
pub use client::ask;
pub(crate) use collect_metrics::{failures_of, shares};
pub use exports::export;
pub use jobs::{imported, request_of};
pub use metrics::{
    ClockMetrics, CompactionMetrics, CompactionTroubleLine, DiskUsageLine, DiskUsageReport, MemoryMetrics,
    MemoryShare, NodeMetrics, PastCompactionLine, Pool, RunningTask, Spread, TableMetrics, TopPartitionLine,
};
pub use request::{
    AdminRequest, ChangesOrder, ImportOrder, LogLevelChoice, Password, TableSelection, TimeoutKind,
};
pub use serve::{AdminServer, FurtherVerbs, ServerControl, ServerInfo};
pub use socket::{AdminError, socket_for_data, socket_for_memory};
