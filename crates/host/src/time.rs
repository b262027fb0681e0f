//! Clocks and randomness.

/// The clocks of a machine.
pub trait Clock: Send + Sync {
    /// Wall clock, microseconds since the epoch. May go backwards on a real machine: who needs order keeps it.
    fn wall_us(&self) -> i64;
    /// Monotonic clock, nanoseconds since some fixed moment.
    fn monotonic_ns(&self) -> u64;
    /// A monotonic clock that is cheap to read and exact to some milliseconds: nanoseconds, to be compared with itself alone.
    /// For what is watched at every request and matters when it takes long.
    fn coarse_ns(&self) -> u64 {
        self.monotonic_ns()
    }
}

/// A source of random bytes.
pub trait Random: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}
