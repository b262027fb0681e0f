//! The answer of a statement: what it did, its columns, and where its rows go.

use helenus_engine::account::{self, Refusal};
use helenus_engine::{SchemaChange, Ticket};
use helenus_model::row_batch::{BatchColumn, RowBatch};
use helenus_model::types::CqlType;
use std::sync::Arc;

/// What a statement did, and the warnings for its client.
pub struct Answer {
    /// What it did.
    pub outcome: Outcome,
    /// Cassandra's `ClientWarn`: texts for the client. Protocol v3 cannot carry them.
    pub warnings: Vec<String>,
}

impl From<Outcome> for Answer {
    /// Without a warning.
    fn from(outcome: Outcome) -> Answer {
        Answer { outcome, warnings: Vec::new() }
    }
}

/// What a statement did.
pub enum Outcome {
    /// It is done once the ticket is ready; there are no rows.
    Done(Ticket),
    /// The rows went to `out`.
    Rows {
        /// The columns.
        columns: Arc<ResultColumns>,
        /// Where the next page begins; `None` after the last row.
        paging_state: Option<Vec<u8>>,
        /// When the rows may be sent (conditional writes); `None`: at once.
        ticket: Option<Ticket>,
    },
    /// The session's keyspace changes to this one.
    UsedKeyspace(Arc<str>),
    /// The schema changed, or nothing had to change (`IF NOT EXISTS`: `None`).
    SchemaChanged(Option<SchemaChange>, Ticket),
}

/// The columns of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumns {
    /// The columns in order.
    pub columns: Vec<ResultColumn>,
    /// The MD5 over the columns, as v5 identifies them; `EMPTY_METADATA_ID` for statements without rows.
    pub id: [u8; 16],
}

/// One column of a result, or one bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// The keyspace of its table.
    pub keyspace: Arc<str>,
    /// Its table.
    pub table: Arc<str>,
    /// Name, alias or expression.
    pub name: Arc<str>,
    /// Type.
    pub ty: CqlType,
}

/// Receives the rows of a result: writes them directly into the front end's answer. Cells arrive row by row, in column
/// order.
pub trait RowsOut {
    /// The columns of the rows that follow; called once, before the first cell.
    fn columns(&mut self, columns: &Arc<ResultColumns>);
    /// A cell: a serialised value, or null.
    fn cell(&mut self, value: Option<&[u8]>);
    /// Several consecutive cells.
    fn cells(&mut self, values: &[Option<&[u8]>]) {
        for value in values {
            self.cell(*value);
        }
    }
    /// The row is complete.
    fn end_row(&mut self);
    /// All rows of a row batch; `columns` selects the cells of each.
    fn rows(&mut self, batch: &RowBatch<'_>, columns: &[BatchColumn<'_>]) {
        for row in batch.rows() {
            for column in columns {
                self.cell(match *column {
                    BatchColumn::Value(place) => row.get(place).map(|value| batch.bytes(value)),
                    BatchColumn::Fixed(value) => value,
                });
            }
            self.end_row();
        }
    }
    /// Reserves memory for this many more bytes, on the account.
    ///
    /// # Errors
    /// There is not enough memory.
    fn make_room(&mut self, bytes: usize) -> std::result::Result<(), Refusal> {
        account::grow(bytes)
    }
    /// The bytes written so far, for cutting pages.
    fn bytes(&self) -> usize;
    /// Discards everything, for a second run.
    fn clear(&mut self);
}

/// Takes the rows of statements that have none, and keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoRows;

impl RowsOut for NoRows {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}
    fn cell(&mut self, _value: Option<&[u8]>) {}
    fn end_row(&mut self) {}
    fn bytes(&self) -> usize {
        0
    }
    fn clear(&mut self) {}
}
