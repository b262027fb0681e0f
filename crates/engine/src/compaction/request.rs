//! Compactions that an administrator requests, table by table: of everything, as the strategy groups it; of each
//! SSTable alone, to rewrite it; or of the SSTables with given keys.

use super::background::Compactions;
use super::choose::{CompactionPlan, Output, Reason, SsTableInfo};
use super::job::Job;
use super::look::Look;
use crate::error::{Error, Result};
use crate::table::{History, Storage, TableStore, View};
use helenus_host::{Signal, Tasks};
use helenus_model::schema::TableId;
use helenus_model::token::KeyHash;
use helenus_sstable::names::Descriptor;
use helenus_sstable::version::Version;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A request, running or finished.
pub struct CompactionRequest {
    tables: Vec<TableId>,
    scope: Scope,
    state: Mutex<RequestStatus>,
    changed: Signal,
    tasks: Arc<dyn Tasks>,
}

/// Which SSTables of a table are compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All of them, together.
    Everything,
    /// Each SSTable alone, rewritten in the current format version on its level.
    Each {
        /// Whether SSTables of the current version are rewritten too.
        current: bool,
    },
    /// The SSTables that may contain any of these keys, together. The tombstones of these partitions are purged
    /// whatever their age.
    OfKeys(Arc<BTreeSet<Vec<u8>>>),
}

/// The progress of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestStatus {
    /// Finished compactions.
    pub compactions: u64,
    /// Tables that have not begun.
    pub tables_left: u64,
    /// The result when it is finished: success, or the first failure.
    pub ended: Option<std::result::Result<(), String>>,
}

impl CompactionRequest {
    pub(super) fn new(tables: Vec<TableId>, scope: Scope, tasks: Arc<dyn Tasks>) -> CompactionRequest {
        let state = RequestStatus { tables_left: tables.len() as u64, ..RequestStatus::default() };
        CompactionRequest { tables, scope, state: Mutex::new(state), changed: Signal::default(), tasks }
    }

    /// The progress.
    pub fn status(&self) -> RequestStatus {
        self.state.lock().clone()
    }

    /// Blocks until it is finished.
    pub fn wait(&self) -> std::result::Result<(), String> {
        self.tasks.wait_until(&self.changed, &mut || self.state.lock().ended.is_some());
        self.state.lock().ended.clone().unwrap_or(Ok(()))
    }

    /// Bytes of the SSTables of its tables.
    pub(super) fn bytes(&self, storage: &Storage) -> u64 {
        let bytes_of = |store: Arc<TableStore>| {
            store.view().sstables.iter().map(|sstable| sstable.size_on_disk()).sum::<u64>()
        };
        self.tables.iter().filter_map(|id| storage.table(*id)).map(bytes_of).sum()
    }

    pub(super) fn end(&self, result: std::result::Result<(), String>) {
        self.state.lock().ended.get_or_insert(result);
        self.changed.notify();
    }
}

/// One choice for each SSTable that is not busy, alone and on its level.
fn each(sources: &[SsTableInfo], busy: &BTreeSet<Descriptor>, current: bool) -> Vec<CompactionPlan> {
    let is_wanted = |source: &SsTableInfo| {
        !busy.contains(&source.id) && (current || source.id.version != Version::CURRENT)
    };
    let wanted = sources.iter().enumerate().filter(|(_, source)| is_wanted(source));
    let choice = |(index, source): (usize, &SsTableInfo)| CompactionPlan {
        inputs: vec![index],
        output: Output::Sized { bytes: u64::MAX, level: source.level },
        reason: Reason::Major,
    };
    wanted.map(choice).collect()
}

/// One choice of all SSTables that may contain any of the keys and are not in `busy`.
fn of_keys(
    (sources, view): (&[SsTableInfo], &View),
    busy: &BTreeSet<Descriptor>,
    keys: &BTreeSet<Vec<u8>>,
) -> Vec<CompactionPlan> {
    let hashes: Vec<KeyHash> = keys.iter().map(|key| KeyHash::of(key)).collect();
    let sstables: BTreeMap<_, _> =
        view.sstables.iter().map(|sstable| (*sstable.descriptor(), sstable)).collect();
    let holds_any = |source: &SsTableInfo| {
        let sstable = sstables.get(&source.id);
        sstable.is_some_and(|sstable| hashes.iter().any(|hash| sstable.may_contain(hash)))
    };
    let wanted =
        sources.iter().enumerate().filter(|(_, source)| !busy.contains(&source.id) && holds_any(source));
    let inputs: Vec<usize> = wanted.map(|(index, _)| index).collect();
    if inputs.is_empty() {
        return Vec::new();
    }
    vec![CompactionPlan {
        inputs,
        output: Output::Sized { bytes: u64::MAX, level: 0 },
        reason: Reason::Major,
    }]
}

