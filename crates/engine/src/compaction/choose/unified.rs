//! UnifiedCompactionStrategy: levels by density (bytes divided by the part of the ring that they span), output in
//! shards.
//!
//! The scaling parameter W of a level: W > 0 is tiered (fan-out and threshold W + 2), W < 0 is levelled (fan-out 2 - W,
//! threshold 2), 0 is both. Sources: `UnifiedCompactionStrategy`, `unified.Controller`; `UnifiedCompactionStrategy.md`
//! in Cassandra's repository explains the idea.

use super::expired::fully_expired;
use super::options::UnifiedOptions;
use super::overlaps::{Set, buckets, join_overlapping, last_within_limit, overlap_sets};
use super::shards::{combined_density, density};
use super::strategy_input::{CompactionPlan, Decision, Output, Reason, SsTableInfo, StrategyInput};

/// Chooses a bucket of the level with the most overlap, and adds expired SSTables.
pub(super) fn choose(situation: &StrategyInput<'_>, own: &UnifiedOptions) -> Decision {
    let free = situation.free();
    let expired_checked = situation.now_ms - situation.history.expired_checked_ms > own.expired_check_ms;
    let expired = if expired_checked { fully_expired(situation, &free) } else { Vec::new() };
    let is_expired = situation.flags(&expired);
    let suitable: Vec<usize> = free.into_iter().filter(|index| !is_expired[*index]).collect();
    let (selected, pending) = pick(situation, own, suitable);
    let output = output(situation, own, &selected);
    let inputs = [selected, expired].concat();
    let choice = (!inputs.is_empty()).then_some(CompactionPlan { inputs, output, reason: Reason::Strategy });
    Decision { choice, pending, expired_checked, ..Decision::default() }
}

/// All SSTables, in groups that do not overlap each other.
pub(super) fn maximal(situation: &StrategyInput<'_>, own: &UnifiedOptions) -> Vec<CompactionPlan> {
    let groups = join_overlapping(overlap_sets(situation.sources, &situation.free()));
    let choice = |group: Set| {
        let inputs: Vec<usize> = group.into_iter().collect();
        CompactionPlan { output: output(situation, own, &inputs), inputs, reason: Reason::Major }
    };
    groups.into_iter().map(choice).collect()
}

fn output(situation: &StrategyInput<'_>, own: &UnifiedOptions, inputs: &[usize]) -> Output {
    let sources: Vec<&SsTableInfo> = inputs.iter().map(|index| &situation.sources[*index]).collect();
    Output::Shards(shards(own, combined_density(&sources)))
}

/// A level: the sources whose density is within its bounds.
struct Level {
    index: usize,
    sources: Vec<usize>,
}

/// The SSTables to compact, and the number of compactions that are due.
fn pick(situation: &StrategyInput<'_>, own: &UnifiedOptions, suitable: Vec<usize>) -> (Vec<usize>, u64) {
    let mut pending = 0;
    let mut selected = None;
    // As in Cassandra, a level's overlap counts even if the level has nothing to compact. Then higher levels with less
    // overlap are not compacted either.
    let mut most = None;
    for level in levels(situation, own, suitable) {
        let sets = overlap_sets(situation.sources, &level.sources);
        let overlap = sets.iter().map(Set::len).max();
        let threshold = threshold(scaling(own, level.index));
        let found = buckets(threshold, own.inclusion, &sets);
        let found = if overlap.is_some_and(|overlap| overlap >= threshold) { found } else { Vec::new() };
        let overlap_of =
            |(start, end): (usize, usize)| sets[start..end].iter().map(Set::len).max().unwrap_or(0);
        pending += found.iter().map(|bucket| (overlap_of(*bucket) / threshold) as u64).sum::<u64>();
        if overlap > most {
            most = overlap;
            let best: Vec<_> =
                found.into_iter().filter(|bucket| Some(overlap_of(*bucket)) == overlap).collect();
            let drawn = best.get((situation.seed % best.len().max(1) as u64) as usize);
            selected = drawn.map(|(start, end)| of_bucket(situation, own, level.index, &sets[*start..*end]));
        }
    }
    (selected.unwrap_or_default(), pending)
}

