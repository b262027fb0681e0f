//! ANN: the rows nearest to a vector, `ORDER BY v ANN OF ?` (`SelectStatement`, `VectorTopKProcessor`).
//!
//! The answer is exact: all rows that satisfy the WHERE clause are measured with the similarity function of the index,
//! and the nearest LIMIT rows are kept. Cassandra walks a graph and may miss some. Of equally near rows those that are
//! first in the table's order are kept and come first. Rows without a vector, or with one that no index holds
//! (`check_vector`), are in no index and so in no answer.

use super::row::RowAt;
use crate::analysis::selection::Source;
use crate::analysis::{Bindings, Bound, Markers, Receiver, Scope, Term};
use crate::answer::RowsOut;
use crate::error::{CqlError, Result};
use crate::functions::Similarity;
use crate::guardrails::level_name;
use crate::request::Request;
use crate::syntax::ast;
use helenus_model::index::{UnindexableVector, check_vector};
use helenus_model::schema::{Column, Table};
use helenus_model::types::CqlType;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The greatest LIMIT allowed (`SAI_VECTOR_SEARCH_MAX_TOP_K`).
const ROWS_MAX: u64 = 1000;

/// The column and the vector by which rows are measured.
#[derive(Clone, Debug)]
pub(crate) struct Nearest {
    source: Source,
    pub(super) column: String,
    measure: Similarity,
    vector: Term,
}

fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(CqlError::Invalid(text.into()))
}

impl Nearest {
    /// Types `column ANN OF vector`. The rules of the WHERE clause check that there is an index.
    ///
    /// # Errors
    /// The term is not a value of the column's type.
    pub(super) fn prepare(
        (table, column): (&Table, &Column),
        vector: &ast::Term<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<Nearest> {
        let vector = Term::prepare(vector, &Receiver::of_column(table, column), scope, markers)?;
        let index =
            table.indexes.values().find(|index| index.is_sai() && index.column(table) == Some(column));
        let function = index.and_then(|index| index.options.get("similarity_function"));
        Ok(Nearest {
            source: Source::of(column),
            column: column.name.to_string(),
            measure: function.and_then(|name| Similarity::of_index(name)).unwrap_or(Similarity::Cosine),
            vector,
        })
    }

    /// Checks the rest of the request; returns warnings for its client.
    ///
    /// # Errors
    /// Aggregates, serial consistency, no LIMIT, PER PARTITION LIMIT.
    pub(super) fn check(
        &self,
        request: &Request<'_>,
        combines_rows: bool,
        (limit, per_partition): (u64, u64),
    ) -> Result<Vec<String>> {
        const ONE: u16 = 1;
        const LOCAL_QUORUM: u16 = 6;
        const LOCAL_ONE: u16 = 10;
        if combines_rows {
            return invalid("Top-K queries can not be run with aggregation");
        }
        let level = level_name(request.consistency);
        if request.is_serial() {
            return invalid(format!(
                "Top-K queries can only be run with consistency level ONE/LOCAL_ONE. Consistency level {level} was used."
            ));
        }
        let mut warnings = Vec::new();
        if !matches!(request.consistency, ONE | LOCAL_ONE) {
            let instead = level_name(if request.consistency == LOCAL_QUORUM { LOCAL_ONE } else { ONE });
            warnings.push(format!(
                "Top-K queries can only be run with consistency level ONE / LOCAL_ONE / NODE_LOCAL. Consistency level \
                 {level} was requested. Downgrading the consistency level to {instead}."
            ));
        }
        if limit == u64::MAX {
            return invalid(
                "Top-K queries must have a limit specified and the limit must be less than the query page size",
            );
        }
        if per_partition != u64::MAX {
            return invalid("Top-K queries do not support per-partition limits");
        }
        if let Some(size) = request.page_size.map(u64::from).filter(|size| *size > 0 && *size < limit) {
            warnings.push(format!(
                "Top-K queries do not support paging and the page size is set to {size}, which is less than LIMIT {limit}. \
                 The page size has been set to {limit} to match the LIMIT."
            ));
        }
        Ok(warnings)
    }

    /// Prepares to receive rows and keep `limit` of them.
    ///
    /// # Errors
    /// The vector is null or unset; too many rows are asked for.
    pub(super) fn bind(&self, limit: u64, bindings: &Bindings<'_>) -> Result<TopK<'_>> {
        let vector = match self.vector.bind(bindings)? {
            Bound::Bytes(bytes) => {
                self.check_vector(&bytes).map_err(|problem| CqlError::Invalid(problem.to_string()))?;
                Similarity::floats(&bytes)
            }
            Bound::Null => return invalid(format!("Unsupported null value for column {}", self.column)),
            Bound::Unset => return invalid(format!("Unsupported unset value for column {}", self.column)),
        };
        if limit > ROWS_MAX {
            return invalid(format!(
                "Use of ANN OF in an ORDER BY clause requires a LIMIT that is not greater than {ROWS_MAX}. LIMIT was {limit}"
            ));
        }
        let rows_max = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(TopK { nearest: self, vector, rows: BinaryHeap::new(), rows_max, seen: 0, bytes: 0 })
    }

    /// Whether the index can hold a vector.
    fn check_vector(&self, vector: &[u8]) -> std::result::Result<(), UnindexableVector> {
        check_vector(vector, self.measure == Similarity::Cosine)
    }
}

/// Whether vectors of this type can be indexed (`ANN_ONLY_SUPPORTED_ON_VECTOR_MESSAGE`).
pub(super) fn is_of_floats(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Vector { element, .. } if **element == CqlType::Float)
}

/// The nearest rows so far; the farthest of them is on top of the heap.
pub(super) struct TopK<'a> {
    nearest: &'a Nearest,
    vector: Vec<f32>,
    rows: BinaryHeap<Candidate>,
    rows_max: usize,
    /// The bytes of the rows.
    bytes: usize,
    seen: u64,
}

