//! Thrift's binary protocol and the structs of Cassandra's old RPC interface, for servers and clients. Names are those
//! of the interface.
//!
//! [`next_message`] finds a message, and whether its client uses frames and the strict form. The arguments are read as
//! one of the structs of [`args`]. Everything that is read borrows from the message: a name or a value is a slice of
//! its bytes. Answers are written with [`Reply`], or column by column by a caller that has the columns.
//!
//! Field numbers and types are those of `interface/cassandra.thrift` 20.1.0 (Cassandra 2.2 and 3.11).

pub mod args;
mod binary;
mod error;
mod field;
mod frame;
mod insertion;
mod message;
mod method;
mod scan;
mod structs;

pub use binary::{
    DEPTH_MAX, Reader, Type, put_binary, put_field, put_i16, put_i32, put_i64, put_list, put_map,
};
pub use error::ThriftError;
pub use field::{Field, Map};
pub use frame::{Framing, Limits, Message, arriving_message, detect_framing, next_message};
pub use insertion::read_insertion;
pub use message::{
    ApplicationFailure, Call, MessageHead, MessageKind, Reply, ReplyBody, begin_call, end_message,
    put_failure, read_reply,
};
pub use method::{Exception, Method};
pub use scan::MessageScanner;
pub use structs::*;
