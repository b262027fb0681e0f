//! Where the rows of a read go.

use super::command::Resume;
use crate::commitlog::Ticket;
use crate::error::Result;
use helenus_model::row::RowView;
use helenus_model::run::RowRun;

/// What a sink did with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is part of the answer and counts against the limits.
    Counted,
    /// It is not: a filter refused it.
    Skipped,
    /// It is not, and nothing more of its partition will be.
    EndPartition,
    /// It is not, and the read is complete: the sink wants nothing more.
    EndRead,
}

/// How many dead rows and range tombstones a read may pass (`tombstone_failure_threshold`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneLimit {
    /// So many, and no more.
    pub count: u64,
    /// Counted anew after so many rows: those of a page, where a statement without pages reads page by page.
    pub rows: u64,
}

/// Takes the rows of a read, partition by partition. Rows handed over are alive; single cells of theirs may not be
/// (`Cell::is_live`), and cells of columns that the table no longer has may be among them.
pub trait RowSink {
    /// A partition begins: its serialised key, and its static row if it was asked for and has live cells.
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()>;

    /// A row of it.
    fn row(&mut self, row: RowView<'_>) -> Result<Taken>;

    /// Itself, if it takes rows many at a time now, which it may say anew before each time.
    fn runs(&mut self) -> Option<&mut dyn RunSink> {
        None
    }

    /// The partition is finished; `rows` of it were counted, at least 1 if an earlier page has begun it. Lets a sink add
    /// the row that a static row alone makes.
    fn partition_end(&mut self, rows: u64) -> Result<Taken>;

    /// The read, or this page of it, is over: rows that it gave, and dead rows and range tombstones that it passed.
    fn passed(&mut self, _rows: u64, _tombstones: u64) {}

    /// The read has seen writes that are not as safe as their acknowledgements say: its answer may leave once the ticket is
    /// ready, and never if that fails. A sink whose answer is held back takes the ticket; with one that hands it back the read
    /// itself waits, or answers `WouldBlock`.
    fn hold_until(&mut self, ticket: Ticket) -> Option<Ticket> {
        Some(ticket)
    }

    /// What the read may pass before it fails. Without a limit it never does, and its pages end after
    /// `PAGE_TOMBSTONES_MAX` instead.
    fn tombstone_limit(&self) -> Option<TombstoneLimit> {
        None
    }

    /// Whether the page should end though its rows are not all there: too many bytes.
    fn is_full(&self) -> bool {
        false
    }
}

/// Takes rows many at a time where they hold nothing but values, which spares most of what a row costs. It is given other rows
/// one by one, in their order among these.
pub trait RunSink {
    /// Rows of the partition, of columns that the table has. Whether they count against the limits: all of them or none.
    fn rows(&mut self, run: &RowRun<'_>) -> Result<bool>;
}

/// How a read ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadEnd {
    /// There is nothing more.
    Complete,
    /// The page is full; the next begins here.
    Page(Resume),
}