/// A row: its similarity, its number in the order of arrival, and its output cells.
struct Candidate {
    score: f32,
    number: u64,
    cells: Cells,
}

impl Ord for Candidate {
    /// A farther row is greater.
    fn cmp(&self, other: &Candidate) -> Ordering {
        other.score.total_cmp(&self.score).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl TopK<'_> {
    /// Measures a row, and calls `write` if it is near enough. Returns whether it has a vector that an index holds.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn add(
        &mut self,
        row: &RowAt<'_>,
        scratch: &mut Vec<u8>,
        write: impl FnOnce(&mut dyn RowsOut, &mut Vec<u8>) -> Result<()>,
    ) -> Result<bool> {
        let Some(value) = row.value(&self.nearest.source, scratch) else { return Ok(false) };
        if self.nearest.check_vector(value).is_err() {
            return Ok(false);
        }
        let score = self.nearest.measure.measure(&Similarity::floats(value), &self.vector);
        let number = self.seen;
        self.seen += 1;
        let is_full = self.rows.len() >= self.rows_max;
        if is_full && self.rows.peek().is_some_and(|worst| worst.score.total_cmp(&score).is_ge()) {
            return Ok(true);
        }
        let mut cells = Cells::default();
        write(&mut cells, scratch)?;
        if is_full {
            let farthest = self.rows.pop();
            self.bytes -= farthest.map_or(0, |farthest| farthest.cells.bytes());
        }
        self.bytes += cells.bytes();
        self.rows.push(Candidate { score, number, cells });
        Ok(true)
    }

    /// The bytes of the rows that are kept.
    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes
    }

    /// Writes the rows, the nearest first.
    ///
    /// # Errors
    /// There is no memory for the answer.
    pub(super) fn write(self, out: &mut dyn RowsOut) -> Result<()> {
        for near in self.rows.into_sorted_vec() {
            for cell in &near.cells.0 {
                out.make_room(cell.as_ref().map_or(0, Vec::len))?;
                out.cell(cell.as_deref());
            }
            out.end_row();
        }
        Ok(())
    }
}

/// The cells of one row.
#[derive(Default)]
struct Cells(Vec<Option<Vec<u8>>>);

impl RowsOut for Cells {
    fn columns(&mut self, _columns: &std::sync::Arc<crate::answer::ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.push(value.map(<[u8]>::to_vec));
    }

    fn end_row(&mut self) {}

    fn bytes(&self) -> usize {
        self.0.iter().flatten().map(Vec::len).sum()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}
