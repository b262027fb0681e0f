//! Parts of the token ring: the part that an SSTable spans, and the boundaries of equal parts.

use super::strategy_input::SsTableInfo;
use helenus_model::token::Token;

/// Smaller spans come from SSTables with one or two partitions, for which a density means nothing
/// (`MINIMUM_TOKEN_COVERAGE`).
fn coverage_min() -> f64 {
    2f64.powi(-48)
}

/// The part of the ring from `first` to `last`, both included.
pub fn range_spanned(first: Token, last: Token) -> f64 {
    let distance = last.0.wrapping_add(1).wrapping_sub(first.0) as f64 * 2f64.powi(-64);
    if distance > 0.0 { distance } else { distance + 1.0 }
}

/// The density of an SSTable: its bytes divided by the part of the ring that it spans.
pub(super) fn density(source: &SsTableInfo) -> f64 {
    let reported = source.coverage;
    let span = if reported > 0.0 { reported } else { range_spanned(source.tokens.0, source.tokens.1) };
    source.bytes as f64 / if span >= coverage_min() { span } else { 1.0 }
}

/// The density of the result of compacting these SSTables.
pub(super) fn combined_density(sources: &[&SsTableInfo]) -> f64 {
    let Some(first) = sources.iter().min_by(|a, b| a.first.cmp(&b.first)) else { return 0.0 };
    let Some(last) = sources.iter().max_by(|a, b| a.last.cmp(&b.last)) else { return 0.0 };
    let bytes: u64 = sources.iter().map(|source| source.bytes).sum();
    let span = range_spanned(first.tokens.0, last.tokens.1);
    if span >= coverage_min() { bytes as f64 / span } else { bytes as f64 }
}

/// Iterates over the ends of equal parts of the ring.
#[derive(Clone, Debug)]
pub struct ShardEnds {
    count: u32,
    index: u32,
}

impl ShardEnds {
    /// For `count` parts, at least one; the current part is the first.
    pub fn new(count: u32) -> ShardEnds {
        ShardEnds { count: count.max(1), index: 0 }
    }

    /// The last token of the current part; `None` in the last part.
    pub fn end(&self) -> Option<Token> {
        let next = self.index + 1;
        if next >= self.count {
            return None;
        }
        // Counted from the smallest token, rounded towards zero as by BigDecimal.toBigInteger.
        let (count, next) = (i128::from(self.count), i128::from(next));
        let end = (i128::from(i64::MIN) * count + i128::from(u64::MAX) * next) / count;
        Some(Token(end as i64))
    }

    /// Moves to the part of a token, which is not before the current part. Returns whether the part has changed.
    pub fn advance_to(&mut self, token: Token) -> bool {
        let before = self.index;
        while self.end().is_some_and(|end| token > end) {
            self.index += 1;
        }
        self.index != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_parts_of_the_ring_with_both_ends() {
        assert_eq!(range_spanned(Token(i64::MIN), Token(i64::MAX)), 1.0);
        assert_eq!(range_spanned(Token(i64::MIN), Token(-1)), 0.5);
        assert_eq!(range_spanned(Token(0), Token((1 << 62) - 1)), 0.25);
    }

    #[test]
    fn boundaries_are_those_of_the_partitioners_split() {
        let ends = |count: u32| {
            let mut boundaries = ShardEnds::new(count);
            let mut ends = Vec::new();
            while let Some(end) = boundaries.end() {
                ends.push(end.0);
                // The end belongs to its part; the token after it belongs to the next.
                assert!(!boundaries.advance_to(end));
                assert!(boundaries.advance_to(Token(end.0 + 1)));
            }
            ends
        };
        assert_eq!(ends(1), []);
        assert_eq!(ends(2), [0]);
        assert_eq!(ends(4), [-(1 << 62), 0, (1 << 62) - 1]);
        assert_eq!(ends(8).len(), 7);
        // The boundaries of four parts are among those of eight.
        assert!(ends(4).iter().all(|end| ends(8).contains(end)));
        let mut boundaries = ShardEnds::new(4);
        assert!(boundaries.advance_to(Token(i64::MAX)) && boundaries.end().is_none());
    }
}
