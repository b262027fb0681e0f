//! Responses, which the server encodes (rows directly into the output buffer) and clients decode.

mod decode;
mod encode;
mod event;
mod result;
mod rows;

pub use decode::{Response, ResponseMessage, decode_response};
pub(in crate::native) use encode::put_supported;
pub use encode::{EVENT_STREAM, Outgoing, ResponseHead};
pub use event::{
    Event, EventType, SchemaChange, SchemaKind, SchemaTarget, SchemaVerb, StatusChange, TopologyChange,
};
pub use result::{Prepared, ReadPrepared, ResultKind, ResultMessage};
pub use rows::{ColumnSource, EncodedColumns, ReadMetadata, Row, Rows, RowsIter, RowsMetadata, RowsWriter};
