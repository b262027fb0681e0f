//! One compaction, step by step: merge, purge, write, and then replace the old SSTables by the new ones at once.
//!
//! 1. The SSTables are claimed: no other compaction takes them. A transaction log begins with the first new SSTable.
//! 2. Partition after partition is merged and what nothing needs any more purged; the rest goes into new SSTables. Nothing
//!    holds a partition whole: a step ends after so many rows, wherever it stands.
//! 3. The old SSTables are noted in the transaction log as going, the commit log is synced (an SSTable must not outlast the
//!    records that say its columns and that earlier ones are flushed).
//! 4. `TableStore::replace`: COMMIT, then the view. Whoever holds an older view goes on reading the old files, which have
//!    no names any more.
//!
//! Cut off anywhere, `recover` finds a COMMIT and removes the old files, or none and removes the new ones.
//!
//! **Why replay brings nothing back.** A write that replay would apply again is one whose table is not marked as flushed up
//! to it. Marks are synced before a flushed SSTable gets into the view, so every write in an SSTable that a compaction
//! reads is marked as flushed already: what compaction purges with its tombstone, replay passes over.

use super::choose::{self, Choice, Reason, Source};
use super::describe::describe;
use super::history::PastCompaction;
use super::inputs::Inputs;
use super::merging::Merging;
use super::output::{Outputs, Place};
use super::progress::Progress;
use super::purge::{PurgeRule, Purger};
use super::state::{Claim, situation};
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::table::{Replaced, TableStore};
use helenus_model::schema::Table;
use helenus_sstable::block::ReadContext;
use helenus_sstable::read_ahead::ReadAhead;
use helenus_sstable::table::SsTable;
use helenus_sstable::transaction_log::{Operation, TransactionLog};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is more to do.
    More,
    /// Somebody else changes the table's files at this moment: try again soon.
    Later,
    /// The new SSTables are in the view.
    Done,
    /// The table was emptied or something greater came: the result was thrown away.
    Discarded,
}

enum Phase {
    Merging,
    Sealing,
    Replacing,
}

/// A compaction under way.
pub(super) struct Job {
    store: Arc<TableStore>,
    table: Arc<Table>,
    claim: Claim,
    phase: Phase,
    merging: Merging,
    transaction: Option<TransactionLog>,
    log: PathBuf,
    pub(super) progress: Arc<Progress>,
    /// When it began, by the monotonic clock.
    pub(super) begun_ns: u64,
}

