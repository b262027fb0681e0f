//! Runs one compaction step by step: merges, purges, writes, and then replaces the old SSTables by the new ones at
//! once.
//!
//! 1. The SSTables are claimed, so that no other compaction takes them. The transaction log begins with the first new
//!    SSTable.
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
use super::choose::{self, CompactionPlan, Reason, SsTableInfo, StrategyInput};
use super::describe::describe;
use super::history::PastCompaction;
use super::inputs::Inputs;
use super::merging::Merging;
use super::output::{Outputs, Place};
use super::progress::Progress;
use super::purge::{PurgeRule, Purger};
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
        let Some(claim) = store.compaction.claim(&view, &ids, choice.reason == Reason::Major) else {
            return Ok(None);
        };
        // Waits for the writes between their log record and their memtable, so that purging takes them into account.
        drop(compactions.storage.gate.close());
        let table = store.table();
        let rule = rule(compactions, &table, &claim);
        let read = without_expired(compactions, store, &claim, rule);
        let ahead = Some(ReadAhead::default());
        let mut cx = ReadContext { may_block: true, ahead, ..ReadContext::default() };
        let inputs = match Error::contain(|| Inputs::open(&read, &mut cx)) {
            Ok(inputs) => inputs,
            Err(error) => {
                store.compaction.release(&claim.inputs);
                return Err(error);
            }
        };
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
        let merging = Merging::new(inputs, outputs, Purger::new(rule, table.clone(), forced), cx);
        Ok(Some(Job {
            store: store.clone(),
            table,
            claim,
            phase: Phase::Merging,
            merging,
            transaction: Some(transaction),
            log,
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

    /// Bytes read from files since the last call.
    pub(super) fn take_bytes_read(&mut self) -> u64 {
        self.merging.take_bytes_read()
    }

    /// Does a bounded part of the work. After an error or the end, files and claims are cleaned up.
    pub(super) fn step(&mut self, compactions: &Compactions) -> Result<Step> {
        if self.store.is_dropped() || !self.store.compaction.may_continue(&self.claim) {
            self.abort(compactions);
            return Ok(Step::Discarded);
        }
        let step = Error::contain(|| self.advance(compactions));
        self.progress.set(self.merging.passed_bytes());
        match step {
            Ok(Step::Done) => self.end(false),
            Ok(Step::Discarded) => self.abort(compactions),
            Ok(Step::More | Step::Later) => {}
            Err(_) if self.transaction.is_some() => self.abort(compactions),
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
                    Some(transaction) => self.merging.step(place, &self.claim.inputs, transaction)?,
                    None => true,
                };
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
    pub(super) fn abort(&mut self, compactions: &Compactions) {
        let undone = Error::contain(|| {
            self.merging.outputs.abandon();
            match self.transaction.take() {
                Some(transaction) if transaction.has_begun() => Ok(transaction.abort()?),
                _ => Ok(()),
            }
        });
        let undone = undone.is_ok();
        if undone && self.store.is_dropped() {
            // The empty folder of a dropped table does no harm if it stays.
            let _ = self.store.remove_empty_folder(&compactions.storage);
        }
        self.end(!undone);
    }

    fn end(&mut self, left: bool) {
        // After COMMIT the old files are removed while the log is still registered, so that no clean-up interferes.
        let finish = |transaction: TransactionLog| Error::contain(|| Ok(transaction.finish()?)).is_ok();
        let removed = self.transaction.take().is_none_or(finish);
        self.store.compaction.end(&self.log, left || !removed);
        self.store.compaction.release(&self.claim.inputs);
    }
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
    let is_claimed = |id| claim.inputs.iter().any(|input| input.descriptor() == id);
    let candidates: Vec<usize> = (0..sources.len()).filter(|index| is_claimed(&sources[*index].id)).collect();
    let situation = StrategyInput {
        sources: &sources,
        busy: &BTreeSet::new(),
        elsewhere_us_min: view.timestamp_us_min_elsewhere(),
        now_ms: compactions.storage.host.clock.wall_us() / 1000,
        gc_before_s: rule.gc_before_s,
        history: &History::default(),
        seed: 0,
    };
    let expired = choose::fully_expired(&situation, &candidates);
    let is_expired =
        |input: &Arc<SsTable>| expired.iter().any(|index| sources[*index].id == *input.descriptor());
    claim.inputs.iter().filter(|input| !is_expired(input)).cloned().collect()
}
