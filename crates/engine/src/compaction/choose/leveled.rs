//! LeveledCompactionStrategy: from level 1 on, the SSTables of a level have one size and do not overlap, and each level
//! is ten times as large as the one before.
//!
//! Sources: `LeveledManifest`, `LeveledGenerations`, `LeveledCompactionStrategy`.

use super::expired::TombstoneSearch;
use super::options::{CompactionOptions, LeveledOptions};
use super::size_tiered;
use super::strategy_input::{CompactionPlan, Decision, Output, Reason, StrategyInput};
use crate::table::LEVELS;
use helenus_model::token::Token;
use std::collections::{BTreeMap, BTreeSet};

/// With more SSTables than this, level 0 is first compacted by size.
const COMPACTING_L0_MAX: usize = 32;
/// Rounds without a compaction into the highest level after which one of its SSTables is included in a compaction.
const ROUNDS_WITHOUT_MAX: u32 = 25;

/// Chooses what to compact into which level, or one SSTable for its tombstones.
pub(super) fn choose(
    situation: &StrategyInput<'_>,
    options: &CompactionOptions,
    own: &LeveledOptions,
) -> Decision {
    let manifest = Manifest::new(situation, options, own);
    let pending = manifest.pending();
    if let Some((inputs, level, bytes)) = manifest.candidates() {
        let output = Output::Sized { bytes, level };
        let choice = Some(CompactionPlan { inputs, output, reason: Reason::Strategy });
        return Decision { choice, pending, into_level: Some(level), expired_checked: false };
    }
    let choice = manifest.droppable().map(|index| CompactionPlan {
        inputs: vec![index],
        output: Output::Sized { bytes: own.sstable_bytes, level: manifest.level_of[index] },
        reason: Reason::Tombstones,
    });
    Decision { choice, pending, ..Decision::default() }
}

struct Manifest<'a> {
    situation: &'a StrategyInput<'a>,
    options: &'a CompactionOptions,
    own: &'a LeveledOptions,
    /// The SSTables of each level; from level 1 on in the order of their first partitions.
    levels: Vec<Vec<usize>>,
    level_of: Vec<usize>,
    is_busy: Vec<bool>,
}

/// Input SSTables, the output level, and the size of the output SSTables.
type Candidates = (Vec<usize>, usize, u64);

