//! Divides `memory_limit` at the start.

/// The program's own needs: code, stacks, schema, metadata of files.
const PROGRAM_BYTES: u64 = 22 << 20;
/// Bytes that the process may use beyond the limit, in addition to a tenth of the limit.
const BEYOND_BYTES: u64 = 32 << 20;
/// The least for requests, however large the fixed shares are: a write of the greatest size as received, packed, and
/// as logged.
const REQUESTS_MIN: u64 = 50 << 20;
/// The most that is reserved for the request that may exceed the shared bytes: a largest row, its merge and its
/// answer.
const BEYOND_OTHERS_MAX: u64 = 50 << 20;

/// The part of the bound that is left for the allocator's freed memory if the limit is low.
const ALLOCATOR_BYTES: u64 = 12 << 20;
/// The least default size of the memtables and of the file cache.
const FIXED_SHARE_MIN: u64 = 4 << 20;

/// The most memory that the process may use in all with this `memory_limit`.
fn bound(limit: u64) -> u64 {
    limit.saturating_add(limit / 10).saturating_add(BEYOND_BYTES)
}

/// Default size in bytes of the memtables, and of the file cache: a quarter of `limit` each, or less if requests would
/// get less than one large write needs.
#[must_use]
pub fn fixed_share(limit: u64) -> u64 {
    let spare = bound(limit).saturating_sub(PROGRAM_BYTES + REQUESTS_MIN + ALLOCATOR_BYTES);
    (limit / 4).min(spare / 2).max(FIXED_SHARE_MIN)
}

/// The division of the bytes for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Bytes that all requests may hold together.
    pub shared: u64,
    /// Bytes that one of them may hold in addition, so that one request can always finish.
    pub one_more: u64,
}

/// Divides the rest of `limit` after the fixed shares. The process stays within `limit + limit/10 + 32 MiB`; an eighth
/// of the bytes for requests is left for the allocator's freed memory.
#[must_use]
pub fn split(limit: u64, fixed_shares: u64) -> Split {
    let left = bound(limit).saturating_sub(fixed_shares).saturating_sub(PROGRAM_BYTES);
    let left = (left - left / 8).max(REQUESTS_MIN);
    let one_more = (left / 5 * 4).min(BEYOND_OTHERS_MAX);
    Split { shared: left - one_more, one_more }
}