fn levels(situation: &StrategyInput<'_>, own: &UnifiedOptions, mut suitable: Vec<usize>) -> Vec<Level> {
    let density = |index: &usize| density(&situation.sources[*index]);
    suitable.sort_by(|a, b| density(a).total_cmp(&density(b)));
    let next_max = |index: usize, min: f64| (min * fanout(scaling(own, index)) as f64).floor();
    let mut level = Level { index: 0, sources: Vec::new() };
    let mut max = next_max(0, base_bytes(situation, own));
    let mut levels = Vec::new();
    for index in suitable {
        while density(&index) >= max {
            let above = Level { index: level.index + 1, sources: Vec::new() };
            max = next_max(above.index, max);
            levels.push(std::mem::replace(&mut level, above));
        }
        level.sources.push(index);
    }
    levels.push(level);
    levels
}

/// The lower bound of the levels' densities: a little less than a flushed SSTable.
fn base_bytes(situation: &StrategyInput<'_>, own: &UnifiedOptions) -> f64 {
    let flush = if own.flush_bytes > 0 { own.flush_bytes } else { situation.history.flush_bytes };
    flush.max(1 << 20) as f64 * (1.0 - 0.9 / fanout(scaling(own, 0)) as f64)
}

/// The inputs of a bucket's compaction: all sources, or, if compaction is late, the oldest ones: as many as give the
/// levels the shape that compactions in time would have given them.
fn of_bucket(situation: &StrategyInput<'_>, own: &UnifiedOptions, index: usize, sets: &[Set]) -> Vec<usize> {
    let count = sets.iter().map(Set::len).max().unwrap_or(0);
    let fanout_here = fanout(scaling(own, index));
    let most = own.sstables_max.max(fanout_here);
    let mut newest_first: Vec<usize> = sets.iter().flatten().copied().collect::<Set>().into_iter().collect();
    newest_first.sort_by_key(|index| std::cmp::Reverse(situation.sources[*index].timestamp_us_max));
    let late = count > fanout_here.saturating_mul(fanout(scaling(own, index + 1))) && most != fanout_here;
    let limit = if count <= fanout_here {
        return newest_first;
    } else if !late {
        if count <= most {
            return newest_first;
        }
        most
    } else {
        late_pick(own, index, most.min(count))
    };
    match sets {
        [_] => newest_first.into_iter().rev().take(limit).collect(),
        _ => last_within_limit(&newest_first, sets, limit),
    }
}

fn late_pick(own: &UnifiedOptions, level: usize, limit: usize) -> usize {
    let mut above = level;
    let mut pick = fanout(scaling(own, level));
    loop {
        above += 1;
        let next = pick.saturating_mul(fanout(scaling(own, above)));
        if next > limit {
            break;
        }
        pick = next;
    }
    // Levelled: all sources that would have reached that level are compacted into one.
    if scaling(own, level) < 0 { pick * (limit / pick).max(1) } else { pick }
}

fn scaling(own: &UnifiedOptions, level: usize) -> i32 {
    own.scaling.get(level).or(own.scaling.last()).copied().unwrap_or(2)
}

fn fanout(w: i32) -> usize {
    w.unsigned_abs() as usize + 2
}

fn threshold(w: i32) -> usize {
    w.max(0) as usize + 2
}

/// Parses W of each level, separated by commas: `N` for 0, `L` or `T` and a fan-out from 2 on, or a number.
pub fn parse_scaling_parameters(text: &str) -> Result<Vec<i32>, String> {
    let mut values: Vec<&str> = text.split(',').collect();
    // Java's split drops empty strings at the end.
    while values.len() > 1 && values.last().is_some_and(|value| value.is_empty()) {
        values.pop();
    }
    values.into_iter().map(|value| parse_scaling_parameter(value.trim())).collect()
}

