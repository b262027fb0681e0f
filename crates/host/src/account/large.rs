//! Allocates large pieces of memory directly from the kernel, and returns them directly.
//!
//! An allocator keeps freed memory for reuse, by thread and size. With pieces of many megabytes, which one thread
//! allocates and another frees, a server held three times the memory it used. A separate mapping costs a fault per
//! page, less than filling the page does, and growing moves pages instead of copying them (mremap(2)).

#![expect(unsafe_code, reason = "calls of the system; each says why it is sound")]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;

/// Pieces larger than this are large.
pub(super) const LARGE_BYTES: usize = 1 << 20;
/// The least alignment of mappings.
const PAGE_BYTES: usize = 4096;

/// Whether memory of this layout is a mapping. It depends on the layout alone, so that freeing decides the same way.
#[inline]
pub(super) fn is_large(layout: Layout) -> bool {
    layout.size() > LARGE_BYTES && layout.align() <= PAGE_BYTES
}

/// Maps new memory of zeroes; null if there is none.
#[cold]
pub(super) fn map(size: usize) -> *mut u8 {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping, at an address of the kernel's choice, touches no existing memory.
    let memory = unsafe { libc::mmap(null_mut(), size, protection, flags, -1, 0) };
    if memory == libc::MAP_FAILED { null_mut() } else { memory.cast() }
}

/// Unmaps memory.
///
/// # Safety
/// `at` came from `map` or `grow` with this size, and nobody uses it any more.
#[cold]
pub(super) unsafe fn unmap(at: *mut u8, size: usize) {
    // SAFETY: the mapping is the caller's alone. munmap cannot fail for a whole mapping of ours.
    unsafe {
        libc::munmap(at.cast(), size);
    }
}

/// Replaces the memory at `at` by memory of another size, with the same content as far as it fits. If there is no
/// memory, returns null and leaves `at` as it was.
///
/// # Safety
/// As for `GlobalAlloc::realloc`. The memory came from `inner`, or from `map` if `is_large`.
#[cold]
pub(super) unsafe fn change<A: GlobalAlloc>(inner: &A, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise: `size` rounded up to the alignment fits an `isize`.
    let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    if is_large(layout) && is_large(wanted) {
        // SAFETY: a whole mapping of ours, which may move.
        let moved = unsafe { libc::mremap(at.cast(), layout.size(), size, libc::MREMAP_MAYMOVE) };
        return if moved == libc::MAP_FAILED { null_mut() } else { moved.cast() };
    }
    // SAFETY: a layout that is not of size zero, by the caller's promise.
    let new = if is_large(wanted) { map(size) } else { unsafe { inner.alloc(wanted) } };
    if new.is_null() {
        return new;
    }
    // SAFETY: both are valid for the smaller of the sizes, and different memory.
    unsafe { std::ptr::copy_nonoverlapping(at, new, layout.size().min(size)) };
    // SAFETY: it came from there with this layout.
    unsafe { if is_large(layout) { unmap(at, layout.size()) } else { inner.dealloc(at, layout) } };
    new
}

#[cfg(test)]
mod tests {
    use crate::account::Metered;
    use std::alloc::{GlobalAlloc, Layout, System};

    #[test]
    fn what_was_written_stays_whatever_memory_grows_and_shrinks_to() {
        let seed = 33_u64;
        println!("seed {seed}");
        let (allocator, mut state) = (Metered(System), seed);
        for _ in 0..20 {
            let mut layout = Layout::from_size_align(100, 8).unwrap();
            // SAFETY: the layout is not of size zero.
            let mut at = unsafe { allocator.alloc_zeroed(layout) };
            let mut known = vec![0_u8; 100];
            for turn in 0..30_u8 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let size = 1 + ((state >> 33) as usize) % [200, 900 << 10, 3 << 20][usize::from(turn) % 3];
                // SAFETY: it came from this allocator with this layout.
                at = unsafe { allocator.realloc(at, layout, size) };
                layout = Layout::from_size_align(size, 8).unwrap();
                known.resize(size, turn);
                // SAFETY: `at` is valid for `size` bytes, and nobody else has them.
                let bytes = unsafe {
                    let before = known.len().min(size);
                    std::slice::from_raw_parts_mut(at, before)
                };
                let kept = known.iter().take_while(|byte| **byte != turn).count();
                assert_eq!(&bytes[..kept], &known[..kept]);
                bytes.copy_from_slice(&known);
            }
            // SAFETY: it came from this allocator with this layout.
            unsafe { allocator.dealloc(at, layout) };
        }
    }
}
