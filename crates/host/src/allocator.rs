//! How the binary's allocator treats memory that was given back to it.

use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t};
use std::ffi::c_long;

/// `mi_option_purge_delay` in mimalloc.h of version 3, which the bindings do not name.
const PURGE_DELAY: mi_option_t = 15;

/// Gives freed memory back to the system after so many milliseconds, by default a thousand: until then a process whose
/// requests come in megabytes holds those of the last second beside those of now. With too few, memory that is used again at
/// once is cleared by the system each time.
///
/// For a program's first line, before it starts threads: the setting is a plain number of the allocator's.
pub fn keep_freed_memory_ms(ms: u32) {
    #[expect(unsafe_code, reason = "one call; SAFETY below")]
    // SAFETY: the option exists, and is one number of a machine word that the allocator reads when it frees: a thread that
    // reads it meanwhile finds the old or the new one.
    unsafe {
        mi_option_set(PURGE_DELAY, c_long::from(ms));
    }
}

/// Gives freed memory back to the system now, whatever the time it is kept for.
pub fn release_freed_memory() {
    #[expect(unsafe_code, reason = "one call; SAFETY below")]
    // SAFETY: it frees what nobody holds, and may be called from any thread at any time.
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
