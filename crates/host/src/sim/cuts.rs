//! Keeps copies of a machine around a sync and before a change, for tests of crashes at that moment.

use super::Machine;
use crate::memory::Call;
use parking_lot::Mutex;
use std::path::PathBuf;

/// The moment of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Called; nothing is durable yet.
    Before,
    /// Durable (or failed); not yet returned to the caller.
    After,
    /// Before a call that changes names, lengths or bytes: where a process may be killed. Only for `on_every_change`.
    Change(Call),
}

/// A machine as it was at one sync or change.
#[derive(Clone)]
pub struct Cut {
    /// Number of the sync in the machine's life, from 1, files and folders together; of a change, the number of the
    /// last sync before it.
    pub number: u64,
    /// The moment relative to the sync, or the change.
    pub when: When,
    /// The file or folder that was synced or changed.
    pub path: PathBuf,
    /// An independent machine with everything written until then; `crash_image` yields what a crash leaves of it.
    pub machine: Machine,
}

type Watcher = Box<dyn FnMut(&Cut) + Send>;

#[derive(Default)]
pub(crate) struct Cuts {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    syncs: u64,
    asked: Vec<(u64, When)>,
    taken: Vec<Cut>,
    watcher: Option<Watcher>,
    /// Whether the watcher wants to see changes too.
    watches_changes: bool,
}

impl Cuts {
    /// Counts a sync that begins, and returns its number.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        state.syncs += 1;
        state.syncs
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// Requests a copy of the machine at the `nth` sync from now.
    pub(crate) fn ask(&self, nth: u64, when: When) {
        let mut state = self.state.lock();
        let number = state.syncs + nth.max(1);
        state.asked.push((number, when));
    }

    pub(crate) fn watch(&self, watcher: Option<Watcher>, watches_changes: bool) {
        let mut state = self.state.lock();
        state.watcher = watcher;
        state.watches_changes = watches_changes;
    }

    pub(crate) fn wants_changes(&self) -> bool {
        let state = self.state.lock();
        state.watcher.is_some() && state.watches_changes
    }

    pub(crate) fn wanted(&self, number: u64, when: When) -> bool {
        let state = self.state.lock();
        state.watcher.is_some() || state.asked.contains(&(number, when))
    }

    /// Keeps a cut that was requested, and shows it to the watcher, which may use the machine it was taken from.
    pub(crate) fn keep(&self, cut: Cut) {
        let mut state = self.state.lock();
        let watcher = state.watcher.take();
        let asked = state.asked.len();
        state.asked.retain(|wanted| *wanted != (cut.number, cut.when));
        if state.asked.len() < asked {
            state.taken.push(cut.clone());
        }
        drop(state);
        if let Some(mut watcher) = watcher {
            watcher(&cut);
            self.state.lock().watcher.get_or_insert(watcher);
        }
    }

    pub(crate) fn take(&self) -> Vec<Cut> {
        std::mem::take(&mut self.state.lock().taken)
    }
}
