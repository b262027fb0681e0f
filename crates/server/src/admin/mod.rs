//! The admin socket: a Unix socket beside the data, for the owner's tools on the same machine.
//!
//! A request is one line of JSON, and so is an answer; a connection carries any number of them. `request`, `answer` and
//! `figures` define the lines. `socket` decides where the socket is and who may use it, `serve` reads and writes it,
//! `desk` runs the requests, and `client` is the tools' side. `telling` collects metrics and `snapshots` manages
//! snapshots. `compactions`, `errands` and `exports` hold what takes longer than an answer may.

mod answer;
mod client;
mod compactions;
mod desk;
mod errands;
mod exports;
mod figures;
mod request;
mod serve;
mod snapshots;
mod socket;
mod telling;

pub use answer::{
    AdminAnswer, ClientLine, ClientsSeen, Compaction, Errand, ExportedFiles, Flushed, Import, Outcome,
    ProtocolClient, Reloaded, Restored, RestoredTable, RunningCompaction, ServerStatus, SnapshotLine,
    TableLine, VerifiedTable,
};
pub use client::ask;
pub use errands::{imported, request_of};
pub use exports::export;
pub use figures::{
    ClockFigures, CompactionFigures, MemoryFigures, MemoryShare, NodeFigures, PastCompactionLine, Pool,
    RunningTask, Spread, TableFigures, TopPartitionLine,
};
pub use request::{AdminRequest, ImportOrder, LogLevelChoice, RestoreOrder, TimeoutKind, Which};
pub use serve::{AdminServer, Doors, Facts};
pub use socket::{AdminError, socket_for_data, socket_for_memory};
pub(crate) use telling::{failures_of, shares};
