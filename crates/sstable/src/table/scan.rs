//! Reads the partitions of a table in order, directly from Data.db: for range reads and compaction.
//!
//! The indexes are used only to find the first partition, the rows that slices select in wide partitions, and the end
//! of a long partition: in tables of many small partitions, asking them for each would cost more than the rows. Scans should run with `ReadContext.fill_cache` off.

use super::SsTable;
use super::index::{Index, PartitionPosition, wide};
use super::partition_reader::PartitionReader;
use crate::block::ReadContext;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::index_bti::{IndexPosition, RowIndexEntry};
use helenus_model::byte_comparable::decorated_key;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::ClusteringFilter;
use helenus_model::partitions::KeyRange;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::row_batch::RowBatch;
use helenus_model::token::{KeyHash, Token};
use helenus_model::unfiltered::{Source, Unfiltered};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of the rest of a partition that are passed before its end is looked up in the index.
const WALK_BYTES: u64 = 64 * 1024;

/// A cursor over partitions. After each call of `next_partition` it is a source of that partition's rows.
pub struct Scan {
    table: Arc<SsTable>,
    reader: PartitionReader,
    end: Vec<u8>,
    filter: Option<(Arc<ClusteringFilter>, bool)>,
    /// The position of the next partition; `None` while in a partition.
    next: Option<u64>,
    /// The position of the current partition, with its row index if that was looked up.
    position: PartitionPosition,
    token: Token,
    decorated: Vec<u8>,
}

impl Scan {
    pub(crate) fn new(table: &Arc<SsTable>, range: &KeyRange, cx: &mut ReadContext) -> Result<Scan> {
        let mut scan = Scan {
            reader: PartitionReader::unopened(table.clone()),
            table: table.clone(),
            end: range.end.clone(),
            filter: None,
            next: Some(0),
            position: PartitionPosition { data: 0, index: None },
            token: Token::MIN,
            decorated: Vec::new(),
        };
        if range.start.as_slice() > table.first_decorated() {
            scan.next = Some(table.data().data_length());
            scan.go_to(&range.start, cx)?;
        }
        Ok(scan)
    }

    /// Selects the rows to read of each following partition. The default is everything, forward.
    pub fn select(&mut self, filter: Arc<ClusteringFilter>, reversed: bool) {
        self.reader.select(filter.clone(), reversed);
        self.filter = Some((filter, reversed));
    }

    /// Sets whether rows need their ordered keys; see `PartitionReader::set_keys`.
    pub fn set_keys(&mut self, with_keys: bool) {
        self.reader.set_keys(with_keys);
    }

    /// Sets whether rows that contain only cells of dropped columns are returned; see `PartitionReader::set_hidden`.
    pub(crate) fn set_hidden(&mut self, with_hidden: bool) {
        self.reader.set_hidden(with_hidden);
    }

    /// Moves to the next partition, from anywhere in the current one; `false` after the last in the range.
    pub fn next_partition(&mut self, cx: &mut ReadContext) -> Result<bool> {
        let next = match self.next.take() {
            Some(next) => next,
            None => self.end_of_partition(cx)?,
        };
        if next >= self.table.data().data_length() {
            self.next = Some(next);
            return Ok(false);
        }
        self.enter(PartitionPosition { data: next, index: None }, true, cx)?;
        if self.decorated >= self.end {
            self.next = Some(self.table.data().data_length());
            return Ok(false);
        }
        let needs_index =
            |(filter, reversed): &(Arc<ClusteringFilter>, bool)| *reversed || !filter.is_everything();
        if self.filter.as_ref().is_some_and(needs_index) {
            self.use_row_index(cx)?;
        }
        Ok(true)
    }

    /// Selects the rest of the current partition, of which nothing was read yet.
    pub fn select_rest(
        &mut self,
        filter: Arc<ClusteringFilter>,
        reversed: bool,
        cx: &mut ReadContext,
    ) -> Result<()> {
        self.use_row_index(cx)?;
        self.select(filter, reversed);
        Ok(())
    }

    /// Finds rows of the current partition by its row index, if it has one.
    fn use_row_index(&mut self, cx: &mut ReadContext) -> Result<()> {
        if self.position.index.is_none()
            && let Some(position) = self.lookup(cx)?
        {
            self.enter(position, true, cx)?;
        }
        Ok(())
    }

    /// Makes the first partition at or after a decorated key the next one.
    fn go_to(&mut self, start: &[u8], cx: &mut ReadContext) -> Result<()> {
        let table = self.table.clone();
        let (partitions, rows) = match table.index() {
            Index::Bti { partitions, rows, .. } => (partitions, rows),
            Index::Big(index) => {
                self.next = index.start_of_first_from(start, cx)?.or(self.next);
                return Ok(());
            }
            Index::Absent { .. } => return self.walk_to(start, cx),
        };
        let mut positions = partitions.iter_from(Some(start), cx)?;
        while let Some(position) = positions.next(cx)? {
            let position = match position {
                IndexPosition::Data(data) => PartitionPosition { data, index: None },
                IndexPosition::Rows(at) => wide(RowIndexEntry::read(rows, at, cx)?.1),
            };
            self.enter(position, true, cx)?;
            if self.decorated.as_slice() >= start {
                self.next = Some(self.position.data);
                break;
            }
        }
        Ok(())
    }

