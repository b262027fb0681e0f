//! The simulated machine, as a test uses it.

use super::clock::VirtualClock;
use super::cuts::{Cut, When};
use super::faults::Fault;
use super::tasks::Steps;
use super::watch::MachineWatch;
use crate::error::on;
use crate::memory::{Call, MemoryDisk, Profile, Shared, Tree};
use crate::random::{Sequence, derive};
use crate::{Clock, Host};
use parking_lot::RwLock;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The data that a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// Durable bytes and names only: the machine lost power before its caches reached the disk.
    OnlySynced,
    /// Everything: only the process died. A later crash can still lose data that is not durable.
    EverythingWritten,
    /// Durable data, and a random part of the unsynced blocks (512 bytes or 4 KiB) and of the changes of names, by the
    /// rules of a file system that is drawn too.
    Torn {
        /// Seed of the random choice; equal seeds leave equal data.
        seed: u64,
    },
    /// The same by the rules of this file system.
    TornOn {
        /// The file system.
        profile: Profile,
        /// Seed of the random choice; equal seeds leave equal data.
        seed: u64,
    },
}

impl Survives {
    /// The file system whose rules are followed, if it matters.
    #[must_use]
    pub fn profile(self) -> Option<Profile> {
        match self {
            Survives::OnlySynced | Survives::EverythingWritten => None,
            Survives::Torn { seed } => {
                let drawn = Sequence::new(derive(seed, 6)).below(Profile::ALL.len() as u64);
                usize::try_from(drawn).ok().and_then(|drawn| Profile::ALL.get(drawn)).copied()
            }
            Survives::TornOn { profile, .. } => Some(profile),
        }
    }
}

/// A machine in memory. Cloning shares it; crash images are independent machines.
#[derive(Clone)]
pub struct Machine {
    shared: Arc<Shared>,
    watch: Arc<MachineWatch>,
    clock: Arc<VirtualClock>,
    random: Arc<Sequence>,
    tasks: Arc<Steps>,
    seed: u64,
}

impl Machine {
    /// A machine with an empty disk of unlimited size, at 2025-01-01. `seed` decides the order of background steps,
    /// the random bytes and how faulty calls fail.
    #[must_use]
    pub fn new(seed: u64) -> Machine {
        Machine::build(Tree::new(true, u64::MAX), seed, VirtualClock::new())
    }

    /// The host to pass to the engine.
    #[must_use]
    pub fn host(&self) -> Host {
        Host {
            disk: Arc::new(MemoryDisk { shared: Arc::clone(&self.shared) }),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::clone(&self.random) as _,
            tasks: Arc::clone(&self.tasks) as _,
        }
    }

    /// The machine after a power loss: `crash_image(OnlySynced)`.
    #[must_use]
    pub fn crash(&self) -> Machine {
        self.crash_image(Survives::OnlySynced)
    }

    /// A machine that is started after a crash of this one: without locks, faults and workers, with the same capacity.
    /// Its wall clock continues; its random bytes differ. This machine is not changed.
    #[must_use]
    pub fn crash_image(&self, survives: Survives) -> Machine {
        let mut tree = self.shared.tree.read().fork();
        match survives {
            Survives::OnlySynced => tree.crash(None),
            Survives::EverythingWritten => {}
            Survives::Torn { seed } | Survives::TornOn { seed, .. } => {
                let profile = survives.profile().unwrap_or(Profile::Strict);
                tree.crash(Some((&Sequence::new(derive(seed, 4)), profile)));
            }
        }
        Machine::over(tree, self.seed, self.clock.restarted())
    }

    /// Makes later calls fail. Several faults may be set; each counts calls independently.
    pub fn fail(&self, fault: Fault) {
        self.watch.faults.set(fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.watch.faults.clear();
    }

    /// Number of calls that failed by a fault.
    #[must_use]
    pub fn faults_struck(&self) -> u64 {
        self.watch.faults.struck()
    }

    /// Number of calls of a kind, including failed ones.
    #[must_use]
    pub fn calls(&self, call: Call) -> u64 {
        self.watch.faults.count(call)
    }

    /// Number of syncs of files and folders.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.watch.cuts.syncs()
    }

    /// Keeps a copy of the machine before or after the `nth` sync (of a file or folder) from now, 1 being the next.
    pub fn on_sync(&self, nth: u64, when: When) {
        self.watch.cuts.ask(nth, when);
    }

    /// The machines kept by `on_sync` since the last call.
    #[must_use]
    pub fn take_cuts(&self) -> Vec<Cut> {
        self.watch.cuts.take()
    }

