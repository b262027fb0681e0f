//! Finds SSTables that can be dropped without reading them, and those worth compacting for their tombstones.

use super::options::TombstoneOptions;
use super::strategy_input::StrategyInput;
use helenus_model::token::Token;
use std::cell::OnceCell;

/// The `candidates` in which all data was deleted or expired long enough ago, and which are too old to hide any data
/// elsewhere: in another candidate, in an SSTable that overlaps one, or in a memtable.
pub fn fully_expired(situation: &StrategyInput<'_>, candidates: &[usize]) -> Vec<usize> {
    let sources = situation.sources;
    let over: Vec<usize> = candidates.iter().copied().filter(|index| is_over(situation, *index)).collect();
    if over.is_empty() {
        return over;
    }
    let is_candidate = situation.flags(candidates);
    let ranges = ranges(situation, candidates);
    let is_near = |index: &usize| {
        let source = &sources[*index];
        let before = ranges.partition_point(|(first, _)| *first <= source.last.as_slice());
        before.checked_sub(1).is_some_and(|before| ranges[before].1 >= source.first.as_slice())
    };
    let alive = (0..sources.len()).filter(|index| !is_over(situation, *index));
    let alive = alive.filter(|index| is_candidate[*index] || is_near(index));
    let least_us = alive.map(|index| sources[index].timestamp_us_min).min().unwrap_or(i64::MAX);
    let least_us = least_us.min(situation.elsewhere_us_min);
    over.into_iter().filter(|index| sources[*index].timestamp_us_max < least_us).collect()
}

/// Whether all data of a source was deleted or expired long enough ago.
fn is_over(situation: &StrategyInput<'_>, index: usize) -> bool {
    situation.sources[index].local_deletion_s_max < situation.gc_before_s
}

/// The ranges that sources cover together: apart from each other, in ring order.
fn ranges<'a>(situation: &StrategyInput<'a>, items: &[usize]) -> Vec<(&'a [u8], &'a [u8])> {
    let range = |index: &usize| {
        let source = situation.sources.at(*index);
        (source.first.as_slice(), source.last.as_slice())
    };
    let mut sorted: Vec<_> = items.iter().map(range).collect();
    sorted.sort_unstable();
    let mut apart: Vec<(&[u8], &[u8])> = Vec::new();
    for (first, last) in sorted {
        match apart.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => apart.push((first, last)),
        }
    }
    apart
}

/// Finds sources that are worth compacting alone. What all of them need is computed once, when it is needed first.
pub(super) struct TombstoneSearch<'a> {
    situation: &'a StrategyInput<'a>,
    options: &'a TombstoneOptions,
    shared: OnceCell<SharedTokens>,
    alive_us_min: OnceCell<Vec<i64>>,
}

impl<'a> TombstoneSearch<'a> {
    pub(super) fn new(
        situation: &'a StrategyInput<'a>,
        options: &'a TombstoneOptions,
    ) -> TombstoneSearch<'a> {
        TombstoneSearch { situation, options, shared: OnceCell::new(), alive_us_min: OnceCell::new() }
    }

    /// Whether a compaction of this SSTable alone is likely to remove tombstones.
    pub(super) fn is_worth(&self, index: usize) -> bool {
        let (situation, options) = (self.situation, self.options);
        let source = &situation.sources[index];
        let old_enough_ms = source.created_ms.saturating_add(options.interval_s.saturating_mul(1000));
        if situation.now_ms < old_enough_ms || source.droppable <= options.threshold {
            return false;
        }
        if options.unchecked {
            return true;
        }
        let shared = self.shared.get_or_init(|| SharedTokens::of(situation));
        let part_alone = shared.part_alone(source.tokens);
        part_alone == 1.0 || part_alone * source.droppable > options.threshold || self.is_expired(index)
    }

    /// Whether the source can be dropped unread, as in `fully_expired`.
    fn is_expired(&self, index: usize) -> bool {
        let alive_us_min = || least_of_overlapping(self.situation);
        is_over(self.situation, index) && {
            let least_us = self.alive_us_min.get_or_init(alive_us_min)[index];
            self.situation.sources[index].timestamp_us_max < least_us.min(self.situation.elsewhere_us_min)
        }
    }
}

/// The tokens that several sources share.
struct SharedTokens {
    /// Tokens at which the number of sources changes, ascending, each with the number of tokens before it that at least
    /// two sources share. They are numbers from 0 to 2^64.
    before: Vec<(u128, u128)>,
}

