//! Decodes rows and markers in place: spans point into the bytes, and only the ordered key is copied.
//!
//! Any bytes give a row or a `Fault`, never a panic. Source: `UnfilteredSerializer`, `Cell.Serializer`,
//! `Columns.Serializer`, `ClusteringPrefix.Serializer`, `DeserializationHelper`.

use super::input::{Fault, Input};
use super::layout::{ColumnLayout, ColumnSet, RowLayout};
use crate::deletion_time::{DeletionTimeForm, INVALID_LOCAL_S};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, EXPIRED_LIVENESS_TTL, Liveness, NO_EXPIRY};
use helenus_model::range_tombstone::{BoundKind, MarkerBuf};
use helenus_model::row::RowBuf;

/// The flags of rows, markers and cells, with Cassandra's values.
pub(super) mod flags {
    pub const END_OF_PARTITION: u8 = 0x01;
    pub const IS_MARKER: u8 = 0x02;
    pub const HAS_TIMESTAMP: u8 = 0x04;
    pub const HAS_TTL: u8 = 0x08;
    pub const HAS_DELETION: u8 = 0x10;
    pub const HAS_ALL_COLUMNS: u8 = 0x20;
    pub const HAS_COMPLEX_DELETION: u8 = 0x40;
    pub const EXTENSION: u8 = 0x80;
    /// A flag in the second byte.
    pub const IS_STATIC: u8 = 0x01;

    pub const CELL_DELETED: u8 = 0x01;
    pub const CELL_EXPIRING: u8 = 0x02;
    pub const CELL_EMPTY_VALUE: u8 = 0x04;
    pub const CELL_ROW_TIMESTAMP: u8 = 0x08;
    pub const CELL_ROW_TTL: u8 = 0x10;
    /// All flags of a cell.
    pub const CELL_ALL: u8 = 0x1F;
}

/// The kind of element at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    /// The end of the partition.
    End,
    /// A row.
    Row,
    /// A range-tombstone marker.
    Marker(BoundKind),
}

/// The head of an element (row or marker): everything before its body, and where the body ends.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The kind of element.
    pub kind: HeadKind,
    /// The offset of its body in the bytes.
    pub body: usize,
    /// The offset of the next element; it may be beyond the bytes.
    pub end: usize,
    /// The distance back to the start of the element before, as stored in the file; for the first element of a
    /// partition, to the start of the partition. 0 at the end of a partition.
    pub back: u64,
    pub(super) flags: u8,
}

impl RowLayout {
    /// Decodes the head of the element at `at`: flags, clustering and sizes. Key and clustering are written to `row`
    /// or, for a marker, to `marker`; their spans point into `bytes`.
    #[inline]
    pub fn head(
        &self,
        bytes: &[u8],
        at: usize,
        row: &mut RowBuf,
        marker: &mut MarkerBuf,
    ) -> Result<Head, Fault> {
        let mut input = Input::new(bytes, at);
        let bits = input.byte()?;
        let kind = kind_of(&mut input, bits)?;
        match kind {
            HeadKind::End => {
                let end = input.at();
                return Ok(Head { kind, body: end, end, back: 0, flags: bits });
            }
            HeadKind::Row => {
                row.clear();
                self.clustering(&mut input, self.clustering.len(), (&mut row.key, &mut row.clustering))?;
                helenus_model::byte_comparable::end_row(&mut row.key);
            }
            HeadKind::Marker(bound) => {
                let count = self.bound_length(&mut input)?;
                marker.key.clear();
                marker.clustering.clear();
                marker.before = bound.is_before();
                self.clustering(&mut input, count, (&mut marker.key, &mut marker.clustering))?;
                helenus_model::byte_comparable::end_bound(bound.is_before(), &mut marker.key);
            }
        }
        sized(&mut input, kind, bits)
    }

    /// Decodes the head of the element at `at` without its clustering.
    pub fn extent(&self, bytes: &[u8], at: usize) -> Result<Head, Fault> {
        let mut input = Input::new(bytes, at);
        let bits = input.byte()?;
        let kind = kind_of(&mut input, bits)?;
        let count = match kind {
            HeadKind::End => {
                let end = input.at();
                return Ok(Head { kind, body: end, end, back: 0, flags: bits });
            }
            HeadKind::Row => self.clustering.len(),
            HeadKind::Marker(_) => self.bound_length(&mut input)?,
        };
        self.pass_clustering(&mut input, count)?;
        sized(&mut input, kind, bits)
    }

