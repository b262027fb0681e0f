//! Tables whose rows are made when they are asked for: what drivers read of the server, figures of the engine and of the
//! doors.
//!
//! `table` is the seam: what a virtual table is, and the rows it gives. `registry` keeps those there are and shows them
//! in the schema. `read` runs a read over their rows. `local`, `peers`, `estimates` and `compaction_history` answer for the tables of `system`,
//! `described` for `system_virtual_schema`.

mod compaction_history;
mod described;
mod estimates;
mod hot;
mod local;
mod peers;
mod read;
mod registry;
mod table;
mod views;

pub use local::{NodeInfo, RELEASE_VERSION, ring_tokens};
pub(crate) use read::read;
pub use registry::VirtualTables;
pub use table::{VirtualContext, VirtualRows, VirtualTable, virtual_definition};
