//! Finds the intervals of tokens that contain a token, or overlap a range, without looking at the others.
//!
//! A segment tree over the cells into which the ends of all intervals divide the ring. An interval stands in the list
//! of each node that it covers and whose parent it does not cover: at most two nodes a level. The intervals that contain
//! a token are those in the lists on the path from its cell to the root. Lists are ordered by the intervals' numbers,
//! so a merge of the path's lists gives the matches in ascending order, one after the other: a read that ends early
//! does not pay for the rest.
//!
//! With n intervals: O(n log n) to build, at most 2 log2(2n) entries of four bytes an interval, O(log n) and a
//! comparison with each list of the path for each match.

use helenus_model::token::Token;
use std::ops::Range;

/// The most lists on a path: the number of cells is below 2^32.
const PATH_MAX: usize = 33;

/// Intervals of tokens, numbered in the order in which they were given.
pub(crate) struct TokenIndex {
    /// The first token of each cell, ascending. Before the first cell there is no interval.
    cells: Vec<Token>,
    /// Where the list of each node begins in `entries`, and where the last one ends. The children of node `i` are `2i` and
    /// `2i + 1`; the node of cell `c` is `cells.len() + c`.
    lists: Vec<u32>,
    entries: Vec<u32>,
    /// The first token of each interval with its number, ascending.
    firsts: Vec<(Token, u32)>,
}

impl TokenIndex {
    /// Builds the index of intervals, each from its first to its last token.
    pub(crate) fn new(intervals: &[(Token, Token)]) -> TokenIndex {
        let numbered = || intervals.iter().copied().zip(0_u32..);
        let mut cells: Vec<Token> = Vec::with_capacity(2 * intervals.len());
        for (first, last) in intervals {
            cells.push(*first);
            cells.extend(last.0.checked_add(1).map(Token));
        }
        cells.sort_unstable();
        cells.dedup();
        let mut lists = vec![0_u32; 2 * cells.len() + 1];
        for (interval, _) in numbered() {
            for_each_node(&cells, interval, |node| {
                if let Some(count) = lists.get_mut(node + 1) {
                    *count += 1;
                }
            });
        }
        let mut end = 0;
        for count in &mut lists {
            end += *count;
            *count = end;
        }
        let mut entries = vec![0_u32; end as usize];
        let mut next = lists.clone();
        for (interval, number) in numbered() {
            for_each_node(&cells, interval, |node| {
                let Some(place) = next.get_mut(node) else { return };
                if let Some(entry) = entries.get_mut(*place as usize) {
                    *entry = number;
                }
                *place += 1;
            });
        }
        let mut firsts: Vec<(Token, u32)> = numbered().map(|((first, _), number)| (first, number)).collect();
        firsts.sort_unstable();
        TokenIndex { cells, lists, entries, firsts }
    }

    /// The numbers of the intervals that contain the token, ascending.
    pub(crate) fn containing(&self, token: Token) -> Matches<'_> {
        let mut matches = Matches { lists: [&[]; PATH_MAX], count: 0 };
        let Some(cell) = self.cells.partition_point(|first| *first <= token).checked_sub(1) else {
            return matches;
        };
        let mut node = self.cells.len() + cell;
        while node > 0 {
            let list = self.list(node);
            if !list.is_empty()
                && let Some(place) = matches.lists.get_mut(matches.count)
            {
                *place = list;
                matches.count += 1;
            }
            node /= 2;
        }
        matches
    }

    /// The numbers of the intervals that have a token in common with the range from `first` to `last`, ascending.
    pub(crate) fn overlapping(&self, first: Token, last: Token) -> Vec<u32> {
        let from = self.firsts.partition_point(|(token, _)| *token <= first);
        let to = self.firsts.partition_point(|(token, _)| *token <= last);
        let beginning = self.firsts.get(from..to).unwrap_or(&[]);
        let mut found: Vec<u32> = self.containing(first).collect();
        found.extend(beginning.iter().map(|(_, number)| *number));
        found.sort_unstable();
        found
    }

    fn list(&self, node: usize) -> &[u32] {
        let bound = |node: usize| self.lists.get(node).map_or(0, |bound| *bound as usize);
        self.entries.get(bound(node)..bound(node + 1)).unwrap_or(&[])
    }
}

