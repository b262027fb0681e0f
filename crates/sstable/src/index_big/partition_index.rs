//! Finds partitions in Index.db, beginning at the nearest sample of the summary.

#![deny(clippy::indexing_slicing)]

use super::entries::{Entries, Entry};
use super::promoted::PromotedIndex;
use super::summary::{Sample, Summary};
use crate::block::{BlockFile, ReadContext};
use crate::deletion_time::DeletionTimeForm;
use crate::error::{Error, Result};
use crate::version::Version;
use helenus_model::byte_comparable::{NEXT_COMPONENT, decorated_key};
use helenus_model::token::{KeyHash, Token};
use std::sync::Arc;

/// Index.db with its summary. Shared by all readers of a table.
pub struct BigIndex {
    file: Arc<BlockFile>,
    summary: Summary,
    form: DeletionTimeForm,
    key_count: u64,
}

/// The position of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BigPosition {
    /// Its start in the data.
    pub data: u64,
    /// Its promoted index, if it is wide enough to have one.
    pub promoted: Option<PromotedIndex>,
}

impl BigIndex {
    /// Combines Index.db with its summary, or makes a summary by reading all of Index.db. `key_count` is the number of
    /// partitions in the statistics, because Index.db does not contain it.
    pub fn open(
        file: BlockFile,
        summary: Option<Summary>,
        (version, key_count): (Version, u64),
        cx: &mut ReadContext,
    ) -> Result<BigIndex> {
        let summary = match summary {
            Some(summary) => summary,
            None => Summary::rebuild(&file, cx)?,
        };
        Ok(BigIndex { file: Arc::new(file), summary, form: DeletionTimeForm::of(version), key_count })
    }

    /// The component.
    pub fn file(&self) -> &Arc<BlockFile> {
        &self.file
    }

    /// The encoding of its deletion times.
    pub fn form(&self) -> DeletionTimeForm {
        self.form
    }

    /// The first partition key, serialised.
    pub fn first_key(&self) -> &[u8] {
        &self.summary.first_key
    }

    /// The last partition key, serialised.
    pub fn last_key(&self) -> &[u8] {
        &self.summary.last_key
    }

    /// The number of partitions in the statistics.
    pub fn key_count(&self) -> u64 {
        self.key_count
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.summary.memory_bytes()
    }

    /// Finds the partition of a key.
    pub fn find(&self, key: &[u8], token: Token, cx: &mut ReadContext) -> Result<Option<BigPosition>> {
        let (sample, end) = self.summary.range(token);
        let end = end.unwrap_or(self.file.size());
        let mut entries = Entries::from(&self.file, sample.position);
        let mut is_first = true;
        while entries.position() < end {
            let Some(entry) = entries.next(cx)? else { break };
            if std::mem::take(&mut is_first) {
                self.check_sample(sample, &entry)?;
            }
            if entry.key == key {
                let (data, at, bytes) = (entry.data, entry.promoted_at, entry.promoted_bytes);
                return self.position(data, (at, bytes), cx).map(Some);
            }
        }
        Ok(None)
    }

    /// The start in the data of the first partition at or after a decorated key; `None` if there is none.
    pub fn start_of_first_from(&self, decorated: &[u8], cx: &mut ReadContext) -> Result<Option<u64>> {
        let sample = self.summary.before(least_token(decorated));
        let mut entries = Entries::from(&self.file, sample.position);
        let mut position = Vec::new();
        let mut is_first = true;
        while let Some(entry) = entries.next(cx)? {
            if std::mem::take(&mut is_first) {
                self.check_sample(sample, &entry)?;
            }
            position.clear();
            decorated_key(KeyHash::of(entry.key).token, entry.key, &mut position);
            if position.as_slice() >= decorated {
                return Ok(Some(entry.data));
            }
        }
        Ok(None)
    }

    /// Calls `each` with the key and the position of every partition in order, for `verify`. It checks that every
    /// sample of the summary leads to the right entry.
    pub fn for_each(
        &self,
        cx: &mut ReadContext,
        mut each: impl FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let mut entries = Entries::from(&self.file, 0);
        let (mut sample, mut last) = (0, Vec::new());
        loop {
            let at = entries.position();
            let Some(entry) = entries.next(cx)? else { break };
            match self.summary.is_sample(sample, at, entry.key) {
                Some(true) => sample += 1,
                Some(false) => return Err(self.wrong_sample(at)),
                None => {}
            }
            each(entry.key, entry.data)?;
            last.clear();
            last.extend_from_slice(entry.key);
        }
        let is_whole = sample == self.summary.len() && last == self.summary.last_key;
        if is_whole { Ok(()) } else { Err(self.wrong_sample(self.file.size())) }
    }

    /// The entry at an offset of Index.db: the key, its position, and the offset of the next entry; `None` at the end.
    /// An entry whose promoted index is damaged has none.
    pub(crate) fn entry_at(
        &self,
        at: u64,
        cx: &mut ReadContext,
    ) -> Result<Option<(Vec<u8>, BigPosition, u64)>> {
        let mut entries = Entries::from(&self.file, at);
        let Some(entry) = entries.next(cx)? else { return Ok(None) };
        let (key, data) = (entry.key.to_vec(), entry.data);
        let place = (entry.promoted_at, entry.promoted_bytes);
        let next = entries.position();
        let position = self.position(data, place, cx).unwrap_or(BigPosition { data, promoted: None });
        Ok(Some((key, position, next)))
    }

    /// The offset of the first entry of the summary behind an offset of Index.db, for reading on behind damage.
    pub(crate) fn sample_behind(&self, at: u64) -> Option<u64> {
        self.summary.behind(at)
    }

    fn position(&self, data: u64, (at, bytes): (u64, u64), cx: &mut ReadContext) -> Result<BigPosition> {
        let promoted = match bytes {
            0 => None,
            _ => Some(PromotedIndex::read(&self.file, self.form, (data, at, bytes), cx)?),
        };
        Ok(BigPosition { data, promoted })
    }

    /// Checks that a sample leads to its own key, because a wrong summary would hide partitions.
    fn check_sample(&self, sample: Sample, entry: &Entry<'_>) -> Result<()> {
        if KeyHash::of(entry.key).token == sample.token {
            return Ok(());
        }
        Err(self.wrong_sample(sample.position))
    }

    fn wrong_sample(&self, at: u64) -> Error {
        self.file.corrupt(at, "the summary has another partition here: remove Summary.db")
    }
}

/// The token of a decorated key or, if that is cut, a token that is not greater.
fn least_token(decorated: &[u8]) -> Token {
    let mut token = [0; 8];
    match decorated.split_first() {
        Some((&NEXT_COMPONENT, rest)) => token.iter_mut().zip(rest).for_each(|(to, from)| *to = *from),
        Some((first, _)) if *first > NEXT_COMPONENT => return Token::MAX,
        _ => {}
    }
    Token(i64::from_be_bytes(token) ^ i64::MIN)
}
