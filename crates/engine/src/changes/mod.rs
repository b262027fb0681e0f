//! The feed of changes: what was written to watched tables (`cdc = true`), in the order of the commit log.
//!
//! The log is the feed: a write logs nothing more for it than the table's definition once a segment, and, of the tables that
//! `row_images` names, the rows as they were. `position` names a
//! place between two changes, `change` is one change, `reader` decodes them from the log, and `consumers` are readers for
//! whom segments are kept. `database::watching` is the entry.
//!
//! Why: docs/decisions/2026-11-27-change-feed.md.

mod change;
mod consumers;
mod position;
mod reader;
mod row_images;

pub use change::{Before, Change, ChangeKind, SchemaEvent};
pub(crate) use consumers::Consumers;
pub use consumers::{Consumer, check_name};
pub use position::ChangePosition;
pub(crate) use reader::ChangeReader;
pub use row_images::{RowImages, RowImagesError};
