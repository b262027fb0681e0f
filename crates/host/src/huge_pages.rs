//! Pages of two megabytes in place of five hundred small ones: where much memory is read at random, each small one has to be
//! looked up by the processor first.

/// Bytes of a huge page, at which one begins.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Puts what stands in so many bytes from a place on into huge pages, as far as these lie whole in it; whether the system did.
/// Nothing that a program can see changes, but its speed. It takes a millisecond or several for each, in which others that
/// write there wait: for memory that rests.
///
/// Source: `MADV_COLLAPSE` in madvise(2), since Linux 6.1. Elsewhere nothing is done.
pub fn gather<T>(place: *mut T, bytes: usize) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    #[expect(unsafe_code, reason = "one call; SAFETY below")]
    {
        /// In <asm-generic/mman-common.h>.
        const MADV_COLLAPSE: i32 = 25;
        // SAFETY: the call changes no byte of any memory; a place that is not ours, or not there, is an error.
        unsafe { libc::madvise(place.cast(), bytes, MADV_COLLAPSE) == 0 }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = (place, bytes);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_memory_stays_and_places_that_are_not_there_are_refused() {
        let mut bytes: Vec<u8> = (0..3 * HUGE_PAGE_BYTES).map(|n| (n % 251) as u8).collect();
        let before = bytes.clone();
        let at = bytes.as_mut_ptr().align_offset(HUGE_PAGE_BYTES);
        // A system without huge pages may refuse.
        let _gathered = gather(bytes.as_mut_ptr().wrapping_add(at), HUGE_PAGE_BYTES);
        assert!(bytes == before);
        assert!(!gather(std::ptr::without_provenance_mut::<u8>(1 << 46), HUGE_PAGE_BYTES));
    }
}
