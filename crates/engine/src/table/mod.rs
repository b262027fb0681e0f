//! The storage of a table: the immutable set of its sources (`view`), and the code that changes this set (`store`;
//! `flushing` for flushes, `replace` for compactions, `intake` for imports).

mod flush;
mod flushing;
mod intake;
mod replace;
mod store;
mod troubles;
mod view;

pub(crate) use flushing::flush_together;
pub(crate) use replace::Replaced;
pub use store::TableStore;
pub use view::{Unreadable, View};
