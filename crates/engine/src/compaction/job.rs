//! Runs one compaction step by step: merges, purges, writes, and then replaces the old SSTables by the new ones at
//! once.
//!
//! 1. The SSTables are claimed, so that no other compaction takes them, and the output gets a promise of space (`space`);
//!    if there is too little, the largest SSTables are left out. The transaction log begins with the first new SSTable.
//! 2. Partition after partition is merged and purged of unneeded data; the rest goes into new SSTables. A partition is
//!    never in memory as a whole: a step ends after a number of rows, even within a partition.
//! 3. The transaction log records the removal of the old SSTables. The commit log is synced, because no SSTable may be
//!    durable before the records that define its columns and mark earlier SSTables as flushed.
//! 4. `TableStore::replace`: COMMIT, then the view changes. Readers with an older view still read the old files, which
//!    have no names any more.
//!
//! After a crash at any point, `recover` finds COMMIT and removes the old files, or finds none and removes the new
//! ones.
//!
//! **Replay does not bring purged data back.** Replay repeats a write only if its table is not marked as flushed up to
//! it. The marks are synced before a flushed SSTable is added to the view. So every write in an SSTable that a
//! compaction reads is marked as flushed, and replay skips what the compaction has purged together with its tombstone.

use super::background::Compactions;
use super::choose::{self, CompactionPlan, Output, Reason, Sources, SsTableInfo, StrategyInput};
use super::describe::describe;
use super::history::PastCompaction;
use super::inputs::Inputs;
use super::merging::Merging;
use super::output::{Outputs, Place};
use super::progress::Progress;
use super::purge::{PurgeRule, Purger};
use super::space::{Promise, Shortage, output_bytes_max};
use crate::error::{Error, Result};
use crate::table::{Claim, History, Replaced, TableStore};
use helenus_model::schema::Table;
use helenus_sstable::block::ReadContext;
use helenus_sstable::read_ahead::ReadAhead;
use helenus_sstable::table::SsTable;
use helenus_sstable::transaction_log::{Operation, TransactionLog};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More steps are needed.
    More,
    /// Another operation is changing the table's files: try again soon.
    Later,
    /// The new SSTables are in the view.
    Done,
    /// The table was truncated or dropped, or a major compaction was requested: the result was discarded.
    Discarded,
}

enum Phase {
    Merging,
    Sealing,
    Replacing,
}

/// A running compaction.
pub(super) struct Job {
    store: Arc<TableStore>,
    table: Arc<Table>,
    claim: Claim,
    phase: Phase,
    merging: Merging,
    transaction: Option<TransactionLog>,
    log: PathBuf,
    promise: Promise,
    pub(super) progress: Arc<Progress>,
    /// The monotonic time at its beginning.
    pub(super) begun_ns: u64,
}

impl Job {
    /// Begins the chosen compaction; `None` if it is no longer possible. In the partitions with `forced` keys,
    /// tombstones are purged whatever their age.
    pub(super) fn begin(
        compactions: &Compactions,
        store: &Arc<TableStore>,
        (choice, sources): (&CompactionPlan, &[SsTableInfo]),
        forced: Arc<BTreeSet<Vec<u8>>>,
    ) -> Result<Option<Job>> {
        let ids: Vec<_> = choice.inputs.iter().map(|index| sources[*index].id).collect();
        let view = store.view();
        let Some(mut claim) = store.compaction.claim(&view, &ids, choice.reason == Reason::Major) else {
            return Ok(None);
        };
        // Waits for the writes between their log record and their memtable, so that purging takes them into account.
        drop(compactions.storage.gate.close());
        let table = store.table();
        let begun = Error::contain(|| fit(compactions, (store, &table), &mut claim, choice));
        let Fitted { rule, read, promise } = match begun {
            Ok(fitted) => fitted,
            Err(error) => {
                store.compaction.release(&claim.inputs);
                return Err(error);
            }
        };
        let ahead = Some(ReadAhead::default());
        let cx = ReadContext { may_block: true, ahead, ..ReadContext::default() };
        let transaction = store.begin(&compactions.storage, Operation::Compaction);
        let log = transaction.path().to_owned();
        store.compaction.begin(&log);
        let progress = Arc::new(Progress::new(
            compactions.storage.next_uuid(),
            &table,
            choice.reason,
            &claim.inputs,
            &read,
        ));
        let outputs = Outputs::new(choice.output, choice.reason == Reason::Major, &claim.inputs);
        let inputs = (Inputs::new(read), claim.inputs.as_slice());
        let merging = Merging::new(inputs, outputs, Purger::new(rule, table.clone(), forced), cx);
        Ok(Some(Job {
            store: store.clone(),
            table,
            claim,
            phase: Phase::Merging,
            merging,
            transaction: Some(transaction),
            log,
            promise,
            progress,
            begun_ns: compactions.storage.host.clock.monotonic_ns(),
        }))
    }

