//! Finds SSTables that can be dropped without reading them, and those worth compacting for their tombstones.

use super::options::TombstoneOptions;
use super::shards::range_spanned;
use super::strategy_input::{SsTableInfo, StrategyInput};
use helenus_model::token::Token;

/// The `candidates` in which all data was deleted or expired long enough ago, and which are too old to hide any data
/// elsewhere: in another candidate, in an SSTable that overlaps one, or in a memtable.
pub fn fully_expired(situation: &StrategyInput<'_>, candidates: &[usize]) -> Vec<usize> {
    let sources = situation.sources;
    let is_over = |index: &usize| sources[*index].local_deletion_s_max < situation.gc_before_s;
    let over: Vec<usize> = candidates.iter().copied().filter(is_over).collect();
    if over.is_empty() {
        return over;
    }
    let concerns = |index: &usize| {
        candidates.contains(index)
            || candidates.iter().any(|other| sources[*other].overlaps(&sources[*index]))
    };
    let alive = (0..sources.len()).filter(|index| !is_over(index)).filter(concerns);
    let least_us = alive.map(|index| sources[index].timestamp_us_min).min().unwrap_or(i64::MAX);
    let least_us = least_us.min(situation.elsewhere_us_min);
    over.into_iter().filter(|index| sources[*index].timestamp_us_max < least_us).collect()
}

/// Whether a compaction of this SSTable alone is likely to remove tombstones.
pub(super) fn worth_dropping(
    situation: &StrategyInput<'_>,
    index: usize,
    options: &TombstoneOptions,
) -> bool {
    let source = &situation.sources[index];
    let old_enough_ms = source.created_ms.saturating_add(options.interval_s.saturating_mul(1000));
    if situation.now_ms < old_enough_ms || source.droppable <= options.threshold {
        return false;
    }
    if options.unchecked {
        return true;
    }
    let others: Vec<&SsTableInfo> = (0..situation.sources.len())
        .filter(|other| *other != index)
        .map(|other| &situation.sources[other])
        .filter(|other| other.overlaps(source))
        .collect();
    others.is_empty()
        || !fully_expired(situation, &[index]).is_empty()
        || part_alone(source, &others) * source.droppable > options.threshold
}

/// Estimates the part of a source's partitions that lie outside the token ranges of the others, assuming that
/// partitions are spread evenly over tokens.
fn part_alone(source: &SsTableInfo, others: &[&SsTableInfo]) -> f64 {
    let (first, last) = source.tokens;
    let mut ranges: Vec<(Token, Token)> =
        others.iter().map(|other| (other.tokens.0.max(first), other.tokens.1.min(last))).collect();
    ranges.sort();
    let whole = range_spanned(first, last);
    let mut covered = 0.0;
    let mut reached: Option<Token> = None;
    for (start, end) in ranges {
        let start = match reached {
            Some(reached) if reached >= end => continue,
            Some(reached) if reached >= start => Token(reached.0.saturating_add(1)),
            _ => start,
        };
        covered += range_spanned(start, end);
        reached = Some(end);
    }
    (1.0 - covered / whole).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Setting, source};
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
            worth_dropping(&setting(sources).situation(), 0, options)
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
}
