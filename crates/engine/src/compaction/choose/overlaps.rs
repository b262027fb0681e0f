//! Computes sets of overlapping SSTables (`org.apache.cassandra.utils.Overlaps`).

use super::strategy_input::SsTableInfo;
use std::collections::BTreeSet;

/// A set of SSTables by index.
pub(super) type Set = BTreeSet<usize>;

/// Which neighbours of a set are included in its compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inclusion {
    /// None.
    None,
    /// The sets that share an SSTable with it.
    Single,
    /// Also the sets that share an SSTable with those, and so on.
    Transitive,
}

/// The overlap sets of the ring. For every point there is a set with all SSTables that overlap there, no set has two
/// SSTables that do not overlap, and the sets of an SSTable are neighbours.
pub(super) fn overlap_sets(sources: &[SsTableInfo], items: &[usize]) -> Vec<Set> {
    let mut sorted = items.to_vec();
    sorted.sort_by(|a, b| sources[*a].first.cmp(&sources[*b].first));
    let mut sets: Vec<Set> = Vec::new();
    let mut active: Vec<usize> = Vec::new();
    for item in sorted {
        let ended = |other: &usize| sources[item].first > sources[*other].last;
        if active.iter().any(ended) {
            sets.push(active.iter().copied().collect());
            active.retain(|other| !ended(other));
        }
        active.push(item);
    }
    if !active.is_empty() {
        sets.push(active.into_iter().collect());
    }
    sets
}

/// Groups of neighbouring sets, as half-open ranges: the sets with at least `threshold` members and the neighbours that
/// are included.
pub(super) fn buckets(threshold: usize, inclusion: Inclusion, sets: &[Set]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    // The end of the last group.
    let mut taken = 0;
    let mut at = 0;
    while at < sets.len() {
        if sets[at].len() < threshold {
            at += 1;
            continue;
        }
        let (mut start, mut end) = (at, at + 1);
        if inclusion != Inclusion::None {
            let mut target = sets[at].clone();
            while start > taken && !sets[start - 1].is_disjoint(&target) {
                start -= 1;
                if inclusion == Inclusion::Transitive {
                    target.extend(&sets[start]);
                }
            }
            while end < sets.len() && !sets[end].is_disjoint(&target) {
                if inclusion == Inclusion::Transitive {
                    target.extend(&sets[end]);
                }
                end += 1;
            }
        }
        found.push((start, end));
        (taken, at) = (end, end);
    }
    found
}

/// The longest tail of `sorted` that has at most `limit` members in each set.
pub(super) fn last_within_limit(sorted: &[usize], sets: &[Set], limit: usize) -> Vec<usize> {
    let mut selected = vec![0; sets.len()];
    for (count, item) in sorted.iter().rev().enumerate() {
        for (set, selected) in sets.iter().zip(&mut selected) {
            *selected += usize::from(set.contains(item));
            if *selected > limit {
                return sorted.iter().rev().take(count).copied().collect();
            }
        }
    }
    sorted.to_vec()
}

/// Joins sets until no two share an SSTable: the groups can be compacted separately.
pub(super) fn join_overlapping(sets: Vec<Set>) -> Vec<Set> {
    let mut groups: Vec<Set> = Vec::new();
    for set in sets {
        match groups.last_mut() {
            Some(last) if !last.is_disjoint(&set) => last.extend(set),
            _ => groups.push(set),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::testing::source;
    use super::*;

    fn sets(of: &[&[usize]]) -> Vec<Set> {
        of.iter().map(|set| set.iter().copied().collect()).collect()
    }

    #[test]
    fn overlaps_are_those_of_the_example_in_cassandra() {
        // In Cassandra's example A[0, 4), B[2, 8), C[6, 10), D[1, 9): ABD and BCD.
        let sources = [source(0, 3), source(2, 7), source(6, 9), source(1, 8)];
        assert_eq!(overlap_sets(&sources, &[0, 1, 2, 3]), sets(&[&[0, 1, 3], &[1, 2, 3]]));
        // Ends are inclusive: an SSTable that begins where another ends overlaps it.
        let touching = [source(0, 5), source(5, 9), source(10, 12)];
        assert_eq!(overlap_sets(&touching, &[0, 1, 2]), sets(&[&[0, 1], &[2]]));
        assert_eq!(overlap_sets(&touching, &[]), sets(&[]));
    }

    #[test]
    fn neighbours_are_taken_along_as_far_as_the_method_says() {
        // A(0, 5), B(2, 9), C(6, 12), D(10, 12): AB, BC, CD.
        let overlaps = sets(&[&[0, 1], &[1, 2], &[2, 3]]);
        assert_eq!(buckets(2, Inclusion::None, &overlaps), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(buckets(2, Inclusion::Single, &overlaps), [(0, 2), (2, 3)]);
        assert_eq!(buckets(2, Inclusion::Transitive, &overlaps), [(0, 3)]);
        let one_large = sets(&[&[0], &[0, 1, 2], &[2], &[3]]);
        assert_eq!(buckets(3, Inclusion::Transitive, &one_large), [(0, 3)]);
        assert_eq!(buckets(4, Inclusion::Transitive, &one_large), []);
    }

    #[test]
    fn no_section_gives_more_than_the_limit() {
        let overlaps = sets(&[&[0, 1, 2], &[3, 4]]);
        assert_eq!(last_within_limit(&[0, 1, 2, 3, 4], &overlaps, 2), [4, 3, 2, 1]);
        assert_eq!(last_within_limit(&[0, 1, 2, 3, 4], &overlaps, 3), [0, 1, 2, 3, 4]);
        assert_eq!(join_overlapping(sets(&[&[0, 1], &[1, 2], &[3]])), sets(&[&[0, 1, 2], &[3]]));
    }
}
