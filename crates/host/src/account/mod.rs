//! The account of memory that grows with requests: how much each request holds, how much all may hold, and which
//! requests wait.
//!
//! `memory_limit` is divided at the start (`split.rs`): fixed shares for memtables and the block cache, and the rest,
//! from which every request draws (`pool.rs`). A thread that serves a request opens a `Scope` (`scope.rs`). From then
//! on the binary's allocator counts the bytes that the thread holds (`meter.rs`). Code that is about to allocate much
//! memory asks first:
//!
//! ```text
//! account::grow(bytes)?        before a row is joined, an answer grows, a body is decompressed
//!   held + bytes <= granted    the common case: two numbers of the thread are compared
//!   else                       the pool grants more, the thread waits for it, or the request is refused
//! account::commit()            once a write is logged: from here on nothing is refused
//! scope.begins_again()         after a refusal: whether to serve the request once more, now that there is room
//! ```
//!
//! A scope begins with an allowance, so that small requests never touch the pool. A thread that runs an event loop
//! never waits: `Refusal::WouldBlock` sends the request to a thread that may wait. Nothing is limited in a process
//! that has set no limit (the library, the tools), and nothing is counted without the metered allocator.

#[cfg(feature = "allocator")]
mod large;
mod meter;
mod pool;
mod scope;
mod split;

pub use meter::{held, uncounted};
pub use pool::{Charge, PoolMetrics, Share, ShareMetrics, limit, metrics, set_limits};
pub use scope::{Refusal, Scope, Waits, commit, give_way, grow, is_full, reserve, settle};
pub use split::{Split, fixed_share, split};

#[cfg(feature = "allocator")]
pub use meter::Metered;

#[cfg(test)]
mod tests;
