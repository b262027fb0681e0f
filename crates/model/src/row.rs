//! A row: its clustering, its own liveness and deletion, and its cells.
//!
//! A decoded row consists of a `RowBuf` (spans; reused from row to row, so that reading does not allocate for each
//! cell) and the bytes that its spans refer to, which may be the buffer's own or a block of a file. `RowView` pairs the
//! two.

use crate::cell::{Cell, ColumnId, Span};
use crate::deletion::{DeletionTime, Liveness};

/// An estimate of the bytes for the lengths of a cell's value and path in an answer, with some margin.
const LENGTHS_BYTES: usize = 12;

/// From so many bytes on a row is large: its data grows to what is needed, once.
const LARGE_DATA_BYTES: usize = 64 << 10;

/// The most bytes of values and paths that a row may have: the size of a row in an SSTable is at most 2^31 - 1
/// (Cassandra reads it as an `int`). Also the reason that spans fit 32 bits.
pub const ROW_BYTES_MAX: usize = i32::MAX as usize;

/// A row that no SSTable could hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a row of {bytes} bytes or more; the largest has {ROW_BYTES_MAX}")]
pub struct RowTooLarge {
    /// Its bytes, or those of the part that was looked at.
    pub bytes: u64,
}

/// A decoded row. `clear` keeps the capacity of every vector.
#[derive(Clone, Debug)]
pub struct RowBuf {
    /// Ordered (byte-comparable) encoding of the clustering; empty for the static row.
    pub key: Vec<u8>,
    /// The serialised clustering values, one span for each clustering column; empty for the static row.
    pub clustering: Vec<Span>,
    /// The row's own marker.
    pub liveness: Liveness,
    /// Deletion of the whole row.
    pub deletion: DeletionTime,
    /// Cells, by column id, then by path order.
    pub cells: Vec<Cell>,
    /// Deletions of whole multi-cell columns, by column id.
    pub complex_deletions: Vec<(ColumnId, DeletionTime)>,
    /// Bytes owned by this buffer; unused when the spans point elsewhere.
    pub data: Vec<u8>,
}

impl Default for RowBuf {
    fn default() -> RowBuf {
        RowBuf {
            key: Vec::new(),
            clustering: Vec::new(),
            liveness: Liveness::NONE,
            deletion: DeletionTime::LIVE,
            cells: Vec::new(),
            complex_deletions: Vec::new(),
            data: Vec::new(),
        }
    }
}

impl RowBuf {
    /// Makes the buffer an empty row.
    pub fn clear(&mut self) {
        self.key.clear();
        self.clear_body();
        self.clustering.clear();
        self.data.clear();
    }

    /// Bytes of memory that its vectors take, whether or not they are filled.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let cells = self.cells.capacity() * size_of::<Cell>();
        let deletions = self.complex_deletions.capacity() * size_of::<(ColumnId, DeletionTime)>();
        let clustering = self.clustering.capacity() * size_of::<Span>();
        self.key.capacity() + self.data.capacity() + cells + deletions + clustering
    }

    /// Clears everything except key, clustering and data.
    pub fn clear_body(&mut self) {
        self.liveness = Liveness::NONE;
        self.deletion = DeletionTime::LIVE;
        self.cells.clear();
        self.complex_deletions.clear();
    }

    /// The deletion of a whole multi-cell column.
    #[inline]
    pub fn complex_deletion_of(&self, column: ColumnId) -> Option<DeletionTime> {
        let deletions = &self.complex_deletions;
        let place = deletions.partition_point(|(of, _)| *of < column);
        deletions.get(place).filter(|(of, _)| *of == column).map(|(_, deletion)| *deletion)
    }

    /// Appends bytes to `data` and returns their span.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Span {
        let start = self.data.len();
        self.data.extend_from_slice(bytes);
        span(start, bytes.len())
    }

    /// The row with its own bytes.
    pub fn view(&self) -> RowView<'_> {
        RowView { row: self, data: &self.data }
    }

    /// Copies another row and its bytes.
    pub fn copy_from(&mut self, other: RowView<'_>) {
        self.clear();
        self.key.extend_from_slice(&other.row.key);
        self.copy_clustering(other);
        self.liveness = other.row.liveness;
        self.deletion = other.row.deletion;
        self.complex_deletions.extend_from_slice(&other.row.complex_deletions);
        for cell in &other.row.cells {
            self.push_cell(cell, other.data);
        }
    }

    /// Copies the clustering values of another row.
    pub fn copy_clustering(&mut self, other: RowView<'_>) {
        self.clustering.clear();
        for index in 0..other.row.clustering.len() {
            let copied = self.copy_span(other.row.clustering[index], other.data);
            self.clustering.push(copied);
        }
    }

    /// Checks that with this cell the row has at most `bytes_max` bytes.
    ///
    /// # Errors
    /// The row would be too large.
    #[inline]
    pub fn check_room(&self, cell: &Cell, bytes_max: usize) -> Result<(), RowTooLarge> {
        let bytes = self.data.len() + bytes_of(cell);
        if bytes <= bytes_max { Ok(()) } else { Err(RowTooLarge { bytes: bytes as u64 }) }
    }

    /// Whether the row is large and appending a cell makes its data grow.
    #[inline]
    pub(crate) fn grows_far(&self, cell: &Cell) -> bool {
        let bytes = self.data.len() + bytes_of(cell);
        bytes > self.data.capacity() && bytes >= LARGE_DATA_BYTES
    }

    /// Makes room for the bytes of cells that will be appended at most: data that grows by doubling takes more than the
    /// readers of large rows ask for, which is the sum of the versions that they merge.
    #[cold]
    pub(crate) fn reserve_cells<'c>(&mut self, cells: impl IntoIterator<Item = &'c Cell>) {
        self.data.reserve_exact(cells.into_iter().map(bytes_of).sum());
    }

    /// Appends a cell whose spans point into `data`, copying its bytes.
    pub fn push_cell(&mut self, cell: &Cell, data: &[u8]) {
        let path = self.copy_span(cell.path, data);
        let value = self.copy_span(cell.value, data);
        self.cells.push(Cell { path, value, ..*cell });
    }

    fn copy_span(&mut self, from: Span, data: &[u8]) -> Span {
        match from.get(data) {
            None => Span::NULL,
            Some(bytes) => self.push_bytes(bytes),
        }
    }
}

