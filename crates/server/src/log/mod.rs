//! The server's log: text lines or JSON on standard error, and messages about the start on standard output.
//!
//! `sink` takes lines and writes them from its own thread, so that no caller waits for a terminal or a full pipe.
//! `line` is their format, and `sanitize` makes foreign texts safe for it. `slow` logs
//! slow and failed statements. A `Log` is passed through constructors; nothing here is global, and an embedded database has
//! none.

mod line;
mod sanitize;
mod sink;
mod slow;

pub use line::{Entry, Format, Level};
pub(crate) use line::{duration_text, time_text};
pub(crate) use sanitize::on_one_line;
pub use sink::Log;
pub use slow::{SlowStatements, StatementText};
