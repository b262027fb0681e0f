//! A histogram of the times at which tombstones and expiring cells become droppable, with at most a hundred points.
//!
//! Source: Cassandra's `StreamingTombstoneHistogramBuilder`. Points are rounded up to a minute. If there are more than
//! a hundred, the two nearest are merged at their weighted mean. Exact points are first collected in a spool, so that
//! merging is rare. Ours is emptied in order of time and at another size, so merged points may differ slightly from
//! Cassandra's.

use super::input::Input;
use crate::deletion_time::SIGNED_LOCAL_S_MAX;
use crate::error::Result;
use crate::version::Version;
use std::collections::BTreeMap;

const BINS_MAX: usize = 100;
const SPOOL_MAX: usize = 8192;
const ROUND_SECONDS: i64 = 60;

/// The latest deletion time of a tombstone (Cassandra's `Cell.MAX_DELETION_TIME`).
pub(super) const DELETION_TIME_MAX_S: i64 = u32::MAX as i64 - 2;

/// A finished histogram: points of seconds since 1970 and a count, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TombstoneHistogram {
    /// The points.
    pub points: Vec<(i64, i32)>,
}

/// Collects points.
#[derive(Clone, Debug, Default)]
pub struct TombstoneHistogramBuilder {
    bins: Vec<(i64, i32)>,
    spool: BTreeMap<i64, i32>,
    // The last point and its count. Tombstones of one delete come one after the other, and are counted here first.
    last: Option<(i64, i32)>,
}

impl TombstoneHistogramBuilder {
    /// Counts a tombstone or an expiry at this second since 1970.
    pub fn add(&mut self, local_deletion_s: i64) {
        let point = round_up(local_deletion_s.max(0));
        match &mut self.last {
            Some((last, count)) if *last == point => *count = count.saturating_add(1),
            last => {
                if let Some((point, count)) = last.replace((point, 1)) {
                    self.spool(point, count);
                }
            }
        }
    }

    /// The histogram.
    pub fn finish(mut self) -> TombstoneHistogram {
        if let Some((point, count)) = self.last.take() {
            self.spool(point, count);
        }
        self.drain();
        TombstoneHistogram { points: self.bins }
    }

    fn spool(&mut self, point: i64, count: i32) {
        let kept = self.spool.entry(point).or_insert(0);
        *kept = kept.saturating_add(count);
        if self.spool.len() > SPOOL_MAX {
            self.drain();
        }
    }

    fn drain(&mut self) {
        for (point, count) in std::mem::take(&mut self.spool) {
            insert(&mut self.bins, point, count);
            if self.bins.len() > BINS_MAX {
                merge_nearest(&mut self.bins);
            }
        }
    }
}

fn round_up(point: i64) -> i64 {
    let over = point % ROUND_SECONDS;
    if over == 0 { point } else { (point - over).saturating_add(ROUND_SECONDS).min(DELETION_TIME_MAX_S) }
}

fn insert(bins: &mut Vec<(i64, i32)>, point: i64, count: i32) {
    match bins.binary_search_by_key(&point, |(at, _)| *at) {
        Ok(index) => {
            if let Some((_, kept)) = bins.get_mut(index) {
                *kept = kept.saturating_add(count);
            }
        }
        Err(index) => bins.insert(index, (point, count)),
    }
}

fn merge_nearest(bins: &mut Vec<(i64, i32)>) {
    let nearest = bins.array_windows::<2>().enumerate().min_by_key(|(_, [a, b])| b.0 - a.0);
    let Some((index, &[(first, first_count), (second, second_count)])) = nearest else { return };
    let total = i128::from(first_count) + i128::from(second_count);
    let weighted =
        i128::from(first) * i128::from(first_count) + i128::from(second) * i128::from(second_count);
    let mean = (weighted / total.max(1)) as i64;
    let point = round_up(mean.max(first + 1).min(second));
    bins.remove(index + 1);
    bins.remove(index);
    insert(bins, point, first_count.saturating_add(second_count));
}

impl TombstoneHistogram {
    /// About the number of points at or before this second.
    pub fn sum_until(&self, second: i64) -> f64 {
        let mut sum = 0.0;
        let mut before: Option<(i64, i32)> = None;
        for &(point, count) in &self.points {
            if point > second {
                let Some((start, start_count)) = before else { return 0.0 };
                let weight = (second - start) as f64 / (point - start) as f64;
                let (from, to) = (f64::from(start_count), f64::from(count));
                let at = from + (to - from) * weight;
                return sum - from + (from + at) * weight / 2.0 + from / 2.0;
            }
            sum += f64::from(count);
            before = Some((point, count));
        }
        sum
    }

    pub(super) fn write(&self, version: Version, out: &mut Vec<u8>) {
        // Early versions store the greatest possible size first.
        let first = if version < Version::Na { BINS_MAX } else { self.points.len() };
        for size in [first, self.points.len()] {
            out.extend_from_slice(&(size as u32).to_be_bytes());
        }
        for (point, count) in &self.points {
            if version.has_unsigned_deletion_times() {
                out.extend_from_slice(&point.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
            } else {
                out.extend_from_slice(&(*point as f64).to_be_bytes());
                out.extend_from_slice(&i64::from(*count).to_be_bytes());
            }
        }
    }

    /// Reads a histogram. Impossible times become the greatest possible time, as in Cassandra; counts are clamped.
    pub(super) fn read(input: &mut Input<'_>, version: Version) -> Result<TombstoneHistogram> {
        let is_unsigned = version.has_unsigned_deletion_times();
        let time_max = if is_unsigned { DELETION_TIME_MAX_S } else { SIGNED_LOCAL_S_MAX };
        input.u32()?;
        let size = input.u32()?;
        let size = input.count(u64::from(size), if is_unsigned { 12 } else { 16 })?;
        let mut points = Vec::with_capacity(size);
        for _ in 0..size {
            let (point, count) = if is_unsigned {
                (input.i64()?, i64::from(input.i32()?))
            } else {
                (input.f64()? as i64, input.i64()?)
            };
            let point = if (0..=time_max).contains(&point) { point } else { time_max };
            insert(&mut points, point, count.clamp(0, i64::from(i32::MAX)) as i32);
        }
        Ok(TombstoneHistogram { points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tombstone_is_counted_in_at_most_a_hundred_points() {
        let mut builder = TombstoneHistogramBuilder::default();
        for second in 0..30_000_i64 {
            builder.add(1_700_000_000 + second * second % 86_400_000);
        }
        let histogram = builder.finish();
        assert!(histogram.points.len() <= BINS_MAX);
        assert_eq!(histogram.points.iter().map(|(_, count)| *count).sum::<i32>(), 30_000);
        assert!(histogram.points.is_sorted_by(|a, b| a.0 < b.0));
        assert!(histogram.points.iter().all(|(point, _)| point % 60 == 0));
    }

    #[test]
    fn few_points_stay_exact_to_the_minute() {
        let mut builder = TombstoneHistogramBuilder::default();
        for second in [59, 60, 61, 60, DELETION_TIME_MAX_S] {
            builder.add(second);
        }
        let histogram = builder.finish();
        assert_eq!(histogram.points, [(60, 3), (120, 1), (DELETION_TIME_MAX_S, 1)]);
        assert_eq!(histogram.sum_until(60), 3.0 - 3.0 + 1.5);
    }
}
