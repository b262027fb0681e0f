//! Reads a piece of the table itself, beside a search for a range of terms.
//!
//! Entries of a range come in the order of terms, so a page needs all of them to find its first rows. If the range has
//! many entries, pages would cost the square of the answer. Therefore `search` also reads the table from where the page
//! begins, as many rows as it has read entries, in turns. Where most rows match, the table fills the page first; where
//! few match, the entries come first. So no page costs more than twice the cheaper way, and all pages together never
//! more than twice the table.
//!
//! The sink's filter decides about rows of the table exactly as about rows that entries point to.

use crate::commitlog::Ticket;
use crate::database::{Database, ReadRequest};
use crate::error::Result;
use crate::read::{Probe, ReadCommand, ReadEnd, RowOutcome, RowSink};
use helenus_model::row::RowView;

/// The result of reading a piece of a table.
pub(super) struct Piece {
    /// How the piece ended. After `Page`, the rest of the table follows.
    pub(super) end: ReadEnd,
    /// Rows that the sink counted.
    pub(super) counted: u64,
}

/// Reads rows of the table until `rows` of them were visited, the sink's page is full or the read is complete.
/// `command.page_rows` is what is left of the page; `None` without pages.
///
/// # Errors
/// Those of a read.
pub(super) fn read_piece(
    database: &Database,
    command: ReadCommand,
    rows: u64,
    request: ReadRequest<'_>,
    (sink, probe): (&mut dyn RowSink, Option<&mut Probe>),
) -> Result<Piece> {
    let is_paged = command.page_rows.is_some();
    // Only reads with pages end at a place where they can be continued.
    let command = ReadCommand { page_rows: command.page_rows.or(Some(u64::MAX)), ..command };
    let view = database.view(&command.table)?;
    let mut piece = PieceSink { sink, rows_left: rows, is_paged, counted: 0 };
    let end = database.read(&command, &view, request, &mut piece, probe)?;
    Ok(Piece { end, counted: piece.counted })
}

/// Passes rows to the sink, and ends the page after some of them.
struct PieceSink<'a> {
    sink: &'a mut dyn RowSink,
    /// Rows and partitions to visit.
    rows_left: u64,
    is_paged: bool,
    counted: u64,
}

impl PieceSink<'_> {
    fn visited(&mut self, taken: RowOutcome) -> RowOutcome {
        self.rows_left = self.rows_left.saturating_sub(1);
        self.counted += u64::from(taken == RowOutcome::Counted);
        taken
    }
}

impl RowSink for PieceSink<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> Result<()> {
        self.sink.partition(key, static_row)
    }

    fn row(&mut self, row: RowView<'_>) -> Result<RowOutcome> {
        let taken = self.sink.row(row)?;
        Ok(self.visited(taken))
    }

    fn hold_until(&mut self, ticket: Ticket) -> Option<Ticket> {
        self.sink.hold_until(ticket)
    }

    fn partition_end(&mut self, rows: u64) -> Result<RowOutcome> {
        let taken = self.sink.partition_end(rows)?;
        Ok(self.visited(taken))
    }

    fn is_full(&self) -> bool {
        self.rows_left == 0 || self.is_paged && self.sink.is_full()
    }
}