    /// Skips clustering values.
    #[inline]
    pub(super) fn pass_clustering(&self, input: &mut Input<'_>, count: usize) -> Result<(), Fault> {
        let mut header = 0;
        for (index, layout) in self.clustering.iter().enumerate().take(count) {
            if index % 32 == 0 {
                header = input.vint()?;
            }
            if header >> (2 * (index % 32)) & 3 == 0 {
                let length = match layout.fixed {
                    Some(length) => length,
                    None => input.length()?,
                };
                input.take(length)?;
            }
        }
        Ok(())
    }

    /// Decodes the body of a row. `bytes` must reach to `head.end`. Adds the number of its tombstones to `tombstones`.
    #[inline]
    pub fn row_body(
        &self,
        bytes: &[u8],
        head: &Head,
        row: &mut RowBuf,
        tombstones: &mut u64,
    ) -> Result<(), Fault> {
        self.columns(bytes, head, (row, tombstones), &self.regulars)
    }

    /// Decodes the static row at `at` and returns the offset of its end.
    pub fn static_row(&self, bytes: &[u8], at: usize, row: &mut RowBuf) -> Result<usize, Fault> {
        let head = self.static_head(bytes, at)?;
        row.clear();
        self.columns(bytes, &head, (row, &mut 0), &self.statics)?;
        Ok(head.end)
    }

    /// Decodes the head of the static row at `at`.
    pub fn static_head(&self, bytes: &[u8], at: usize) -> Result<Head, Fault> {
        let mut input = Input::new(bytes, at);
        let bits = input.byte()?;
        let wrong = flags::END_OF_PARTITION | flags::IS_MARKER;
        if bits & wrong != 0 || bits & flags::EXTENSION == 0 || input.byte()? & flags::IS_STATIC == 0 {
            return Err(Fault::Bad { at, problem: "no static row where the partition must have one" });
        }
        sized(&mut input, HeadKind::Row, bits)
    }

    /// Decodes the body of a marker.
    pub fn marker_body(&self, bytes: &[u8], head: &Head, marker: &mut MarkerBuf) -> Result<(), Fault> {
        let HeadKind::Marker(kind) = head.kind else {
            return Err(Fault::Bad { at: head.body, problem: "no marker" });
        };
        let bytes = bytes.get(..head.end).ok_or(Fault::Short)?;
        let mut input = Input::new(bytes, head.body);
        let first = self.deletion(&mut input).map_err(|f| overrun(f, head))?;
        let live = DeletionTime::LIVE;
        (marker.close, marker.open) = match kind {
            BoundKind::ExclEnd | BoundKind::InclEnd => (first, live),
            BoundKind::InclStart | BoundKind::ExclStart => (live, first),
            BoundKind::ExclEndInclStart | BoundKind::InclEndExclStart => {
                (first, self.deletion(&mut input).map_err(|f| overrun(f, head))?)
            }
        };
        if marker.kind() != Some(kind) {
            return Err(input.bad("a range tombstone without a deletion time"));
        }
        finished(&input, head)
    }

    pub(super) fn bound_length(&self, input: &mut Input<'_>) -> Result<usize, Fault> {
        let count = input.short()? as usize;
        if count > self.clustering.len() {
            return Err(input.bad("a bound with more values than the table has clustering columns"));
        }
        Ok(count)
    }

    #[inline]
    pub(super) fn clustering(
        &self,
        input: &mut Input<'_>,
        count: usize,
        (key, spans): (&mut Vec<u8>, &mut Vec<Span>),
    ) -> Result<(), Fault> {
        let mut header = 0;
        for (index, layout) in self.clustering.iter().enumerate().take(count) {
            if index % 32 == 0 {
                header = input.vint()?;
            }
            let state = header >> (2 * (index % 32)) & 3;
            let (value, span) = if state == 0 {
                let length = match layout.fixed {
                    Some(length) => length,
                    None => input.length()?,
                };
                let start = input.at();
                (Some(input.take(length)?), spot(start, length))
            } else if state & 2 != 0 {
                (None, Span::NULL)
            } else {
                (Some(&[][..]), Span::EMPTY)
            };
            spans.push(span);
            let column = (&layout.ty, layout.reversed);
            if helenus_model::byte_comparable::component(column, value, key).is_err() {
                return Err(input.bad("a clustering value that its type does not allow"));
            }
        }
        Ok(())
    }

