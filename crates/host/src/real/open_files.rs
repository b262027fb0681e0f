//! A bounded cache of descriptors for any number of files that are open for reading.
//!
//! An opened file stays readable when its descriptor is closed: the next read opens it again by its path. Descriptors
//! are closed by the clock algorithm: a hand moves round and closes those that were not read since its last visit.
//! While more than `COLD_MIN` are open, three descriptors are visited for each one that is opened, so unused ones are
//! closed even below the bound. Beyond the bound the hand moves on until there is room.
//!
//! Readers keep what POSIX guarantees: if this process removes, replaces or renames a file that is open, the file
//! first gets a descriptor and keeps it (`pin`) until its last reader is gone. If another process puts a different
//! file in its place, that file is not read instead: device and inode are compared.
//!
//! A read takes no lock: it loads an `ArcSwap`. Locks are taken when a descriptor is opened or closed.

use super::file::open_regular;
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Number of descriptors that stay open even if they are not read.
const COLD_MIN: usize = 64;
/// Descriptors visited for each one that is opened.
const VISITS: usize = 3;
/// Descriptors closed when the process has none left.
const CLOSED_AT_ONCE: usize = 64;
/// How often an operation is tried again after descriptors were closed for it.
const TRIES: usize = 3;

/// The files of one `RealDisk` that are open for reading.
pub(super) struct OpenFiles {
    kept_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Files that have a descriptor and may lose it. Each file stores its index.
    ring: Vec<Arc<OpenFile>>,
    hand: usize,
    /// All open files by path. Several of them may have the same path.
    by_path: HashMap<Arc<Path>, Vec<Weak<OpenFile>>>,
    /// Names that are being opened, and whether one was removed or replaced meanwhile.
    opening: Vec<Arc<Name>>,
    /// Names that are being removed or replaced.
    leaving: Vec<Arc<Name>>,
}

/// A name that is about to be opened, or to go.
struct Name {
    path: Box<Path>,
    /// Whether all names below it go too.
    and_below: bool,
    /// Whether it goes while it is being opened. Guarded by the lock of `State`.
    goes: AtomicBool,
}

/// Names that are being removed or replaced, until this is dropped. Files that are opened meanwhile keep a descriptor.
pub(super) struct Leaving<'a> {
    files: &'a OpenFiles,
    name: Arc<Name>,
}

impl Name {
    fn of(path: &Path, and_below: bool) -> Arc<Name> {
        Arc::new(Name { path: path.into(), and_below, goes: AtomicBool::new(false) })
    }

    /// Whether the file at `path` loses its name with this one.
    fn takes(&self, path: &Path) -> bool {
        if self.and_below { path.starts_with(&self.path) } else { *path == *self.path }
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.files.state.lock().leaving.retain(|name| !Arc::ptr_eq(name, &self.name));
    }
}

/// A file that is open for reading, with or without a descriptor.
pub(super) struct OpenFile {
    path: Arc<Path>,
    /// Device and inode.
    identity: (u64, u64),
    descriptor: ArcSwapOption<fs::File>,
    /// A second descriptor for direct I/O, while `descriptor` is present.
    direct: ArcSwapOption<fs::File>,
    /// Whether it was read since the hand's last visit.
    is_used: AtomicBool,
    /// Guarded by the lock of `State`.
    place: Mutex<ClockState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClockState {
    /// Without a descriptor.
    Closed,
    /// In the ring, at this index.
    Ring(usize),
    /// Its name was removed or belongs to another file: it keeps its descriptor.
    Pinned,
}

/// An open file. When dropped it releases its descriptor.
pub(super) struct Opened {
    files: Arc<OpenFiles>,
    file: Arc<OpenFile>,
}

impl OpenFiles {
    /// Keeps at most `kept_max` descriptors.
    pub(super) fn new(kept_max: usize) -> Arc<OpenFiles> {
        Arc::new(OpenFiles { kept_max: kept_max.max(1), state: Mutex::default() })
    }

