//! Clocks and randomness.

/// The clocks of a host.
pub trait Clock: Send + Sync {
    /// Wall clock, microseconds since the epoch. May go backwards on a real machine: callers that need an order keep
    /// it themselves.
    fn wall_us(&self) -> i64;
    /// Monotonic clock, nanoseconds since some fixed moment.
    fn monotonic_ns(&self) -> u64;
    /// A monotonic clock that is cheap to read, with a resolution of some milliseconds: nanoseconds, comparable only
    /// with itself. For checks at every request that matter only when it takes long.
    fn coarse_ns(&self) -> u64 {
        self.monotonic_ns()
    }
}

/// A source of random bytes.
pub trait Random: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}
