//! Rows results: written and read cell by cell, in place.
//!
//! ```text
//! kind 2 | flags | columns | [paging state] | [new metadata id] | [table?] specs | rows | cells
//! ```
//! The order of paging state and metadata id is that of `ResultSet.ResultMetadata.Codec.encode`. Its `decode` has the
//! reverse order, but no driver uses it.

use crate::WireError;
use crate::append;
use crate::native::primitives::{Put, Reader, patch_int};
use crate::native::types::{Columns, one_table, put_columns};
use crate::native::{BodyCodec, ColumnSpec, HEADER_LENGTH, Opcode, OpenEnvelope, Version};
use helenus_model::row_batch::{BatchColumn, RowBatch};

use super::ResponseHead;
use super::ResultKind;
use super::encode::finish;

const GLOBAL_TABLES_SPEC: i32 = 0x0001;
const HAS_MORE_PAGES: i32 = 0x0002;
const NO_METADATA: i32 = 0x0004;
const METADATA_CHANGED: i32 = 0x0008;

/// The columns of a result, encoded once for a version and kept with their prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedColumns {
    version: Version,
    count: usize,
    global: bool,
    bytes: Vec<u8>,
}

impl EncodedColumns {
    /// Encodes `columns` for clients of `version`.
    pub fn new(columns: &[ColumnSpec], version: Version) -> Self {
        let mut bytes = Vec::new();
        put_columns(&mut bytes, columns, version);
        EncodedColumns { version, count: columns.len(), global: one_table(columns).is_some(), bytes }
    }

    /// The version they are encoded for.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The source of the columns' description.
#[derive(Clone, Copy, Debug)]
pub enum ColumnSource<'a> {
    /// Columns to encode now.
    Specs(&'a [ColumnSpec]),
    /// Columns that are already encoded for the version of the response.
    Encoded(&'a EncodedColumns),
    /// Columns that the client knows: they are only counted, and never described.
    Known {
        /// Their number.
        count: usize,
        /// Whether all are of one table.
        are_of_one_table: bool,
    },
}

impl ColumnSource<'_> {
    fn len(&self) -> usize {
        match self {
            ColumnSource::Specs(specs) => specs.len(),
            ColumnSource::Encoded(encoded) => encoded.count,
            ColumnSource::Known { count, .. } => *count,
        }
    }

    fn global(&self) -> bool {
        match self {
            ColumnSource::Specs(specs) => one_table(specs).is_some(),
            ColumnSource::Encoded(encoded) => encoded.global,
            ColumnSource::Known { are_of_one_table, .. } => *are_of_one_table,
        }
    }
}

/// The metadata of a result.
#[derive(Clone, Copy, Debug)]
pub struct RowsMetadata<'a> {
    /// The columns.
    pub columns: ColumnSource<'a>,
    /// Whether to omit the columns' description, because the client knows it and asked for that.
    pub skip: bool,
    /// v5: the new metadata id, if the client's is outdated. Overrides `skip`.
    pub changed_id: Option<&'a [u8]>,
}

impl RowsMetadata<'_> {
    /// Appends flags, column count and description, with `paging_state` between them.
    pub(super) fn put(&self, out: &mut Vec<u8>, version: Version, paging_state: Option<&[u8]>) {
        let changed_id = self.changed_id.filter(|_| version >= Version::V5);
        let are_known = matches!(self.columns, ColumnSource::Known { .. });
        let skip = are_known || self.skip && changed_id.is_none();
        let flag = |set: bool, flag: i32| if set { flag } else { 0 };
        let flags = flag(self.columns.global(), GLOBAL_TABLES_SPEC)
            | flag(paging_state.is_some(), HAS_MORE_PAGES)
            | flag(skip, NO_METADATA)
            | flag(changed_id.is_some(), METADATA_CHANGED);
        out.put_int(flags);
        out.put_int(self.columns.len() as i32);
        if let Some(state) = paging_state {
            out.put_bytes(state);
        }
        if let Some(id) = changed_id {
            out.put_short_bytes(id);
        }
        match self.columns {
            _ if skip => {}
            ColumnSource::Known { .. } => {}
            ColumnSource::Specs(specs) => put_columns(out, specs, version),
            ColumnSource::Encoded(encoded) => {
                assert_eq!(encoded.version, version, "columns were encoded for clients of another version");
                out.put_raw(&encoded.bytes);
            }
        }
    }
}

/// Writes a Rows result into the output buffer.
///
/// Begin; write the cells of each row in order, then [`RowsWriter::end_row`]; and finish or abort. If dropped without
/// either, it removes what it wrote. Cells are written where they will be sent from, so nothing is copied unless it is
/// compressed.
#[derive(Debug)]
pub struct RowsWriter<'b> {
    out: &'b mut Vec<u8>,
    /// Taken by `finish` and `abort`.
    open: Option<OpenEnvelope>,
    version: Version,
    flags_at: usize,
    count_at: usize,
    columns: usize,
    rows: i32,
    cells_in_row: usize,
    row_start: usize,
}

