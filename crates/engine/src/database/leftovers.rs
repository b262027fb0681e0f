//! Work that failed and that nobody else would finish: imports that stopped half-way, and files of dropped tables.
//!
//! The flusher tries it again, with a pause that doubles from a second to a minute. What is left when the process ends is
//! finished by the next start: imports by `table/staged_files.rs`, dropped tables by `table/dropped.rs`.

use super::index_builds::{rebuild, record_not_built};
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::table::{TableStore, clear_import};
use helenus_model::schema::TableId;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The pause after a failed attempt, nanoseconds, at first and at most.
const PAUSE_NS_FIRST: u64 = 1_000_000_000;
const PAUSE_NS_MAX: u64 = 60_000_000_000;

/// What is still to be done.
#[derive(Default)]
pub(crate) struct Leftovers {
    work: Mutex<Work>,
}

#[derive(Default)]
struct Work {
    imports: Vec<Arc<TableStore>>,
    dropped: Vec<Arc<TableStore>>,
    /// Dropped tables that are taken out to be tried.
    retrying: Vec<TableId>,
    retry_at_ns: u64,
    pause_ns: u64,
}

impl Work {
    fn fail(&mut self, now_ns: u64) {
        self.pause_ns = (self.pause_ns * 2).clamp(PAUSE_NS_FIRST, PAUSE_NS_MAX);
        self.retry_at_ns = now_ns.saturating_add(self.pause_ns);
    }
}

impl Leftovers {
    /// Tables for which a part of an import waits, after this failure.
    pub(crate) fn add_imports(
        &self,
        shared: &Shared,
        stores: impl Iterator<Item = Arc<TableStore>>,
        error: &Error,
    ) {
        let mut work = self.work.lock();
        work.fail(shared.host.clock.monotonic_ns());
        for store in stores {
            shared.options.journal.note(&Event::ImportWaits { table: &store.table(), error });
            work.imports.push(store);
        }
    }

    /// A dropped table whose files are not all removed, after this failure; none if a compaction still has some.
    pub(crate) fn add_dropped(&self, shared: &Shared, store: Arc<TableStore>, error: Option<&Error>) {
        let mut work = self.work.lock();
        work.fail(shared.host.clock.monotonic_ns());
        if let Some(error) = error {
            shared.options.journal.note(&Event::LeftBehind { path: store.folder(), error });
        }
        work.dropped.push(store);
    }

    /// Whether files of a dropped table with this id may be left.
    pub(super) fn has_dropped(&self, table: TableId) -> bool {
        let work = self.work.lock();
        work.retrying.contains(&table) || work.dropped.iter().any(|store| store.table().id == table)
    }

    /// Tries everything again, if the pause is over.
    pub(super) fn retry(&self, shared: &Shared) {
        let now_ns = shared.host.clock.monotonic_ns();
        let (imports, dropped) = {
            let mut work = self.work.lock();
            if (work.imports.is_empty() && work.dropped.is_empty()) || now_ns < work.retry_at_ns {
                return;
            }
            work.retrying = work.dropped.iter().map(|store| store.table().id).collect();
            (std::mem::take(&mut work.imports), std::mem::take(&mut work.dropped))
        };
        let failed = |store: &Arc<TableStore>, step: fn(&Shared, &Arc<TableStore>) -> Result<bool>| {
            !Error::contain(|| step(shared, store)).unwrap_or(false)
        };
        let imports: Vec<_> = imports.into_iter().filter(|store| failed(store, retry_imports)).collect();
        let dropped: Vec<_> = dropped.into_iter().filter(|store| failed(store, remove_dropped)).collect();
        let mut work = self.work.lock();
        work.retrying.clear();
        let is_done = imports.is_empty() && dropped.is_empty();
        work.imports.extend(imports);
        work.dropped.extend(dropped);
        if is_done {
            work.pause_ns = 0;
        } else {
            work.fail(now_ns);
        }
    }
}

/// Returns whether nothing is left.
fn retry_imports(shared: &Shared, store: &Arc<TableStore>) -> Result<bool> {
    if !store.awaits_files() || store.is_dropped() || shared.closing.load(Ordering::Acquire) {
        return Ok(true); // A TRUNCATE has given them up.
    }
    let mut is_announced = false;
    // Before the files are added: a search in between would miss their rows. Not before each attempt: a build that is under
    // way would begin anew each time.
    let finished = store.retry_imports(shared, &mut || {
        is_announced = true;
        record_not_built(shared, store)
    });
    if is_announced {
        rebuild(shared, store);
    }
    for from in finished? {
        let ready = from.parent().and_then(Path::parent);
        if let Some(Err(error)) = ready.map(|ready| clear_import(&*shared.host.disk, ready)) {
            shared.options.journal.note(&Event::LeftBehind { path: &from, error: &error });
        }
    }
    shared.options.journal.note(&Event::Imported { table: &store.table(), sstables: 0 });
    Ok(true)
}

/// Returns whether nothing is left.
fn remove_dropped(shared: &Shared, store: &Arc<TableStore>) -> Result<bool> {
    store.drop_files(shared)
}
