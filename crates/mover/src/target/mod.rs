//! The target of a move: `client` sends batches and runs statements, `batch` is what is sent, `encode` its bytes, `pace` how fast.

mod batch;
mod client;
mod encode;
mod pace;

pub(crate) use batch::Batch;
pub use client::options;
pub(crate) use client::{TableTarget, Target};
