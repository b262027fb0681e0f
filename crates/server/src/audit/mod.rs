//! The audit log: who logged in, who asked for what, and what was refused.
//!
//! `log` is the handle that servers write to; it can be switched on and off while the server runs. `options` has
//! Cassandra's `audit_logging_options`, `filter` decides what is written, `entry` formats a line. Each thread
//! collects its lines in a `buffer`, `repeats` counts failures of strangers that come in numbers, `queue` keeps requests from waiting for
//! a disk, and `file` writes and rolls the files.
//!
//! Source: the package `org.apache.cassandra.audit`. The lines are those of its `FileAuditLogger`.

mod buffer;
mod entry;
mod file;
mod filter;
mod log;
mod options;
mod queue;
mod repeats;

pub use buffer::{AuditBuffer, KeptTail};
pub(crate) use entry::cut;
pub use entry::{AuditEntry, AuditUser};
pub use file::AuditFileError;
pub use log::{Audit, AuditCounts, AuditError, AuditNode};
pub use options::{
    ARCHIVE_REFUSED, AuditFormat, AuditLogger, AuditOptions, AuditOverrides, FileParameters, InOut,
    ROLL_CYCLES, RollCycle, check_categories, tidy_list,
};
