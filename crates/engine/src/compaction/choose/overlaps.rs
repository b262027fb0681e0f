//! Computes sets of overlapping SSTables (`org.apache.cassandra.utils.Overlaps`).

use super::strategy_input::Sources;
use std::collections::{BTreeMap, BTreeSet};

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
pub(super) fn overlap_sets(sources: Sources<'_>, items: &[usize]) -> Vec<Set> {
    let mut sorted = items.to_vec();
    sorted.sort_by(|a, b| sources[*a].first.cmp(&sources[*b].first));
    let mut sets: Vec<Set> = Vec::new();
    let mut active = Set::new();
    let mut ends: BTreeSet<(&[u8], usize)> = BTreeSet::new();
    for item in sorted {
        let source = sources.at(item);
        let has_ended = |(last, _): &(&[u8], usize)| source.first.as_slice() > *last;
        if ends.first().is_some_and(has_ended) {
            sets.push(active.clone());
        }
        while let Some(ended) = ends.first().copied().filter(has_ended) {
            ends.remove(&ended);
            active.remove(&ended.1);
        }
        active.insert(item);
        ends.insert((&source.last, item));
    }
    if !active.is_empty() {
        sets.push(active);
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
            // The sets of an SSTable are neighbours. So a set that shares one with the sets beside it shares it with the
            // nearest of them.
            let nearest = |within: usize| if inclusion == Inclusion::Transitive { within } else { at };
            while start > taken && share_any(&sets[start - 1], &sets[nearest(start)]) {
                start -= 1;
            }
            while end < sets.len() && share_any(&sets[end], &sets[nearest(end - 1)]) {
                end += 1;
            }
        }
        found.push((start, end));
        (taken, at) = (end, end);
    }
    found
}

/// Whether two sets have a member in common.
fn share_any(a: &Set, b: &Set) -> bool {
    let (smaller, larger) = if a.len() < b.len() { (a, b) } else { (b, a) };
    smaller.iter().any(|member| larger.contains(member))
}

/// The longest tail of `sorted` that has at most `limit` members in each set.
pub(super) fn last_within_limit(sorted: &[usize], sets: &[Set], limit: usize) -> Vec<usize> {
    // The first and the last set of each member, between which it is in each.
    let mut places: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (place, set) in sets.iter().enumerate() {
        for member in set {
            places.entry(*member).or_insert((place, place)).1 = place;
        }
    }
    let mut selected = vec![0; sets.len()];
    for (count, item) in sorted.iter().rev().enumerate() {
        let Some((first, last)) = places.get(item) else { continue };
        for selected in &mut selected[*first..=*last] {
            *selected += 1;
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
    let mut before = Set::new();
    for set in sets {
        match groups.last_mut() {
            Some(group) if share_any(&before, &set) => group.extend(&set),
            _ => groups.push(set.clone()),
        }
        before = set;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::strategy_input::Sources;
    use super::super::testing::source;
    use super::*;

    fn sets(of: &[&[usize]]) -> Vec<Set> {
        of.iter().map(|set| set.iter().copied().collect()).collect()
    }

    #[test]
    fn overlaps_are_those_of_the_example_in_cassandra() {
        // In Cassandra's example A[0, 4), B[2, 8), C[6, 10), D[1, 9): ABD and BCD.
        let sources = [source(0, 3), source(2, 7), source(6, 9), source(1, 8)];
        assert_eq!(overlap_sets(Sources::of(&sources), &[0, 1, 2, 3]), sets(&[&[0, 1, 3], &[1, 2, 3]]));
        // Ends are inclusive: an SSTable that begins where another ends overlaps it.
        let touching = [source(0, 5), source(5, 9), source(10, 12)];
        assert_eq!(overlap_sets(Sources::of(&touching), &[0, 1, 2]), sets(&[&[0, 1], &[2]]));
        assert_eq!(overlap_sets(Sources::of(&touching), &[]), sets(&[]));
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