    /// The table's storage.
    pub(super) fn store(&self) -> &Arc<TableStore> {
        &self.store
    }

    /// The entry for the list of finished compactions.
    pub(super) fn past(&self, ended_ms: i64) -> PastCompaction {
        let status = self.progress.status();
        let written = self.written();
        let bytes = |of: &[Arc<SsTable>]| of.iter().map(|sstable| sstable.data_bytes()).sum();
        PastCompaction {
            id: status.id,
            keyspace: status.keyspace,
            table: status.table,
            kind: status.kind,
            ended_ms,
            sstables_in: self.claim.inputs.len() as u64,
            sstables_out: written.len() as u64,
            bytes_in: bytes(&self.claim.inputs),
            bytes_out: bytes(written),
        }
    }

    /// The SSTables that it replaces.
    pub(super) fn sources(&self) -> &[Arc<SsTable>] {
        &self.claim.inputs
    }

    /// The SSTables that it has written so far.
    pub(super) fn written(&self) -> &[Arc<SsTable>] {
        self.merging.outputs.written()
    }

    /// Bytes of the output that it was promised.
    pub(super) fn promised_bytes(&self) -> u64 {
        self.promise.bytes()
    }

    /// About the bytes of files that it has not read yet.
    pub(super) fn bytes_left(&self) -> u64 {
        self.progress.stored_bytes_left()
    }

    /// Bytes read from files since the last call.
    pub(super) fn take_bytes_read(&mut self) -> u64 {
        self.merging.take_bytes_read()
    }

    /// Does a bounded part of the work. After an error or the end, files and claims are cleaned up.
    pub(super) fn step(&mut self, compactions: &Compactions) -> Result<Step> {
        if self.store.is_dropped() || !self.store.compaction.may_continue(&self.claim) {
            self.abort();
            return Ok(Step::Discarded);
        }
        let step = Error::contain(|| self.advance(compactions));
        self.progress.set(self.merging.passed_bytes());
        match step {
            Ok(Step::Done) => self.end(false),
            Ok(Step::Discarded) => self.abort(),
            Ok(Step::More | Step::Later) => {}
            Err(_) if self.transaction.is_some() => self.abort(),
            // It is unknown whether COMMIT took effect: the store has taken over the claim and the files.
            Err(_) => self.store.compaction.end(&self.log, true),
        }
        step
    }

    fn advance(&mut self, compactions: &Compactions) -> Result<Step> {
        match self.phase {
            Phase::Merging => {
                let place = Place { env: &compactions.storage, store: &self.store, table: &self.table };
                let finished = match &mut self.transaction {
                    Some(transaction) => self.merging.step(place, transaction)?,
                    None => true,
                };
                let written = self.merging.outputs.bytes();
                self.promise.written(
                    &compactions.space,
                    &compactions.storage,
                    self.store.folder(),
                    written,
                )?;
                if finished {
                    self.phase = Phase::Sealing;
                }
                Ok(Step::More)
            }
            Phase::Sealing => {
                if let Some(log) = &compactions.storage.log {
                    log.sync_up_to(log.position())?;
                }
                if let Some(transaction) = &mut self.transaction {
                    self.store.note_removed(&compactions.storage, transaction, &self.claim.inputs)?;
                }
                self.phase = Phase::Replacing;
                Ok(Step::More)
            }
            Phase::Replacing => {
                let written = self.merging.outputs.written();
                match self.store.replace(&compactions.storage, &self.claim, written, &mut self.transaction)? {
                    Replaced::Done => Ok(Step::Done),
                    Replaced::Discarded => Ok(Step::Discarded),
                    Replaced::Later => Ok(Step::Later),
                }
            }
        }
    }

    /// Discards the result.
    pub(super) fn abort(&mut self) {
        let undone = Error::contain(|| {
            self.merging.outputs.abandon();
            match self.transaction.take() {
                Some(transaction) if transaction.has_begun() => Ok(transaction.abort()?),
                _ => Ok(()),
            }
        });
        self.end(undone.is_err());
    }

    fn end(&mut self, left: bool) {
        // After COMMIT the old files are removed while the log is still registered, so that no clean-up interferes.
        let finish = |transaction: TransactionLog| Error::contain(|| Ok(transaction.finish()?)).is_ok();
        let removed = self.transaction.take().is_none_or(finish);
        self.store.compaction.end(&self.log, left || !removed);
        self.store.compaction.release(&self.claim.inputs);
    }
}

/// A claim with a promise of space.
struct Fitted {
    rule: PurgeRule,
    /// The SSTables that are read.
    read: Vec<Arc<SsTable>>,
    promise: Promise,
}

