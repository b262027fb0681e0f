//! The storage of a table: the immutable set of its sources (`view`), and the code that changes this set (`store`;
//! `flush_group` for flushes, `replace` for compactions, `import` for imports). `flush` writes a memtable as an
//! SSTable, and `failures` counts what failed.

mod failures;
mod flush;
mod flush_group;
mod import;
mod replace;
mod store;
mod view;

pub(crate) use flush_group::flush_together;
pub(crate) use replace::Replaced;
pub use store::TableStore;
pub use view::{Unreadable, View};
