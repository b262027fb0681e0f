//! Reads the data of a scrub: the fronts of partitions, and the places behind damage where rows can be read again.
//!
//! The data is right wherever its checksums are, so there a partition begins where the one before it ends, and has the
//! key that stands there. The index, which other programs' files do not protect, is asked only about what the data
//! cannot tell: where the partitions behind damage begin, which rows behind it belong to the damaged partition, and the
//! key of a partition whose front is lost. Each answer is compared with the data, the filter and the order of keys
//! before it counts.
//!
//! Rows are found at any position, by the sizes that they contain: each element has its own size and the size of the
//! element before it. A position is that of a row if a chain of elements begins there whose sizes agree and that ends
//! where an index block begins, or where the partition does.

use crate::block::ReadContext;
use crate::compression::WHOLE;
use crate::data::{ElementReader, Supposed, Validity};
use crate::error::Error;
use crate::partitioner::Partitioner;
use crate::table::{BlocksMemory, IndexPositions, IndexedPartition, Parts};
use helenus_model::byte_comparable::decorated_key;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;
use helenus_model::row::RowBuf;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Unfiltered;

/// The number of elements with agreeing sizes that prove a position, if damage or nothing else ends their chain.
const CHAIN_BEFORE_DAMAGE: usize = 4;
const CHAIN_LONG: usize = 64;

/// The number of positions that are tried before the search goes on at the next index block.
const TRIED_MAX: u64 = 16 << 20;

/// The number of positions at which a front is looked for without an index.
const FRONTS_TRIED_MAX: u64 = 1 << 20;

/// The bytes behind the start of an element that cannot be read in which the damage is looked for first. In a longer
/// element it is found as positions are tried.
const DAMAGE_BYTES_MAX: u64 = 1 << 20;

/// A partition: where it begins, and its entry in the index if it has one.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) place: Option<IndexedPartition>,
}

/// The front of a partition.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) key: Vec<u8>,
    pub(super) decorated: Vec<u8>,
    pub(super) deletion: DeletionTime,
    pub(super) static_row: RowBuf,
    /// Why the static row is left out.
    pub(super) static_problem: Option<String>,
    /// Whether the expiry of the static row was repaired.
    pub(super) is_reinserted: bool,
}

impl Default for Front {
    fn default() -> Front {
        Front {
            key: Vec::new(),
            decorated: Vec::new(),
            deletion: DeletionTime::LIVE,
            static_row: RowBuf::default(),
            static_problem: None,
            is_reinserted: false,
        }
    }
}

/// The place behind damage of a partition at which reading continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    pub(super) position: u64,
    /// Whether the next partition begins there, and not a row or marker of the same one.
    pub(super) is_end: bool,
    /// The range deletion that is open there.
    pub(super) open: Option<DeletionTime>,
}

/// The next partition behind damage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) start: u64,
    /// Whether no other partition begins between the damage and it, by the index.
    pub(super) is_adjacent: bool,
}

/// The state of the front at a position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrontState {
    Valid,
    Invalid,
    /// Its block cannot be read.
    Unreadable,
}

/// The data, and the index beside it.
pub(super) struct DataSource<'a> {
    pub(super) parts: &'a Parts,
    pub(super) walk: ElementReader,
    /// Looks ahead of `walk`.
    probe: ElementReader,
    pub(super) cx: ReadContext,
    pub(super) validity: Validity,
    pub(super) places: IndexPositions<'a>,
    /// The first partition of the index behind the end of the data that was seen behind damage.
    pub(super) beyond: Option<IndexedPartition>,
}

impl<'a> DataSource<'a> {
    pub(super) fn new(parts: &'a Parts) -> DataSource<'a> {
        let mut cx = ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() };
        DataSource {
            places: parts.positions(&mut cx),
            validity: Validity::of(&parts.schema),
            parts,
            walk: ElementReader::default(),
            probe: ElementReader::default(),
            beyond: None,
            cx,
        }
    }

    /// Reads the front of the partition at `start`. If only its static row cannot be read, returns the position of that
    /// and the reason. The error describes why there cannot be a front.
    pub(super) fn front(
        &mut self,
        start: u64,
        front: &mut Front,
        validate: bool,
    ) -> std::result::Result<Option<(u64, String)>, String> {
        front.static_problem = None;
        let rows = self.parts.rows();
        let Front { key, static_row, .. } = front;
        let whole = self.walk.front(rows, start, (key, static_row), &mut self.cx);
        let (deletion, cut) = match whole {
            Ok(deletion) => (deletion, None),
            Err(error) => {
                static_row.clear();
                let found = self.walk.key(rows, start, key, &mut self.cx);
                let (deletion, at) = found.map_err(|error| problem_of(&error))?;
                (deletion, Some((at, problem_of(&error))))
            }
        };
        // Behind a key that only looks like one anything can stand.
        if validate || cut.is_some() {
            self.validity.key(key)?;
        }
        if validate && let Err(problem) = self.validity.row(static_row.view()) {
            static_row.clear();
            front.static_problem = Some(problem);
        }
        if let Some((_, problem)) = cut.as_ref().filter(|_| !self.is_in_filter(&front.key)) {
            return Err(problem.clone());
        }
        front.deletion = deletion;
        front.decorated = decorated(&front.key);
        Ok(cut)
    }

