//! Counts steps of work for tests that compare the work of n and 2n writes. Nothing in other builds.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Adds steps of work: points passed, bytes merged.
#[inline(always)]
pub(super) fn add(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps);
    #[cfg(not(test))]
    let _ = steps;
}

/// The steps of this thread since the last call.
#[cfg(test)]
pub(super) fn take() -> usize {
    STEPS.take()
}