    #[inline]
    fn columns(
        &self,
        bytes: &[u8],
        head: &Head,
        (row, tombstones): (&mut RowBuf, &mut u64),
        set: &ColumnSet,
    ) -> Result<(), Fault> {
        if self.fast_columns(bytes, head, (&mut *row, &mut *tombstones), set).is_some() {
            return Ok(());
        }
        self.full_columns(bytes, head, (row, tombstones), set)
    }

    /// Decodes the body of any row. The error describes what is wrong with it.
    pub(super) fn full_columns(
        &self,
        bytes: &[u8],
        head: &Head,
        (row, tombstones): (&mut RowBuf, &mut u64),
        set: &ColumnSet,
    ) -> Result<(), Fault> {
        let bytes = bytes.get(..head.end).ok_or(Fault::Short)?;
        let mut input = Input::new(bytes, head.body);
        let decoded = self.row_front(&mut input, head.flags, (row, tombstones)).and_then(|()| {
            let sink = (&mut *row, &mut *tombstones);
            if head.flags & flags::HAS_ALL_COLUMNS != 0 {
                self.all_columns(&mut input, head.flags, sink, set)
            } else {
                self.some_columns(&mut input, head.flags, sink, set)
            }
        });
        decoded.map_err(|fault| overrun(fault, head))?;
        if !set.ascending {
            row.cells.sort_unstable_by_key(|cell| (cell.column, cell.path.start));
            row.complex_deletions.sort_unstable_by_key(|(column, _)| *column);
        }
        finished(&input, head)
    }

    #[inline]
    fn row_front(
        &self,
        input: &mut Input<'_>,
        bits: u8,
        (row, tombstones): (&mut RowBuf, &mut u64),
    ) -> Result<(), Fault> {
        row.clear_body();
        if bits & flags::HAS_TIMESTAMP != 0 {
            row.liveness = Liveness::at(self.timestamp(input)?);
            if bits & flags::HAS_TTL != 0 {
                let ttl_s = self.ttl(input)?;
                let local_s = self.local_deletion(input)?;
                row.liveness.ttl_s = ttl_s;
                row.liveness.expires_s = expiry(local_s, ttl_s);
            }
        }
        if bits & flags::HAS_DELETION != 0 {
            row.deletion = self.deletion(input)?;
            *tombstones += 1;
        }
        Ok(())
    }

    #[inline]
    fn all_columns(
        &self,
        input: &mut Input<'_>,
        bits: u8,
        (row, tombstones): (&mut RowBuf, &mut u64),
        set: &ColumnSet,
    ) -> Result<(), Fault> {
        for column in &set.columns {
            self.column(input, bits, (row, tombstones), column)?;
        }
        Ok(())
    }

    /// Decodes the cells of a row that has only some of the file's columns. See `encode::subset` for the encoding.
    fn some_columns(
        &self,
        input: &mut Input<'_>,
        bits: u8,
        (row, tombstones): (&mut RowBuf, &mut u64),
        set: &ColumnSet,
    ) -> Result<(), Fault> {
        let at = input.at();
        let encoded = input.vint()?;
        let count = set.columns.len();
        if encoded == 0 {
            return self.all_columns(input, bits, (row, tombstones), set);
        }
        if count < 64 {
            if encoded >> count != 0 {
                return Err(Fault::Bad { at, problem: "a row with columns that the file does not have" });
            }
            for (index, column) in set.columns.iter().enumerate() {
                if encoded >> index & 1 == 0 {
                    self.column(input, bits, (row, tombstones), column)?;
                }
            }
            return Ok(());
        }
        let absent = usize::try_from(encoded).unwrap_or(usize::MAX);
        let Some(present) = count.checked_sub(absent) else {
            return Err(Fault::Bad { at, problem: "a row that lacks more columns than the file has" });
        };
        // The positions are stored before the cells: go through them once to find the cells, and again along with
        // those.
        let listed_are_present = present < count / 2;
        let mut list = *input;
        for _ in 0..if listed_are_present { present } else { absent } {
            input.vint()?;
        }
        let data_at = input.at();
        let mut listed = next_listed(&mut list, data_at)?;
        for (index, column) in set.columns.iter().enumerate() {
            let is_listed = listed == Some(index as u64);
            if is_listed {
                listed = next_listed(&mut list, data_at)?;
            }
            if is_listed == listed_are_present {
                self.column(input, bits, (row, tombstones), column)?;
            }
        }
        if listed.is_some() {
            return Err(Fault::Bad { at, problem: "column positions that do not ascend or do not exist" });
        }
        Ok(())
    }

