//! `RowSink`: the interface through which a read gives its rows to its caller.
//!
//! `read/partition.rs` calls it. CQL, RPC, index searches and the embedded library implement it. A sink may also
//! implement `BatchSink`, which takes many rows in one call.

use super::command::Resume;
use crate::commitlog::Ticket;
use crate::error::Result;
use helenus_model::row::RowView;
use helenus_model::row_batch::RowBatch;

/// What a sink did with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// The row is part of the answer and counts against the limits.
    Counted,
    /// A filter refused the row.
    Skipped,
    /// The row is not part of the answer, and no later row of its partition will be.
    EndPartition,
    /// The row is not part of the answer, and the read is complete: the sink wants nothing more.
    EndRead,
}

/// The dead rows and range tombstones that a read may pass (`tombstone_failure_threshold`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneLimit {
    /// Their largest allowed number.
    pub count: u64,
    /// Rows after which the count restarts: the rows of a page, for a statement without pages that reads page by page.
    pub rows: u64,
}

/// Receives the rows of a read, partition by partition. Every row is alive, but it may contain dead cells
/// (`Cell::is_live`) and cells of columns that the table no longer has.
pub trait RowSink {
    /// A partition begins: its serialised key, and its static row if it was asked for and has live cells.
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()>;

    /// A row of the current partition.
    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome>;

    /// The read has met what is dead: a deletion of the partition or of a range, or a row or static row without live
    /// cells. `newest_us` is its greatest timestamp, microseconds.
    fn dead(&mut self, _newest_us: i64) {}

    /// A row without live cells, as the read has merged it. Only for sinks that want more of it than its greatest timestamp.
    fn dead_row(&mut self, row: RowView<'_>) {
        self.dead(row.newest_us());
    }

    /// The same for the static row, which was asked for.
    fn dead_static_row(&mut self, row: RowView<'_>) {
        self.dead(row.newest_us());
    }

    /// The sink as a receiver of row batches, if it takes them at the moment. Asked again before each batch.
    fn batches(&mut self) -> Option<&mut dyn BatchSink> {
        None
    }

    /// The partition is finished; `rows` of its rows were counted, at least 1 if an earlier page has begun it. A sink
    /// can add the row that consists of a static row alone.
    fn partition_end(&mut self, rows: u64) -> Result<RowOutcome>;

    /// The read, or this page of it, is over; receives the rows counted, and the dead rows and range tombstones passed.
    fn passed(&mut self, _rows: u64, _tombstones: u64) {}

    /// The read has seen writes that are not yet as durable as their acknowledgements promise. Its answer may be sent
    /// once the ticket is ready, and never if that fails. A sink that holds its answer back takes the ticket. If the
    /// sink returns the ticket, the read itself waits, or fails with `WouldBlock`.
    fn hold_until(&mut self, ticket: Ticket) -> Option<Ticket> {
        Some(ticket)
    }

    /// The tombstones that the read may pass before it fails. Without a limit the read never fails for tombstones, but
    /// its pages end after `PAGE_TOMBSTONES_MAX`.
    fn tombstone_limit(&self) -> Option<TombstoneLimit> {
        None
    }

    /// Whether the page should end early because it has too many bytes.
    fn is_full(&self) -> bool {
        false
    }
}

/// Receives batches of rows that hold nothing but values, which saves most of the cost per row. Other rows come through
/// `RowSink::row`, in order with the batches.
pub trait BatchSink {
    /// Rows of the current partition, with columns that the table has. Returns whether they count against the limits:
    /// all of them or none.
    fn batch(&mut self, batch: &RowBatch<'_>) -> Result<bool>;
}

/// How a read ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadEnd {
    /// There is nothing more.
    Complete,
    /// The page is full; the next page begins here.
    Page(Resume),
}
