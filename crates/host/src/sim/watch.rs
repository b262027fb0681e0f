//! Decides at each call of a simulated disk whether it fails and whether a crash image is kept.

use super::Machine;
use super::clock::VirtualClock;
use super::cuts::{Cut, Cuts, When};
use super::faults::Faults;
use crate::memory::{Call, Tree, Watch};
use crate::random::{Sequence, derive};
use parking_lot::RwLock;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct MachineWatch {
    pub(crate) faults: Faults,
    pub(crate) cuts: Cuts,
    seed: u64,
    clock: Arc<VirtualClock>,
    chance: Sequence,
    /// Percentage of reads without waiting that find nothing in memory.
    cold_percent: AtomicU64,
}

impl MachineWatch {
    pub(crate) fn new(seed: u64, clock: Arc<VirtualClock>) -> MachineWatch {
        MachineWatch {
            faults: Faults::default(),
            cuts: Cuts::default(),
            seed,
            clock,
            chance: Sequence::new(derive(seed, 3)),
            cold_percent: AtomicU64::new(0),
        }
    }

    pub(super) fn set_cold(&self, percent: u64) {
        self.cold_percent.store(percent, Ordering::Relaxed);
    }

    fn cut(&self, tree: &RwLock<Tree>, path: &Path, number: u64, when: When) {
        if self.cuts.wanted(number, when) {
            let tree = tree.read().fork();
            let machine = Machine::over(tree, self.seed, self.clock.restarted());
            self.cuts.keep(Cut { number, when, path: path.to_path_buf(), machine });
        }
    }
}

impl Watch for MachineWatch {
    fn call(&self, call: Call, path: &Path) -> io::Result<()> {
        self.faults.call(call, path)
    }

    fn before_change(&self, tree: &RwLock<Tree>, call: Call, path: &Path) {
        if self.cuts.wants_changes() {
            let tree = tree.read().fork();
            let machine = Machine::over(tree, self.seed, self.clock.restarted());
            let number = self.cuts.syncs();
            self.cuts.keep(Cut { number, when: When::Change(call), path: path.to_path_buf(), machine });
        }
    }

    fn chance(&self) -> &Sequence {
        &self.chance
    }

    fn cold_read(&self) -> bool {
        let percent = self.cold_percent.load(Ordering::Relaxed);
        percent > 0 && self.chance.below(100) < percent
    }

    fn before_sync(&self, tree: &RwLock<Tree>, path: &Path) -> u64 {
        let number = self.cuts.begin();
        self.cut(tree, path, number, When::Before);
        number
    }

    fn after_sync(&self, tree: &RwLock<Tree>, path: &Path, number: u64) {
        self.cut(tree, path, number, When::After);
    }
}
