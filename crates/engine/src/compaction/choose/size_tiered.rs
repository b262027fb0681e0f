//! SizeTieredCompactionStrategy: compacts SSTables of similar size together.

use super::expired::TombstoneSearch;
use super::options::{CompactionOptions, SizeTieredOptions};
use super::strategy_input::{CompactionPlan, Decision, Output, Reason, StrategyInput};

/// Chooses the bucket to compact, or one SSTable for its tombstones.
pub(super) fn choose(
    situation: &StrategyInput<'_>,
    options: &CompactionOptions,
    own: &SizeTieredOptions,
) -> Decision {
    let free = situation.free();
    let sizes = |index: &usize| (*index, situation.sources[*index].bytes);
    let buckets = buckets(free.iter().map(sizes).collect(), own);
    let (min, max) = (options.min_threshold, options.max_threshold);
    let pending =
        buckets.iter().filter(|bucket| bucket.len() >= min).map(|bucket| bucket.len().div_ceil(max));
    let pending = pending.sum::<usize>() as u64;
    let chosen = most_interesting(situation, buckets, (min, max));
    let (inputs, reason) = if chosen.is_empty() {
        let search = TombstoneSearch::new(situation, &options.tombstones);
        let worth = free.into_iter().filter(|index| search.is_worth(*index));
        let largest = worth.max_by_key(|index| situation.sources[*index].bytes);
        (largest.into_iter().collect(), Reason::Tombstones)
    } else {
        (chosen, Reason::Strategy)
    };
    let choice = (!inputs.is_empty()).then_some(CompactionPlan { inputs, output: Output::Whole, reason });
    Decision { choice, pending, ..Decision::default() }
}

/// Groups items by size. An item goes into the first bucket whose mean is near enough; all small items share a bucket.
pub(super) fn buckets(mut sizes: Vec<(usize, u64)>, options: &SizeTieredOptions) -> Vec<Vec<usize>> {
    sizes.sort_by_key(|(_, bytes)| *bytes);
    let mut buckets: Vec<(u64, Vec<usize>)> = Vec::new();
    // Sizes ascend, so a bucket that a size is above takes no later one either.
    let mut passed = 0;
    for (item, bytes) in sizes {
        let small = options.min_sstable_bytes;
        let similar = |mean: u64| {
            let (size, mean_f) = (bytes as f64, mean as f64);
            (size > mean_f * options.bucket_low && size < mean_f * options.bucket_high)
                || (bytes < small && mean < small)
        };
        let is_above = |mean: u64| bytes as f64 >= mean as f64 * options.bucket_high && bytes >= small;
        passed += buckets.iter().skip(passed).take_while(|(mean, _)| is_above(*mean)).count();
        match buckets.iter_mut().skip(passed).find(|(mean, _)| similar(*mean)) {
            Some((mean, bucket)) => {
                let count = bucket.len() as u64;
                *mean = (count * *mean + bytes) / (count + 1);
                bucket.push(item);
            }
            None => buckets.push((bytes, vec![item])),
        }
    }
    buckets.into_iter().map(|(_, bucket)| bucket).collect()
}