/// Calls `each` with the nodes in whose lists an interval stands.
fn for_each_node(cells: &[Token], (first, last): (Token, Token), mut each: impl FnMut(usize)) {
    let cell = |token: Token| cells.partition_point(|first| *first < token);
    let Range { mut start, mut end } = cells.len() + cell(first)
        ..cells.len() + last.0.checked_add(1).map_or(cells.len(), |after| cell(Token(after)));
    while start < end {
        if start % 2 == 1 {
            each(start);
            start += 1;
        }
        if end % 2 == 1 {
            end -= 1;
            each(end);
        }
        (start, end) = (start / 2, end / 2);
    }
}

/// Ascending numbers of intervals.
pub(crate) struct Matches<'a> {
    /// The rests of the lists that are merged. No number is in two of them.
    lists: [&'a [u32]; PATH_MAX],
    count: usize,
}

impl Iterator for Matches<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let lists = self.lists.get_mut(..self.count)?;
        let least =
            lists.iter_mut().filter(|list| !list.is_empty()).min_by_key(|list| list.first().copied())?;
        let (first, rest) = least.split_first()?;
        *least = rest;
        Some(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(intervals: &[(i64, i64)]) -> TokenIndex {
        let intervals: Vec<_> = intervals.iter().map(|(first, last)| (Token(*first), Token(*last))).collect();
        TokenIndex::new(&intervals)
    }

    #[test]
    fn nothing_and_one_interval() {
        assert_eq!(index(&[]).containing(Token(0)).count(), 0);
        assert_eq!(index(&[]).overlapping(Token(i64::MIN), Token(i64::MAX)), []);
        let whole = index(&[(i64::MIN, i64::MAX)]);
        for token in [i64::MIN, 0, i64::MAX] {
            assert_eq!(whole.containing(Token(token)).collect::<Vec<_>>(), [0]);
        }
        let one = index(&[(5, 5)]);
        assert_eq!([4, 5, 6].map(|token| one.containing(Token(token)).count()), [0, 1, 0]);
    }

    #[test]
    fn drawn_intervals_are_found_as_by_looking_at_each() {
        let mut state = 7_u64;
        let mut draw = |below: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below.unsigned_abs()) as i64
        };
        for round in 0..300 {
            let (count, span) = (draw(40), 1 + draw(60));
            let extreme = round % 3 == 0;
            let ends = |draw: &mut dyn FnMut(i64) -> i64| match draw(9) {
                0 if extreme => i64::MIN,
                1 if extreme => i64::MAX,
                _ => draw(span) - span / 2,
            };
            let intervals: Vec<(i64, i64)> = (0..count)
                .map(|_| (ends(&mut draw), ends(&mut draw)))
                .map(|(a, b)| (a.min(b), a.max(b)))
                .collect();
            let index = index(&intervals);
            let which = |is_one: &dyn Fn(&(i64, i64)) -> bool| -> Vec<u32> {
                (0_u32..).zip(&intervals).filter(|(_, one)| is_one(one)).map(|(number, _)| number).collect()
            };
            for token in (-span..span).chain([i64::MIN, i64::MAX]) {
                let right = which(&|(first, last)| *first <= token && token <= *last);
                assert_eq!(
                    index.containing(Token(token)).collect::<Vec<_>>(),
                    right,
                    "{intervals:?} {token}"
                );
                let end = token.saturating_add(draw(9));
                let right = which(&|(first, last)| *first <= end && token <= *last);
                assert_eq!(index.overlapping(Token(token), Token(end)), right, "{intervals:?} {token} {end}");
            }
        }
    }

    #[test]
    fn the_index_of_ten_thousand_disjoint_intervals_is_small_and_a_path_short() {
        let count = 10_000;
        let disjoint: Vec<(i64, i64)> = (0..count).map(|n| (n * 100, n * 100 + 99)).collect();
        let nested: Vec<(i64, i64)> = (0..count).map(|n| (n, 1_000_000 - n)).collect();
        for (intervals, entries_max) in [(disjoint, 2 * count), (nested, 30 * count)] {
            let index = index(&intervals);
            assert!(index.entries.len() <= entries_max as usize, "{}", index.entries.len());
            let longest = (0..1000).map(|n| index.containing(Token(n * 1000)).count).max();
            assert!(longest.is_some_and(|lists| lists <= 16), "{longest:?}");
        }
    }
}