/// Gets a promise of space for the output. If there is too little, the largest SSTables are released, as in
/// `CompactionTask.buildCompactionCandidatesForAvailableDiskSpace`; those that can be dropped unread stay. A requested
/// compaction is not reduced: who asked is told.
fn fit(
    compactions: &Compactions,
    (store, table): (&TableStore, &Table),
    claim: &mut Claim,
    choice: &CompactionPlan,
) -> Result<Fitted> {
    let whole = claim.inputs.len();
    loop {
        let rule = rule(compactions, table, claim);
        let read = without_expired(compactions, store, claim, rule);
        let wanted = output_bytes_max(table, &read);
        let shortage = match compactions.space.promise(&compactions.storage, store.folder(), wanted) {
            Ok(promise) => {
                compactions.note_reduced(whole - claim.inputs.len());
                return Ok(Fitted { rule, read, promise });
            }
            Err(shortage) => shortage,
        };
        let has_room =
            |bytes| compactions.space.shortage(&compactions.storage, store.folder(), bytes).is_none();
        let left_out = match claim.is_major {
            true => Err(wanted),
            false => too_much(table, &read, choice, has_room),
        };
        let left_out = match left_out {
            Ok(left_out) => left_out,
            // What can be dropped unread needs no space.
            Err(_) if !claim.is_major && read.len() < claim.inputs.len() => read,
            Err(wanted) => {
                let least = compactions.space.shortage(&compactions.storage, store.folder(), wanted);
                return Err(least.unwrap_or(Shortage { wanted, ..shortage }).error());
            }
        };
        store.compaction.release(&left_out);
        let left_out: BTreeSet<_> = left_out.iter().map(|sstable| *sstable.descriptor()).collect();
        claim.inputs.retain(|input| !left_out.contains(input.descriptor()));
    }
}

/// The largest SSTables, as many as must be left out for the output of the others to have room. If fewer than two would
/// be left to read, the error is the least number of bytes that would do.
///
/// In a levelled compaction only SSTables of level 0 may be left out, because the others must not overlap the output on
/// its level (`LeveledCompactionTask.reduceScopeForLimitedSpace`).
fn too_much(
    table: &Table,
    read: &[Arc<SsTable>],
    choice: &CompactionPlan,
    has_room: impl Fn(u64) -> bool,
) -> std::result::Result<Vec<Arc<SsTable>>, u64> {
    let may_go = |sstable: &Arc<SsTable>| match choice.output {
        Output::Sized { level, .. } => level <= 1 && sstable.stats().level == 0,
        Output::Levels { .. } => false,
        Output::Whole | Output::Shards(_) => true,
    };
    let (mut may, must): (Vec<_>, Vec<_>) = read.iter().cloned().partition(may_go);
    may.sort_by_key(|sstable| sstable.size_on_disk());
    let mut wanted = output_bytes_max(table, read);
    let least = if must.is_empty() { 2 } else { 1 };
    let mut left_out = Vec::new();
    while !has_room(wanted) {
        if may.len() <= least {
            return Err(wanted);
        }
        let Some(largest) = may.pop() else { return Err(wanted) };
        wanted = wanted.saturating_sub(output_bytes_max(table, std::slice::from_ref(&largest)));
        left_out.push(largest);
    }
    Ok(left_out)
}

/// The table's purge rule at this time.
fn rule(compactions: &Compactions, table: &Table, claim: &Claim) -> PurgeRule {
    let is_repaired = claim.inputs.iter().all(|input| input.stats().repaired_at_ms > 0);
    PurgeRule::new(
        compactions.purge_options(),
        table,
        compactions.storage.timestamps.purge_now_s(),
        is_repaired,
    )
}

/// The claimed SSTables that must be read. The others contain only expired data and are dropped unread.
fn without_expired(
    compactions: &Compactions,
    store: &TableStore,
    claim: &Claim,
    rule: PurgeRule,
) -> Vec<Arc<SsTable>> {
    let view = store.view();
    let sources: Vec<SsTableInfo> =
        view.sstables.iter().map(|sstable| describe(sstable, rule.gc_before_s)).collect();
    let claimed: BTreeSet<_> = claim.inputs.iter().map(|input| *input.descriptor()).collect();
    let candidates: Vec<usize> =
        (0..sources.len()).filter(|index| claimed.contains(&sources[*index].id)).collect();
    let situation = StrategyInput {
        sources: Sources::of(&sources),
        busy: &BTreeSet::new(),
        elsewhere_us_min: view.timestamp_us_min_elsewhere(),
        now_ms: compactions.storage.host.clock.wall_us() / 1000,
        gc_before_s: rule.gc_before_s,
        history: &History::default(),
        seed: 0,
    };
    let expired = choose::fully_expired(&situation, &candidates);
    let expired: BTreeSet<_> = expired.into_iter().map(|index| sources[index].id).collect();
    claim.inputs.iter().filter(|input| !expired.contains(input.descriptor())).cloned().collect()
}
