//! Summary.db: a sample of the keys of Index.db, one for each `min_index_interval` (128) entries, with their offsets
//! there.
//!
//! Layout (Cassandra's `IndexSummarySerializer`, `IndexSummaryComponent`). In big endian: the interval (i32), the
//! number of samples (i32), the size of the middle part in bytes (i64), the sampling level (i32, 128 for all), the
//! number of samples at that level (i32). The middle part, in little endian: for each sample its offset in this part
//! (i32), then the samples, each a key and its offset in Index.db (i64). In big endian again: the first and the last
//! key, each after its length (i32). Big-endian machines used to write the middle part in their own byte order; such a
//! summary is made again, as in Cassandra.

#![deny(clippy::indexing_slicing)]

use super::entries::Entries;
use crate::block::{BlockFile, ReadContext};
use crate::error::Result;
use helenus_model::token::{KeyHash, Token};

/// The sampling level of a summary with all samples (`Downsampling.BASE_SAMPLING_LEVEL`).
const SAMPLING_LEVEL: u32 = 128;

/// The interval of summaries that are made when a table is opened: the default of `min_index_interval`.
const INTERVAL_DEFAULT: u64 = 128;

/// The summary in memory, for binary search. It keeps tokens instead of keys; with equal tokens more entries are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    tokens: Vec<Token>,
    positions: Vec<u64>,
    /// First partition key, serialised.
    pub first_key: Vec<u8>,
    /// Last partition key, serialised.
    pub last_key: Vec<u8>,
}

impl Summary {
    /// Parses the Summary.db of an Index.db of `index_bytes` bytes; `None` if it cannot belong to it.
    pub fn parse(bytes: &[u8], index_bytes: u64) -> Option<Summary> {
        let (head, rest) = bytes.split_first_chunk::<24>()?;
        let (numbers, _) = head.as_chunks::<4>();
        let [_interval, count, high, low, _level, _full] = numbers else { return None };
        let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
        let size =
            usize::try_from(u64::from(u32::from_be_bytes(*high)) << 32 | u64::from(u32::from_be_bytes(*low)));
        let (samples, mut keys) = rest.split_at_checked(size.ok()?)?;
        let (offsets, _) = samples.get(..count.checked_mul(4)?)?.as_chunks::<4>();
        let mut summary = Summary::default();
        let mut ends =
            offsets.iter().skip(1).map(|end| u32::from_le_bytes(*end) as usize).chain([size.ok()?]);
        for start in offsets {
            let sample = samples.get(u32::from_le_bytes(*start) as usize..ends.next()?)?;
            let (key, position) = sample.split_last_chunk::<8>()?;
            summary.push(KeyHash::of(key).token, u64::from_le_bytes(*position));
        }
        summary.first_key = take_key(&mut keys)?;
        summary.last_key = take_key(&mut keys)?;
        (keys.is_empty() && summary.is_sound(index_bytes)).then_some(summary)
    }

    /// Makes a summary by reading all of Index.db, without filling the cache.
    pub(super) fn rebuild(file: &BlockFile, cx: &mut ReadContext) -> Result<Summary> {
        let fill_cache = std::mem::replace(&mut cx.fill_cache, false);
        let made = Summary::of_entries(file, cx);
        cx.fill_cache = fill_cache;
        made
    }

    /// The summary of a table with another partitioner: only its first and last key, without samples.
    pub fn in_other_order(file: &BlockFile, cx: &mut ReadContext) -> Result<Summary> {
        let mut summary = Summary::default();
        let mut entries = Entries::from(file, 0);
        while let Some(entry) = entries.next(cx)? {
            if summary.first_key.is_empty() {
                summary.first_key = entry.key.to_vec();
            }
            summary.last_key.clear();
            summary.last_key.extend_from_slice(entry.key);
        }
        Ok(summary)
    }

    fn of_entries(file: &BlockFile, cx: &mut ReadContext) -> Result<Summary> {
        let mut summary = Summary::default();
        let mut entries = Entries::from(file, 0);
        let mut number = 0;
        loop {
            let at = entries.position();
            let Some(entry) = entries.next(cx)? else { break };
            if number == 0 {
                summary.first_key = entry.key.to_vec();
            }
            if number % INTERVAL_DEFAULT == 0 {
                summary.push(KeyHash::of(entry.key).token, at);
            }
            summary.last_key.clear();
            summary.last_key.extend_from_slice(entry.key);
            number += 1;
        }
        if number == 0 {
            return Err(file.corrupt(0, "an index without partitions"));
        }
        if !summary.is_sound(file.size()) {
            return Err(file.corrupt(0, "partitions are not in the order of their tokens"));
        }
        Ok(summary)
    }

    /// The part of Index.db in which an entry with this token can be: the sample before it, and the offset of the
    /// sample after it.
    pub(super) fn range(&self, token: Token) -> (Sample, Option<u64>) {
        let after = self.tokens.partition_point(|sampled| *sampled <= token);
        (self.before(token), self.positions.get(after).copied())
    }

