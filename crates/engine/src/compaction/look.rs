//! A look at a table for its strategy: its SSTables and options at one moment.

use super::background::Compactions;
use super::choose::{
    self, CompactionOptions, CompactionPlan, Decision, Reason, Sources, SsTableInfo, StrategyInput,
};
use super::describe::describe;
use super::purge::PurgeRule;
use crate::table::{History, TableStore, View};
use helenus_model::schema::Table;
use helenus_sstable::names::Descriptor;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The input of the strategies.
pub(super) struct Look {
    pub(super) sources: Vec<SsTableInfo>,
    pub(super) options: CompactionOptions,
    elsewhere_us_min: i64,
    pub(super) now_ms: i64,
    gc_before_s: i64,
}

impl Look {
    pub(super) fn new(compactions: &Compactions, store: &TableStore) -> Look {
        let (table, view): (Arc<Table>, Arc<View>) = (store.table(), store.view());
        let now_s = compactions.storage.timestamps.purge_now_s();
        let rule = PurgeRule::new(compactions.purge_options(), &table, now_s, false);
        Look {
            sources: view.sstables.iter().map(|sstable| describe(sstable, rule.gc_before_s)).collect(),
            options: CompactionOptions::of(&table.options.compaction),
            elsewhere_us_min: view.timestamp_us_min_elsewhere(),
            now_ms: compactions.storage.host.clock.wall_us() / 1000,
            gc_before_s: rule.gc_before_s,
        }
    }

    fn situation<'a>(&'a self, busy: &'a BTreeSet<Descriptor>, history: &'a History) -> StrategyInput<'a> {
        StrategyInput {
            sources: Sources::of(&self.sources),
            busy,
            elsewhere_us_min: self.elsewhere_us_min,
            now_ms: self.now_ms,
            gc_before_s: self.gc_before_s,
            history,
            // Any seed will do; the time is never the same for long.
            seed: self.now_ms as u64,
        }
    }

    /// Bytes of the SSTables of a plan.
    pub(super) fn bytes(&self, plan: &CompactionPlan) -> u64 {
        plan.inputs.iter().filter_map(|index| self.sources.get(*index)).map(|source| source.bytes).sum()
    }

    pub(super) fn decide(&self, busy: &BTreeSet<Descriptor>, history: &History) -> Decision {
        choose::choose(&self.situation(busy, history), &self.options)
    }

    /// Major compactions of all SSTables that are not busy.
    pub(super) fn maximal(&self, busy: &BTreeSet<Descriptor>, history: &History) -> Vec<CompactionPlan> {
        let choices = choose::maximal(&self.situation(busy, history), &self.options);
        debug_assert!(choices.iter().all(|choice| choice.reason == Reason::Major));
        choices
    }
}
