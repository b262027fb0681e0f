//! Writes a damaged SSTable anew, with everything of it that can be read.
//!
//! Data.db is read from its start. Where it cannot be, the row index of the partition says where its next block of rows
//! begins, and the partition index where the next partition does; what lies between is lost, and told. Range tombstones
//! that reach into a loss are closed before it and opened again behind it: no more is deleted than was. Partitions and rows
//! that are not in order, as writers with bugs have left them (Cassandra 3.0 with empty values in descending columns), go
//! into further SSTables, in order. Filter, summary, digest and checksums are made anew.
//!
//! `places` walks the index, `output` writes, `run` decides. Source of the behaviour: Cassandra's `SortedTableScrubber`,
//! `BigTableScrubber`, `BtiTableScrubber`, which give a partition up whole where here only its unreadable rows go.

mod order;
mod output;
mod overflowed;
mod places;
mod report;
mod run;

pub use report::{Loss, Lost, Scrubbed};
pub use run::{Scrubbing, scrub};
