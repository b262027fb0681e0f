//! Estimates the number and size of a table's partitions in ranges of the ring, by which Spark and Trino split their
//! reads.

use super::details::TableInspection;
use crate::table::View;
use helenus_model::schema::TableId;
use helenus_model::token::Token;
use helenus_sstable::table::SsTable;

/// An estimate for a range of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeEstimate {
    /// Partitions in SSTables. A partition in several SSTables counts in each.
    pub partitions: u64,
    /// Mean uncompressed size of the table's partitions in bytes; 0 if there are none.
    pub partition_bytes_mean: u64,
}

impl TableInspection<'_> {
    /// Estimates of a table for token ranges, which exclude their start and include their end. Tokens are hashes, so
    /// the tokens of an SSTable are assumed to be evenly spread between its first and its last. Memtables are not
    /// counted, as in Cassandra (`SizeEstimatesRecorder`).
    pub fn range_estimates(&self, table: TableId, ranges: &[(Token, Token)]) -> Vec<RangeEstimate> {
        let Some(store) = self.shared.table(table) else {
            return vec![RangeEstimate::default(); ranges.len()];
        };
        let view = store.view();
        let partition_bytes_mean = partition_bytes_mean(&view);
        let of_range = |(start, end): &(Token, Token)| RangeEstimate {
            partitions: view.sstables.iter().map(|sstable| partitions_within(sstable, *start, *end)).sum(),
            partition_bytes_mean,
        };
        ranges.iter().map(of_range).collect()
    }
}

fn partition_bytes_mean(view: &View) -> u64 {
    let sizes = || view.sstables.iter().map(|sstable| &sstable.stats().partition_sizes);
    let count: u64 = sizes().map(|sizes| sizes.count()).sum();
    let bytes: f64 =
        sizes().filter(|sizes| sizes.count() > 0).map(|sizes| sizes.mean() * sizes.count() as f64).sum();
    if count == 0 { 0 } else { (bytes / count as f64) as u64 }
}

fn partitions_within(sstable: &SsTable, start: Token, end: Token) -> u64 {
    let (first, last) = sstable.tokens();
    let count = sstable.partition_count();
    partitions_up_to(end, (first, last), count).saturating_sub(partitions_up_to(start, (first, last), count))
}

/// The number of partitions between the two tokens that have a token up to this one. Over ranges that cover the ring,
/// the differences of these numbers add up to `count`.
fn partitions_up_to(token: Token, (first, last): (Token, Token), count: u64) -> u64 {
    if token < first {
        return 0;
    }
    if token >= last {
        return count;
    }
    let distance = |from: Token, to: Token| (i128::from(to.0) - i128::from(from.0)) as f64;
    // The first partition is at the first token; the others are spread after it.
    let behind = (count.saturating_sub(1)) as f64 * distance(first, token) / distance(first, last);
    1 + behind as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_cover_the_ring_have_all_partitions() {
        let mut state = 34_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Token(state as i64 ^ (state >> 29) as i64)
        };
        for count in [1, 2, 7, 1000, 1 << 40] {
            for _ in 0..200 {
                let (a, b) = (draw(), draw());
                let spread = if count == 1 { (a, a) } else { (a.min(b), a.max(b)) };
                let mut ends: Vec<Token> =
                    (0..16).map(|_| draw()).chain([Token(i64::MIN), Token(i64::MAX)]).collect();
                ends.sort_unstable();
                let within = |pair: &[Token]| {
                    partitions_up_to(pair[1], spread, count) - partitions_up_to(pair[0], spread, count)
                };
                let at_the_start = partitions_up_to(ends[0], spread, count);
                assert_eq!(at_the_start + ends.windows(2).map(within).sum::<u64>(), count, "{spread:?}");
            }
        }
    }

    #[test]
    fn halves_of_the_ring_have_half_of_what_is_spread_over_it() {
        let spread = (Token(i64::MIN + 1), Token(i64::MAX));
        let half = partitions_up_to(Token(0), spread, 1001);
        assert!((500..=502).contains(&half), "{half}");
    }
}
