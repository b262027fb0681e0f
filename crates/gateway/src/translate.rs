//! Puts the message of an answer into the client's version of the protocol.
//!
//! Most messages are the same in all versions and are passed on as bytes. Different are the columns of a result, which are described
//! by types that older versions do not have, and errors. A paging state is replaced by the gateway's own.

use std::borrow::Cow;

use helenus_cluster::Answer;
use helenus_wire::WireError;
use helenus_wire::native::{
    ColumnSource, ErrorCode, ErrorMessage, Flags, HEADER_LENGTH, Opcode, Outgoing, Put, Reader, Response,
    ResponseHead, ResultMessage, Rows, RowsMetadata, RowsWriter, Version, decode_response,
};

use crate::budget::Held;
use crate::job::Job;
use crate::own_tables;
use crate::statements::metadata_id;

const ROWS: i32 = 2;
const SCHEMA_CHANGE: i32 = 5;
const HAS_MORE_PAGES: i32 = 0x0002;
const NO_METADATA: i32 = 0x0004;
const METADATA_CHANGED: i32 = 0x0008;

/// Columns that take up to this are parsed without room for them.
const FEW_COLUMN_BYTES: u64 = 128 << 10;
/// The columns of one answer may take this part of all bytes of answers.
const PART_OF_COLUMNS: u64 = 4;

/// An answer's body in two parts: what its flags announce, and the message.
pub(crate) struct Parts<'a> {
    pub flags: Flags,
    pub prefix: &'a [u8],
    pub message: &'a [u8],
}

/// Divides a body.
///
/// # Errors
/// It ends too early.
pub(crate) fn parts<'a>(answer: &Answer<'a>) -> Result<Parts<'a>, WireError> {
    let message = answer.message()?;
    let prefix = answer.body.get(..answer.body.len() - message.len()).unwrap_or_default();
    Ok(Parts { flags: answer.flags, prefix, message })
}

impl<'a> Parts<'a> {
    /// The flags and the prefix for a client. v3 has neither warnings nor payloads.
    pub fn for_client(&self, version: Version) -> (Flags, &'a [u8]) {
        let kept = Flags::TRACING | Flags::WARNING | Flags::CUSTOM_PAYLOAD;
        if version >= Version::V4 {
            return (Flags(self.flags.0 & kept), self.prefix);
        }
        match self.flags.has(Flags::TRACING) {
            true => (Flags(Flags::TRACING), self.prefix.get(..16).unwrap_or_default()),
            false => (Flags(0), &[]),
        }
    }

    /// The code of an ERROR.
    pub fn error_code(&self) -> Option<ErrorCode> {
        ErrorCode::from_number(Reader::new(self.message).int().ok()?).ok()
    }

    /// Whether a RESULT is a schema change.
    pub fn is_schema_change(&self) -> bool {
        Reader::new(self.message).int() == Ok(SCHEMA_CHANGE)
    }
}

/// The ERROR of an answer; `None` if it cannot be read.
pub(crate) fn error(from: Version, parts: &Parts<'_>) -> Option<ErrorMessage> {
    match decode_response(from, Opcode::Error, Flags(0), parts.message).ok()?.response {
        Response::Error(error) => Some(error),
        _ => None,
    }
}

/// The message for the client of `job`.
///
/// # Errors
/// The message is damaged.
pub(crate) fn message<'a>(
    job: &Job,
    from: Version,
    opcode: Opcode,
    message: &'a [u8],
) -> Result<Cow<'a, [u8]>, WireError> {
    let to = job.version;
    let mut reader = Reader::new(message);
    match opcode {
        Opcode::Result if reader.int()? == ROWS => rows(job, from, message),
        Opcode::Result | Opcode::Error if from == to => Ok(Cow::Borrowed(message)),
        Opcode::Result => match decode_response(from, opcode, Flags(0), message)?.response {
            Response::Result(ResultMessage::SchemaChange(change)) => {
                Ok(Cow::Owned(encoded(&Outgoing::SchemaChange(&change), to)?))
            }
            _ => Ok(Cow::Borrowed(message)),
        },
        Opcode::Error => {
            let error = match decode_response(from, opcode, Flags(0), message)?.response {
                Response::Error(error) => error,
                _ => ErrorMessage::plain(ErrorCode::Server, "the cluster answered with an unknown error"),
            };
            Ok(Cow::Owned(encoded(&Outgoing::Error(&error), to)?))
        }
        opcode => {
            let text = format!("the cluster answered with {opcode}, which no request asks for");
            let error = ErrorMessage::plain(ErrorCode::Server, text);
            Ok(Cow::Owned(encoded(&Outgoing::Error(&error), to)?))
        }
    }
}