    #[inline]
    fn column(
        &self,
        input: &mut Input<'_>,
        bits: u8,
        (row, tombstones): (&mut RowBuf, &mut u64),
        column: &ColumnLayout,
    ) -> Result<(), Fault> {
        if !column.multi_cell {
            return self.cell(input, (row, tombstones), column);
        }
        if bits & flags::HAS_COMPLEX_DELETION != 0 {
            let deletion = self.deletion(input)?;
            let dropped = column.dropped_us.is_some_and(|at| deletion.timestamp_us <= at);
            if let Some(id) = column.id
                && !deletion.is_live()
                && !dropped
            {
                row.complex_deletions.push((id, deletion));
                *tombstones += 1;
            }
        }
        for _ in 0..input.length()? {
            self.cell(input, (row, tombstones), column)?;
        }
        Ok(())
    }

    #[inline]
    fn cell(
        &self,
        input: &mut Input<'_>,
        (row, tombstones): (&mut RowBuf, &mut u64),
        column: &ColumnLayout,
    ) -> Result<(), Fault> {
        let bits = input.byte()?;
        if bits > flags::CELL_ALL {
            return Err(input.bad("unknown flags of a cell"));
        }
        let liveness = row.liveness;
        let timestamp_us = if bits & flags::CELL_ROW_TIMESTAMP != 0 {
            liveness.timestamp_us
        } else {
            self.timestamp(input)?
        };
        let (mut ttl_s, mut local_deletion_s) = (0, NO_EXPIRY);
        if bits & flags::CELL_ROW_TTL != 0 {
            (ttl_s, local_deletion_s) = (liveness.ttl_s, liveness.expires_s);
        } else if bits & (flags::CELL_DELETED | flags::CELL_EXPIRING) != 0 {
            local_deletion_s = self.local_deletion(input)?;
            if bits & flags::CELL_EXPIRING != 0 {
                ttl_s = self.ttl(input)?;
            }
            local_deletion_s = expiry(local_deletion_s, ttl_s);
        }
        let mut path = Span::NULL;
        if column.multi_cell {
            let length = input.length()?;
            path = spot(input.at(), length);
            input.take(length)?;
        }
        let mut value = Span::EMPTY;
        if bits & flags::CELL_EMPTY_VALUE == 0 {
            let length = match column.fixed {
                Some(length) => length,
                None => input.length()?,
            };
            value = spot(input.at(), length);
            input.take(length)?;
        }
        let Some(id) = column.id else { return Ok(()) };
        if column.dropped_us.is_some_and(|at| timestamp_us <= at) {
            return Ok(());
        }
        if bits & flags::CELL_DELETED != 0 {
            *tombstones += 1;
        }
        row.cells.push(Cell { column: id, ttl_s, timestamp_us, local_deletion_s, path, value });
        Ok(())
    }

    #[inline]
    fn timestamp(&self, input: &mut Input<'_>) -> Result<i64, Fault> {
        Ok(self.based(input.vint()?))
    }

    /// A local deletion time. The stored difference of a time beyond 2^31 seconds from the base has wrapped. In
    /// versions with signed times a negative time is invalid (`Cell.decodeLocalDeletionTime`).
    #[inline]
    pub(super) fn local_deletion(&self, input: &mut Input<'_>) -> Result<i64, Fault> {
        Ok(self.local_deletion_from(input.int()?))
    }

    /// A local deletion time from the stored difference.
    #[inline]
    pub(super) fn local_deletion_from(&self, stored: i32) -> i64 {
        let local_s = i64::from(stored) + self.base.local_deletion_s_min;
        if local_s >= 0 {
            return local_s;
        }
        if self.deletion_times == DeletionTimeForm::Signed {
            return INVALID_LOCAL_S;
        }
        let unsigned = local_s as u32;
        if unsigned == u32::MAX { NO_EXPIRY } else { i64::from(unsigned) }
    }