    /// `go_to` without an index: through all partitions before.
    fn walk_to(&mut self, start: &[u8], cx: &mut ReadContext) -> Result<()> {
        let (mut at, end) = (0, self.table.data().data_length());
        while at < end {
            self.enter(PartitionPosition { data: at, index: None }, true, cx)?;
            if self.decorated.as_slice() >= start {
                break;
            }
            at = self.end_of_partition(cx)?;
        }
        self.next = Some(at);
        Ok(())
    }

    fn enter(&mut self, position: PartitionPosition, with_static: bool, cx: &mut ReadContext) -> Result<()> {
        self.reader.reopen((&position, None), None, with_static, cx)?;
        self.position = position;
        self.token = KeyHash::of(self.reader.key()).token;
        self.decorated.clear();
        decorated_key(self.token, self.reader.key(), &mut self.decorated);
        Ok(())
    }

    /// The position of the current partition with its row index; `None` if it has none.
    fn lookup(&mut self, cx: &mut ReadContext) -> Result<Option<PartitionPosition>> {
        if !self.table.index().may_have_row_indexes() {
            return Ok(None);
        }
        let key = self.reader.key();
        let found = self.table.candidate(key, (&KeyHash::of(key), &self.decorated), cx)?;
        Ok(found.filter(|found| found.data == self.position.data && found.index.is_some()))
    }

    /// The position of the next partition.
    fn end_of_partition(&mut self, cx: &mut ReadContext) -> Result<u64> {
        let table = self.table.clone();
        let rows = Rows { data: table.data(), layout: table.layout() };
        let mut walked = 0;
        let mut may_look_up = self.position.index.is_none();
        let (mut position, mut is_end) = match self.reader.forward_position() {
            Some(position) if may_look_up => (position, false),
            _ => self.reader.near_end(cx)?,
        };
        loop {
            let found = self.reader.extent(rows, position, cx)?;
            if found.is_end() {
                return Ok(found.next);
            }
            if is_end {
                let problem = "the partition goes on where its row index ends";
                return Err(table.data().file().corrupt(position, problem));
            }
            walked += found.next - position;
            position = found.next;
            if walked > WALK_BYTES && may_look_up {
                may_look_up = false;
                if let Some(entry) = self.lookup(cx)? {
                    self.enter(entry, false, cx)?;
                    (position, is_end) = self.reader.near_end(cx)?;
                }
            }
        }
    }

    /// The position that the scan has reached, in bytes before compression.
    pub fn position(&self) -> u64 {
        self.next.or_else(|| self.reader.forward_position()).unwrap_or(self.position.data)
    }

    /// The position at which the current partition starts, in bytes before compression.
    pub fn start(&self) -> u64 {
        self.position.data
    }

    /// The serialised key of the current partition.
    pub fn key(&self) -> &[u8] {
        self.reader.key()
    }

    /// The token of the current partition.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The decorated key of the current partition.
    pub fn decorated(&self) -> &[u8] {
        &self.decorated
    }

    /// The deletion of the current partition.
    pub fn deletion(&self) -> DeletionTime {
        self.reader.deletion()
    }

    /// The static row of the current partition, if it is not empty.
    pub fn static_row(&self) -> Option<RowView<'_>> {
        self.reader.static_row()
    }
}

impl Scan {
    /// As [`PartitionReader::plain_rows`].
    ///
    /// # Errors
    /// Those of reading.
    #[inline]
    pub fn plain_rows(
        &mut self,
        cx: &mut ReadContext,
        each: impl FnMut(&RowBuf, &[u8], &mut ReadContext) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if self.next.is_some() { Ok(ControlFlow::Continue(())) } else { self.reader.plain_rows(cx, each) }
    }

    /// As [`PartitionReader::batch`].
    pub fn batch(&mut self, most: usize, cx: &mut ReadContext) -> Result<Option<RowBatch<'_>>> {
        if self.next.is_some() { Ok(None) } else { self.reader.batch(most, cx) }
    }
}

impl Source<ReadContext> for Scan {
    type Error = Error;

    #[inline]
    fn advance(&mut self, cx: &mut ReadContext) -> Result<bool> {
        if self.next.is_some() { Ok(false) } else { self.reader.advance(cx) }
    }

    #[inline]
    fn release_bytes(&mut self) -> usize {
        self.reader.release_bytes()
    }

    fn reload(&mut self, expected: usize, cx: &mut ReadContext) -> Result<()> {
        self.reader.reload(expected, cx)
    }

    #[inline]
    fn current(&self) -> Unfiltered<'_> {
        self.reader.current()
    }
}
