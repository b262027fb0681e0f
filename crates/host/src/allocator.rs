//! Settings of the binary's allocator for freed memory.

use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t};
use std::ffi::c_long;

/// `mi_option_purge_delay` in mimalloc.h of version 3, for which the bindings have no name.
const PURGE_DELAY: mi_option_t = 15;

/// Sets how many milliseconds the allocator keeps freed memory before it returns it to the kernel; the default is a
/// thousand. With a long time, a process whose requests take megabytes holds the memory of the last second in addition
/// to the present. With a short time, the kernel clears memory each time it is reused.
///
/// Call this first in a program, before it starts threads: the setting is a plain number of the allocator's.
pub fn keep_freed_memory_ms(ms: u32) {
    #[expect(unsafe_code, reason = "one call; SAFETY below")]
    // SAFETY: the option exists, and is one machine word that the allocator reads when it frees: a thread that reads
    // it meanwhile sees the old or the new value.
    unsafe {
        mi_option_set(PURGE_DELAY, c_long::from(ms));
    }
}

/// Returns freed memory to the kernel now, regardless of the time for which it is kept.
pub fn release_freed_memory() {
    #[expect(unsafe_code, reason = "one call; SAFETY below")]
    // SAFETY: it frees unused memory only, and may be called from any thread at any time.
    unsafe {
        mi_collect(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    #[test]
    fn the_option_is_the_one_with_the_documented_default() {
        #[expect(unsafe_code, reason = "SAFETY: the option exists")]
        let value = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(value(), 1000, "another version of mimalloc numbers its options differently");
        keep_freed_memory_ms(100);
        assert_eq!(value(), 100);
    }
}
