//! Pages of two megabytes in place of five hundred small ones: where much memory is read at random, each small one has to be
//! looked up by the processor first.

/// Bytes of a huge page, at which one begins.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Takes memory that holds nothing into huge pages: what the system had given for it goes back, and huge pages come in its place,
/// which are cleared here and now and not when they are touched first. Whether the system was asked.
///
/// What stands there is not copied, so that others of the process wait for nothing: `MADV_COLLAPSE`, which keeps it, holds up
/// everyone who needs memory meanwhile, for a millisecond or several a page.
///
/// Source: madvise(2); Linux. Elsewhere nothing is done.
///
/// # Safety
/// All of the `bytes` from `place` on are memory of the caller's that nobody reads or writes meanwhile, and what they hold is not
/// needed: afterwards they are zeroes or as before. `place` is aligned to [`HUGE_PAGE_BYTES`], and `bytes` a multiple of it.
#[expect(unsafe_code, reason = "the caller's memory loses what it holds; SAFETY below")]
pub unsafe fn renew(place: *mut u8, bytes: usize) -> bool {
    let is_whole = place.addr().is_multiple_of(HUGE_PAGE_BYTES) && bytes.is_multiple_of(HUGE_PAGE_BYTES);
    if !is_whole || cfg!(not(all(target_os = "linux", not(miri)))) {
        return false;
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let advise = |advice| {
            // SAFETY: of the three advices below two change no byte, and one gives back pages that hold nothing anybody needs,
            // as the caller promises.
            unsafe { libc::madvise(place.cast(), bytes, advice) == 0 }
        };
        if !advise(libc::MADV_HUGEPAGE) || !advise(libc::MADV_DONTNEED) {
            return false;
        }
        for page in (0..bytes).step_by(HUGE_PAGE_BYTES) {
            // SAFETY: within the caller's memory.
            unsafe { place.add(page).write_volatile(0) };
        }
        // Pages that are there stay huge; whoever has the memory after this one is to get small ones again.
        advise(libc::MADV_NOHUGEPAGE);
    }
    true
}

#[cfg(test)]
#[expect(unsafe_code, reason = "memory of the test's own")]
mod tests {
    use super::*;
    use std::alloc::{Layout, alloc, dealloc};

    #[test]
    fn memory_can_be_used_after_it_was_renewed_and_what_stands_beside_it_stays() {
        let layout = Layout::from_size_align(4 * HUGE_PAGE_BYTES, HUGE_PAGE_BYTES).unwrap();
        // SAFETY: the layout is not empty; all places below are within it.
        unsafe {
            let memory = alloc(layout);
            assert!(!memory.is_null());
            memory.write_bytes(7, layout.size());
            let middle = memory.add(HUGE_PAGE_BYTES);
            let was_asked = renew(middle, 2 * HUGE_PAGE_BYTES);
            assert_eq!(was_asked, cfg!(all(target_os = "linux", not(miri))));
            middle.write_bytes(9, 2 * HUGE_PAGE_BYTES);
            let all = std::slice::from_raw_parts(memory, layout.size());
            let (before, rest) = all.split_at(HUGE_PAGE_BYTES);
            let (renewed, behind) = rest.split_at(2 * HUGE_PAGE_BYTES);
            // Miri takes long for each byte.
            let step = if cfg!(miri) { 4093 } else { 1 };
            assert!(before.iter().chain(behind).step_by(step).all(|byte| *byte == 7));
            assert!(renewed.iter().step_by(step).all(|byte| *byte == 9));
            assert!(!renew(memory.add(1), HUGE_PAGE_BYTES), "not at a huge page");
            assert!(!renew(memory, 100), "not whole ones");
            dealloc(memory, layout);
        }
    }
}