    /// Opens a file by calling `open`, which is called again if the process had no descriptor left.
    pub(super) fn open(
        self: &Arc<Self>,
        path: &Path,
        open: impl Fn() -> io::Result<fs::File>,
    ) -> io::Result<Opened> {
        // The name is entered first: whoever removes it from now on sees it, and whoever has begun to is seen here.
        let name = Name::of(path, false);
        {
            let mut state = self.state.lock();
            let goes = state.leaving.iter().any(|leaving| leaving.takes(path));
            name.goes.store(goes, Ordering::Relaxed);
            state.opening.push(Arc::clone(&name));
        }
        let opened = self.with_descriptors(open).and_then(|opened| Ok((identity(&opened)?, opened)));
        let mut state = self.state.lock();
        state.opening.retain(|other| !Arc::ptr_eq(other, &name));
        let (identity, descriptor) = opened?;
        let file = Arc::new(OpenFile {
            path: path.into(),
            identity,
            descriptor: ArcSwapOption::from_pointee(descriptor),
            direct: ArcSwapOption::empty(),
            is_used: AtomicBool::new(false),
            place: Mutex::new(ClockState::Closed),
        });
        state.by_path.entry(Arc::clone(&file.path)).or_default().push(Arc::downgrade(&file));
        state.enter(&file, self.kept_max);
        if name.goes.load(Ordering::Relaxed) {
            state.leave_ring(&file, ClockState::Pinned);
        }
        Ok(Opened { files: Arc::clone(self), file })
    }

    /// Runs an operation that needs a descriptor. If the process has none left, some of the cached ones are closed for
    /// it.
    pub(super) fn with_descriptors<T>(&self, mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        for _ in 0..TRIES {
            match operation() {
                Err(error) if is_out_of_descriptors(&error) && self.close_some() => {}
                done => return done,
            }
        }
        operation()
    }

    fn close_some(&self) -> bool {
        let mut state = self.state.lock();
        let left = state.ring.len().saturating_sub(CLOSED_AT_ONCE);
        let has_any = !state.ring.is_empty();
        state.shrink_to(left);
        has_any
    }

    /// Called before the name `path`, or all names below it, are removed or replaced: open files of these names keep a
    /// descriptor, and so do those that are opened before the result is dropped.
    #[must_use = "files that are opened until the name is gone need it too"]
    pub(super) fn pin(&self, path: &Path, and_below: bool) -> Leaving<'_> {
        let name = Name::of(path, and_below);
        let mut state = self.state.lock();
        state.leaving.push(Arc::clone(&name));
        for opening in state.opening.iter().filter(|opening| name.takes(&opening.path)) {
            opening.goes.store(true, Ordering::Relaxed);
        }
        let found: Vec<Arc<OpenFile>> = if and_below {
            let below = state.by_path.iter().filter(|(known, _)| known.starts_with(path));
            below.flat_map(|(_, files)| files.iter().filter_map(Weak::upgrade)).collect()
        } else {
            let files = state.by_path.get(path).map(Vec::as_slice).unwrap_or_default();
            files.iter().filter_map(Weak::upgrade).collect()
        };
        for file in found {
            if *file.place.lock() == ClockState::Closed {
                // If the file does not exist any more, its readers get the error when they read.
                let opened = open_regular(&file.path, 0).and_then(|opened| same(opened, &file));
                let Ok(opened) = opened else { continue };
                file.descriptor.store(Some(Arc::new(opened)));
            }
            state.leave_ring(&file, ClockState::Pinned);
        }
        drop(state);
        Leaving { files: self, name }
    }

    #[cold]
    fn reopen(&self, file: &Arc<OpenFile>) -> io::Result<Arc<fs::File>> {
        let opened = self.with_descriptors(|| open_regular(&file.path, 0))?;
        let opened = Arc::new(same(opened, file)?);
        let mut state = self.state.lock();
        if let Some(meanwhile) = file.descriptor.load_full() {
            return Ok(meanwhile);
        }
        file.descriptor.store(Some(Arc::clone(&opened)));
        state.enter(file, self.kept_max);
        Ok(opened)
    }
}