/// The bucket to compact, limited to the greater threshold; empty if no bucket reaches the lesser one.
///
/// Cassandra takes the bucket with the most reads. Read rates are not kept here, so they all count as equal, and
/// Cassandra's tie-break decides: the greatest mean size.
pub(super) fn most_interesting(
    situation: &StrategyInput<'_>,
    buckets: Vec<Vec<usize>>,
    (min, max): (usize, usize),
) -> Vec<usize> {
    let mean = |bucket: &Vec<usize>| {
        bucket.iter().map(|index| situation.sources[*index].bytes).sum::<u64>() / bucket.len() as u64
    };
    let mut best: Option<Vec<usize>> = None;
    for mut bucket in buckets {
        bucket.truncate(max);
        if bucket.len() >= min && best.as_ref().is_none_or(|best| mean(&bucket) > mean(best)) {
            best = Some(bucket);
        }
    }
    best.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MIB, Setting, looks, whole};
    use super::*;
    use std::collections::BTreeMap;

    fn options(pairs: &[(&str, &str)]) -> CompactionOptions {
        let class = [("class", "SizeTieredCompactionStrategy")];
        let map: BTreeMap<_, _> =
            class.iter().chain(pairs).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        CompactionOptions::of(&map)
    }

    fn chosen(setting: &Setting, options: &CompactionOptions) -> (Vec<usize>, u64) {
        let super::super::Strategy::SizeTiered(own) = &options.strategy else { panic!() };
        let decision = choose(&setting.situation(), options, own);
        (decision.choice.map(|choice| choice.inputs).unwrap_or_default(), decision.pending)
    }

    fn own(low: f64, high: f64, min_sstable_bytes: u64) -> SizeTieredOptions {
        SizeTieredOptions { min_sstable_bytes, bucket_low: low, bucket_high: high }
    }

    #[test]
    fn a_bucket_ends_where_the_mean_times_a_bound_is_reached() {
        let of = |sizes: &[u64], options| buckets(sizes.iter().copied().enumerate().collect(), &options);
        // 150 is not under 1.5 times 100; 149 is.
        assert_eq!(of(&[100, 150], own(0.5, 1.5, 0)), [[0], [1]]);
        assert_eq!(of(&[100, 149], own(0.5, 1.5, 0)), [[0, 1]]);
        // The mean moves: that of 100 and 140 is 120, so 179 fits and 180 does not.
        assert_eq!(of(&[100, 140, 179], own(0.5, 1.5, 0)), [[0, 1, 2]]);
        assert_eq!(of(&[100, 140, 180], own(0.5, 1.5, 0)), [vec![0, 1], vec![2]]);
        // All sizes under the minimum are similar; the minimum itself is not under it.
        assert_eq!(of(&[1, 49, 50], own(0.5, 1.5, 50)), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn four_of_a_size_are_compacted_and_at_most_thirty_two() {
        let options = options(&[]);
        let setting = |count: usize| Setting::new((0..count).map(|_| whole(100 * MIB)).collect());
        assert_eq!(chosen(&setting(3), &options), (vec![], 0));
        assert_eq!(chosen(&setting(4), &options), (vec![0, 1, 2, 3], 1));
        let (inputs, pending) = chosen(&setting(40), &options);
        assert_eq!((inputs.len(), pending), (32, 2));
        let mut busy = setting(4);
        busy.busy.insert(busy.sources[0].id);
        assert_eq!(chosen(&busy, &options), (vec![], 0));
    }

    #[test]
    fn of_two_buckets_the_one_of_larger_sstables_goes_first() {
        let sizes = [100, 100, 500, 500, 500, 500, 100, 100].map(|mib| whole(mib * MIB));
        assert_eq!(chosen(&Setting::new(sizes.to_vec()), &options(&[])).0, [2, 3, 4, 5]);
    }

    #[test]
    fn without_a_bucket_the_largest_sstable_with_tombstones_goes_alone() {
        let mut sources = vec![whole(100 * MIB), whole(400 * MIB), whole(2000 * MIB)];
        sources[0].droppable = 0.9;
        sources[1].droppable = 0.9;
        let mut setting = Setting::new(sources);
        setting.now_ms = 100_000_000;
        let unchecked = options(&[("unchecked_tombstone_compaction", "true")]);
        assert_eq!(chosen(&setting, &unchecked).0, [1]);
        assert_eq!(chosen(&setting, &options(&[])).0, [], "others overlap it");
    }

    #[test]
    fn the_strategy_looks_at_each_source_a_few_times_however_many_there_are() {
        // No two are similar, all have tombstones, and none is worth a compaction alone.
        let narrow = options(&[("bucket_low", "0.999"), ("bucket_high", "1.000001")]);
        let sources: Vec<_> = (0..3000).map(|n| whole((100 + n) * MIB)).collect();
        let mut setting = Setting::new(sources);
        setting.now_ms = 200_000_000;
        setting.sources.iter_mut().for_each(|source| source.droppable = 0.9);
        let looks = looks(|| assert_eq!(chosen(&setting, &narrow).0, []));
        assert!(looks < 200 * setting.sources.len() as u64, "{looks} looks");
    }
}
