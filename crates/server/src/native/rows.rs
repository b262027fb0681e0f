//! Encodes the rows of an answer directly into the connection's buffer.

use std::sync::Arc;

use helenus_cql::backend::{ResultColumns, RowsOut};
use helenus_host::account::{self, Refusal};
use helenus_model::row_batch::{BatchColumn, RowBatch};
use helenus_wire::WireError;
use helenus_wire::native::{BodyCodec, ResponseHead, RowsMetadata, RowsWriter, Version};

use super::columns::ColumnsCache;

/// Room for the lengths and small values beside large ones.
const CELL_BYTES: usize = 4 << 10;

/// What the client knows of the columns, which decides whether the answer describes them (`ExecuteMessage.execute`,
/// `QueryMessage.execute`).
#[derive(Clone, Copy)]
pub(super) enum Known<'a> {
    /// Nothing: they are described.
    Nothing,
    /// The client asked to leave them out, whatever they are (QUERY).
    Skip,
    /// v3, v4: the client asked to leave them out and knows the columns of this id.
    Skips([u8; 16]),
    /// v5: the client knows the columns of `id`. Others are described, with their new id.
    Metadata {
        /// The id that came with the request.
        id: &'a [u8],
        /// Whether the client asked to leave them out.
        skip: bool,
    },
}

/// Receives the rows of one answer.
pub(super) struct RowsAnswer<'b> {
    /// Taken when the columns are known.
    out: Option<&'b mut Vec<u8>>,
    writer: Option<(RowsWriter<'b>, Arc<ResultColumns>)>,
    cache: &'b mut ColumnsCache,
    head: ResponseHead<'static>,
    known: Known<'b>,
    /// Whether `columns` was called again with other columns.
    torn: bool,
    /// There is no memory for the description of the columns.
    refused: Option<Refusal>,
}

impl<'b> RowsAnswer<'b> {
    /// An answer to be appended to `out`. Unless `finish` is called, `out` is left as it was.
    pub fn new(
        out: &'b mut Vec<u8>,
        cache: &'b mut ColumnsCache,
        head: ResponseHead<'static>,
        known: Known<'b>,
    ) -> Self {
        RowsAnswer { out: Some(out), writer: None, cache, head, known, torn: false, refused: None }
    }

    /// Ends the answer. `columns` are those of the outcome, for a result that had no rows.
    pub fn finish(
        mut self,
        columns: &Arc<ResultColumns>,
        paging_state: Option<&[u8]>,
        codec: Option<&mut BodyCodec>,
    ) -> Result<(), Unfinished> {
        self.columns(columns);
        if let Some(refusal) = self.refused {
            return Err(Unfinished::NoMemory(refusal));
        }
        let Some((mut writer, _)) = self.writer.filter(|_| !self.torn) else { return Err(Unfinished::Torn) };
        let state_bytes = paging_state.map_or(0, |state| 4 + state.len());
        account::reserve(writer.buffer(), state_bytes).map_err(Unfinished::NoMemory)?;
        let length = writer.size() + state_bytes;
        ask_to_compress(codec.as_deref(), writer.buffer(), length).map_err(Unfinished::NoMemory)?;
        let finished = match paging_state {
            Some(state) => writer.finish_with_more(state, codec),
            None => writer.finish(codec),
        };
        finished.map_err(Unfinished::Wire)
    }
}

/// Why an answer could not be finished. Nothing of it is left in the buffer.
pub(super) enum Unfinished {
    /// `columns` was called again with other columns, because the schema changed while the request ran.
    Torn,
    /// There is no memory for a copy of it.
    NoMemory(Refusal),
    /// It is too long for the protocol.
    Wire(WireError),
}

/// Asks for the memory that the compression of a body takes: the last `length` bytes of `out`, or fewer.
fn ask_to_compress(codec: Option<&BodyCodec>, out: &mut Vec<u8>, length: usize) -> Result<(), Refusal> {
    let Some(codec) = codec else { return Ok(()) };
    // A body that cannot be compressed becomes a little longer.
    account::reserve(out, codec.compressed_bytes_max(length).saturating_sub(length))?;
    account::grow(codec.bytes_to_compress(length))
}

impl RowsOut for RowsAnswer<'_> {
    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        let Some(out) = self.out.take() else {
            let same = |kept: &Arc<ResultColumns>| Arc::ptr_eq(kept, columns) || kept == columns;
            self.torn |= !self.writer.as_ref().is_some_and(|(_, kept)| same(kept));
            return;
        };
        let (skip, changed_id) = match self.known {
            Known::Nothing => (false, None),
            Known::Skip => (true, None),
            Known::Skips(id) => (id == columns.id, None),
            Known::Metadata { id, .. } if id != columns.id => (false, Some(columns.id.as_slice())),
            Known::Metadata { skip, .. } => (skip, None),
        };
        let source = match self.cache.get(columns, self.head.version, skip) {
            Ok(source) => source,
            Err(refusal) => {
                (self.out, self.refused) = (Some(out), Some(refusal));
                return;
            }
        };
        let metadata = RowsMetadata { columns: source, skip, changed_id };
        self.writer = Some((RowsWriter::begin(out, &self.head, &metadata, None), Arc::clone(columns)));
        self.cache.forget_long();
    }

    #[inline]
    fn cell(&mut self, value: Option<&[u8]>) {
        let Some((writer, _)) = &mut self.writer else { return };
        match value {
            Some(bytes) => writer.cell(bytes),
            None => writer.null(),
        }
    }

    fn cells(&mut self, values: &[Option<&[u8]>]) {
        let Some((writer, _)) = &mut self.writer else { return };
        writer.cells(values);
    }

    #[inline]
    fn end_row(&mut self) {
        if let Some((writer, _)) = &mut self.writer {
            writer.end_row();
        }
    }

    fn rows(&mut self, batch: &RowBatch<'_>, columns: &[BatchColumn<'_>]) {
        if let Some((writer, _)) = &mut self.writer {
            writer.row_batch(batch, columns);
        }
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Refusal> {
        match (&mut self.writer, self.refused) {
            (Some((writer, _)), _) => account::reserve(writer.buffer(), bytes + CELL_BYTES),
            (None, Some(refusal)) => Err(refusal),
            (None, None) => account::grow(bytes),
        }
    }

    fn bytes(&self) -> usize {
        self.writer.as_ref().map_or(0, |(writer, _)| writer.size())
    }

    fn clear(&mut self) {
        if let Some((writer, _)) = &mut self.writer {
            writer.clear();
        }
    }
}

/// Inserts warnings into the uncompressed answer from `start` to the end of `out`, and compresses it if there is a codec.
pub(super) fn insert_warnings(
    out: &mut Vec<u8>,
    start: usize,
    head: &ResponseHead<'_>,
    codec: Option<&mut BodyCodec>,
) -> Result<(), Unfinished> {
    let codec = codec.filter(|_| head.version < Version::V5);
    let bytes = 2 + head.warnings.iter().map(|warning| 2 + warning.len()).sum::<usize>();
    let length = out.len().saturating_sub(start) + bytes;
    let asked = account::reserve(out, bytes).and_then(|()| ask_to_compress(codec.as_deref(), out, length));
    if let Err(refusal) = asked {
        out.truncate(start);
        return Err(Unfinished::NoMemory(refusal));
    }
    head.insert_warnings(out, start, codec).map_err(Unfinished::Wire)
}
