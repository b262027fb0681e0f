//! Prefetches memory into the processor's caches.
//!
//! Code that knows its next address, and has other work to do first, then need not wait for the memory.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Prefetches these bytes. Nothing is read, and there is no other effect.
#[inline(always)]
pub fn prefetch(bytes: &[u8]) {
    prefetch_lines(bytes.as_ptr(), bytes.len().div_ceil(LINE_BYTES));
}

/// Prefetches `lines` cache lines from an address on, which need not be valid.
#[inline(always)]
pub fn prefetch_lines<T>(place: *const T, lines: usize) {
    for line in 0..lines {
        let place = place.wrapping_byte_add(line * LINE_BYTES);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        #[expect(unsafe_code, reason = "one instruction; SAFETY below")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch has no effect but on caches, and no address makes it fault.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
        }
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        let _ = place;
    }
}