    /// Decides between a front and the index where they disagree. Data with checksums is right; otherwise the filter
    /// decides. The error is the reason to take the front as damaged.
    pub(super) fn trust(
        &mut self,
        front: &Front,
        place: Option<&IndexedPartition>,
        last: &[u8],
    ) -> std::result::Result<(), String> {
        let Some(place) = place.filter(|_| !self.parts.is_checksummed) else { return Ok(()) };
        let is_other = place.key.as_ref().is_some_and(|key| *key != front.key);
        if is_other && !self.is_in_filter(&front.key) && self.agrees(place, last) {
            return Err("the index and the filter have another partition here".to_owned());
        }
        Ok(())
    }

    /// Whether the key of an entry of the index can be that of the partition there, whose front cannot be read: the
    /// filter knows it, a lookup leads to the same place, and it lies between `last`, the decorated key of the partition
    /// before, and the next key of the index.
    pub(super) fn agrees(&mut self, place: &IndexedPartition, last: &[u8]) -> bool {
        let (Some(key), Some(index)) = (&place.key, &self.parts.index) else { return false };
        if self.validity.key(key).is_err() || !self.is_in_filter(key) {
            return false;
        }
        let partitioner = Partitioner::of(&self.parts.statistics.validation.partitioner);
        if partitioner != Partitioner::Murmur3 {
            return self.parts.filter.is_some();
        }
        let (hash, own) = (KeyHash::of(key), decorated(key));
        let found = index.candidate(key, (&hash, &own), &mut self.cx);
        let leads_here = found.is_ok_and(|found| found.is_some_and(|found| found.data == place.start));
        let next = self.places.key_behind(place.start);
        leads_here && own.as_slice() > last && next.is_none_or(|next| decorated(next) > own)
    }

    fn is_in_filter(&self, key: &[u8]) -> bool {
        let (h1, h2) = KeyHash::of(key).halves;
        self.parts.filter.as_ref().is_none_or(|filter| filter.may_contain(h1, h2))
    }

    /// Finds where the damaged partition goes on behind `at`, or where the next one begins. `last` is the decorated key
    /// of the damaged partition.
    pub(super) fn behind_damage(&mut self, extent: &Extent, at: u64, last: &[u8]) -> Behind {
        let readable = self.readable_from(at);
        let next = self.next_partition((at, readable), last);
        let blocks = self.blocks(extent, (readable, next.start));
        let limit = match next.is_adjacent {
            true => next.start.min(self.parts.data.data_length()),
            // Another partition may begin before the next one that is known.
            false => blocks.last().map_or(readable, |(position, _)| position + 1),
        };
        match self.find_element(extent.start, (readable, limit), (&blocks, next.start)) {
            Some(position) => {
                let open = self.open_at(position, &blocks);
                Behind { position, is_end: false, open }
            }
            None => Behind { position: next.start, is_end: true, open: None },
        }
    }

    /// Finds the first partition behind `at` whose front can be read, or at least comes from an entry of the index that
    /// agrees with everything else. `readable` is the first position behind the damage.
    pub(super) fn next_partition(&mut self, (at, readable): (u64, u64), last: &[u8]) -> Next {
        let mut is_adjacent = true;
        loop {
            let mut places = self.places.behind(at, &mut self.cx);
            let first = places.first().map(|place| place.start);
            places.sort_by_key(|place| place.start);
            for place in &places {
                if place.start >= self.parts.data.data_length() {
                    self.beyond.get_or_insert_with(|| place.clone());
                    continue;
                }
                let is_next = match self.front_state(place.start, place.key.as_deref()) {
                    FrontState::Valid => true,
                    FrontState::Invalid => false,
                    FrontState::Unreadable => self.agrees(place, last) || place.key.is_none(),
                };
                if is_next {
                    let is_adjacent = is_adjacent && first == Some(place.start);
                    return Next { start: place.start, is_adjacent };
                }
            }
            if places.is_empty() {
                break;
            }
            is_adjacent = false;
            self.places.pass_ahead();
        }
        let end = self.parts.data.data_length();
        if self.parts.index.is_some() && self.places.problem.is_none() {
            return Next { start: end, is_adjacent };
        }
        Next { start: self.find_front(readable, last).unwrap_or(end), is_adjacent: false }
    }