/// The bytes of a cell's value and path.
fn bytes_of(cell: &Cell) -> usize {
    let of = |span: Span| if span.is_null() { 0 } else { span.len as usize };
    of(cell.value) + of(cell.path)
}

/// Makes a span. A row's data is far smaller than 4 GiB (`max_mutation_size`).
pub fn span(start: usize, len: usize) -> Span {
    assert!(start + len < u32::MAX as usize, "a row's data stays under 4 GiB");
    Span { start: start as u32, len: len as u32 }
}

/// Up to this many cells a linear search is faster than a binary one.
const LINEAR_SEARCH_CELLS_MAX: usize = 8;

/// A row and the bytes that its spans refer to.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    /// The decoded row.
    pub row: &'a RowBuf,
    /// The bytes that its spans refer to.
    pub data: &'a [u8],
}

impl<'a> RowView<'a> {
    /// The serialised value of a clustering column, `None` for null.
    pub fn clustering(&self, index: usize) -> Option<&'a [u8]> {
        self.row.clustering.get(index).and_then(|span| span.get(self.data))
    }

    /// The bytes of a cell's value.
    pub fn value(&self, cell: &Cell) -> &'a [u8] {
        cell.value.bytes(self.data)
    }

    /// The bytes of a cell's path.
    pub fn path(&self, cell: &Cell) -> &'a [u8] {
        cell.path.bytes(self.data)
    }

    /// The cell of a single-cell column.
    #[inline]
    pub fn cell_of(&self, column: ColumnId) -> Option<&'a Cell> {
        let cells = &self.row.cells[..];
        if cells.len() <= LINEAR_SEARCH_CELLS_MAX {
            return cells.iter().find(|cell| cell.column == column);
        }
        cells.get(cells.partition_point(|cell| cell.column < column)).filter(|cell| cell.column == column)
    }

    /// As `cell_of`, trying index `place` first.
    #[inline]
    pub fn cell_near(&self, column: ColumnId, place: usize) -> Option<&'a Cell> {
        match self.row.cells.get(place) {
            Some(cell) if cell.column == column => Some(cell),
            _ => self.cell_of(column),
        }
    }

    /// Estimated bytes of the row's values and paths in an answer, with their lengths.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        let of = |span: Span| if span.is_null() { 0 } else { span.len as usize };
        self.row.cells.iter().map(|cell| of(cell.value) + of(cell.path) + LENGTHS_BYTES).sum()
    }

    /// The cells of one column: none or one for a simple column, any number for a multi-cell one.
    pub fn cells_of(&self, column: ColumnId) -> &'a [Cell] {
        let cells = &self.row.cells;
        let start = cells.partition_point(|cell| cell.column < column);
        let len = cells[start..].partition_point(|cell| cell.column == column);
        &cells[start..start + len]
    }

    /// The deletion of a whole multi-cell column.
    #[inline]
    pub fn complex_deletion_of(&self, column: ColumnId) -> Option<DeletionTime> {
        self.row.complex_deletion_of(column)
    }

    /// The greatest timestamp in it, deletions included; `i64::MIN` if there is none.
    #[must_use]
    pub fn newest_us(&self) -> i64 {
        let row = self.row;
        let cells = row.cells.iter().map(|cell| cell.timestamp_us);
        let complex = row.complex_deletions.iter().map(|(_, deletion)| deletion.timestamp_us);
        cells.chain(complex).fold(row.liveness.timestamp_us.max(row.deletion.timestamp_us), i64::max)
    }

    /// Whether the row has no marker, no deletion and no cell.
    pub fn is_empty(&self) -> bool {
        self.row.liveness.is_none()
            && self.row.deletion.is_live()
            && self.row.cells.is_empty()
            && self.row.complex_deletions.is_empty()
    }
}
