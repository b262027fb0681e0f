//! Cassandra's `EstimatedHistogram`: counts values in buckets, each a fifth larger than the one before.

use super::input::Input;
use crate::error::Result;

/// Counts of values. Bucket n counts values up to `offsets[n]` that are above the offset before; the last bucket counts
/// values above all offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstimatedHistogram {
    offsets: Vec<u64>,
    counts: Vec<u64>,
}

/// Buckets for partition sizes: up to 3.5 TB.
pub(super) const PARTITION_SIZE_BUCKETS: usize = 155;
/// Buckets for cells of a partition: up to 4.1 thousand million.
pub(super) const CELL_COUNT_BUCKETS: usize = 118;

impl EstimatedHistogram {
    /// An empty histogram with this many buckets, besides the one for values above all offsets.
    pub fn new(buckets: usize) -> EstimatedHistogram {
        let mut offsets = Vec::with_capacity(buckets);
        let mut last: u64 = 1;
        for _ in 0..buckets {
            offsets.push(last);
            // Java rounds last * 1.2, as a double, half up.
            last = ((last as f64 * 1.2 + 0.5).floor() as u64).max(last + 1);
        }
        EstimatedHistogram { counts: vec![0; buckets + 1], offsets }
    }

    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let index = self.offsets.partition_point(|offset| *offset < value);
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
    }

    /// Number of values counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Mean of the values, each taken as its bucket's upper end; 0 without values.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.buckets().map(|(offset, count)| offset as f64 * count as f64).sum();
        let count = self.count();
        if count == 0 { 0.0 } else { sum / count as f64 }
    }

    /// Upper end of the bucket up to which this part (0 to 1) of the values lies; 0 without values.
    pub fn percentile(&self, part: f64) -> u64 {
        let wanted = (self.count() as f64 * part).ceil() as u64;
        let mut seen: u64 = 0;
        for (offset, count) in self.buckets() {
            seen = seen.saturating_add(count);
            if seen >= wanted && wanted > 0 {
                return offset;
            }
        }
        0
    }

    /// Adds the counts of another histogram of the same kind. Histograms of older files may have fewer buckets.
    pub fn merge(&mut self, other: &EstimatedHistogram) {
        for (end, count) in other.buckets().filter(|(_, count)| *count > 0) {
            let index = self.offsets.partition_point(|offset| *offset < end);
            if let Some(own) = self.counts.get_mut(index) {
                *own = own.saturating_add(count);
            }
        }
    }

    /// Lower end of the lowest bucket with a value; 0 without values (`EstimatedHistogram.min`).
    pub fn min(&self) -> u64 {
        let Some(index) = self.counts.iter().position(|count| *count > 0) else { return 0 };
        index.checked_sub(1).and_then(|before| self.offsets.get(before)).map_or(0, |offset| offset + 1)
    }

    /// Upper end of the highest bucket with a value; 0 without values.
    pub fn max(&self) -> u64 {
        self.buckets().filter(|(_, count)| *count > 0).last().map_or(0, |(offset, _)| offset)
    }

    /// Upper end and count of each bucket; the upper end of the last is `u64::MAX`.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = self.offsets.iter().copied().chain([u64::MAX]);
        ends.zip(self.counts.iter().copied())
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.counts.len() as u32).to_be_bytes());
        // Java writes the first offset twice and then each with the next bucket's count.
        let offsets = self.offsets.first().into_iter().chain(&self.offsets);
        for (offset, count) in offsets.zip(&self.counts) {
            out.extend_from_slice(&offset.to_be_bytes());
            out.extend_from_slice(&count.to_be_bytes());
        }
    }

    pub(super) fn read(input: &mut Input<'_>) -> Result<EstimatedHistogram> {
        let size = input.u32()?;
        let size = input.count(u64::from(size), 16)?;
        if size < 2 {
            return Err(input.corrupt("a histogram without buckets"));
        }
        let mut histogram = EstimatedHistogram { offsets: Vec::with_capacity(size), counts: Vec::new() };
        for index in 0..size {
            let offset = input.u64()?;
            if index > 0 {
                histogram.offsets.push(offset);
            }
            histogram.counts.push(input.u64()?);
        }
        Ok(histogram)
    }
}
