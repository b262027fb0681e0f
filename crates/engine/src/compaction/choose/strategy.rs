//! The entry point: calls the strategy that a table's options name.

use super::options::{CompactionOptions, Strategy};
use super::strategy_input::{CompactionPlan, Decision, Output, Reason, StrategyInput};
use super::{leveled, size_tiered, time_window, unified};

/// Chooses what to compact now, by the table's strategy. The caller checks whether compaction is enabled.
pub fn choose(situation: &StrategyInput<'_>, options: &CompactionOptions) -> Decision {
    match &options.strategy {
        Strategy::Unified(own) => unified::choose(situation, own),
        Strategy::SizeTiered(own) => size_tiered::choose(situation, options, own),
        Strategy::Leveled(own) => leveled::choose(situation, options, own),
        Strategy::TimeWindow(own) => time_window::choose(situation, options, own),
    }
}

/// Compactions of everything, as requested by `nodetool compact`: one compaction, or for the unified strategy one for
/// each group of SSTables that overlap no others.
pub fn maximal(situation: &StrategyInput<'_>, options: &CompactionOptions) -> Vec<CompactionPlan> {
    let output = match &options.strategy {
        Strategy::Unified(own) => return unified::maximal(situation, own),
        Strategy::Leveled(own) => Output::Levels { bytes: own.sstable_bytes, fanout: own.fanout },
        Strategy::SizeTiered(_) | Strategy::TimeWindow(_) => Output::Whole,
    };
    let inputs = situation.free();
    if inputs.is_empty() {
        Vec::new()
    } else {
        vec![CompactionPlan { inputs, output, reason: Reason::Major }]
    }
}
