//! The feed of changes for people and programs: events as JSON, page by page, with a cursor behind each.
//!
//! `page` reads a page of events: changes of the log, or first the present rows (`snapshot`). `event` writes them, in a
//! shape that Debezium's users know. `cursor` is the place behind an event, as text;
//! `consumer` keeps it for named consumers.
//!
//! The admin socket, the HTTP port and `system_views.changes` show these events (docs/book/changes.md).

mod consumer;
mod cursor;
mod event;
mod page;
mod snapshot;

pub use consumer::{acknowledge, resume};
pub use cursor::{Cursor, Start};
pub use event::operation_of;
pub use page::{ChangeEvent, ChangesPage, MayRead, PageLimits, read_page, read_page_for, start};
