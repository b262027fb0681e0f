//! Decides which pieces of a growing list are merged, so that the list stays short and each byte is copied seldom.
//!
//! The range deletions of a partition (`range_runs`) and the versions of a large row (`row_parts`) are lists of pieces,
//! the newest first. A write adds a piece and copies nothing else, or it merges the first pieces into one. A tier
//! contains pieces of about the same size, and each tier is four times the one below. Four pieces of one tier become
//! one of the next, as in a tiered compaction. So n bytes that arrive in small pieces are copied `log4 n` times at most,
//! and a list has at most three pieces of each tier.

/// Pieces of one tier that are merged.
const MERGED: usize = 4;

/// How many of the first pieces of a list become one; 1 merges nothing. `sizes` are those of all pieces, the new one
/// first; the smallest tier ends at four times `unit`.
///
/// Keeps the order of the tiers: the list's pieces never get smaller from the newest to the oldest, by tiers, because a
/// new piece takes in all smaller ones behind it. A merged piece may be smaller than the sum of its parts.
pub(super) fn merged_count(unit: usize, sizes: impl Iterator<Item = usize> + Clone) -> usize {
    let mut rest = sizes;
    let Some(mut size) = rest.next() else { return 0 };
    let mut count = 1;
    let mut take = |rest: &mut dyn Iterator<Item = usize>, count: &mut usize, pieces: usize| {
        *count += pieces;
        size += rest.take(pieces).sum::<usize>();
        tier(unit, size)
    };
    let mut own = take(&mut rest, &mut count, 0);
    loop {
        let lower = rest.clone().take_while(|size| tier(unit, *size) < own).count();
        let equal = rest.clone().skip(lower).take_while(|size| tier(unit, *size) == own).take(MERGED).count();
        if equal + 1 >= MERGED {
            own = take(&mut rest, &mut count, lower + equal);
        } else if lower > 0 {
            own = take(&mut rest, &mut count, lower);
        } else {
            return count;
        }
    }
}

fn tier(unit: usize, size: usize) -> u32 {
    (size / unit).max(1).ilog(MERGED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds pieces of these sizes, without loss in merges. Returns the most pieces at any time and all bytes copied.
    fn grow(sizes: impl Iterator<Item = usize>) -> (usize, usize) {
        let mut list: Vec<usize> = Vec::new();
        let (mut most, mut copied) = (0, 0);
        for size in sizes {
            list.insert(0, size);
            let count = merged_count(1, list.iter().copied());
            let merged: usize = list.drain(..count).sum();
            list.insert(0, merged);
            copied += merged;
            most = most.max(list.len());
            assert!(list.is_sorted_by_key(|size| tier(1, *size)), "{list:?}");
        }
        (most, copied)
    }

    #[test]
    fn lists_stay_short_and_bytes_are_copied_once_for_each_tier() {
        let (most, copied) = grow(std::iter::repeat_n(1, 1 << 16));
        assert!(most <= 3 * 9 && copied <= 10 << 16, "{most} pieces, {copied} copied");
        let mixed = (0..20_000_usize).map(|n| if n % 1000 == 999 { 5000 } else { 1 + n * 7919 % 40 });
        let all: usize = mixed.clone().sum();
        let (most, copied) = grow(mixed);
        assert!(most <= 3 * 11 && copied <= 12 * all, "{most} pieces, {copied} of {all} copied");
    }

    #[test]
    fn a_large_piece_takes_in_the_small_ones_before_it() {
        assert_eq!(merged_count(1, [100, 1, 1, 5, 300, 20].into_iter()), 4);
        assert_eq!(merged_count(1, [1, 1, 1].into_iter()), 1);
        assert_eq!(merged_count(1, [1, 1, 1, 1, 4, 4, 4, 16].into_iter()), 7);
        assert_eq!(merged_count(1, std::iter::empty()), 0);
    }
}
