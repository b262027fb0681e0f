//! TimeWindowCompactionStrategy: compacts SSTables of one time window together, and never across windows.

use super::expired::{TombstoneSearch, fully_expired};
use super::options::{CompactionOptions, TimeWindowOptions};
use super::size_tiered;
use super::strategy_input::{CompactionPlan, Decision, Output, Reason, StrategyInput};
use std::collections::BTreeMap;

/// Chooses the newest window with something to do, and expired SSTables, or one SSTable for its tombstones.
///
/// The newest window is that of the newest SSTable of all. Cassandra remembers the newest one it has seen among the
/// SSTables not being compacted, which differs only for a moment.
pub(super) fn choose(
    situation: &StrategyInput<'_>,
    options: &CompactionOptions,
    own: &TimeWindowOptions,
) -> Decision {
    let free = situation.free();
    let expired_checked = situation.now_ms - situation.history.expired_checked_ms > own.expired_check_ms;
    let expired = if expired_checked { fully_expired(situation, &free) } else { Vec::new() };
    let is_expired = situation.flags(&expired);
    let candidates: Vec<usize> = free.into_iter().filter(|index| !is_expired[*index]).collect();
    let window = |index: &usize| window_start_s(situation.sources[*index].timestamp_us_max, own);
    let newest = (0..situation.sources.len()).map(|index| window(&index)).max().unwrap_or(0).max(0);
    let mut windows: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for index in &candidates {
        windows.entry(window(index)).or_default().push(*index);
    }
    let (mut inputs, pending) = newest_window(situation, options, own, (&windows, newest));
    let mut reason = Reason::Strategy;
    if inputs.is_empty() && own.tombstone_compactions {
        let search = TombstoneSearch::new(situation, &options.tombstones);
        let worth = candidates.into_iter().filter(|index| search.is_worth(*index));
        inputs.extend(worth.min_by_key(|index| situation.sources[*index].bytes));
        reason = Reason::Tombstones;
    }
    if !expired.is_empty() {
        reason = Reason::Strategy;
        inputs.extend(expired);
    }
    let choice = (!inputs.is_empty()).then_some(CompactionPlan { inputs, output: Output::Whole, reason });
    Decision { choice, pending, expired_checked, ..Decision::default() }
}

/// Start of the window of a timestamp, seconds since 1970. All divisions round towards zero, as in Java.
fn window_start_s(timestamp: i64, own: &TimeWindowOptions) -> i64 {
    let (divisor, factor) = own.timestamps;
    let ms = (timestamp / divisor).saturating_mul(factor);
    let seconds = ms / 1000;
    seconds - seconds % own.window_s
}

/// The SSTables to compact, and the number of compactions that are due. The newest window is compacted by size from
/// `min_threshold` SSTables on, any other window from two on.
fn newest_window(
    situation: &StrategyInput<'_>,
    options: &CompactionOptions,
    own: &TimeWindowOptions,
    (windows, newest): (&BTreeMap<i64, Vec<usize>>, i64),
) -> (Vec<usize>, u64) {
    let (min, max) = (options.min_threshold, options.max_threshold);
    let (mut inputs, mut pending) = (Vec::new(), 0);
    for (start, window) in windows.iter().rev() {
        let mut sized: Vec<(usize, u64)> =
            window.iter().map(|index| (*index, situation.sources[*index].bytes)).collect();
        let found = if *start >= newest && window.len() >= min {
            let buckets = size_tiered::buckets(sized, &own.size_tiered);
            size_tiered::most_interesting(situation, buckets, (min, max))
        } else if *start < newest && window.len() >= 2 {
            sized.sort_by_key(|(_, bytes)| *bytes);
            sized.into_iter().take(max).map(|(index, _)| index).collect()
        } else {
            continue;
        };
        if found.is_empty() {
            continue;
        }
        let remaining = window.len().saturating_sub(max);
        pending += 1 + if remaining > min { remaining.div_ceil(max) as u64 } else { 0 };
        if inputs.is_empty() {
            inputs = found;
        }
    }
    (inputs, pending)
}

#[cfg(test)]
mod tests {
    use super::super::Strategy;
    use super::super::strategy_input::SsTableInfo;
    use super::super::testing::{MIB, Setting, whole};
    use super::*;

