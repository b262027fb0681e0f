//! Moves memory to huge pages of two megabytes. Where much memory is read at random, small pages cost a TLB miss for
//! each read.

/// Size and alignment of a huge page in bytes.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Moves memory without content to huge pages: returns its present pages to the kernel and maps huge pages instead.
/// They are cleared now, not at their first access. Returns whether the kernel was asked.
///
/// The content is not copied, so other threads do not wait. `MADV_COLLAPSE`, which keeps the content, blocks all
/// threads that need memory meanwhile, for a millisecond or several per page.
///
/// Source: madvise(2); Linux. On other systems nothing is done.
///
/// # Safety
/// The caller owns the `bytes` from `place` on, nobody reads or writes them meanwhile, and their content is not
/// needed: afterwards they are zeroes or unchanged. `place` is aligned to [`HUGE_PAGE_BYTES`], and `bytes` is a
/// multiple of it.
#[expect(unsafe_code, reason = "the caller's memory loses what it holds; SAFETY below")]
pub unsafe fn remap_as_huge_pages(place: *mut u8, bytes: usize) -> bool {
    let is_whole = place.addr().is_multiple_of(HUGE_PAGE_BYTES) && bytes.is_multiple_of(HUGE_PAGE_BYTES);
    if !is_whole || cfg!(not(all(target_os = "linux", not(miri)))) {
        return false;
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let advise = |advice| {
            // SAFETY: two of the three advices below change no byte, and the third drops pages whose content is not
            // needed, as the caller promises.
            unsafe { libc::madvise(place.cast(), bytes, advice) == 0 }
        };
        if !advise(libc::MADV_HUGEPAGE) || !advise(libc::MADV_DONTNEED) {
            return false;
        }
        for page in (0..bytes).step_by(HUGE_PAGE_BYTES) {
            // SAFETY: within the caller's memory.
            unsafe { place.add(page).write_volatile(0) };
        }
        // Existing pages stay huge; a later owner of the address range gets small pages again.
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
            let was_asked = remap_as_huge_pages(middle, 2 * HUGE_PAGE_BYTES);
            assert_eq!(was_asked, cfg!(all(target_os = "linux", not(miri))));
            middle.write_bytes(9, 2 * HUGE_PAGE_BYTES);
            let all = std::slice::from_raw_parts(memory, layout.size());
            let (before, rest) = all.split_at(HUGE_PAGE_BYTES);
            let (renewed, behind) = rest.split_at(2 * HUGE_PAGE_BYTES);
            // Under Miri each byte takes long.
            let step = if cfg!(miri) { 4093 } else { 1 };
            assert!(before.iter().chain(behind).step_by(step).all(|byte| *byte == 7));
            assert!(renewed.iter().step_by(step).all(|byte| *byte == 9));
            assert!(!remap_as_huge_pages(memory.add(1), HUGE_PAGE_BYTES), "not at a huge page");
            assert!(!remap_as_huge_pages(memory, 100), "not whole ones");
            dealloc(memory, layout);
        }
    }
}