    /// The end of a loss that goes to `position`: at the end of a file that was cut, the start of the first partition that
    /// is missing.
    pub(super) fn end_of_loss(&self, position: u64) -> u64 {
        match &self.beyond {
            Some(beyond) if position >= self.parts.data.data_length() => beyond.start,
            _ => position,
        }
    }

    /// Whether a front is at a position, for a partition whose key is `key` if that is known.
    fn front_state(&mut self, position: u64, key: Option<&[u8]>) -> FrontState {
        let (mut found, mut static_row) = (Vec::new(), RowBuf::default());
        let rows = self.parts.rows();
        match self.probe.front(rows, position, (&mut found, &mut static_row), &mut self.cx) {
            Err(_) if !self.is_readable(position) => FrontState::Unreadable,
            Err(_) => FrontState::Invalid,
            Ok(_) => {
                let is_valid = key == Some(&*found)
                    || self.validity.key(&found).is_ok()
                        && self.is_in_filter(&found)
                        && self.begins(position);
                if is_valid { FrontState::Valid } else { FrontState::Invalid }
            }
        }
    }

    /// Whether the element behind the front that was read last is the end of the partition, or the first of the
    /// partition that begins at `start`. It is true too if the element cannot be read.
    fn begins(&mut self, start: u64) -> bool {
        let at = self.probe.position();
        let limit = self.parts.data.data_length();
        let is_first = |element: Supposed| element.back.is_none_or(|back| back == at - start);
        let found = self.probe.supposed(self.parts.rows(), (at, limit), is_first, &mut self.cx);
        !matches!(found, Ok(None))
    }

    /// Looks for a front at each position, for data whose index cannot be read. Its key must be behind `last`.
    fn find_front(&mut self, from: u64, last: &[u8]) -> Option<u64> {
        let end = self.parts.data.data_length().min(from.saturating_add(FRONTS_TRIED_MAX));
        let (mut key, mut static_row) = (Vec::new(), RowBuf::default());
        let mut position = from;
        while position < end {
            if !self.is_readable(position) {
                position = self.readable_from(position);
                continue;
            }
            let rows = self.parts.rows();
            let front = self.probe.front(rows, position, (&mut key, &mut static_row), &mut self.cx);
            if front.is_ok()
                && self.is_in_filter(&key)
                && self.validity.key(&key).is_ok()
                && self.validity.row(static_row.view()).is_ok()
                && decorated(&key).as_slice() > last
                && self.is_begun_by_row(position)
            {
                return Some(position);
            }
            position += 1;
        }
        None
    }

    /// Whether a row or marker behind the front that was read last is the first of the partition at `start`.
    fn is_begun_by_row(&mut self, start: u64) -> bool {
        let at = self.probe.position();
        let limit = self.parts.data.data_length();
        let is_first = |element: Supposed| element.back == Some(at - start);
        matches!(self.probe.supposed(self.parts.rows(), (at, limit), is_first, &mut self.cx), Ok(Some(_)))
    }

    /// The positions within a range at which the index blocks of a partition begin, in order, and the range deletions
    /// that are open there.
    fn blocks(&mut self, extent: &Extent, (from, end): (u64, u64)) -> Vec<(u64, Option<DeletionTime>)> {
        let mut found = Vec::new();
        let entry = extent.place.as_ref().and_then(|place| place.index.as_ref());
        let (Some(index), Some(entry)) = (self.parts.index.as_ref(), entry) else { return found };
        let layout = &self.parts.layout;
        let Ok(mut blocks) = index.blocks(entry, &mut BlocksMemory::default(), &mut self.cx) else {
            return found;
        };
        let mut block = blocks.floor_reversed((index, layout), AFTER_ALL, &mut self.cx).ok().flatten();
        while let Some(now) = block {
            let position = extent.start.saturating_add(now.offset);
            if position < from {
                break;
            }
            if position < end {
                found.push((position, now.open));
            }
            block = blocks.previous((index, layout), &mut self.cx).ok().flatten();
        }
        found.reverse();
        // A damaged index may have anything here.
        if !found.is_sorted_by(|a, b| a.0 < b.0) {
            found.clear();
        }
        found
    }

