//! The storage of a table: the immutable set of its sources (`view`), and the code that changes this set (`store`;
//! `flush_group` for flushes, `replace` for compactions, `import` for imports). `flush` writes a memtable as an
//! SSTable, and `failures` counts what failed. `compaction_state`, `compaction_failures` and `indexes` are what a table keeps
//! for the work above it, `indexed_files` records which SSTables an index is complete for, `staged_files` finishes imports at
//! a start, `dropped` removes the files of dropped tables, `storage` is all tables of a database. `token_index` finds the
//! SSTables of a view that may have a token.

mod compaction_failures;
mod compaction_state;
mod dropped;
mod failures;
mod flush;
mod flush_group;
mod import;
mod indexed_files;
mod indexes;
mod replace;
mod staged_files;
mod storage;
mod store;
mod token_index;
mod view;

pub(crate) use compaction_state::{Claim, History, LEVELS, Round, SmallLook};
pub(crate) use dropped::remove_dropped;
pub(crate) use flush_group::flush_together;
pub(crate) use import::{ForTable, ImportPart, NotAdded};
pub(crate) use indexed_files::IndexedFiles;
pub(crate) use indexes::{AttachedIndex, BuildGuard, TableIndexes};
pub(crate) use replace::Replaced;
pub(crate) use staged_files::{READY, STAGING, clear_import, finish_imports};
pub(crate) use storage::Storage;
pub use store::TableStore;
pub(crate) use store::{EMPTY_BYTES_MAX, Tables};
pub(crate) use view::WithoutSome;
pub use view::{SsTables, Unreadable, View};
