//! Rewrites a damaged SSTable with everything of it that can be read.
//!
//! Data.db is read from its start, by its own checksummed blocks. The index serves to continue behind damage: it says
//! where the next partition begins, and with that which rows behind the damage belong to which partition. No row of a
//! block that can be read is lost as long as something tells its partition. Each loss is reported. A range tombstone that
//! reaches into a loss is closed before it and opened again after it, so that no more is deleted than before. Partitions
//! and rows that are not in order, as written by programs with bugs (Cassandra 3.0 with empty values in descending
//! columns), go into further SSTables, in order. Index, filter, summary, digest and checksums are made again.
//!
//! `source` reads the data and finds places behind damage, `run` decides about partitions and `partition` about their
//! rows, `output` writes, `late` and `sorter` put in order, `copies` merges partitions that the data
//! has several times, `overflowed` repairs expiry times, `report` is what was lost.
//! Source: Cassandra's `SortedTableScrubber`, `BigTableScrubber`, `BtiTableScrubber`, which drop a whole partition where
//! Helenus drops only its unreadable rows.

mod copies;
mod late;
mod output;
mod overflowed;
mod partition;
mod report;
mod run;
mod sorter;
mod source;

pub use report::{Loss, Lost, Scrubbed};
pub use run::{SORTED_BYTES_DEFAULT, Scrubbing, scrub};