impl SharedTokens {
    fn of(situation: &StrategyInput<'_>) -> SharedTokens {
        let mut changes: Vec<(u128, i64)> = Vec::new();
        for index in 0..situation.sources.len() {
            let (first, last) = situation.sources[index].tokens;
            changes.extend([(place(first), 1), (place(last) + 1, -1)]);
        }
        changes.sort_unstable();
        let (mut before, mut shared, mut count) = (Vec::new(), 0, 0);
        let mut reached = 0;
        for (place, change) in changes {
            shared += if count > 1 { place - reached } else { 0 };
            before.push((place, shared));
            (reached, count) = (place, count + change);
        }
        SharedTokens { before }
    }

    /// Estimates the part of a source's partitions that lie outside the token ranges of the others, assuming that
    /// partitions are spread evenly over tokens.
    fn part_alone(&self, (first, last): (Token, Token)) -> f64 {
        let shared_before = |place: u128| {
            let at = self.before.partition_point(|(other, _)| *other < place);
            self.before.get(at).map_or(0, |(_, shared)| *shared)
        };
        let (start, end) = (place(first), place(last) + 1);
        1.0 - (shared_before(end) - shared_before(start)) as f64 / (end - start) as f64
    }
}

/// The place of a token on the ring, from 0.
fn place(token: Token) -> u128 {
    (i128::from(token.0) - i128::from(i64::MIN)) as u128
}