    /// Shows `watcher` the machine before and after each sync from now on. The copies share pages, so they are cheap,
    /// but copying walks all names. Syncs of this machine by the watcher are not shown.
    pub fn on_every_sync(&self, watcher: impl FnMut(&Cut) + Send + 'static) {
        self.watch.cuts.watch(Some(Box::new(watcher)), false);
    }

    /// As `on_every_sync`, and shows the machine also before each call that changes names, lengths or bytes: every
    /// moment at which a process may be killed.
    pub fn on_every_change(&self, watcher: impl FnMut(&Cut) + Send + 'static) {
        self.watch.cuts.watch(Some(Box::new(watcher)), true);
    }

    /// Ends `on_every_sync` and `on_every_change`.
    pub fn stop_watching(&self) {
        self.watch.cuts.watch(None, false);
    }

    /// Limits the disk to this many bytes of file lengths; existing data stays. `u64::MAX`: no limit.
    pub fn set_capacity(&self, bytes: u64) {
        self.shared.tree.read().space.set_capacity(bytes);
    }

    /// Bytes of file lengths on the disk, including removed files that are still open.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.shared.tree.read().space.used()
    }

    /// The files in a folder and in those below it.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn files_below(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let disk = self.host().disk;
        let mut files = Vec::new();
        for path in disk.list(folder)? {
            match disk.is_dir(&path) {
                true => files.append(&mut self.files_below(&path)?),
                false => files.push(path),
            }
        }
        Ok(files)
    }

    /// Inverts bit `bit` (0 to 7) of the byte at `offset`, as a failing medium does: no sync restores it.
    ///
    /// # Errors
    /// `NotFound`, or `UnexpectedEof` when the file ends before.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> io::Result<()> {
        let found = self.shared.tree.read().find_file(path);
        let flipped = found.and_then(|file| {
            if file.inode.flip_bit(offset, bit) { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        });
        flipped.map_err(|e| on("flip a bit of", path, e))
    }

    /// Sets the percentage of `try_read_exact_at` calls that find nothing in memory; 0 at first.
    pub fn set_cold_reads(&self, percent: u64) {
        self.watch.set_cold(percent);
    }

    /// Moves both clocks forward.
    pub fn advance(&self, ns: u64) {
        self.clock.advance(ns);
    }

    /// Sets the wall clock, forward or back; the monotonic clock is not affected.
    pub fn set_wall_us(&self, wall_us: i64) {
        self.clock.set_wall_us(wall_us);
    }

    /// The latest time that the wall clock has shown, in earlier lives of the machine as well: data that had expired
    /// by then may be gone.
    #[must_use]
    pub fn latest_wall_us(&self) -> i64 {
        self.clock.latest_us()
    }

    /// Runs a step of one worker that can run. False if none can run unless the clock moves.
    pub fn step(&self) -> bool {
        self.tasks.step()
    }

    /// Runs steps until no worker can run unless the clock moves. Returns the number of steps.
    ///
    /// # Panics
    /// After ten million steps: some worker always asks for another step.
    pub fn run_until_idle(&self) -> u64 {
        self.tasks.run_until_idle()
    }

    /// Drops all workers in their present state, and ignores new ones: the process is dead. Workers hold the host and
    /// the host holds the workers, so this also frees their memory. Afterwards every join returns, and `wait_until`
    /// panics unless its condition is already true. So a value that waits when it is dropped should be forgotten
    /// (`mem::forget`).
    pub fn end_tasks(&self) {
        self.tasks.end();
    }

    /// A machine that starts with the data that a crash left.
    pub(super) fn over(tree: Tree, seed: u64, clock: VirtualClock) -> Machine {
        Machine::build(tree, derive(seed, 5), clock)
    }

    fn build(tree: Tree, seed: u64, clock: VirtualClock) -> Machine {
        let clock = Arc::new(clock);
        let watch = Arc::new(MachineWatch::new(seed, Arc::clone(&clock)));
        Machine {
            shared: Arc::new(Shared { tree: RwLock::new(tree), watch: Some(Arc::clone(&watch) as _) }),
            watch,
            random: Arc::new(Sequence::new(derive(seed, 1))),
            tasks: Arc::new(Steps::new(derive(seed, 2), Arc::clone(&clock))),
            clock,
            seed,
        }
    }
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let now = self.clock.monotonic_ns();
        f.debug_struct("Machine")
            .field("seed", &self.seed)
            .field("monotonic_ns", &now)
            .finish_non_exhaustive()
    }
}
