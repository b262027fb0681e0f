//! Counts the bytes that each thread holds: those it has allocated minus those it has freed.
//!
//! One number per thread, changed by one addition per allocation. If one thread allocates and another frees, bytes
//! shift between their numbers. Scopes begin at 0, so only memory that changes threads during a request is counted
//! wrongly; memory that is handed over on purpose (an answer) is reported to the scope.

#[cfg(any(feature = "allocator", feature = "watch"))]
use super::large::{LARGE_BYTES, change, is_large, map, unmap};
use std::cell::Cell;

thread_local! {
    /// Has no destructor and a constant initial value, so that the allocator may use it at any time of a thread's
    /// life.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has come to hold since its scope began.
#[inline]
pub fn held() -> isize {
    HELD.get()
}

#[inline]
pub(super) fn set_held(bytes: isize) {
    HELD.set(bytes);
}

/// Runs code whose allocations belong to a fixed share and not to the request: a memtable's arena, the block cache.
pub fn uncounted<T>(run: impl FnOnce() -> T) -> T {
    let before = held();
    #[cfg(feature = "watch")]
    let done = super::watch::paused(run);
    #[cfg(not(feature = "watch"))]
    let done = run();
    set_held(before);
    done
}

/// An allocator that counts for `held`, and takes large pieces directly from the kernel (`large.rs`).
#[cfg(any(feature = "allocator", feature = "watch"))]
pub struct Metered<A>(pub A);

#[cfg(any(feature = "allocator", feature = "watch"))]
#[expect(unsafe_code, reason = "an allocator; SAFETY below")]
// SAFETY: a call goes unchanged to the inner allocator or to `large`, depending on the layout; counting allocates
// nothing.
unsafe impl<A: std::alloc::GlobalAlloc> std::alloc::GlobalAlloc for Metered<A> {
    #[inline]
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: as the caller promises.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: std::alloc::Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: as the caller promises.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: std::alloc::Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: as the caller promises; large memory came from `map` or `change`.
        unsafe { if is_large(layout) { unmap(at, layout.size()) } else { self.0.dealloc(at, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: std::alloc::Layout, size: usize) -> *mut u8 {
        HELD.set(HELD.get() + size as isize - layout.size() as isize);
        if layout.size() > LARGE_BYTES || size > LARGE_BYTES {
            // SAFETY: as the caller promises.
            return unsafe { change(&self.0, at, layout, size) };
        }
        // SAFETY: as the caller promises.
        unsafe { self.0.realloc(at, layout, size) }
    }
}
