//! How `memory_limit` is divided at the start.

/// What the program needs for itself: code, stacks, schema, what is kept in memory of files.
const PROGRAM_BYTES: u64 = 22 << 20;
/// Bytes beyond the limit that the bound allows for the program, besides a tenth of the limit.
const BEYOND_BYTES: u64 = 32 << 20;
/// Least that requests get, whatever the fixed shares take: a largest write as it came, as it is packed and as it is logged.
const REQUESTS_MIN: u64 = 50 << 20;
/// Most that is kept back for the request that is served beyond the others: a largest row, its merge and its answer.
const BEYOND_OTHERS_MAX: u64 = 50 << 20;

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
    let bound = limit.saturating_add(limit / 10).saturating_add(BEYOND_BYTES);
    let left = bound.saturating_sub(fixed_shares).saturating_sub(PROGRAM_BYTES);
    let left = (left - left / 8).max(REQUESTS_MIN);
    let one_more = (left / 5 * 4).min(BEYOND_OTHERS_MAX);
    Split { shared: left - one_more, one_more }
}
