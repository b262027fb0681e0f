//! Ranges of tokens, as the back-fill cuts the ring, for both sides.

use helenus_model::byte_comparable::token_bound;
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL};
use helenus_model::partitions::KeyRange;
use helenus_model::token::Token;

/// Tokens from `from` (inclusive) to `until` (exclusive); without a bound, from the beginning or to the end of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRange {
    /// The first token.
    pub from: Option<i64>,
    /// The token behind the last.
    pub until: Option<i64>,
}

impl TokenRange {
    /// The whole ring.
    pub const ALL: TokenRange = TokenRange { from: None, until: None };

    /// One of so many equal ranges.
    pub fn of(number: u32, ranges: u32) -> TokenRange {
        TokenRange {
            from: (number > 0).then(|| bound(number, ranges)),
            until: (number + 1 < ranges).then(|| bound(number + 1, ranges)),
        }
    }

    /// The partitions of one token.
    pub fn of_token(token: i64) -> TokenRange {
        TokenRange { from: Some(token), until: token.checked_add(1) }
    }

    /// The beginning of this range, with this share of its tokens.
    pub fn share(self, share: f64) -> TokenRange {
        let from = i128::from(self.from.unwrap_or(i64::MIN));
        let until = self.until.map_or(i128::from(i64::MAX) + 1, i128::from);
        let width = ((until - from) as f64 * share.clamp(0.0, 1.0)) as i128;
        match i64::try_from(from + width) {
            Ok(end) if i128::from(end) < until => TokenRange { until: Some(end), ..self },
            _ => self,
        }
    }

    /// The partitions here.
    pub fn key_range(self) -> KeyRange {
        let position = |token: i64| {
            let mut position = Vec::new();
            token_bound(Token(token), true, &mut position);
            position
        };
        KeyRange {
            start: self.from.map_or(BEFORE_ALL.to_vec(), position),
            end: self.until.map_or(AFTER_ALL.to_vec(), position),
        }
    }
}

fn bound(number: u32, ranges: u32) -> i64 {
    let width = (u128::from(u64::MAX) + 1) / u128::from(ranges.max(1));
    let offset = (width * u128::from(number)) as u64;
    (offset ^ (1 << 63)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::partitions::PartitionKey;

    #[test]
    fn ranges_touch_each_other_and_cover_every_key() {
        for ranges in [1, 2, 7, 64] {
            let all: Vec<KeyRange> =
                (0..ranges).map(|number| TokenRange::of(number, ranges).key_range()).collect();
            assert_eq!((&all[0].start[..], &all[ranges as usize - 1].end[..]), (BEFORE_ALL, AFTER_ALL));
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            for key in 0..500_u32 {
                let position = PartitionKey::new(key.to_be_bytes().to_vec()).decorated;
                let of = all.iter().filter(|range| range.start <= position && position < range.end);
                assert_eq!(of.count(), 1);
            }
        }
    }

    #[test]
    fn a_share_is_the_beginning_of_its_range() {
        assert_eq!(TokenRange::ALL.share(0.5), TokenRange { from: None, until: Some(0) });
        assert_eq!(TokenRange::ALL.share(1.0), TokenRange::ALL);
        for number in 0..7 {
            let range = TokenRange::of(number, 7);
            let share = range.share(0.25);
            assert_eq!(share.from, range.from);
            assert!(share.until.unwrap() > range.from.unwrap_or(i64::MIN));
            assert!(range.until.is_none_or(|until| share.until.unwrap() < until));
        }
    }
}