impl State {
    /// Adds a file that got a descriptor; others may lose theirs.
    fn enter(&mut self, file: &Arc<OpenFile>, kept_max: usize) {
        *file.place.lock() = ClockState::Ring(self.ring.len());
        self.ring.push(Arc::clone(file));
        // The new file is about to be read, so the hand must not close it.
        file.is_used.store(true, Ordering::Relaxed);
        for _ in 0..VISITS {
            if self.ring.len() > COLD_MIN.min(kept_max) {
                self.visit();
            }
        }
        self.shrink_to(kept_max);
    }

    fn shrink_to(&mut self, count: usize) {
        // Twice round: the first visit of a file only clears its mark.
        for _ in 0..2 * self.ring.len() + 2 {
            if self.ring.len() <= count {
                return;
            }
            self.visit();
        }
    }

    /// Moves the hand by one: skips the file there if it was used, else closes it.
    fn visit(&mut self) {
        if self.hand >= self.ring.len() {
            self.hand = 0;
        }
        let Some(file) = self.ring.get(self.hand).cloned() else { return };
        if file.is_used.swap(false, Ordering::Relaxed) {
            self.hand += 1;
            return;
        }
        self.leave_ring(&file, ClockState::Closed);
        // A thread that is reading through them closes them when it is done.
        file.descriptor.store(None);
        file.direct.store(None);
    }

    fn leave_ring(&mut self, file: &OpenFile, to: ClockState) {
        let before = std::mem::replace(&mut *file.place.lock(), to);
        let ClockState::Ring(index) = before else { return };
        self.ring.swap_remove(index);
        if let Some(moved) = self.ring.get(index) {
            *moved.place.lock() = ClockState::Ring(index);
        }
    }
}

impl Opened {
    /// Calls `read` with the descriptor, which is opened again if it was closed.
    pub(super) fn with<T>(&self, read: impl FnOnce(&fs::File) -> io::Result<T>) -> io::Result<T> {
        match &*self.file.descriptor.load() {
            Some(descriptor) => {
                self.file.mark_used();
                read(descriptor)
            }
            None => read(&*self.files.reopen(&self.file)?),
        }
    }

    /// The same, but only if the descriptor is open.
    pub(super) fn if_open<T>(&self, read: impl FnOnce(&fs::File) -> T) -> Option<T> {
        let descriptor = self.file.descriptor.load();
        self.file.mark_used();
        descriptor.as_ref().map(|descriptor| read(descriptor))
    }

    /// Calls `read` with a second descriptor, which `open` derives from the first; `None` if it cannot.
    pub(super) fn with_direct<T>(
        &self,
        open: impl FnOnce(&fs::File) -> Option<fs::File>,
        read: impl FnOnce(&fs::File) -> T,
    ) -> Option<T> {
        if let Some(direct) = &*self.file.direct.load() {
            self.file.mark_used();
            return Some(read(direct));
        }
        let direct = Arc::new(self.with(|file| Ok(open(file))).ok()??);
        {
            let _held_still = self.files.state.lock();
            // A file that has lost its first descriptor meanwhile keeps no second one.
            if *self.file.place.lock() != ClockState::Closed {
                self.file.direct.store(Some(Arc::clone(&direct)));
            }
        }
        Some(read(&direct))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut state = self.files.state.lock();
        state.leave_ring(&self.file, ClockState::Closed);
        if let Some(files) = state.by_path.get_mut(&self.file.path) {
            files.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(&self.file)));
            if files.is_empty() {
                state.by_path.remove(&self.file.path);
            }
        }
        drop(state);
        self.file.descriptor.store(None);
        self.file.direct.store(None);
    }
}

impl OpenFile {
    #[inline]
    fn mark_used(&self) {
        // Checked first: a cache line that nobody writes stays in every core's cache.
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }
}

fn identity(file: &fs::File) -> io::Result<(u64, u64)> {
    file.metadata().map(|about| (about.dev(), about.ino()))
}

fn same(opened: fs::File, file: &OpenFile) -> io::Result<fs::File> {
    if identity(&opened)? == file.identity {
        return Ok(opened);
    }
    Err(io::Error::other("another file has been put in its place while it was open; start the server again"))
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let number = error.raw_os_error();
    number == Some(Errno::MFILE.raw_os_error()) || number == Some(Errno::NFILE.raw_os_error())
}

#[cfg(test)]
mod tests;