fn parse_scaling_parameter(value: &str) -> Result<i32, String> {
    let wrong = || format!("Scaling parameter {value} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+");
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fanout = |text: &str| match text.parse::<i32>() {
        _ if !digits(text) => Err(wrong()),
        Ok(fanout) if fanout >= 2 => Ok(fanout),
        Ok(_) => Err(format!("Fan factor cannot be lower than 2 in {value}")),
        Err(_) => Err(wrong()),
    };
    if value == "N" {
        return Ok(0);
    }
    if let Some(text) = value.strip_prefix('L') {
        return fanout(text).map(|fanout| 2 - fanout);
    }
    if let Some(text) = value.strip_prefix('T') {
        return fanout(text).map(|fanout| fanout - 2);
    }
    let number = value.strip_prefix(['+', '-']).unwrap_or(value);
    if digits(number) { value.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

/// The number of shards for data of this density: a power of two times the base count, so that each shard has about the
/// wanted size; fewer if they would be smaller than the minimum (`Controller.getNumShards`).
fn shards(own: &UnifiedOptions, density: f64) -> u32 {
    const SHIFT_MAX: u32 = 20;
    let highest_bit = |count: f64| {
        let count = (count as u32).clamp(1, i32::MAX as u32);
        1 << (31 - count.leading_zeros())
    };
    let base = own.base_shards;
    if own.min_sstable_bytes > 0 {
        let count = density / own.min_sstable_bytes as f64;
        if count < f64::from(base) {
            return highest_bit(count).min(1 << base.trailing_zeros());
        }
    }
    let target = own.target_sstable_bytes as f64;
    let power = if own.growth == 1.0 {
        0
    } else if own.growth == 0.0 {
        let count = density / (target * 0.5f64.sqrt() * f64::from(base));
        return base.saturating_mul(highest_bit(count.min(2f64.powi(SHIFT_MAX as i32))));
    } else {
        let count = density / (target * f64::from(base));
        let power = count.ln() * (1.0 / 2f64.ln()) * (1.0 - own.growth) + 0.5;
        if power >= 0.0 { (power as u32).min(SHIFT_MAX) } else { 0 }
    };
    base.saturating_mul(1 << power)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MIB, Setting, looks, source, whole};
    use super::super::{CompactionOptions, Strategy};
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> UnifiedOptions {
        let pairs = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        match CompactionOptions::of(&pairs.collect()).strategy {
            Strategy::Unified(unified) => unified,
            other => panic!("{other:?}"),
        }
    }

    fn inputs(sources: Vec<SsTableInfo>, own: &UnifiedOptions) -> Vec<usize> {
        let decision = choose(&Setting::new(sources).situation(), own);
        let mut inputs = decision.choice.map(|choice| choice.inputs).unwrap_or_default();
        inputs.sort_unstable();
        inputs
    }

    #[test]
    fn scaling_parameters_are_read_with_cassandras_errors() {
        assert_eq!(parse_scaling_parameters("T4, L10,N,-3 ,+2"), Ok(vec![2, -8, 0, -3, 2]));
        assert_eq!((fanout(2), threshold(2), fanout(-8), threshold(-8), fanout(0)), (4, 4, 10, 2, 2));
        for (text, error) in [
            ("X", "Scaling parameter X must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+"),
            ("T1", "Fan factor cannot be lower than 2 in T1"),
            ("T4,,L2", "Scaling parameter  must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+"),
        ] {
            assert_eq!(parse_scaling_parameters(text), Err(error.to_owned()));
        }
    }

    #[test]
    fn levels_begin_and_end_at_multiples_of_the_flush_size() {
        // T4, flush 10 MiB: base 10 * (1 - 0.9 / 4) = 7.75 MiB; level 0 up to 31 MiB, level 1 up to 124 MiB.
        let own = options(&[("flush_size_override", "10MiB")]);
        let sources: Vec<SsTableInfo> =
            [31 * MIB - 1, 31 * MIB, 124 * MIB - 1, 124 * MIB].map(whole).to_vec();
        let setting = Setting::new(sources);
        let found = levels(&setting.situation(), &own, vec![0, 1, 2, 3]);
        let found: Vec<_> = found.into_iter().map(|level| (level.index, level.sources)).collect();
        assert_eq!(found, [(0, vec![0]), (1, vec![1, 2]), (2, vec![3])]);
        // On a quarter of the ring, the same bytes are four times as dense.
        let quarter = SsTableInfo { bytes: 8 * MIB, ..source(0, (1 << 62) - 1) };
        let setting = Setting::new(vec![quarter]);
        let found = levels(&setting.situation(), &own, vec![0]);
        assert_eq!((found.len(), found[1].sources.clone()), (2, vec![0]));
    }

    #[test]
    fn a_tiered_level_waits_for_its_threshold_and_a_levelled_one_for_two() {
        let four = options(&[]);
        assert_eq!(inputs(vec![whole(MIB); 3], &four), []);
        assert_eq!(inputs(vec![whole(MIB); 4], &four), [0, 1, 2, 3]);
        let levelled = options(&[("scaling_parameters", "L10")]);
        assert_eq!(inputs(vec![whole(MIB); 1], &levelled), []);
        assert_eq!(inputs(vec![whole(MIB); 2], &levelled), [0, 1]);
        // Four SSTables that do not overlap are not compacted.
        let apart = (0..4).map(|n| source(n * 10, n * 10 + 9)).collect();
        assert_eq!(inputs(apart, &four), []);
    }

    #[test]
    fn late_compactions_are_picked_as_the_example_in_cassandra_says() {
        // 55 SSTables: with W = 2 sixteen, with W = -2 forty-eight (the comment in Bucket.constructPick).
        assert_eq!(
            inputs(vec![whole(MIB); 55], &options(&[("scaling_parameters", "2")])),
            (0..16).collect::<Vec<_>>()
        );
        let levelled = options(&[("scaling_parameters", "-2")]);
        assert_eq!(inputs(vec![whole(MIB); 55], &levelled), (0..48).collect::<Vec<_>>());
        // If compaction is only a little late, all are chosen, up to the maximum.
        assert_eq!(inputs(vec![whole(MIB); 16], &options(&[])).len(), 16);
        assert_eq!(inputs(vec![whole(MIB); 16], &options(&[("max_sstables_to_compact", "8")])).len(), 8);
    }

    #[test]
    fn the_level_with_the_most_overlap_goes_first_even_if_it_has_nothing_to_do() {
        let own = options(&[("scaling_parameters", "T4,L4"), ("flush_size_override", "10MiB")]);
        let mixed = |small: usize| [vec![whole(MIB); small], vec![whole(50 * MIB); 2]].concat();
        assert_eq!(inputs(mixed(4), &own), [0, 1, 2, 3]);
        assert_eq!(inputs(mixed(2), &own), []);
        assert_eq!(inputs(mixed(1), &own), [1, 2]);
    }

    #[test]
    fn shards_grow_with_density_as_the_examples_in_cassandra_say() {
        const GIB: f64 = (1u64 << 30) as f64;
        // 1 TiB at a target of 1 GiB (the comment on SSTABLE_GROWTH_OPTION).
        let count = |growth: &str, base: &str, density: f64| {
            let own = [("sstable_growth", growth), ("base_shard_count", base), ("min_sstable_size", "0B")];
            shards(&options(&own), density)
        };
        assert_eq!(
            ["0", "0.333", "0.5", "1"].map(|growth| count(growth, "1", 1024.0 * GIB)),
            [1024, 128, 32, 1]
        );
        assert_eq!(["0.333", "0.5", "1"].map(|growth| count(growth, "4", 1024.0 * GIB)), [128, 64, 4]);
        // Below the base count the minimum size decides, in divisors of the base.
        let own = options(&[]);
        let mib = |mib: u64| (mib * MIB) as f64;
        assert_eq!([1, 199, 200, 399, 400, 4000].map(|size| shards(&own, mib(size))), [1, 1, 2, 2, 4, 4]);
        let three = options(&[("base_shard_count", "3")]);
        assert_eq!([250, 300].map(|size| shards(&three, mib(size))), [1, 3]);
    }

    #[test]
    fn everything_is_compacted_in_groups_that_do_not_overlap() {
        let setting = Setting::new(vec![source(0, 10), source(5, 20), source(21, 30), source(25, 40)]);
        let choices = maximal(&setting.situation(), &options(&[]));
        let inputs: Vec<_> = choices.into_iter().map(|choice| choice.inputs).collect();
        assert_eq!(inputs, [[0, 1], [2, 3]]);
    }

    #[test]
    fn the_strategy_looks_at_each_source_a_few_times_however_many_there_are() {
        let count = 3000;
        let own = options(&[("max_sstables_to_compact", "32")]);
        let apart = (0..count).map(|n| source(n * 10, n * 10 + 9));
        let overlapping = (0..count).map(|n| source(n, 50_000 + n));
        for sources in [apart.collect::<Vec<_>>(), overlapping.collect()] {
            let mut setting = Setting::new(sources);
            setting.now_ms = 700_000;
            let looks = looks(|| {
                drop(choose(&setting.situation(), &own));
                drop(maximal(&setting.situation(), &own));
            });
            assert!(looks < 200 * count as u64, "{looks} looks at {count} sources");
        }
    }
}