    const DAY_US: i64 = 86_400_000_000;

    fn options(pairs: &[(&str, &str)]) -> CompactionOptions {
        let class = [("class", "TimeWindowCompactionStrategy")];
        let pairs = class.iter().chain(pairs).map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        CompactionOptions::of(&pairs.collect())
    }

    fn decide(setting: &Setting, options: &CompactionOptions) -> Decision {
        let Strategy::TimeWindow(own) = &options.strategy else { panic!() };
        choose(&setting.situation(), options, own)
    }

    fn at(timestamp_us_max: i64) -> SsTableInfo {
        SsTableInfo { timestamp_us_max, ..whole(100 * MIB) }
    }

    fn inputs(sources: Vec<SsTableInfo>) -> Vec<usize> {
        decide(&Setting::new(sources), &options(&[])).choice.map(|choice| choice.inputs).unwrap_or_default()
    }

    #[test]
    fn a_window_ends_with_its_last_microsecond() {
        let Strategy::TimeWindow(own) = options(&[]).strategy else { panic!() };
        assert_eq!(window_start_s(DAY_US - 1, &own), 0);
        assert_eq!(window_start_s(DAY_US, &own), 86_400);
        let two_hours = [("compaction_window_unit", "HOURS"), ("compaction_window_size", "2")];
        let Strategy::TimeWindow(own) = options(&two_hours).strategy else { panic!() };
        assert_eq!(window_start_s(7_199_999_999, &own), 0);
        assert_eq!(window_start_s(7_200_000_000, &own), 7200);
        let Strategy::TimeWindow(own) = options(&[("timestamp_resolution", "SECONDS")]).strategy else {
            panic!()
        };
        assert_eq!(window_start_s(86_401, &own), 86_400);
    }

    #[test]
    fn an_old_window_is_compacted_from_two_on_and_the_newest_by_size_from_four_on() {
        assert_eq!(inputs(vec![at(DAY_US), at(DAY_US + 1), at(2 * DAY_US)]), [0, 1]);
        assert_eq!(inputs(vec![at(DAY_US), at(2 * DAY_US), at(3 * DAY_US)]), []);
        assert_eq!(inputs(vec![at(DAY_US), at(DAY_US), at(DAY_US)]), []);
        assert_eq!(inputs(vec![at(DAY_US), at(DAY_US), at(DAY_US), at(DAY_US)]), [0, 1, 2, 3]);
        // Four in the newest window, but of different sizes: the older window is compacted.
        let large = SsTableInfo { bytes: 10_000 * MIB, ..at(3 * DAY_US) };
        let newest = [at(3 * DAY_US), at(3 * DAY_US), at(3 * DAY_US), large];
        assert_eq!(inputs([vec![at(DAY_US), at(DAY_US)], newest.to_vec()].concat()), [0, 1]);
    }

    #[test]
    fn the_newest_of_several_old_windows_goes_first() {
        let sources = vec![at(DAY_US), at(DAY_US), at(2 * DAY_US), at(2 * DAY_US), at(3 * DAY_US)];
        let decision = decide(&Setting::new(sources.clone()), &options(&[]));
        assert_eq!((decision.choice.unwrap().inputs, decision.pending), (vec![2, 3], 2));
        // The newest window stays the same while its SSTable is being compacted.
        let mut setting = Setting::new(sources);
        setting.busy.insert(setting.sources[4].id);
        assert_eq!(decide(&setting, &options(&[])).choice.unwrap().inputs, [2, 3]);
    }

    #[test]
    fn what_has_expired_goes_along_once_the_check_is_due() {
        let expired = SsTableInfo { local_deletion_s_max: 5, timestamp_us_max: 7, ..whole(MIB) };
        let alive = SsTableInfo { timestamp_us_min: DAY_US, ..at(DAY_US) };
        let mut setting = Setting::new(vec![expired, alive]);
        setting.now_ms = 600_000;
        assert_eq!(decide(&setting, &options(&[])).choice, None, "checked within the last ten minutes");
        setting.now_ms = 600_001;
        let decision = decide(&setting, &options(&[]));
        assert_eq!((decision.choice.unwrap().inputs, decision.expired_checked), (vec![0], true));
    }
}
