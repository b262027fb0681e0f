//! The server's log: lines for people, or JSON, on standard error; and what a start says of itself, on standard output.
//!
//! `sink` takes lines and writes them from a thread of its own, so that nobody waits for a terminal or a full pipe; `line` is
//! how they look, `shown` how texts of others do in them. `engine` translates what the engine tells, `slow` writes down slow and failed statements. A `Log` is a value
//! that goes through constructors: an embedded database has none, and nothing here is global.

mod engine;
mod line;
mod shown;
mod sink;
mod slow;

pub use engine::EngineJournal;
pub use line::{Entry, Format, Level};
pub use sink::Log;
pub use slow::{SlowStatements, StatementText};
