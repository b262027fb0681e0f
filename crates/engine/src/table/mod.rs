//! The storage of a table: the immutable set of its sources (`view`), and the code that changes this set (`store`;
//! `flush_group` for flushes, `replace` for compactions, `import` for imports). `flush` writes a memtable as an
//! SSTable, and `failures` counts what failed. `compaction_state` and `indexes` are what a table keeps for the work above
//! it, `staged_files` finishes imports at a start, `storage` is all tables of a database.

mod compaction_state;
mod failures;
mod flush;
mod flush_group;
mod import;
mod indexes;
mod replace;
mod staged_files;
mod storage;
mod store;
mod view;

pub(crate) use compaction_state::{Claim, History, LEVELS, Round};
pub(crate) use flush_group::flush_together;
pub(crate) use indexes::{AttachedIndex, BuildGuard, TableIndexes};
pub(crate) use replace::Replaced;
pub(crate) use staged_files::{READY, STAGING, finish_imports};
pub(crate) use storage::Storage;
pub use store::TableStore;
pub(crate) use store::Tables;
pub use view::{Unreadable, View};
