//! Counts calls of the disk by kind, and makes calls fail on request.

use crate::memory::Call;
use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A fault to come.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind of call; `None` for every call that changes the disk or makes it durable.
    call: Option<Call>,
    left: u64,
    error: io::ErrorKind,
    lasting: bool,
    panics: bool,
    path: Option<String>,
}

impl Fault {
    /// Fails the `nth` call of a kind after the fault is set, 1 being the next, with an error of this kind.
    #[must_use]
    pub fn new(call: Call, nth: u64, error: io::ErrorKind) -> Fault {
        Fault { call: Some(call), left: nth.max(1), error, lasting: false, panics: false, path: None }
    }

    /// The same for calls of every kind that changes the disk or makes it durable.
    #[must_use]
    pub fn of_any_change(nth: u64, error: io::ErrorKind) -> Fault {
        Fault { call: None, left: nth.max(1), error, lasting: false, panics: false, path: None }
    }

    /// Also fails every such call after that.
    #[must_use]
    pub fn lasting(self) -> Fault {
        Fault { lasting: true, ..self }
    }

    /// Panics instead of returning an error, as a bug in the calling code would.
    #[must_use]
    pub fn panicking(self) -> Fault {
        Fault { panics: true, ..self }
    }

    /// Counts and fails only calls whose path contains `part`.
    #[must_use]
    pub fn on(self, part: &str) -> Fault {
        Fault { path: Some(part.to_owned()), ..self }
    }

    /// Counts a matching call. Returns whether it must fail.
    fn strikes(&mut self, call: Call, path: &Path) -> bool {
        let is_one = match self.call {
            Some(wanted) => wanted == call,
            None => call.is_change() || matches!(call, Call::Sync | Call::SyncDir),
        };
        let fits =
            is_one && self.path.as_ref().is_none_or(|part| path.to_string_lossy().contains(part.as_str()));
        if !fits || self.left == 0 {
            return fits && self.lasting;
        }
        self.left -= 1;
        self.left == 0
    }
}

#[derive(Default)]
pub(crate) struct Faults {
    counts: [AtomicU64; Call::KINDS],
    struck: AtomicU64,
    set: Mutex<Vec<Fault>>,
}

impl Faults {
    pub(crate) fn set(&self, fault: Fault) {
        self.set.lock().push(fault);
    }

    pub(crate) fn clear(&self) {
        self.set.lock().clear();
    }

    /// Counts a call; returns an error if a fault strikes. Every fault counts the call, whichever strikes first.
    ///
    /// # Panics
    /// If a panicking fault strikes.
    pub(crate) fn call(&self, call: Call, path: &Path) -> io::Result<()> {
        self.counts[call as usize].fetch_add(1, Ordering::Relaxed);
        let (mut error, mut panics) = (None, false);
        for fault in self.set.lock().iter_mut() {
            if fault.strikes(call, path) {
                error.get_or_insert(fault.error);
                panics |= fault.panics;
            }
        }
        if panics {
            self.struck.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose, by a test: {call:?} of {}", path.display());
        }
        match error {
            None => Ok(()),
            Some(kind) => {
                self.struck.fetch_add(1, Ordering::Relaxed);
                Err(kind.into())
            }
        }
    }

    pub(crate) fn count(&self, call: Call) -> u64 {
        self.counts[call as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn struck(&self) -> u64 {
        self.struck.load(Ordering::Relaxed)
    }
}