impl Job {
    /// Begins what was chosen; `None` when it is no longer possible. Of the partitions `forced`, tombstones go whatever their age.
    pub(super) fn begin(
        shared: &Shared,
        store: &Arc<TableStore>,
        (choice, sources): (&Choice, &[Source]),
        forced: Arc<BTreeSet<Vec<u8>>>,
    ) -> Result<Option<Job>> {
        let ids: Vec<_> = choice.inputs.iter().map(|index| sources[*index].id).collect();
        let view = store.view();
        let Some(claim) = store.compaction.claim(&view, &ids, choice.reason == Reason::Major) else {
            return Ok(None);
        };
        // Waits for the writes that are between their log record and their memtable: after this, what is to be purged is
        // compared with them.
        drop(shared.gate.close());
        let table = store.table();
        let rule = rule(shared, &table, &claim);
        let read = without_expired(shared, store, &claim, rule);
        let ahead = Some(ReadAhead::default());
        let mut cx = ReadContext { may_block: true, ahead, ..ReadContext::default() };
        let inputs = match Error::contain(|| Inputs::open(&read, &mut cx)) {
            Ok(inputs) => inputs,
            Err(error) => {
                store.compaction.release(&claim.inputs);
                return Err(error);
            }
        };
        let transaction = store.begin(shared, Operation::Compaction);
        let log = transaction.path().to_owned();
        store.compaction.begin(&log);
        let progress =
            Arc::new(Progress::new(shared.next_uuid(), &table, choice.reason, &claim.inputs, &read));
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
            begun_ns: shared.host.clock.monotonic_ns(),
        }))
    }

    /// Whose compaction it is.
    pub(super) fn store(&self) -> &Arc<TableStore> {
        &self.store
    }

    /// What is to be kept of it, now that it is over.
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

    /// The SSTables that it reads.
    pub(super) fn sources(&self) -> &[Arc<SsTable>] {
        &self.claim.inputs
    }

    /// The SSTables that it has written so far.
    pub(super) fn written(&self) -> &[Arc<SsTable>] {
        self.merging.outputs.written()
    }

    /// Bytes read from files since this was last asked.
    pub(super) fn take_bytes_read(&mut self) -> u64 {
        self.merging.take_bytes_read()
    }

    /// Does a bounded piece. After an error or an end nothing is left to do with it: files and claims are in order.
    pub(super) fn step(&mut self, shared: &Shared) -> Result<Step> {
        if self.store.is_dropped() || !self.store.compaction.goes_on(&self.claim) {
            self.abort(shared);
            return Ok(Step::Discarded);
        }
        let step = Error::contain(|| self.advance(shared));
        self.progress.set(self.merging.passed_bytes());
        match step {
            Ok(Step::Done) => self.end(false),
            Ok(Step::Discarded) => self.abort(shared),
            Ok(Step::More | Step::Later) => {}
            Err(_) if self.transaction.is_some() => self.abort(shared),
            // It is not known whether COMMIT counts: the store has taken over claim and files.
            Err(_) => self.store.compaction.end(&self.log, true),
        }
        step
    }

    fn advance(&mut self, shared: &Shared) -> Result<Step> {
        match self.phase {
            Phase::Merging => {
                let place = Place { shared, store: &self.store, table: &self.table };
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
                if let Some(log) = &shared.log {
                    log.sync_up_to(log.position())?;
                }
                if let Some(transaction) = &mut self.transaction {
                    self.store.note_removed(shared, transaction, &self.claim.inputs)?;
                }
                self.phase = Phase::Replacing;
                Ok(Step::More)
            }
            Phase::Replacing => {
                let written = self.merging.outputs.written();
                match self.store.replace(shared, &self.claim, written, &mut self.transaction)? {
                    Replaced::Done => Ok(Step::Done),
                    Replaced::Discarded => Ok(Step::Discarded),
                    Replaced::Later => Ok(Step::Later),
                }
            }
        }
    }

    /// Throws the result away.
    pub(super) fn abort(&mut self, shared: &Shared) {
        let undone = Error::contain(|| {
            self.merging.outputs.abandon();
            match self.transaction.take() {
                Some(transaction) if transaction.has_begun() => Ok(transaction.abort()?),
                _ => Ok(()),
            }
        });
        let undone = undone.is_ok();
        if undone && self.store.is_dropped() {
            // The folder of a table that is gone does no harm if it stays.
            let _ = self.store.remove_empty_folder(shared);
        }
        self.end(!undone);
    }

    fn end(&mut self, left: bool) {
        // After COMMIT the old files go, still under the log, so that nobody else tidies them up meanwhile.
        let finish = |transaction: TransactionLog| Error::contain(|| Ok(transaction.finish()?)).is_ok();
        let removed = self.transaction.take().is_none_or(finish);
        self.store.compaction.end(&self.log, left || !removed);
        self.store.compaction.release(&self.claim.inputs);
    }
}

/// The table's rule now.
fn rule(shared: &Shared, table: &Table, claim: &Claim) -> PurgeRule {
    let is_repaired = claim.inputs.iter().all(|input| input.stats().repaired_at_ms > 0);
    PurgeRule::new(shared.options.compaction.purge, table, shared.timestamps.purge_now_s(), is_repaired)
}

/// The claimed SSTables that must be read: the others hold nothing but what is over, and go as they are.
fn without_expired(shared: &Shared, store: &TableStore, claim: &Claim, rule: PurgeRule) -> Vec<Arc<SsTable>> {
    let view = store.view();
    let sources: Vec<Source> =
        view.sstables.iter().map(|sstable| describe(sstable, rule.gc_before_s)).collect();
    let is_claimed = |id| claim.inputs.iter().any(|input| input.descriptor() == id);
    let candidates: Vec<usize> = (0..sources.len()).filter(|index| is_claimed(&sources[*index].id)).collect();
    let nothing = (BTreeSet::new(), choose::History::default());
    let now_ms = shared.host.clock.wall_us() / 1000;
    let sources_and_rest = (sources.as_slice(), view.timestamp_us_min_elsewhere());
    let situation = situation(sources_and_rest, (&nothing.0, &nothing.1), (now_ms, rule.gc_before_s, 0));
    let expired = choose::fully_expired(&situation, &candidates);
    let is_expired =
        |input: &Arc<SsTable>| expired.iter().any(|index| sources[*index].id == *input.descriptor());
    claim.inputs.iter().filter(|input| !is_expired(input)).cloned().collect()
}
