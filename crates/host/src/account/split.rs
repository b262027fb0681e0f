//! How `memory_limit` is divided at the start.

/// What the program needs for itself: code, stacks, schema, what is kept in memory of files.
const PROGRAM_BYTES: u64 = 22 << 20;
/// Bytes beyond the limit that the bound allows for the program, besides a tenth of the limit.
const BEYOND_BYTES: u64 = 32 << 20;
/// Least that requests get, whatever the fixed shares take: a largest write as it came, as it is packed and as it is logged.
const REQUESTS_MIN: u64 = 50 << 20;
/// Most that is kept back for the request that is served beyond the others: a largest row, its merge and its answer.
const BEYOND_OTHERS_MAX: u64 = 50 << 20;

/// Part of the bound that is left for what the allocator keeps of freed memory, where memory is short.
const ALLOCATOR_BYTES: u64 = 12 << 20;
/// Least that the memtables or the file cache get by default.
const FIXED_SHARE_MIN: u64 = 4 << 20;

/// What the process may use in all with this `memory_limit`.
fn bound(limit: u64) -> u64 {
    limit.saturating_add(limit / 10).saturating_add(BEYOND_BYTES)
}

/// Default size in bytes of the memtables, and of the file cache: a quarter of `limit` each, or less where requests would
/// be left with less than one large write needs.
#[must_use]
pub fn fixed_share(limit: u64) -> u64 {
    let spare = bound(limit).saturating_sub(PROGRAM_BYTES + REQUESTS_MIN + ALLOCATOR_BYTES);
    (limit / 4).min(spare / 2).max(FIXED_SHARE_MIN)
}

/// Bytes for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// What all of them may hold.
    pub shared: u64,
    /// What one of them may hold beyond that, so that there is always one that comes to its end.
    pub one_more: u64,
}

/// Divides what the fixed shares leave of `limit` for requests: the process stays within `limit + limit/10 + 32 MiB`, of
/// which an eighth of what requests hold is left for what the allocator keeps.
#[must_use]
pub fn split(limit: u64, fixed_shares: u64) -> Split {
    let left = bound(limit).saturating_sub(fixed_shares).saturating_sub(PROGRAM_BYTES);
    let left = (left - left / 8).max(REQUESTS_MIN);
    let one_more = (left / 5 * 4).min(BEYOND_OTHERS_MAX);
    Split { shared: left - one_more, one_more }
}
