//! Requests, which the server decodes in place and clients encode.

mod batch;
mod decode;
mod encode;
mod execute;
mod parameters;
mod query;
mod register;
mod startup;
mod values;

pub use batch::{Batch, BatchKind, BatchStatement, StatementRef, Statements, StatementsIter, WireStatements};
pub use decode::{Request, RequestMessage, decode_request};
pub use encode::{RequestHead, encode_startup};
pub use execute::Execute;
pub use parameters::QueryParameters;
pub use query::{Prepare, Query};
pub use register::EventTypes;
pub use startup::{
    COMPRESSION, CQL_VERSION, DRIVER_NAME, DRIVER_VERSION, PROTOCOL_VERSIONS, Startup, THROW_ON_OVERLOAD,
};
pub use values::{ValueIndex, Values, ValuesIter};
