//! Secondary indexes: each is a hidden table beside its own, written with it in one record of the log.
//!
//! How the hidden table is laid out, `model/src/index/shape.rs` says; `entries` says which entries a row has, `observe` adds the entries of a
//! write to it, `attached` keeps what a table has of indexes, `build` fills a new index from the rows that are there,
//! `search` reads through one by what `walk` finds in it, `audit` takes out what a search found stale.
//!
//! **The one rule**: an index has an entry for every live value of its table. It may have more: whatever an entry leads
//! to is read and tested, so an entry without its row costs a look and is never an answer. What takes entries out may
//! therefore come late or not at all, and must only never take out one that counts: an entry goes with the timestamp of
//! the cell that it came from.
//!
//! In what order things happen: a write is applied to its table before its entries are to the index, and a search takes
//! its view of the table after it has read entries. So whoever sees an entry sees the row that it came from.

mod attached;
mod audit;
mod build;
mod entries;
mod observe;
mod search;
mod walk;

pub(crate) use attached::{Attached, IndexBuilds, Passes, attach, stored_tables};
pub use build::IndexBuildStatus;
pub(crate) use build::{BUILT_TABLE, forget_built, is_noted, rebuild};
pub(crate) use observe::derived;
