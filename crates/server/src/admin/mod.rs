//! The admin socket: a Unix socket beside the data, for the owner's tools on this machine.
//!
//! One line of JSON a request, one line of JSON an answer, any number of them on a connection. `protocol` says what the lines
//! hold, `socket` where the socket is and who may use it, `serve` answers, `client` asks. `compactions`, `imports` and `exports`
//! are what takes longer than an answer may.

mod client;
mod compactions;
mod exports;
mod imports;
mod protocol;
mod serve;
mod socket;

pub use client::ask;
pub use exports::export;
pub use imports::request_of;
pub use protocol::{
    AdminAnswer, AdminRequest, Compaction, ExportedFiles, Flushed, Import, ImportOrder, RunningCompaction,
    ServerStatus, TableLine,
};
pub use serve::{AdminServer, Facts};
pub use socket::{AdminError, socket_for_data, socket_for_memory};
