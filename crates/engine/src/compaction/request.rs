//! Compactions that an administrator asks for, table after table: of everything, each as its strategy cuts it, or of each
//! SSTable alone, to write it anew.

use super::background::Look;
use super::choose::{Choice, History, Output, Reason, Source};
use super::job::Job;
use crate::database::{Database, Shared};
use crate::error::{Error, Result};
use crate::table::{TableStore, View};
use helenus_host::{Signal, Tasks};
use helenus_model::schema::TableId;
use helenus_model::token::KeyHash;
use helenus_sstable::names::Descriptor;
use helenus_sstable::version::Version;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A request, under way or over.
pub struct CompactionRequest {
    tables: Vec<TableId>,
    scope: Scope,
    state: Mutex<RequestStatus>,
    changed: Signal,
    tasks: Arc<dyn Tasks>,
}

/// What is compacted of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    /// Everything, together.
    Everything,
    /// Each SSTable alone, into one of the present version on its level.
    Each {
        /// Those of the present version too.
        current: bool,
    },
    /// The SSTables that hold any of these keys, together. Their tombstones go whatever their age.
    OfKeys(Arc<BTreeSet<Vec<u8>>>),
}

/// How far a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestStatus {
    /// Compactions that have ended.
    pub compactions: u64,
    /// Tables not begun yet.
    pub tables_left: u64,
    /// Whether it is over, and the first failure.
    pub ended: Option<std::result::Result<(), String>>,
}

impl Database {
    /// Asks for everything in these tables to be compacted, in the background and within the throttle. What is in memory
    /// is not flushed first.
    pub fn compact(&self, tables: Vec<TableId>) -> Arc<CompactionRequest> {
        self.request(tables, Scope::Everything)
    }

    /// Asks for the SSTables of these tables to be written anew, each for itself: those of versions before the one that is
    /// written, or `current` ones too.
    pub fn rewrite(&self, tables: Vec<TableId>, current: bool) -> Arc<CompactionRequest> {
        self.request(tables, Scope::Each { current })
    }

    /// Asks for the SSTables that hold some partitions to be compacted together, and for the tombstones of these partitions to be
    /// dropped though the grace for them is not over. What is in memory is flushed first.
    pub fn compact_keys(&self, tables: Vec<TableId>, keys: BTreeSet<Vec<u8>>) -> Arc<CompactionRequest> {
        for table in &tables {
            // What fails to be written stays in memory, and what it deletes is kept by the compaction.
            let _ = self.flush(*table);
        }
        self.request(tables, Scope::OfKeys(Arc::new(keys)))
    }

    fn request(&self, tables: Vec<TableId>, scope: Scope) -> Arc<CompactionRequest> {
        let state = RequestStatus { tables_left: tables.len() as u64, ..RequestStatus::default() };
        let request = Arc::new(CompactionRequest {
            tables,
            scope,
            state: Mutex::new(state),
            changed: Signal::default(),
            tasks: self.shared.host.tasks.clone(),
        });
        self.shared.compactions.request(request.clone());
        // Workers that have seen it end too what is in the queue; they may have looked there before.
        if self.shared.closing.load(Ordering::Acquire) {
            request.end(Err(Error::Closed.to_string()));
        }
        request
    }
}

impl CompactionRequest {
    /// How far it is.
    pub fn status(&self) -> RequestStatus {
        self.state.lock().clone()
    }

    /// Blocks until it is over.
    ///
    /// # Errors
    /// The first failure's text, after everything was tried.
    pub fn wait(&self) -> std::result::Result<(), String> {
        self.tasks.wait_until(&self.changed, &mut || self.state.lock().ended.is_some());
        self.state.lock().ended.clone().unwrap_or(Ok(()))
    }

    pub(super) fn end(&self, result: std::result::Result<(), String>) {
        self.state.lock().ended.get_or_insert(result);
        self.changed.notify();
    }
}

/// Each SSTable that may be chosen, alone and on its level.
fn each(sources: &[Source], busy: &BTreeSet<Descriptor>, current: bool) -> Vec<Choice> {
    let is_wanted =
        |source: &Source| !busy.contains(&source.id) && (current || source.id.version != Version::CURRENT);
    let wanted = sources.iter().enumerate().filter(|(_, source)| is_wanted(source));
    let choice = |(index, source): (usize, &Source)| Choice {
        inputs: vec![index],
        output: Output::Sized { bytes: u64::MAX, level: source.level },
        reason: Reason::Major,
    };
    wanted.map(choice).collect()
}

