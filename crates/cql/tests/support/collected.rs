//! Collects the rows of an answer.

#![allow(dead_code, reason = "each test binary uses a part")]

use helenus_cql::backend::{ResultColumns, RowsOut};
use std::sync::Arc;

/// Collects rows.
#[derive(Default)]
pub struct Collected {
    rows: Vec<Vec<Option<Vec<u8>>>>,
    row: Vec<Option<Vec<u8>>>,
    bytes: usize,
}

impl Collected {
    pub fn into_rows(self) -> Vec<Vec<Option<Vec<u8>>>> {
        self.rows
    }

    /// The cells of all rows, one after the other.
    pub fn into_cells(self) -> Vec<Option<Vec<u8>>> {
        self.rows.into_iter().flatten().collect()
    }
}

impl RowsOut for Collected {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.bytes += value.map_or(0, <[u8]>::len);
        self.row.push(value.map(<[u8]>::to_vec));
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        *self = Collected::default();
    }
}
