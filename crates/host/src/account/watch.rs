//! An instrument for tests: finds memory that a request takes before it has asked for it.
//!
//! A test program makes `Watched` its allocator. Each allocation of a thread that serves a request is compared with the
//! bytes that the request may hold (`scope::grow`), also after `commit`, which ends the refusals and not the asking. The
//! greatest excess is kept, with the call stack that first went beyond `WATCH_BYTES`. A whole server can be watched too
//! (`cargo xtask watched`): at the end of each request it appends what it has found to the file `HELENUS_WATCH_FILE`.

use super::meter::{Metered, held};
use parking_lot::Mutex;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;

/// The excess from which a call stack is kept. Small pieces need not be asked for one by one.
pub const WATCH_BYTES: isize = 1 << 20;

thread_local! {
    /// The bytes that the thread's request has asked for; no limit outside scopes.
    static ASKED: Cell<isize> = const { Cell::new(isize::MAX) };
    /// The greatest excess so far.
    static BEYOND: Cell<isize> = const { Cell::new(0) };
    /// Whether allocations are not compared: the instrument's own, and those of fixed shares.
    static PAUSED: Cell<bool> = const { Cell::new(false) };
}

static STACK: Mutex<Option<String>> = Mutex::new(None);

/// The bytes that the thread's request may hold from now on.
pub(super) fn set_asked(bytes: isize) {
    ASKED.set(bytes);
}

/// Runs code whose allocations are not compared.
pub(super) fn paused<T>(run: impl FnOnce() -> T) -> T {
    let before = PAUSED.replace(true);
    let done = run();
    PAUSED.set(before);
    done
}

/// The greatest number of bytes that this thread's requests have held beyond what they had asked for, since the last
/// call, and where that was if it is more than `WATCH_BYTES`.
pub fn take_excess() -> (isize, Option<String>) {
    (BEYOND.replace(0), paused(|| STACK.lock().take()))
}

/// Appends what was found to the file, if there is one.
pub(super) fn report() {
    static FILE: OnceLock<Option<std::ffi::OsString>> = OnceLock::new();
    if BEYOND.get() <= WATCH_BYTES {
        return;
    }
    paused(|| {
        let Some(file) = FILE.get_or_init(|| std::env::var_os("HELENUS_WATCH_FILE")) else { return };
        let (bytes, stack) = take_excess();
        let text = format!("{} KiB more than was asked for\n{}\n", bytes >> 10, stack.unwrap_or_default());
        let written = OpenOptions::new().create(true).append(true).open(file);
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
        written.expect("the file HELENUS_WATCH_FILE can be written");
    });
}

/// Compares after an allocation.
#[inline]
fn note() {
    let beyond = held().saturating_sub(ASKED.get());
    if beyond > BEYOND.get() && !PAUSED.get() {
        BEYOND.set(beyond);
        if beyond > WATCH_BYTES {
            paused(keep_stack);
        }
    }
}

#[cold]
fn keep_stack() {
    let before = held();
    if let Some(mut stack) = STACK.try_lock()
        && stack.is_none()
    {
        *stack = Some(std::backtrace::Backtrace::force_capture().to_string());
    }
    super::meter::set_held(before);
}

/// An allocator that counts (`Metered`) and compares.
pub struct Watched<A>(pub Metered<A>);

#[expect(unsafe_code, reason = "an allocator; SAFETY below")]
// SAFETY: each call goes unchanged to the inner allocator; what `note` allocates it does not compare again.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Watched<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let made = unsafe { self.0.alloc(layout) };
        note();
        made
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let made = unsafe { self.0.alloc_zeroed(layout) };
        note();
        made
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let made = unsafe { self.0.realloc(at, layout, size) };
        note();
        made
    }
}