/// SSTables to compact together. They are kept by name, because the set of SSTables changes meanwhile.
type Part = (Vec<Descriptor>, Output);

/// A request that a worker is executing.
pub(super) struct RunningRequest {
    request: Arc<CompactionRequest>,
    stores: VecDeque<Arc<TableStore>>,
    /// The current table and its remaining compactions.
    table: Option<(Arc<TableStore>, VecDeque<Part>)>,
    /// The table that it has worked at last.
    at: Option<Arc<TableStore>>,
    failure: Option<String>,
    is_over: bool,
}

impl RunningRequest {
    /// Begins a request. From now on the strategies leave its tables alone. What has failed before is tried again.
    pub(super) fn new(compactions: &Compactions, request: Arc<CompactionRequest>) -> RunningRequest {
        let stores: VecDeque<_> =
            request.tables.iter().filter_map(|id| compactions.storage.table(*id)).collect();
        for store in &stores {
            store.compaction.count_major(true);
            store.compaction.try_again();
        }
        RunningRequest { request, stores, table: None, at: None, failure: None, is_over: false }
    }

    /// The table that it has worked at last.
    pub(super) fn store(&self) -> Option<Arc<TableStore>> {
        self.at.clone()
    }

    /// Whether the request is finished.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next compaction; `None` if the request is finished, or while other compactions of the table must end first.
    pub(super) fn next(&mut self, compactions: &Compactions) -> Result<Option<Job>> {
        loop {
            if let Some((store, choices)) = &mut self.table {
                self.at = Some(store.clone());
                let look = Look::new(compactions, store);
                let indexes: BTreeMap<Descriptor, usize> =
                    look.sources.iter().enumerate().map(|(index, source)| (source.id, index)).collect();
                while let Some((ids, output)) = choices.pop_front() {
                    let index = |id: &Descriptor| indexes.get(id).copied();
                    // The SSTables are gone: the table was truncated.
                    let Some(inputs) = ids.iter().map(index).collect::<Option<Vec<_>>>() else { continue };
                    let choice = CompactionPlan { inputs, output, reason: Reason::Major };
                    let forced = match &self.request.scope {
                        Scope::OfKeys(keys) => keys.clone(),
                        _ => Arc::default(),
                    };
                    match Job::begin(compactions, store, (&choice, &look.sources), forced) {
                        Ok(None) => {}
                        Ok(job) => return Ok(job),
                        Err(error) => {
                            self.failure.get_or_insert_with(|| error.to_string());
                            return Err(error);
                        }
                    }
                }
                store.compaction.count_major(false);
                self.table = None;
            }
            self.request.state.lock().tables_left = self.stores.len() as u64;
            let Some(store) = self.stores.front() else {
                self.is_over = true;
                self.request.end(self.failure.take().map_or(Ok(()), Err));
                return Ok(None);
            };
            self.at = Some(store.clone());
            if let Err(error) = store.tidy(&compactions.storage) {
                store.compaction.count_major(false);
                self.stores.pop_front();
                self.failure.get_or_insert_with(|| error.to_string());
                return Err(error);
            }
            let look = Look::new(compactions, store);
            let choose = |busy: &BTreeSet<Descriptor>, history: &History| match &self.request.scope {
                Scope::Everything => look.maximal(busy, history),
                Scope::Each { current } => each(&look.sources, busy, *current),
                Scope::OfKeys(keys) => of_keys((&look.sources, &store.view()), busy, keys),
            };
            let Some(choices) = store.compaction.when_free(choose) else {
                return Ok(None);
            };
            let named = |choice: CompactionPlan| {
                (choice.inputs.iter().map(|index| look.sources[*index].id).collect(), choice.output)
            };
            let choices = choices.into_iter().map(named).collect();
            self.table = self.stores.pop_front().map(|store| (store, choices));
        }
    }

    /// Skips the current table after a panic, which would happen again.
    pub(super) fn leave_out(&mut self, failure: String) {
        let store = self.table.take().map(|(store, _)| store).or_else(|| self.stores.pop_front());
        if let Some(store) = store {
            store.compaction.count_major(false);
            store.troubles.compacted(Some(failure.clone()));
        }
        self.failure.get_or_insert(failure);
    }

    /// Records the end of one of the request's compactions.
    pub(super) fn ended(&mut self, result: std::result::Result<(), String>) {
        self.request.state.lock().compactions += 1;
        if let Err(failure) = result {
            self.failure.get_or_insert(failure);
        }
    }

    /// Ends the request early, because the database is closing.
    pub(super) fn close(mut self) {
        if let Some((store, _)) = self.table.take() {
            self.stores.push_back(store);
        }
        self.stores.iter().for_each(|store| store.compaction.count_major(false));
        self.request.end(Err(Error::Closed.to_string()));
    }
}