impl<'b> RowsWriter<'b> {
    /// Begins the response. If the paging state is known only after the last row, give it to
    /// [`RowsWriter::finish_with_more`] instead.
    pub fn begin(
        out: &'b mut Vec<u8>,
        head: &ResponseHead<'_>,
        metadata: &RowsMetadata<'_>,
        paging_state: Option<&[u8]>,
    ) -> RowsWriter<'b> {
        let open = head.open(Opcode::Result, out);
        out.put_int(ResultKind::Rows as i32);
        let flags_at = out.len();
        metadata.put(out, head.version, paging_state);
        let count_at = out.len();
        out.put_int(0);
        let row_start = out.len();
        RowsWriter {
            out,
            open: Some(open),
            version: head.version,
            flags_at,
            count_at,
            columns: metadata.columns.len(),
            rows: 0,
            cells_in_row: 0,
            row_start,
        }
    }

    /// Appends a cell.
    #[inline]
    pub fn cell(&mut self, bytes: &[u8]) {
        self.out.put_bytes(bytes);
        self.cells_in_row += 1;
    }

    /// Appends a null cell.
    #[inline]
    pub fn null(&mut self) {
        self.out.put_int(-1);
        self.cells_in_row += 1;
    }

    /// Appends cells, `None` for null.
    #[inline]
    pub fn cells(&mut self, values: &[Option<&[u8]>]) {
        let lengths = values.iter().map(|value| 4 + value.map_or(0, <[u8]>::len));
        self.out.reserve(lengths.sum());
        for value in values {
            self.out.put_optional_bytes(*value);
        }
        self.cells_in_row += values.len();
    }

    /// Appends the rows of a row batch. `columns` select the cells of each row.
    ///
    /// # Panics
    /// If the number of `columns` is not that of the result, or a row has been begun.
    pub fn row_batch(&mut self, batch: &RowBatch<'_>, columns: &[BatchColumn<'_>]) {
        assert_eq!(
            (self.cells_in_row, columns.len()),
            (0, self.columns),
            "a row must have a cell for each column"
        );
        append(self.out, batch_bytes(batch, columns), |out| {
            for row in batch.rows() {
                for column in columns {
                    match *column {
                        BatchColumn::Value(place) => match row.get(place) {
                            Some(value) => {
                                out.put(&value.value.len.to_be_bytes());
                                out.put_span(batch.data, value.value);
                            }
                            None => out.put(&(-1_i32).to_be_bytes()),
                        },
                        BatchColumn::Fixed(None) => out.put(&(-1_i32).to_be_bytes()),
                        BatchColumn::Fixed(Some(value)) => {
                            out.put(&(value.len() as i32).to_be_bytes());
                            out.put(value);
                        }
                    }
                }
            }
        });
        self.rows += batch.len() as i32;
        self.row_start = self.out.len();
    }

    /// Appends a cell that `write` writes directly into the response, for values that are composed only now.
    #[inline]
    pub fn cell_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let length_at = self.out.len();
        self.out.put_int(0);
        write(self.out);
        let length = self.out.len().saturating_sub(length_at + 4);
        patch_int(self.out, length_at, length as i32);
        self.cells_in_row += 1;
    }

    /// Ends a row.
    ///
    /// # Panics
    /// If the number of cells is not that of the columns, because the client would assign cells to the wrong rows.
    #[inline]
    pub fn end_row(&mut self) {
        assert_eq!(self.cells_in_row, self.columns, "a row must have a cell for each column");
        self.cells_in_row = 0;
        self.rows += 1;
        self.row_start = self.out.len();
    }

    /// Appends rows that are encoded already, as [`Rows::cells`] has them.
    ///
    /// # Panics
    /// If a row has been begun.
    pub fn raw_rows(&mut self, count: usize, cells: &[u8]) {
        assert_eq!(self.cells_in_row, 0, "a row has been begun");
        self.out.put_raw(cells);
        self.rows += count as i32;
        self.row_start = self.out.len();
    }

    /// Removes the cells of a row that has not ended.
    pub fn abort_row(&mut self) {
        self.out.truncate(self.row_start);
        self.cells_in_row = 0;
    }

    /// Removes all rows; the description of the columns stays.
    pub fn clear(&mut self) {
        self.out.truncate(self.count_at + 4);
        self.row_start = self.out.len();
        self.rows = 0;
        self.cells_in_row = 0;
    }

    /// The output buffer, so that the caller can make room in it.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// The number of rows that have ended.
    pub fn rows(&self) -> usize {
        self.rows.unsigned_abs() as usize
    }

    /// Bytes of the envelope so far.
    pub fn size(&self) -> usize {
        self.open.as_ref().map_or(0, |open| self.out.len() + HEADER_LENGTH - open.body_start())
    }

    /// Writes the number of rows and ends the response. A row that has not ended is removed.
    pub fn finish(mut self, codec: Option<&mut BodyCodec>) -> Result<(), WireError> {
        self.abort_row();
        patch_int(self.out, self.count_at, self.rows);
        match self.open.take() {
            Some(open) => finish(open, codec, self.version, self.out),
            None => Ok(()),
        }
    }

    /// As [`RowsWriter::finish`], but inserts the paging state now that the page turns out not to be the last. This
    /// moves the rows once. The writer must have begun without a state.
    pub fn finish_with_more(
        mut self,
        paging_state: &[u8],
        codec: Option<&mut BodyCodec>,
    ) -> Result<(), WireError> {
        if let Some(flags) = self.out.get_mut(self.flags_at + 3) {
            assert_eq!(*flags & HAS_MORE_PAGES as u8, 0, "the paging state is written already");
            *flags |= HAS_MORE_PAGES as u8;
        }
        let after_count = self.flags_at + 8;
        let mut state = Vec::with_capacity(4 + paging_state.len());
        state.put_bytes(paging_state);
        self.out.splice(after_count..after_count, state.iter().copied());
        self.count_at += state.len();
        self.row_start += state.len();
        self.finish(codec)
    }

    /// Removes the whole response, so that an error can be written instead.
    pub fn abort(mut self) {
        self.take_back();
    }

    fn take_back(&mut self) {
        if let Some(open) = self.open.take() {
            open.abort(self.out);
        }
    }
}

