//! Thrift's binary protocol and the structs of Cassandra's old RPC interface, both halves, in the old words.
//!
//! A message is read with [`next_message`], which finds out whether its client frames and whether it is strict; its
//! arguments are read as one of the structs of [`args`]. Everything read borrows from the message: a name or a value is
//! a run of its bytes. Answers are written with [`Reply`], or column by column by whoever has the columns.
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
mod structs;

pub use binary::{
    DEPTH_MAX, Reader, Type, put_binary, put_field, put_i16, put_i32, put_i64, put_list, put_map,
};
pub use error::ThriftError;
pub use field::{Field, Map};
pub use frame::{Framing, Limits, Message, next_message};
pub use insertion::read_insertion;
pub use message::{
    ApplicationFailure, Call, MessageHead, MessageKind, Reply, ReplyBody, begin_call, end_message,
    put_failure, read_reply,
};
pub use method::{Exception, Method};
pub use structs::*;