    /// The first position within a range at which a row or marker of the partition at `start` begins. `blocks` are the
    /// starts of its index blocks, and `next` is the start of the next partition.
    fn find_element(
        &mut self,
        start: u64,
        (from, limit): (u64, u64),
        (blocks, next): (&[(u64, Option<DeletionTime>)], u64),
    ) -> Option<u64> {
        let block_bytes = self.parts.data.block_bytes().max(1) as u64;
        let (mut position, mut damaged_end, mut tried) = (from, from, 0);
        let mut block = u64::MAX;
        while position < limit {
            if position / block_bytes != block {
                block = position / block_bytes;
                if !self.is_readable(position) {
                    position = self.readable_from(position);
                    damaged_end = position;
                    continue;
                }
            }
            if self.is_chain((start, damaged_end, position), (blocks, next)) {
                return Some(position);
            }
            (position, tried) = (position + 1, tried + 1);
            if tried > TRIED_MAX {
                let behind = blocks.partition_point(|(block, _)| *block < position);
                position = blocks.get(behind).map(|(block, _)| *block)?;
                (damaged_end, tried) = (position, 0);
            }
        }
        None
    }

    /// Whether a chain of elements of the partition at `start` begins at `position`, with the first element behind
    /// damage that ends at `damaged_end`.
    fn is_chain(
        &mut self,
        (start, damaged_end, position): (u64, u64, u64),
        (blocks, next): (&[(u64, Option<DeletionTime>)], u64),
    ) -> bool {
        let (mut at, mut size, mut count) = (position, None, 0);
        loop {
            let is_likely = |element: Supposed| match (element.back, size) {
                (None, before) => before.is_some() && element.end == next,
                (Some(back), Some(before)) => back == before,
                // The element before it begins in the damage, or is the front.
                (Some(back), None) => {
                    at.checked_sub(back).is_some_and(|before| before < damaged_end && before >= start)
                }
            };
            match self.probe.supposed(self.parts.rows(), (at, next), is_likely, &mut self.cx) {
                Err(_) => return count >= CHAIN_BEFORE_DAMAGE,
                Ok(None) => return false,
                Ok(Some(Supposed { back: None, .. })) => return true,
                Ok(Some(Supposed { end, .. })) => {
                    if self.validity.element(self.probe.current()).is_err() {
                        return false;
                    }
                    let is_block = |at: u64| blocks.binary_search_by_key(&at, |(block, _)| *block).is_ok();
                    if count > 0 && is_block(at) || count >= CHAIN_LONG {
                        return true;
                    }
                    size = Some(end - at);
                    at = end;
                    count += 1;
                }
            }
        }
    }

    /// The range deletion that is open at a position of a partition, by the first marker behind it. `blocks` are the
    /// starts of the partition's index blocks.
    fn open_at(&mut self, position: u64, blocks: &[(u64, Option<DeletionTime>)]) -> Option<DeletionTime> {
        let mut at = position;
        loop {
            if let Ok(block) = blocks.binary_search_by_key(&at, |(block, _)| *block) {
                return blocks.get(block).and_then(|(_, open)| *open);
            }
            let limit = self.parts.data.data_length();
            let found = self.probe.supposed(self.parts.rows(), (at, limit), |_| true, &mut self.cx);
            let Ok(Some(Supposed { end, back: Some(_) })) = found else { return None };
            if let Unfiltered::Marker(marker) = self.probe.current() {
                return Some(marker.marker.close).filter(|close| !close.is_live());
            }
            at = end;
        }
    }

    /// The first position behind `at` that is not in the same damage: behind the blocks that cannot be read, from the
    /// first such block on; or the next position, if all blocks can be read.
    pub(super) fn readable_from(&mut self, at: u64) -> u64 {
        let block_bytes = self.parts.data.block_bytes().max(1) as u64;
        let end = self.parts.data.data_length();
        let last = end.min(at.saturating_add(DAMAGE_BYTES_MAX));
        let mut position = at;
        while position < last && self.is_readable(position) {
            position = (position / block_bytes + 1) * block_bytes;
        }
        if position >= last {
            return at.saturating_add(1).min(end);
        }
        while position < end && !self.is_readable(position) {
            position = (position / block_bytes + 1) * block_bytes;
        }
        position.min(end)
    }

    fn is_readable(&mut self, position: u64) -> bool {
        let number = position / self.parts.data.block_bytes().max(1) as u64;
        self.parts.data.block(number, WHOLE, &mut self.cx).is_ok()
    }
}

/// The decorated key of a partition.
pub(super) fn decorated(key: &[u8]) -> Vec<u8> {
    let mut decorated = Vec::new();
    decorated_key(KeyHash::of(key).token, key, &mut decorated);
    decorated
}

/// The text of an error, without the file's name, which is known.
pub(super) fn problem_of(error: &Error) -> String {
    match error {
        Error::Corrupt { offset, problem, .. } => format!("{problem} (at byte {offset})"),
        other => other.to_string(),
    }
}