/// The body of a message without a header.
pub(crate) fn encoded(message: &Outgoing<'_>, version: Version) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::new();
    message.encode(&ResponseHead::new(version, 0), None, &mut bytes)?;
    bytes.drain(..HEADER_LENGTH.min(bytes.len()));
    Ok(bytes)
}

fn rows<'a>(job: &Job, from: Version, message: &'a [u8]) -> Result<Cow<'a, [u8]>, WireError> {
    let to = job.version;
    let mut reader = Reader::new(message);
    reader.int()?;
    let flags = reader.int()?;
    let has_columns = flags & NO_METADATA == 0;
    let is_changed = flags & METADATA_CHANGED != 0 && to < Version::V5;
    if has_columns && (from != to || is_changed || job.makes_metadata(from)) {
        return rows_with_columns(job, from, message).map(Cow::Owned);
    }
    if flags & HAS_MORE_PAGES == 0 {
        return Ok(Cow::Borrowed(message));
    }
    reader.int()?;
    let before = message.len() - reader.rest().len();
    let state = reader.bytes()?.unwrap_or_default();
    let wrapped = job.shared.paging.for_client(state);
    let mut copied = Vec::with_capacity(message.len() + 16);
    copied.extend_from_slice(message.get(..before).unwrap_or_default());
    copied.put_bytes(&wrapped);
    copied.extend_from_slice(reader.rest());
    Ok(Cow::Owned(copied))
}

/// Takes room for columns that are about to be parsed: clients choose how many they are, and of which types.
fn room_for_columns(job: &Job, bytes: u64) -> Result<Option<Held>, WireError> {
    if bytes <= FEW_COLUMN_BYTES {
        return Ok(None);
    }
    let answers = &job.shared.budgets.answers;
    let (mut held, max) = (answers.take(0), answers.max() / PART_OF_COLUMNS);
    if bytes > max || !held.try_grow(bytes) {
        let text = format!(
            "there is no room for the answer: its columns take {bytes} bytes, and those of one answer may take {max}; select fewer columns, or \
             columns whose types have fewer fields"
        );
        return Err(WireError::Overloaded { text });
    }
    Ok(Some(held))
}

fn rows_with_columns(job: &Job, from: Version, message: &[u8]) -> Result<Vec<u8>, WireError> {
    let decoded = decode_response(from, Opcode::Result, Flags(0), message)?;
    let Response::Result(ResultMessage::Rows(rows)) = decoded.response else {
        return Ok(message.to_vec());
    };
    let _room = room_for_columns(job, rows.metadata.columns.parsed_bytes()?)?;
    let columns = rows.metadata.columns.to_vec()?;
    let own_id;
    let (mut skip, mut changed_id) = (false, rows.metadata.changed_id);
    if job.version >= Version::V5
        && from < Version::V5
        && let Some((known, skips)) = job.known_metadata()
    {
        own_id = metadata_id(&columns);
        (skip, changed_id) = if known == own_id { (skips, None) } else { (false, Some(own_id.as_slice())) };
    }
    let (count, cells) = cells(job, &rows, &columns)?;
    let state = rows.metadata.paging_state.map(|state| job.shared.paging.for_client(state));
    let metadata = RowsMetadata { columns: ColumnSource::Specs(&columns), skip, changed_id };
    let mut bytes = Vec::with_capacity(message.len() + 64);
    let head = ResponseHead::new(job.version, 0);
    let mut writer = RowsWriter::begin(&mut bytes, &head, &metadata, state.as_deref());
    writer.raw_rows(count, &cells);
    writer.finish(None)?;
    bytes.drain(..HEADER_LENGTH.min(bytes.len()));
    Ok(bytes)
}

/// The number of rows and their cells: the cluster's, or those that stand for the gateway.
fn cells<'a>(
    job: &Job,
    rows: &Rows<'a>,
    columns: &[helenus_wire::native::ColumnSpec],
) -> Result<(usize, Cow<'a, [u8]>), WireError> {
    match job.own_table() {
        None => Ok((rows.row_count, Cow::Borrowed(rows.cells()))),
        Some(table) => {
            let (count, cells) = own_tables::rows(job, table, (rows, columns))?;
            Ok((count, Cow::Owned(cells)))
        }
    }
}
