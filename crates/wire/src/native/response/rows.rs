//! Rows results: written cell by cell into the response, read cell by cell out of it.
//!
//! ```text
//! kind 2 | flags | columns | [paging state] | [new metadata id] | [table?] specs | rows | cells
//! ```
//! The order of paging state and metadata id is that of `ResultSet.ResultMetadata.Codec.encode`; its `decode` has them
//! the other way round and is used by no driver.

use crate::WireError;
use crate::append;
use crate::native::primitives::{Put, Reader, patch_int};
use crate::native::types::{Columns, one_table, put_columns};
use crate::native::{BodyCodec, ColumnSpec, HEADER_LENGTH, Opcode, OpenEnvelope, Version};
use helenus_model::run::{RowRun, RunColumn};

use super::ResponseHead;
use super::ResultKind;
use super::encode::finish;

const GLOBAL_TABLES_SPEC: i32 = 0x0001;
const HAS_MORE_PAGES: i32 = 0x0002;
const NO_METADATA: i32 = 0x0004;
const METADATA_CHANGED: i32 = 0x0008;

/// The columns of a result, encoded once for a version and kept with a prepared statement.
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

    /// The version they are for.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How many columns they are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Where the description of the columns comes from.
#[derive(Clone, Copy, Debug)]
pub enum ColumnSource<'a> {
    /// Columns to encode now.
    Specs(&'a [ColumnSpec]),
    /// Columns encoded before, for the version of the response.
    Encoded(&'a EncodedColumns),
}

impl ColumnSource<'_> {
    fn len(&self) -> usize {
        match self {
            ColumnSource::Specs(specs) => specs.len(),
            ColumnSource::Encoded(encoded) => encoded.count,
        }
    }

    fn global(&self) -> bool {
        match self {
            ColumnSource::Specs(specs) => one_table(specs).is_some(),
            ColumnSource::Encoded(encoded) => encoded.global,
        }
    }
}

/// What a result says about its rows.
#[derive(Clone, Copy, Debug)]
pub struct RowsMetadata<'a> {
    /// The columns.
    pub columns: ColumnSource<'a>,
    /// Leave the columns' description out: the client asked for that, and knows them.
    pub skip: bool,
    /// v5: the columns are not those of the client's metadata id; here is the new one. Overrules `skip`.
    pub changed_id: Option<&'a [u8]>,
}

impl RowsMetadata<'_> {
    /// Appends flags, count and description; `paging_state` stands between them.
    pub(super) fn put(&self, out: &mut Vec<u8>, version: Version, paging_state: Option<&[u8]>) {
        let changed_id = self.changed_id.filter(|_| version >= Version::V5);
        let skip = self.skip && changed_id.is_none();
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
            ColumnSource::Specs(specs) => put_columns(out, specs, version),
            ColumnSource::Encoded(encoded) => {
                assert_eq!(encoded.version, version, "columns were encoded for clients of another version");
                out.put_raw(&encoded.bytes);
            }
        }
    }
}