impl Drop for RowsWriter<'_> {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Bytes of the cells that `columns` select from a row batch.
fn batch_bytes(batch: &RowBatch<'_>, columns: &[BatchColumn<'_>]) -> usize {
    let values =
        |place: usize| batch.rows().filter_map(move |row| row.get(place)).map(|v| v.value.len as usize);
    let column = |column: &BatchColumn<'_>| match *column {
        BatchColumn::Value(place) => values(place).sum(),
        BatchColumn::Fixed(value) => batch.len() * value.map_or(0, <[u8]>::len),
    };
    4 * batch.len() * columns.len() + columns.iter().map(column).sum::<usize>()
}

/// The metadata of a result as a client reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMetadata<'a> {
    /// The number of cells in a row.
    pub column_count: usize,
    /// The columns; empty if the client asked to omit them.
    pub columns: Columns<'a>,
    /// Where the next page begins; `None` on the last page.
    pub paging_state: Option<&'a [u8]>,
    /// v5: the new metadata id, if the client's is outdated.
    pub changed_id: Option<&'a [u8]>,
}

impl<'a> ReadMetadata<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let flags = reader.int()?;
        let count = reader.int()?;
        let Ok(column_count) = usize::try_from(count) else {
            return Err(WireError::NegativeCount { count, of: "columns" });
        };
        let paging_state = if flags & HAS_MORE_PAGES != 0 { reader.bytes()? } else { None };
        let changed_id = if flags & METADATA_CHANGED != 0 { Some(reader.short_bytes()?) } else { None };
        let columns = if flags & NO_METADATA != 0 {
            Columns::default()
        } else {
            Columns::read(reader, column_count, flags & GLOBAL_TABLES_SPEC != 0)?
        };
        Ok(ReadMetadata { column_count, columns, paging_state, changed_id })
    }
}

/// A Rows result as a client reads it. Cells are located on access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows<'a> {
    /// The metadata.
    pub metadata: ReadMetadata<'a>,
    /// The stated number of rows.
    pub row_count: usize,
    content: &'a [u8],
}

impl<'a> Rows<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let metadata = ReadMetadata::read(reader)?;
        let count = reader.int()?;
        let Ok(row_count) = usize::try_from(count) else {
            return Err(WireError::NegativeCount { count, of: "rows" });
        };
        let content = reader.rest();
        // A row has at least one value, and a value has at least four bytes. Clients may rely on the row count.
        let needed = (row_count as u64).saturating_mul(4 * metadata.column_count.max(1) as u64);
        if needed > content.len() as u64 {
            return Err(WireError::Truncated { needed, left: content.len() as u64 });
        }
        Ok(Rows { metadata, row_count, content })
    }

    /// The cells of all rows as they came, unchecked.
    pub fn cells(&self) -> &'a [u8] {
        self.content
    }

    /// The rows. If the bytes end too early, the last item is an error.
    pub fn iter(&self) -> RowsIter<'a> {
        RowsIter {
            reader: Reader::new(self.content),
            columns: self.metadata.column_count,
            left: self.row_count,
        }
    }
}

/// See [`Rows::iter`].
#[derive(Clone, Debug)]
pub struct RowsIter<'a> {
    reader: Reader<'a>,
    columns: usize,
    left: usize,
}

impl<'a> Iterator for RowsIter<'a> {
    type Item = Result<Row<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let start = self.reader;
        for _ in 0..self.columns {
            if let Err(error) = self.reader.bytes() {
                self.left = 0;
                return Some(Err(error));
            }
        }
        Some(Ok(Row { columns: self.columns, bytes: start.passed_by(&self.reader) }))
    }
}

/// One row, whose bytes are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    columns: usize,
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    /// The cells in order, `None` for null.
    pub fn cells(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        (0..self.columns).map_while(move |_| reader.bytes().ok())
    }
}
