//! The target of a move: `client` sends batches and runs statements, `batch` is what is sent, `encode` its bytes, `pace` how fast.

mod batch;
mod client;
mod encode;
mod pace;
mod refused;

pub(crate) use batch::Batch;
pub(crate) use client::{
    AGREEMENT, SETTLE, SETTLE_TRUNCATE, TableTarget, Target, may_be_run, unless_stopped,
};
pub use client::{options, options_for_clients};
pub(crate) use refused::of_row;
