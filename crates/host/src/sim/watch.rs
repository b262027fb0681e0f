//! Decides at each call of a simulated disk whether it fails and whether a crash image is kept.

use super::Machine;
use super::clock::VirtualClock;
use super::cuts::{Cut, Cuts, When};
use super::faults::{Call, Faults};
use super::random::{Sequence, derive};
use crate::memory::Tree;
use parking_lot::RwLock;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct Watch {
    pub(crate) faults: Faults,
    pub(crate) cuts: Cuts,
    seed: u64,
    clock: Arc<VirtualClock>,
    chance: Sequence,
    /// Percentage of reads without waiting that find nothing in memory.
    cold_percent: AtomicU64,
}

impl Watch {
    pub(crate) fn new(seed: u64, clock: Arc<VirtualClock>) -> Watch {
        Watch {
            faults: Faults::default(),
            cuts: Cuts::default(),
            seed,
            clock,
            chance: Sequence::new(derive(seed, 3)),
            cold_percent: AtomicU64::new(0),
        }
    }

    pub(crate) fn call(&self, call: Call, path: &Path) -> io::Result<()> {
        self.faults.call(call, path)
    }

    pub(crate) fn chance(&self) -> &Sequence {
        &self.chance
    }

    pub(crate) fn set_cold(&self, percent: u64) {
        self.cold_percent.store(percent, Ordering::Relaxed);
    }

    pub(crate) fn cold_read(&self) -> bool {
        let percent = self.cold_percent.load(Ordering::Relaxed);
        percent > 0 && self.chance.below(100) < percent
    }

    /// Counts the sync, and returns its number.
    pub(crate) fn before_sync(&self, tree: &RwLock<Tree>, path: &Path) -> u64 {
        let number = self.cuts.begin();
        self.cut(tree, path, number, When::Before);
        number
    }

    pub(crate) fn after_sync(&self, tree: &RwLock<Tree>, path: &Path, number: u64) {
        self.cut(tree, path, number, When::After);
    }

    fn cut(&self, tree: &RwLock<Tree>, path: &Path, number: u64, when: When) {
        if self.cuts.wanted(number, when) {
            let tree = tree.read().fork();
            let machine = Machine::over(tree, self.seed, self.clock.restarted());
            self.cuts.keep(Cut { number, when, path: path.to_path_buf(), machine });
        }
    }
}