/// For each source, the smallest timestamp of the sources that overlap it and have data that counts.
///
/// Sources overlap if each begins before the other ends. So they are added in the order of their beginnings, while a
/// binary indexed tree over their ends has the smallest timestamp of those that end at or after a place.
fn least_of_overlapping(situation: &StrategyInput<'_>) -> Vec<i64> {
    let sources = situation.sources;
    let count = sources.len();
    let sorted = |key: fn(&super::SsTableInfo) -> &Vec<u8>| {
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| key(&sources[*a]).cmp(key(&sources[*b])));
        order
    };
    let (by_first, by_last) = (sorted(|source| &source.first), sorted(|source| &source.last));
    // Counted from the greatest end, so that the tree's prefixes are the sources that end late.
    let mut rank = vec![0; count];
    for (place, index) in by_last.iter().enumerate() {
        rank[*index] = count - place;
    }
    let mut tree = vec![i64::MAX; count + 1];
    let mut least = vec![i64::MAX; count];
    let mut added = 0;
    for index in &by_last {
        while let Some(other) =
            by_first.get(added).filter(|other| sources[**other].first <= sources[*index].last)
        {
            if !is_over(situation, *other) {
                let mut at = rank[*other];
                while at <= count {
                    tree[at] = tree[at].min(sources[*other].timestamp_us_min);
                    at += at & at.wrapping_neg();
                }
            }
            added += 1;
        }
        let mut at = count - by_last.partition_point(|other| sources[*other].last < sources[*index].first);
        while at > 0 {
            least[*index] = least[*index].min(tree[at]);
            at &= at - 1;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::super::strategy_input::SsTableInfo;
    use super::super::testing::{Setting, drawn, looks, source};
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn setting(sources: Vec<SsTableInfo>) -> Setting {
        Setting { now_ms: 48 * HOUR_MS, ..Setting::new(sources) }
    }

    #[test]
    fn an_expired_sstable_goes_only_when_it_hides_nothing_elsewhere() {
        let over =
            |timestamp_us_max| SsTableInfo { local_deletion_s_max: 10, timestamp_us_max, ..source(0, 100) };
        let alive =
            |timestamp_us_min| SsTableInfo { timestamp_us_min, timestamp_us_max: 900, ..source(50, 60) };
        let expired = |sources: Vec<SsTableInfo>, candidates: &[usize]| {
            fully_expired(&setting(sources).situation(), candidates)
        };
        assert_eq!(expired(vec![over(100), alive(101)], &[0]), [0]);
        assert_eq!(expired(vec![over(100), alive(100)], &[0]), [], "a tie may be hidden");
        assert_eq!(expired(vec![over(100), alive(50)], &[0, 1]), []);
        assert_eq!(
            expired(vec![over(100), SsTableInfo { timestamp_us_min: 5, ..source(101, 200) }], &[0]),
            [0]
        );
        assert_eq!(expired(vec![over(100), over(90)], &[0, 1]), [0, 1], "what is over needs no hiding");
        let mut memtable = setting(vec![over(100)]);
        memtable.now_ms = 1;
        assert_eq!(fully_expired(&memtable.situation(), &[0]), [], "too young");
        let with_memtable = setting(vec![over(100)]);
        let situation = StrategyInput { elsewhere_us_min: 100, ..with_memtable.situation() };
        assert_eq!(fully_expired(&situation, &[0]), []);
    }

    #[test]
    fn tombstones_are_worth_it_from_the_threshold_on_where_nothing_overlaps() {
        let options = TombstoneOptions { threshold: 0.2, interval_s: 86_400, unchecked: false };
        let worth = |sources: Vec<SsTableInfo>, options: &TombstoneOptions| {
            TombstoneSearch::new(&setting(sources).situation(), options).is_worth(0)
        };
        let with = |droppable| SsTableInfo { droppable, ..source(0, 99) };
        assert!(worth(vec![with(0.21)], &options) && !worth(vec![with(0.2)], &options));
        let young = SsTableInfo { created_ms: 25 * HOUR_MS, ..with(1.0) };
        assert!(!worth(vec![young], &options));
        // Another SSTable covers one half of the range, so only the other half counts.
        assert!(worth(vec![with(0.5), source(50, 200)], &options));
        assert!(!worth(vec![with(0.4), source(50, 200)], &options));
        assert!(!worth(vec![with(0.9), source(0, 10), source(5, 99)], &options));
        assert!(worth(vec![with(0.9), source(0, 99)], &TombstoneOptions { unchecked: true, ..options }));
    }

    #[test]
    fn drawn_sources_are_judged_as_by_comparing_each_with_each() {
        for seed in 0..200 {
            let sources = drawn(seed, 1 + seed as usize % 30);
            let setting = setting(sources);
            let situation = setting.situation();
            let all = &setting.sources;
            let candidates: Vec<usize> =
                (0..all.len()).filter(|index| !(index + seed as usize).is_multiple_of(3)).collect();
            let over = |index: &usize| all[*index].local_deletion_s_max < situation.gc_before_s;
            let alive_min = |of: &[usize]| {
                let near = |index: &usize| of.iter().any(|other| all[*other].overlaps(&all[*index]));
                let alive = (0..all.len()).filter(|index| !over(index) && near(index));
                alive.map(|index| all[index].timestamp_us_min).min().unwrap_or(i64::MAX)
            };
            let least_us = alive_min(&candidates);
            let right = candidates
                .iter()
                .copied()
                .filter(|index| over(index) && all[*index].timestamp_us_max < least_us);
            assert_eq!(fully_expired(&situation, &candidates), right.collect::<Vec<_>>(), "seed {seed}");
            let each: Vec<i64> = (0..all.len()).map(|index| alive_min(&[index])).collect();
            assert_eq!(least_of_overlapping(&situation), each, "seed {seed}");
            let shared = SharedTokens::of(&situation);
            for (index, source) in all.iter().enumerate() {
                let (first, last) = source.tokens;
                let others = || all.iter().enumerate().filter(|(other, _)| *other != index);
                let alone = (first.0..=last.0).filter(|token| {
                    !others().any(|(_, other)| other.tokens.0.0 <= *token && *token <= other.tokens.1.0)
                });
                let part = alone.count() as f64 / (last.0 - first.0 + 1) as f64;
                assert!((shared.part_alone(source.tokens) - part).abs() < 1e-9, "seed {seed} {index}");
            }
        }
    }

    #[test]
    fn the_search_looks_at_each_source_a_few_times_however_many_there_are() {
        let options = TombstoneOptions { threshold: 0.2, interval_s: 0, unchecked: false };
        let count = 2000;
        let over =
            |n: i64| SsTableInfo { local_deletion_s_max: 10, droppable: 0.9, ..source(n, 100_000 - n) };
        let setting = setting((0..count).map(over).chain([source(0, 100_000)]).collect());
        let situation = setting.situation();
        let search = TombstoneSearch::new(&situation, &options);
        let looks = looks(|| {
            let all: Vec<usize> = (0..setting.sources.len()).collect();
            assert!(!all.iter().any(|index| search.is_worth(*index)));
            assert!(fully_expired(&situation, &all).is_empty());
        });
        assert!(looks < 200 * count as u64, "{looks} looks at {count} sources");
    }
}
