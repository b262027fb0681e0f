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

mod charge;
mod held;
#[cfg(all(loom, test))]
mod interleavings;
#[cfg(any(feature = "allocator", feature = "watch"))]
mod large;
mod ledger;
mod meter;
mod pool;
mod scope;
mod share;
mod split;
mod standing;
mod sync;
#[cfg(feature = "watch")]
mod watch;

pub use charge::Charge;
pub use meter::{held, uncounted};
pub use pool::{PoolMetrics, ShareMetrics, Unbalanced, audit, limit, metrics, set_limits};
pub use scope::{Refusal, Scope, Waits, commit, give_way, grow, is_full, reserve, settle};
pub use share::Share;
pub use split::{Split, fixed_share, split};
pub use standing::{StandingBytes, standing};

#[cfg(any(feature = "allocator", feature = "watch"))]
pub use meter::Metered;
#[cfg(feature = "watch")]
pub use watch::{WATCH_BYTES, Watched, take_excess};

#[cfg(test)]
mod tests;