impl<'a> Manifest<'a> {
    /// An SSTable that would overlap another one on its level counts as level 0. Older SSTables are placed first, as at
    /// Cassandra's start; Cassandra writes the new level into the file, here it is computed each time.
    fn new(
        situation: &'a StrategyInput<'a>,
        options: &'a CompactionOptions,
        own: &'a LeveledOptions,
    ) -> Manifest<'a> {
        let sources = situation.sources;
        let mut by_age: Vec<usize> = (0..sources.len()).collect();
        by_age.sort_by_key(|index| sources[*index].id);
        let mut levels: Vec<Vec<usize>> = vec![Vec::new(); LEVELS];
        let mut placed: Vec<BTreeMap<&[u8], usize>> = vec![BTreeMap::new(); LEVELS];
        let mut level_of = vec![0; sources.len()];
        for index in by_age {
            let source = sources.at(index);
            let level = source.level.min(LEVELS - 1);
            // What is placed on a level is apart, so only its neighbours there can overlap the source.
            let on_level = &placed[level];
            let before = on_level.range(..source.first.as_slice()).next_back();
            let after = on_level.range(source.first.as_slice()..).next();
            let overlaps = before.into_iter().chain(after).any(|(_, other)| sources[*other].overlaps(source));
            if level > 0 && !overlaps {
                level_of[index] = level;
                placed[level].insert(&source.first, index);
            } else {
                levels[0].push(index);
            }
        }
        for (level, placed) in levels.iter_mut().zip(placed).skip(1) {
            level.extend(placed.into_values());
        }
        let is_busy = (0..sources.len()).map(|index| situation.busy.contains(&sources[index].id)).collect();
        Manifest { situation, options, own, levels, level_of, is_busy }
    }

    fn bytes(&self, items: &[usize]) -> u64 {
        items.iter().map(|index| self.situation.sources[*index].bytes).sum()
    }

    fn level_bytes_max(&self, level: usize) -> f64 {
        let size = self.own.sstable_bytes as f64;
        if level == 0 { 4.0 * size } else { (self.own.fanout as f64).powi(level as i32) * size }
    }

    fn pending(&self) -> u64 {
        let due = |level: usize| {
            let over = self.bytes(&self.levels[level]) as f64 - (self.level_bytes_max(level) * 1.001).floor();
            (over.max(0.0) / self.own.sstable_bytes as f64).ceil() as u64
        };
        let (l0, max) = (self.levels[0].len(), self.options.max_threshold);
        let by_size = if l0 > max { (l0 / max) as u64 } else { 0 };
        (0..LEVELS).map(due).sum::<u64>() + by_size
    }

    /// Chooses the highest level that is too large. If level 0 has fallen behind, it is compacted by size before that.
    fn candidates(&self) -> Option<Candidates> {
        let by_size = self.level_0_by_size();
        for level in (1..LEVELS - 1).rev() {
            let free: Vec<usize> =
                self.levels[level].iter().copied().filter(|index| !self.is_busy[*index]).collect();
            if self.bytes(&free) as f64 / self.level_bytes_max(level) <= 1.001 {
                continue;
            }
            if by_size.is_some() {
                return by_size;
            }
            let candidates = self.of_level(level);
            if !candidates.is_empty() {
                let next = self.next_level(&candidates);
                return Some((self.with_starved(next, candidates), next, self.own.sstable_bytes));
            }
        }
        let candidates = self.of_level_0();
        if candidates.is_empty() {
            return by_size;
        }
        let next = self.next_level(&candidates);
        Some((candidates, next, self.own.sstable_bytes))
    }

    fn level_0_by_size(&self) -> Option<Candidates> {
        if self.levels[0].len() <= COMPACTING_L0_MAX {
            return None;
        }
        let free = self.levels[0].iter().filter(|index| !self.is_busy[**index]);
        let sizes = free.map(|index| (*index, self.situation.sources[*index].bytes)).collect();
        let buckets = size_tiered::buckets(sizes, &self.own.size_tiered);
        let thresholds = (self.options.min_threshold, self.options.max_threshold);
        let chosen = size_tiered::most_interesting(self.situation, buckets, thresholds);
        (!chosen.is_empty()).then_some((chosen, 0, u64::MAX))
    }

    /// Those of these SSTables that have a token of the range.
    fn overlapping(&self, range: (Token, Token), others: &[usize]) -> Vec<usize> {
        others.iter().filter(|index| self.touches(range, **index)).copied().collect()
    }

    fn touches(&self, (first, last): (Token, Token), index: usize) -> bool {
        let tokens = self.situation.sources[index].tokens;
        tokens.0 <= last && first <= tokens.1
    }

    /// The SSTables of a level from 1 on that have a token of the range. They are apart, so their ends ascend as well.
    fn overlapping_on(&self, level: usize, (first, last): (Token, Token)) -> &[usize] {
        let sources = self.situation.sources;
        let order = &self.levels[level];
        let start = order.partition_point(|index| sources[*index].tokens.1 < first);
        let end = order.partition_point(|index| sources[*index].tokens.0 <= last);
        &order[start..end.max(start)]
    }

    /// The ranges of tokens that these SSTables cover together: apart from each other, ascending.
    fn token_ranges(&self, items: &[usize]) -> Vec<(Token, Token)> {
        let mut sorted: Vec<_> = items.iter().map(|index| self.situation.sources[*index].tokens).collect();
        sorted.sort_unstable();
        let mut apart: Vec<(Token, Token)> = Vec::new();
        for (first, last) in sorted {
            match apart.last_mut() {
                Some(before) if first <= before.1 => before.1 = before.1.max(last),
                _ => apart.push((first, last)),
            }
        }
        apart
    }

    /// The range from the first token of these SSTables to the last.
    fn span(&self, items: &[usize]) -> Option<(Token, Token)> {
        let tokens = || items.iter().map(|index| self.situation.sources[*index].tokens);
        Some((tokens().map(|(first, _)| first).min()?, tokens().map(|(_, last)| last).max()?))
    }

    /// An SSTable of a level and those that it overlaps on the next level. Continues around the ring after the end of
    /// the level's last compaction.
    fn of_level(&self, level: usize) -> Vec<usize> {
        let sources = self.situation.sources;
        let order = &self.levels[level];
        // The newest SSTable of the next level is the last one that the last compaction into it wrote.
        let newest = self.levels[level + 1].iter().max_by_key(|index| sources[**index].id);
        let start = newest.map_or(0, |newest| {
            let after = |index: &usize| sources[*index].first > sources[*newest].last;
            order.iter().position(after).unwrap_or(0)
        });
        for index in order[start..].iter().chain(&order[..start]) {
            let mut candidates = vec![*index];
            candidates.extend(self.overlapping_on(level + 1, sources[*index].tokens));
            if candidates.iter().all(|index| !self.is_busy[*index]) {
                return candidates;
            }
        }
        Vec::new()
    }

    /// The oldest SSTables of level 0 and those that overlap them there. SSTables of level 1 are included once there is
    /// enough data for an SSTable.
    fn of_level_0(&self) -> Vec<usize> {
        let sources = self.situation.sources;
        let busy: Vec<usize> = self.levels[0].iter().copied().filter(|index| self.is_busy[*index]).collect();
        let busy_span = self.span(&busy);
        let busy_ranges = self.token_ranges(&busy);
        let touches_a_busy_one = |index: usize| {
            let (first, last) = sources[index].tokens;
            let before = busy_ranges.partition_point(|range| range.0 <= last);
            before.checked_sub(1).is_some_and(|before| busy_ranges[before].1 >= first)
        };
        let is_within_busy_span = |index: usize| busy_span.is_some_and(|span| self.touches(span, index));
        let by_age = |items: &mut Vec<usize>| items.sort_by_key(|index| sources[*index].timestamp_us_max);
        let mut order = self.levels[0].clone();
        by_age(&mut order);
        let mut remaining = order.clone();
        let mut candidates: Vec<usize> = Vec::new();
        let mut is_taken = vec![false; sources.len()];
        for index in order {
            if is_taken[index] || touches_a_busy_one(index) {
                continue;
            }
            let mut overlapped = self.overlapping(sources[index].tokens, &remaining);
            overlapped.push(index);
            let is_overlapped = self.situation.flags(&overlapped);
            remaining.retain(|index| !is_overlapped[*index]);
            for index in overlapped {
                if !is_taken[index] && !is_within_busy_span(index) {
                    is_taken[index] = true;
                    candidates.push(index);
                }
            }
            if candidates.len() > self.options.max_threshold {
                candidates.sort_unstable();
                by_age(&mut candidates);
                candidates.truncate(self.options.max_threshold);
                break;
            }
        }
        candidates.sort_unstable();
        if self.bytes(&candidates) > self.own.sstable_bytes
            && let Some(span) = self.span(&candidates)
        {
            let below = self.overlapping_on(1, span);
            if below.iter().any(|index| self.is_busy[*index]) || !self.overlapping(span, &busy).is_empty() {
                return Vec::new();
            }
            candidates.extend(below);
        }
        if candidates.len() < 2 { Vec::new() } else { candidates }
    }

    fn next_level(&self, candidates: &[usize]) -> usize {
        let levels = || candidates.iter().map(|index| self.level_of[*index]);
        let (least, greatest) = (levels().min().unwrap_or(0), levels().max().unwrap_or(0));
        match least == greatest {
            true if least == 0 && self.bytes(candidates) < self.own.sstable_bytes => 0,
            true => greatest + 1,
            false => greatest,
        }
    }

    /// Adds an SSTable of the highest level if that level has had no compaction for long and the SSTable lies within
    /// the compacted range.
    fn with_starved(&self, into: usize, mut candidates: Vec<usize>) -> Vec<usize> {
        let sources = self.situation.sources;
        let Some(highest) = (1..LEVELS).rev().find(|level| !self.levels[*level].is_empty()) else {
            return candidates;
        };
        let rounds = if into == highest { 0 } else { self.situation.history.rounds_without[highest] + 1 };
        let first = candidates.iter().map(|index| &sources[*index].first).min();
        let last = candidates.iter().map(|index| &sources[*index].last).max();
        if rounds <= ROUNDS_WITHOUT_MAX || first == last {
            return candidates;
        }
        let chosen: BTreeSet<usize> = candidates.iter().copied().collect();
        let within = |index: &&usize| {
            let source = &sources[**index];
            !self.is_busy[**index]
                && !chosen.contains(*index)
                && first.is_some_and(|first| *first < source.first)
                && last.is_some_and(|last| source.last <= *last)
        };
        let starved = self.levels[highest].iter().find(within).copied();
        candidates.extend(starved);
        candidates
    }

    /// The SSTable with the most droppable tombstones; higher levels are searched first.
    fn droppable(&self) -> Option<usize> {
        let droppable = |index: usize| self.situation.sources[index].droppable;
        let search = TombstoneSearch::new(self.situation, &self.options.tombstones);
        for level in (0..LEVELS).rev() {
            let mut order = self.levels[level].clone();
            order.sort_by(|a, b| droppable(*b).total_cmp(&droppable(*a)));
            let options = &self.options.tombstones;
            let worth = order.into_iter().take_while(|index| droppable(*index) > options.threshold);
            let mut worth = worth.filter(|index| !self.is_busy[*index]);
            if let Some(found) = worth.find(|index| search.is_worth(*index)) {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::Strategy;
    use super::super::strategy_input::SsTableInfo;
    use super::super::testing::{MIB, Setting, drawn, looks, source, whole};
    use super::*;

    /// Decides with an SSTable size of 10 MiB.
    fn decide(setting: &Setting) -> Decision {
        let map = [("class", "LeveledCompactionStrategy"), ("sstable_size_in_mb", "10")];
        let options = CompactionOptions::of(&map.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        let Strategy::Leveled(own) = &options.strategy else { panic!() };
        choose(&setting.situation(), &options, own)
    }

    fn inputs(setting: &Setting) -> (Vec<usize>, Option<usize>) {
        let decision = decide(setting);
        let mut inputs = decision.choice.map(|choice| choice.inputs).unwrap_or_default();
        inputs.sort_unstable();
        (inputs, decision.into_level)
    }

    fn on(level: usize, first: i64, last: i64) -> SsTableInfo {
        SsTableInfo { level, bytes: 10 * MIB, ..source(first, last) }
    }

    #[test]
    fn level_0_stays_level_0_until_it_makes_an_sstable() {
        assert_eq!(inputs(&Setting::new(vec![whole(MIB)])), (vec![], None));
        assert_eq!(inputs(&Setting::new(vec![whole(MIB); 2])), (vec![0, 1], Some(0)));
        // Exactly the size of an SSTable goes to level 1, but without the SSTables there: only more than that includes
        // them.
        assert_eq!(inputs(&Setting::new(vec![whole(5 * MIB); 2])), (vec![0, 1], Some(1)));
        let with_level_1 = vec![whole(6 * MIB), whole(6 * MIB), on(1, 0, 10), on(1, 20, 30)];
        assert_eq!(inputs(&Setting::new(with_level_1)), (vec![0, 1, 2, 3], Some(1)));
    }

    #[test]
    fn a_level_over_its_size_gives_an_sstable_to_the_next() {
        let full: Vec<SsTableInfo> = (0..10).map(|n| on(1, n * 10, n * 10 + 9)).collect();
        assert_eq!(inputs(&Setting::new(full.clone())), (vec![], None), "a thousandth over is no reason");
        let over = |second: Vec<SsTableInfo>| [full.clone(), vec![on(1, 100, 109)], second].concat();
        assert_eq!(inputs(&Setting::new(over(vec![]))), (vec![0], Some(2)));
        // It continues after the newest SSTable of the next level, around the ring; overlapping SSTables there are
        // included.
        assert_eq!(inputs(&Setting::new(over(vec![on(2, 0, 25)]))), (vec![3], Some(2)));
        assert_eq!(inputs(&Setting::new(over(vec![on(2, 30, 45), on(2, 0, 25)]))), (vec![3, 11], Some(2)));
        assert_eq!(inputs(&Setting::new(over(vec![on(2, 90, 120)]))), (vec![0], Some(2)));
        let mut busy = Setting::new(over(vec![]));
        busy.busy.insert(busy.sources[3].id);
        assert_eq!(inputs(&busy), (vec![], None), "what is being compacted does not count");
    }

    #[test]
    fn what_overlaps_on_its_level_counts_as_level_0() {
        let setting = Setting::new(vec![on(1, 0, 10), on(1, 10, 20), on(1, 30, 40)]);
        let map = [("class".to_owned(), "LeveledCompactionStrategy".to_owned())];
        let options = CompactionOptions::of(&map.into());
        let Strategy::Leveled(own) = &options.strategy else { panic!() };
        assert_eq!(Manifest::new(&setting.situation(), &options, own).level_of, [1, 0, 1]);
    }

    #[test]
    fn level_0_far_behind_is_compacted_by_size_before_higher_levels() {
        let level_1 = (0..11).map(|n| on(1, n * 10, n * 10 + 9));
        let sources = |count: usize| vec![whole(MIB); count].into_iter().chain(level_1.clone()).collect();
        let (chosen, into) = inputs(&Setting::new(sources(33)));
        assert_eq!((chosen.len(), into), (32, Some(0)));
        assert_eq!(inputs(&Setting::new(sources(32))), (vec![32], Some(2)));
    }

    #[test]
    fn a_level_without_compactions_for_long_gives_an_sstable_within_the_span() {
        let mut sources: Vec<SsTableInfo> = (0..11).map(|n| on(1, n * 100, n * 100 + 99)).collect();
        sources.push(on(3, 10, 20));
        let mut setting = Setting::new(sources);
        setting.history.rounds_without[3] = 24;
        assert_eq!(inputs(&setting), (vec![0], Some(2)));
        setting.history.rounds_without[3] = 25;
        assert_eq!(inputs(&setting), (vec![0, 11], Some(2)));
    }

    #[test]
    fn drawn_sources_are_placed_as_by_comparing_each_with_each() {
        let map = [("class".to_owned(), "LeveledCompactionStrategy".to_owned())];
        let options = CompactionOptions::of(&map.into());
        let Strategy::Leveled(own) = &options.strategy else { panic!() };
        for seed in 0..300 {
            let setting = Setting::new(drawn(seed, seed as usize % 40));
            let situation = setting.situation();
            let manifest = Manifest::new(&situation, &options, own);
            let mut levels: Vec<Vec<usize>> = vec![Vec::new(); LEVELS];
            for (index, source) in setting.sources.iter().enumerate() {
                let fits = levels[source.level].iter().all(|other| !setting.sources[*other].overlaps(source));
                levels[if fits { source.level } else { 0 }].push(index);
            }
            for (level, mut right) in levels.into_iter().enumerate() {
                right.sort_unstable();
                let mut found = manifest.levels[level].clone();
                found.sort_unstable();
                assert_eq!(found, right, "seed {seed}, level {level}");
                let span = (Token(seed as i64 % 90), Token(seed as i64 % 90 + 9));
                let mut touched = manifest.overlapping(span, &right);
                touched.sort_unstable();
                let mut near = manifest.overlapping_on(level.max(1), span).to_vec();
                near.sort_unstable();
                assert!(level == 0 || near == touched, "seed {seed}, level {level}");
            }
        }
    }

    #[test]
    fn the_strategy_looks_at_each_source_a_few_times_however_many_there_are() {
        let count = 3000;
        // Levels 1 to 3 within their sizes, with tombstones; level 0 far behind, with a compaction under way.
        let mut sources: Vec<SsTableInfo> = (0..count)
            .map(|n| SsTableInfo {
                droppable: 0.9,
                bytes: MIB,
                ..on(1 + (n % 3) as usize, n * 10, n * 10 + 9)
            })
            .collect();
        sources.extend((0..count).map(|n| SsTableInfo { droppable: 0.9, ..source(n, 50_000 - n) }));
        for is_behind in [true, false] {
            if !is_behind {
                sources.truncate(count as usize);
            }
            let mut setting = Setting::new(sources.clone());
            setting.now_ms = 200_000_000;
            if is_behind {
                setting.busy.insert(setting.sources[count as usize].id);
            }
            let looks = looks(|| drop(decide(&setting)));
            assert!(looks < 200 * setting.sources.len() as u64, "{looks} looks");
        }
    }
}