    #[inline]
    pub(super) fn ttl(&self, input: &mut Input<'_>) -> Result<i32, Fault> {
        let ttl_s = input.int()?.wrapping_add(self.base.ttl_s_min);
        if ttl_s < 0 { Err(input.bad("a negative TTL")) } else { Ok(ttl_s) }
    }

    /// A timestamp in microseconds from the stored difference.
    #[inline(always)]
    pub(super) fn based(&self, stored: u64) -> i64 {
        (stored as i64).wrapping_add(self.base.timestamp_us_min)
    }

    /// Reads the TTL and the expiry of a row's primary key liveness, and returns the offset of their end; `None` if
    /// they are damaged or cut.
    pub(super) fn row_ttl(&self, bytes: &[u8], at: usize, liveness: &mut Liveness) -> Option<usize> {
        let mut input = Input::new(bytes, at);
        let ttl_s = self.ttl(&mut input).ok()?;
        let local_s = self.local_deletion(&mut input).ok()?;
        (liveness.ttl_s, liveness.expires_s) = (ttl_s, expiry(local_s, ttl_s));
        Some(input.at())
    }

    #[inline]
    fn deletion(&self, input: &mut Input<'_>) -> Result<DeletionTime, Fault> {
        let timestamp_us = self.timestamp(input)?;
        let local_s = self.local_deletion(input)?;
        if timestamp_us == i64::MIN {
            return Ok(DeletionTime::LIVE);
        }
        Ok(DeletionTime { timestamp_us, local_s })
    }
}

#[inline]
fn kind_of(input: &mut Input<'_>, bits: u8) -> Result<HeadKind, Fault> {
    if bits & flags::END_OF_PARTITION != 0 {
        return Ok(HeadKind::End);
    }
    // The other extended flag marks a shadowable deletion, which old materialised views wrote. It is read as a usual
    // one.
    if bits & flags::EXTENSION != 0 && input.byte()? & flags::IS_STATIC != 0 {
        return Err(input.bad("a static row among the rows"));
    }
    if bits & flags::IS_MARKER == 0 {
        return Ok(HeadKind::Row);
    }
    let kind = BoundKind::from_u8(input.byte()?);
    Ok(HeadKind::Marker(kind.ok_or_else(|| input.bad("unknown kind of a bound"))?))
}

/// Reads both sizes: that of the rest of the element, which includes the second size, and that of the element before.
#[inline]
fn sized(input: &mut Input<'_>, kind: HeadKind, flags: u8) -> Result<Head, Fault> {
    let size = input.length()?;
    let end = input.at() + size;
    let back = input.vint()?;
    let body = input.at();
    if body > end {
        return Err(input.bad("a row smaller than its own head"));
    }
    Ok(Head { kind, body, end, back, flags })
}

fn finished(input: &Input<'_>, head: &Head) -> Result<(), Fault> {
    if input.at() == head.end { Ok(()) } else { Err(input.bad("a row shorter than its stated size")) }
}

/// Turns `Short` into damage within a body, because all bytes of the body were available.
fn overrun(fault: Fault, head: &Head) -> Fault {
    match fault {
        Fault::Short => Fault::Bad { at: head.body, problem: "a row longer than its stated size" },
        bad => bad,
    }
}

fn next_listed(list: &mut Input<'_>, end: usize) -> Result<Option<u64>, Fault> {
    if list.at() < end { list.vint().map(Some) } else { Ok(None) }
}

/// The expiry as read (`Cell.decodeLocalDeletionTime`): one that is less than its own TTL can only be damage and
/// becomes an invalid time.
#[inline]
pub(super) fn expiry(local_s: i64, ttl_s: i32) -> i64 {
    if local_s >= i64::from(ttl_s) || ttl_s == EXPIRED_LIVENESS_TTL { local_s } else { INVALID_LOCAL_S }
}

/// A span in the current bytes. The caller checks its bounds; blocks are smaller than 4 GiB.
#[inline]
pub(super) fn spot(start: usize, len: usize) -> Span {
    Span { start: start as u32, len: len as u32 }
}
