//! Makes the range deletions of one write disjoint before they are applied.
//!
//! They become one sorted run (`range_runs`), in which each point has one covering deletion.

use helenus_model::deletion::DeletionTime;
use helenus_model::mutation::RangeBound;
use std::collections::BinaryHeap;

/// A deletion between two bounds, each with its ordered key.
#[derive(Clone, Debug)]
pub(super) struct Range<'a> {
    pub(super) start: (Vec<u8>, RangeBound<'a>),
    pub(super) end: (Vec<u8>, RangeBound<'a>),
    pub(super) deletion: DeletionTime,
}

/// Disjoint ranges that cover the same rows, each row by the strongest deletion that covered it.
pub(super) fn disjoint(mut ranges: Vec<Range<'_>>) -> Vec<Range<'_>> {
    ranges.retain(|range| range.start.0 < range.end.0);
    ranges.sort_by(|a, b| a.start.0.cmp(&b.start.0));
    let mut places: Vec<&(Vec<u8>, RangeBound<'_>)> =
        ranges.iter().flat_map(|range| [&range.start, &range.end]).collect();
    places.sort_by(|a, b| a.0.cmp(&b.0));
    places.dedup_by(|a, b| a.0 == b.0);
    let mut found: Vec<Range<'_>> = Vec::new();
    // The ranges begun so far, the strongest first. A range that has ended is removed when it becomes the first.
    let (mut open, mut next) = (BinaryHeap::new(), 0);
    for pair in places.windows(2) {
        let [from, to] = pair else { continue };
        while let Some(range) = ranges.get(next).filter(|range| range.start.0 <= from.0) {
            open.push((range.deletion.timestamp_us, range.deletion.local_s, next));
            next += 1;
        }
        while open.peek().is_some_and(|(.., index)| ranges[*index].end.0 <= from.0) {
            open.pop();
        }
        let Some((timestamp_us, local_s, _)) = open.peek() else { continue };
        let deletion = DeletionTime { timestamp_us: *timestamp_us, local_s: *local_s };
        match found.last_mut() {
            Some(last) if last.deletion == deletion && last.end.0 == from.0 => last.end = (*to).clone(),
            _ => found.push(Range { start: (*from).clone(), end: (*to).clone(), deletion }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::mutation::{Change, Changes};

    /// The strongest range that covers `place`, found by a scan of all ranges.
    fn covering(ranges: &[Range<'_>], place: u8) -> Option<(i64, i64)> {
        let covers = |range: &&Range<'_>| range.start.0[0] <= place && place < range.end.0[0];
        ranges.iter().filter(covers).map(|range| (range.deletion.timestamp_us, range.deletion.local_s)).max()
    }

    #[test]
    fn disjoint_ranges_cover_what_the_others_did() {
        let mut changes = Changes::default();
        let live = DeletionTime { timestamp_us: 1, local_s: 1 };
        changes.delete_range((&[], true), (&[], false), live);
        let Some(Ok(Change::RangeDeletion { start: bound, .. })) = changes.iter().next() else {
            panic!("a range was written")
        };
        let mut state = 7_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..3000 {
            let count = below(12);
            let range = |below: &mut dyn FnMut(u64) -> u64| Range {
                start: (vec![below(20) as u8], bound),
                end: (vec![below(20) as u8], bound),
                deletion: DeletionTime { timestamp_us: below(4) as i64, local_s: below(2) as i64 },
            };
            let ranges: Vec<_> = (0..count).map(|_| range(&mut below)).collect();
            let found = disjoint(ranges.clone());
            assert!(found.windows(2).all(|pair| pair[0].end.0 <= pair[1].start.0), "{found:?}");
            (0..20).for_each(|place| assert_eq!(covering(&found, place), covering(&ranges, place)));
        }
    }
}