/// The SSTables that may hold any of some keys, together; nothing while one of them is taken.
fn of_keys(
    (sources, view): (&[Source], &View),
    busy: &BTreeSet<Descriptor>,
    keys: &BTreeSet<Vec<u8>>,
) -> Vec<Choice> {
    let hashes: Vec<KeyHash> = keys.iter().map(|key| KeyHash::of(key)).collect();
    let holds_any = |source: &Source| {
        let sstable = view.sstables.iter().find(|sstable| *sstable.descriptor() == source.id);
        sstable.is_some_and(|sstable| hashes.iter().any(|hash| sstable.may_contain(hash)))
    };
    let wanted =
        sources.iter().enumerate().filter(|(_, source)| !busy.contains(&source.id) && holds_any(source));
    let inputs: Vec<usize> = wanted.map(|(index, _)| index).collect();
    if inputs.is_empty() {
        return Vec::new();
    }
    vec![Choice { inputs, output: Output::Sized { bytes: u64::MAX, level: 0 }, reason: Reason::Major }]
}

/// SSTables to compact together, by name: others change meanwhile.
type Part = (Vec<Descriptor>, Output);

/// A request in a worker's hands.
pub(super) struct Major {
    request: Arc<CompactionRequest>,
    stores: VecDeque<Arc<TableStore>>,
    /// The table under way, and what is left to do in it.
    table: Option<(Arc<TableStore>, VecDeque<Part>)>,
    failure: Option<String>,
    is_over: bool,
}

impl Major {
    /// Takes a request: from now on its tables are left alone by strategies.
    pub(super) fn new(shared: &Shared, request: Arc<CompactionRequest>) -> Major {
        let stores: VecDeque<_> = request.tables.iter().filter_map(|id| shared.table(*id)).collect();
        stores.iter().for_each(|store| store.compaction.count_major(true));
        Major { request, stores, table: None, failure: None, is_over: false }
    }

    /// Whether all is done.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next compaction; `None` when all is over, or when a table's other compactions have to end first.
    pub(super) fn next(&mut self, shared: &Shared) -> Result<Option<Job>> {
        loop {
            if let Some((store, choices)) = &mut self.table {
                let look = Look::new(shared, store);
                while let Some((ids, output)) = choices.pop_front() {
                    let index = |id: &Descriptor| look.sources.iter().position(|source| source.id == *id);
                    // Gone since: truncated.
                    let Some(inputs) = ids.iter().map(index).collect::<Option<Vec<_>>>() else { continue };
                    let choice = Choice { inputs, output, reason: Reason::Major };
                    let forced = match &self.request.scope {
                        Scope::OfKeys(keys) => keys.clone(),
                        _ => Arc::default(),
                    };
                    match Job::begin(shared, store, (&choice, &look.sources), forced) {
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
            if let Err(error) = store.tidy(shared) {
                store.compaction.count_major(false);
                self.stores.pop_front();
                self.failure.get_or_insert_with(|| error.to_string());
                return Err(error);
            }
            let look = Look::new(shared, store);
            let choose = |busy: &BTreeSet<Descriptor>, history: &History| match &self.request.scope {
                Scope::Everything => look.maximal(busy, history),
                Scope::Each { current } => each(&look.sources, busy, *current),
                Scope::OfKeys(keys) => of_keys((&look.sources, &store.view()), busy, keys),
            };
            let Some(choices) = store.compaction.when_free(choose) else {
                return Ok(None);
            };
            let named = |choice: Choice| {
                (choice.inputs.iter().map(|index| look.sources[*index].id).collect(), choice.output)
            };
            let choices = choices.into_iter().map(named).collect();
            self.table = self.stores.pop_front().map(|store| (store, choices));
        }
    }

    /// Leaves out the table under way, whose part has panicked: it would do so again.
    pub(super) fn leave_out(&mut self, failure: String) {
        let store = self.table.take().map(|(store, _)| store).or_else(|| self.stores.pop_front());
        if let Some(store) = store {
            store.compaction.count_major(false);
            store.troubles.compacted(Some(failure.clone()));
        }
        self.failure.get_or_insert(failure);
    }

    /// Notes the end of a compaction of its own.
    pub(super) fn ended(&mut self, result: std::result::Result<(), String>) {
        self.request.state.lock().compactions += 1;
        if let Err(failure) = result {
            self.failure.get_or_insert(failure);
        }
    }

    /// Ends before it is over.
    pub(super) fn close(mut self) {
        if let Some((store, _)) = self.table.take() {
            self.stores.push_back(store);
        }
        self.stores.iter().for_each(|store| store.compaction.count_major(false));
        self.request.end(Err(Error::Closed.to_string()));
    }
}