/// Writes a Rows result into the buffer of responses.
///
/// Begin, then for each row its cells in order and [`RowsWriter::end_row`], then finish or abort; dropped without
/// either, it takes back what it wrote. Nothing is copied: cells land where they will be sent from (but for compression).
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
    /// Begins the response. A paging state that is known only after the last row goes to
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

    /// Appends the rows of a run, of each the cells that `columns` take out of it.
    ///
    /// # Panics
    /// If these are not as many as there are columns, or a row is under way.
    pub fn run(&mut self, run: &RowRun<'_>, columns: &[RunColumn<'_>]) {
        assert_eq!(
            (self.cells_in_row, columns.len()),
            (0, self.columns),
            "a row must have a cell for each column"
        );
        append(self.out, run_bytes(run, columns), |out| {
            for row in run.rows() {
                for column in columns {
                    match *column {
                        RunColumn::Value(place) => match row.get(place) {
                            Some(value) => {
                                out.put(&value.value.len.to_be_bytes());
                                out.put_span(run.data, value.value);
                            }
                            None => out.put(&(-1_i32).to_be_bytes()),
                        },
                        RunColumn::Fixed(None) => out.put(&(-1_i32).to_be_bytes()),
                        RunColumn::Fixed(Some(value)) => {
                            out.put(&(value.len() as i32).to_be_bytes());
                            out.put(value);
                        }
                    }
                }
            }
        });
        self.rows += run.len() as i32;
        self.row_start = self.out.len();
    }

    /// Appends a cell that `write` writes straight into the response, for values that are put together only now.
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
    /// If the row has not as many cells as there are columns: the client would read cells of one row as another's.
    #[inline]
    pub fn end_row(&mut self) {
        assert_eq!(self.cells_in_row, self.columns, "a row must have a cell for each column");
        self.cells_in_row = 0;
        self.rows += 1;
        self.row_start = self.out.len();
    }

    /// Takes back the cells of a row that has not ended.
    pub fn abort_row(&mut self) {
        self.out.truncate(self.row_start);
        self.cells_in_row = 0;
    }

    /// Takes back all rows; what was said about their columns stays.
    pub fn clear(&mut self) {
        self.out.truncate(self.count_at + 4);
        self.row_start = self.out.len();
        self.rows = 0;
        self.cells_in_row = 0;
    }

    /// The buffer that it writes into, for who makes room in it.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Rows ended so far.
    pub fn rows(&self) -> usize {
        self.rows.unsigned_abs() as usize
    }

    /// Bytes of the envelope so far.
    pub fn size(&self) -> usize {
        self.open.as_ref().map_or(0, |open| self.out.len() + HEADER_LENGTH - open.body_start())
    }

    /// Writes the count of rows and ends the response. A row that has not ended is taken back.
    pub fn finish(mut self, codec: Option<&mut BodyCodec>) -> Result<(), WireError> {
        self.abort_row();
        patch_int(self.out, self.count_at, self.rows);
        match self.open.take() {
            Some(open) => finish(open, codec, self.version, self.out),
            None => Ok(()),
        }
    }

    /// As [`RowsWriter::finish`], with the paging state put in now, when the page turns out not to be the last: moves
    /// the rows once. The writer must have begun without a state.
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

    /// Takes back the whole response, to write an error instead.
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

/// Bytes of the cells that `columns` take out of a run.
fn run_bytes(run: &RowRun<'_>, columns: &[RunColumn<'_>]) -> usize {
    let values =
        |place: usize| run.rows().filter_map(move |row| row.get(place)).map(|v| v.value.len as usize);
    let column = |column: &RunColumn<'_>| match *column {
        RunColumn::Value(place) => values(place).sum(),
        RunColumn::Fixed(value) => run.len() * value.map_or(0, <[u8]>::len),
    };
    4 * run.len() * columns.len() + columns.iter().map(column).sum::<usize>()
}

/// The metadata of a result as a client reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMetadata<'a> {
    /// Cells of a row.
    pub column_count: usize,
    /// The columns, none if the client asked for none.
    pub columns: Columns<'a>,
    /// Where to go on; `None` on the last page.
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

/// A Rows result as a client reads it: cells are found as they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows<'a> {
    /// What the result says about its rows.
    pub metadata: ReadMetadata<'a>,
    /// Rows announced.
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
        // A value takes four bytes at least, and a row has a value: a reader may count on it.
        let needed = (row_count as u64).saturating_mul(4 * metadata.column_count.max(1) as u64);
        if needed > content.len() as u64 {
            return Err(WireError::Truncated { needed, left: content.len() as u64 });
        }
        Ok(Rows { metadata, row_count, content })
    }

    /// The rows. An error where the bytes end before the rows do; nothing follows it.
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

/// One row, checked.
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