    /// The offset of the first sample behind an offset of Index.db.
    pub(super) fn behind(&self, at: u64) -> Option<u64> {
        self.positions.get(self.positions.partition_point(|position| *position <= at)).copied()
    }

    /// The last sample with a smaller token, or the first of all.
    pub(super) fn before(&self, token: Token) -> Sample {
        let index = self.tokens.partition_point(|sampled| *sampled < token).saturating_sub(1);
        Sample {
            token: self.tokens.get(index).copied().unwrap_or(Token::MIN),
            position: self.positions.get(index).copied().unwrap_or(0),
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.tokens.len() * size_of::<Token>() + self.positions.len() * size_of::<u64>()
    }

    /// Number of samples.
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    /// `None` if the sample with this number does not lead to offset `at` of Index.db; otherwise whether it is that of
    /// `key`.
    pub(crate) fn is_sample(&self, number: usize, at: u64, key: &[u8]) -> Option<bool> {
        let is_here = self.positions.get(number) == Some(&at);
        is_here.then(|| self.tokens.get(number) == Some(&KeyHash::of(key).token))
    }

    fn push(&mut self, token: Token, position: u64) {
        self.tokens.push(token);
        self.positions.push(position);
    }

    fn is_sound(&self, index_bytes: u64) -> bool {
        self.positions.first() == Some(&0)
            && self.positions.is_sorted_by(|a, b| a < b)
            && self.positions.last().is_some_and(|last| *last < index_bytes)
            && self.tokens.is_sorted()
            && self.tokens.first() == Some(&KeyHash::of(&self.first_key).token)
            && self.tokens.last().is_some_and(|last| *last <= KeyHash::of(&self.last_key).token)
    }
}

/// A sample, at which a read of Index.db begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) token: Token,
    pub(super) position: u64,
}

fn take_key(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let len = u32::from_be_bytes(rest.split_off(..4)?.try_into().ok()?);
    Some(rest.split_off(..usize::try_from(len).ok()?)?.to_vec())
}

/// The bytes of the Summary.db that belongs to an Index.db; `None` if that is damaged or not in the order of tokens.
pub(crate) fn summary_of(file: &BlockFile, cx: &mut ReadContext) -> Option<Vec<u8>> {
    let mut builder = SummaryBuilder::new(INTERVAL_DEFAULT as u32);
    let (mut first, mut last) = (None, Vec::new());
    let mut entries = Entries::from(file, 0);
    loop {
        let at = entries.position();
        let Some(entry) = entries.next(cx).ok()? else { break };
        builder.add(entry.key, at);
        first.get_or_insert_with(|| entry.key.to_vec());
        last.clear();
        last.extend_from_slice(entry.key);
    }
    let bytes = builder.finish(&first?, &last);
    Summary::parse(&bytes, file.size()).is_some().then_some(bytes)
}

/// Builds Summary.db while Index.db is written. Memory grows by one key for each interval.
#[derive(Debug)]
pub struct SummaryBuilder {
    interval: u64,
    count: u64,
    offsets: Vec<u32>,
    entries: Vec<u8>,
}

impl SummaryBuilder {
    /// For a table with this `min_index_interval`.
    pub fn new(min_index_interval: u32) -> SummaryBuilder {
        SummaryBuilder {
            interval: u64::from(min_index_interval.max(1)),
            count: 0,
            offsets: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds the next partition, whose entry begins at offset `position` of Index.db.
    pub fn add(&mut self, key: &[u8], position: u64) {
        // Offsets have 32 bits. Cassandra too leaves out samples beyond that.
        let fits = self.entries.len() + key.len() + 8 + 4 * self.offsets.len() <= i32::MAX as usize;
        if self.count.is_multiple_of(self.interval) && fits {
            self.offsets.push(self.entries.len() as u32);
            self.entries.extend_from_slice(key);
            self.entries.extend_from_slice(&position.to_le_bytes());
        }
        self.count += 1;
    }

    /// The component's bytes.
    pub fn finish(self, first_key: &[u8], last_key: &[u8]) -> Vec<u8> {
        let offsets_bytes = 4 * self.offsets.len() as u32;
        let size = self.entries.len() as u64 + u64::from(offsets_bytes);
        let mut out = (self.interval as u32).to_be_bytes().to_vec();
        out.extend_from_slice(&(self.offsets.len() as u32).to_be_bytes());
        out.extend_from_slice(&size.to_be_bytes());
        out.extend_from_slice(&SAMPLING_LEVEL.to_be_bytes());
        out.extend_from_slice(&(self.count.div_ceil(self.interval) as u32).to_be_bytes());
        for offset in &self.offsets {
            out.extend_from_slice(&(offset + offsets_bytes).to_le_bytes());
        }
        out.extend_from_slice(&self.entries);
        for key in [first_key, last_key] {
            out.extend_from_slice(&(key.len() as u32).to_be_bytes());
            out.extend_from_slice(key);
        }
        out
    }
}
