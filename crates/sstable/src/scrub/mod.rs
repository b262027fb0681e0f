//! Rewrites a damaged SSTable with everything of it that can be read.
//!
//! Data.db is read from its start. At damage, the row index of the partition tells where its next block of rows begins,
//! and the partition index tells where the next partition begins. Everything in between is lost, and is reported. A
//! range tombstone that reaches into a loss is closed before it and opened again after it, so that no more is deleted
//! than before. Partitions and rows that are not in order, as written by programs with bugs (Cassandra 3.0 with empty
//! values in descending columns), go into further SSTables, in order. Filter, summary, digest and checksums are made
//! again.
//!
//! `index_positions` reads the index, `output` writes, `run` decides, `order` puts rows in order, `overflowed` repairs
//! expiry times, `report` is what was lost. Source: Cassandra's `SortedTableScrubber`,
//! `BigTableScrubber`, `BtiTableScrubber`, which drop a whole partition where Helenus drops only its unreadable rows.

mod index_positions;
mod order;
mod output;
mod overflowed;
mod report;
mod run;

pub use report::{Loss, Lost, Scrubbed};
pub use run::{Scrubbing, scrub};
