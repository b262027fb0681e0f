//! The partitions of one shard: looked up by token in about three cache lines, and read in ring order.
//!
//! Murmur3 spreads tokens evenly, so the leading bits of a token give its position in the shard. The directory is a
//! hash table of small buckets by those bits, and is therefore in token order. A full bucket overflows into the
//! directory's skip list, so that crafted keys of equal tokens cost a search and not a scan. One writer at a time;
//! readers take no lock.
//!
//! Invariants:
//! 1. An entry is complete before a slot points to it. A slot is written before its bucket's count is stored with
//!    Release. Readers load counts with Acquire. Slots below the count never change.
//! 2. A directory that is too small is replaced by one with twice the buckets, which holds all entries and is published
//!    by one store. The old one stays unchanged in the arena, so a reader sees everything that was there when it began.
//! 3. Entries keep their address until the arena is dropped.

use super::arena::{Arena, CHUNK_BYTES_MAX};
use super::partition::{Bytes, Partition, copy_both};
use super::skiplist::{NodeRef, SkipList};
use super::sync::{AtomicI64, AtomicPtr, AtomicU32, Ordering};
use super::work;
use helenus_host::prefetch_lines;
use helenus_model::byte_comparable;
use helenus_model::token::Token;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Entries of a bucket: their tokens fill one cache line, their pointers another.
const BUCKET_ENTRIES: usize = 7;
/// The directory doubles beyond this average of entries per bucket; one bucket in a hundred is then full.
const ENTRIES_PER_BUCKET_MAX: usize = 3;
/// Approximate size in cache lines of a new entry, with its key before it and its first row after it; the row's node
/// comes last.
const ENTRY_LINES: usize = 10;
/// Approximate distance from an entry back to its key.
const KEY_BYTES: usize = 64;
/// How many entries ahead a walk prefetches a whole entry.
const ENTRIES_AHEAD: usize = 8;
/// For how many more entries a walk prefetches the first line, several at once. Each costs a TLB miss, and the
/// processor handles several of those at the same time.
const ENTRIES_PREFETCHED: usize = 8;
/// How many buckets ahead a walk prefetches a bucket.
const BUCKETS_PREFETCHED: usize = 8;
/// How many buckets ahead a range read prefetches entries: few enough that they are still cached when it arrives.
const BUCKETS_AHEAD: usize = 2;
/// Leading bits of a token that choose the shard.
pub(super) const SHARD_BITS: u32 = 4;

/// A partition with its token and its key.
pub(super) struct Entry {
    pub(super) partition: Partition,
    pub(super) token: Token,
    key: Bytes,
    /// Ordered encoding of token and key.
    decorated: Bytes,
}

// SAFETY: the bytes live in the memtable's arena, written before the entry is published and never changed.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

impl Entry {
    /// The serialised partition key.
    pub(super) fn key(&self) -> &[u8] {
        // SAFETY: the holder of the entry holds the arena, in which both live.
        unsafe { self.key.get() }
    }

    /// Ordered encoding of token and key.
    pub(super) fn decorated(&self) -> &[u8] {
        // SAFETY: as for the key.
        unsafe { self.decorated.get() }
    }

    /// Prefetches the entry with its key and first row, which lie side by side if they were created together.
    fn prefetch(&self) {
        prefetch_lines(std::ptr::from_ref(self).wrapping_byte_sub(KEY_BYTES), ENTRY_LINES);
    }

    /// Prefetches the first cache line of the entry.
    fn prefetch_first_line(&self) {
        prefetch_lines(std::ptr::from_ref(self), 1);
    }

    /// Compares tokens first, then keys.
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        self.token.cmp(&other.token).then_with(|| self.decorated().cmp(other.decorated()))
    }
}

/// A position in the ring from which to read on.
#[derive(Clone, Copy)]
struct Place<'a> {
    token: Token,
    decorated: &'a [u8],
    /// Whether an entry exactly at the position is skipped.
    strictly: bool,
}

impl Place<'_> {
    /// Whether an entry of this token is still ahead. Reads the entry itself, another cache line, only if the tokens
    /// are equal.
    fn is_before(&self, token: Token, entry: &Entry) -> bool {
        match token.cmp(&self.token) {
            std::cmp::Ordering::Equal if self.strictly => entry.decorated() > self.decorated,
            std::cmp::Ordering::Equal => entry.decorated() >= self.decorated,
            order => order.is_gt(),
        }
    }
}

/// The partitions of a shard.
#[derive(Default)]
pub(super) struct PartitionMap {
    directory: AtomicPtr<Directory>,
}

/// The state of a map's only writer. It is kept away from the fields that readers use, so that its changes do not
/// invalidate their cache lines.
#[derive(Default)]
pub(super) struct MapWriter {
    /// Number of entries in the map.
    len: usize,
}

/// An entry that did not fit its bucket.
struct Overflow(NonNull<Entry>);

struct Directory {
    bits: u32,
    /// The `1 << bits` buckets; in a directory of several segments, those of the first segment.
    buckets: NonNull<Bucket>,
    /// In a directory of several segments: the start of each.
    segments: NonNull<NonNull<Bucket>>,
    rest: SkipList<Overflow>,
}

/// Buckets of a segment, which fills a chunk of the arena (a huge page), because writes access random buckets.
const SEGMENT_BUCKETS: usize = CHUNK_BYTES_MAX / size_of::<Bucket>();
/// Cache lines of a bucket.
const BUCKET_LINES: usize = size_of::<Bucket>().div_ceil(64);

#[repr(C, align(64))]
#[derive(Default)]
struct Bucket {
    count: AtomicU32,
    /// Number of entries of this bucket that are in the directory's `rest`.
    beside: AtomicU32,
    tokens: [AtomicI64; BUCKET_ENTRIES],
    entries: [AtomicPtr<Entry>; BUCKET_ENTRIES],
}

impl PartitionMap {
    /// The partition of a key.
    pub(super) fn get(&self, token: Token, key: &[u8]) -> Option<&Entry> {
        let directory = self.directory()?;
        let bucket = directory.bucket(directory.bucket_of(token));
        prefetch_lines(&bucket.entries, 1);
        let mut here = bucket.slots();
        if let Some((_, found)) = here.find(|(other, entry)| *other == token && entry.key() == key) {
            return Some(found);
        }
        if bucket.beside.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut decorated = Vec::with_capacity(key.len() + KEY_BYTES);
        byte_comparable::decorated_key(token, key, &mut decorated);
        // SAFETY: entries live as long as the arena, which outlives the directory.
        directory.rest.get(&decorated).map(|node| unsafe { node.value().0.as_ref() })
    }

    /// Prefetches the bucket of a token.
    pub(super) fn prefetch(&self, token: Token) {
        if let Some(directory) = self.directory() {
            prefetch_lines(directory.bucket(directory.bucket_of(token)), BUCKET_LINES);
        }
    }

    /// Adds a partition that is not in the map. The caller is the only writer until this returns; `maker` and `arena`
    /// are the same in every call.
    pub(super) fn insert(
        &self,
        maker: &mut MapWriter,
        arena: &Arena,
        token: Token,
        key: &[u8],
        decorated: &[u8],
    ) -> &Entry {
        let (key, decorated) = copy_both(arena, key, decorated);
        let entry = arena.place(Entry { partition: Partition::default(), token, key, decorated });
        // SAFETY: just placed; lives as long as the arena, which outlives the map.
        let entry = unsafe { entry.as_ref() };
        self.with_room(maker.len, arena).add(arena, token, entry);
        maker.len += 1;
        entry
    }

    /// The first partition at or after a position in ring order.
    pub(super) fn at_or_after(&self, token: Token, decorated: &[u8]) -> Option<&Entry> {
        self.first_beyond(&Place { token, decorated, strictly: false })
    }

    /// The partition after this one.
    pub(super) fn after(&self, entry: &Entry) -> Option<&Entry> {
        self.first_beyond(&Place { token: entry.token, decorated: entry.decorated(), strictly: true })
    }

    /// Calls `each` for every partition in ring order. Nobody adds partitions meanwhile.
    pub(super) fn walk<'a, E>(&'a self, each: &mut impl FnMut(&'a Entry) -> Result<(), E>) -> Result<(), E> {
        let Some(directory) = self.directory() else { return Ok(()) };
        let mut here: Vec<(Token, &Entry)> = Vec::with_capacity(BUCKET_ENTRIES);
        // The next entries, whose memory is being prefetched.
        let mut ahead: VecDeque<&Entry> =
            VecDeque::with_capacity(ENTRIES_AHEAD + ENTRIES_PREFETCHED + 2 * BUCKET_ENTRIES);
        let mut step = |ahead: &mut VecDeque<&'a Entry>| {
            // One entry at a time: the processor has a limited number of memory requests under way.
            if let Some(entry) = ahead.get(ENTRIES_AHEAD) {
                entry.prefetch();
            }
            if let Some(entry) = ahead.get(ENTRIES_AHEAD / 2) {
                entry.partition.prefetch_first();
            }
            ahead.pop_front().map_or(Ok(()), &mut *each)
        };
        for number in 0..directory.buckets() {
            directory.prefetch_bucket(number + BUCKETS_PREFETCHED);
            directory.gather(number, &mut here);
            here.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| one.1.cmp(other.1)));
            ahead.extend(here.iter().map(|(_, entry)| *entry));
            if ahead.len() > ENTRIES_AHEAD + ENTRIES_PREFETCHED {
                ahead.range(ENTRIES_AHEAD..).for_each(|entry| entry.prefetch_first_line());
                while ahead.len() > ENTRIES_AHEAD {
                    step(&mut ahead)?;
                }
            }
        }
        while !ahead.is_empty() {
            step(&mut ahead)?;
        }
        Ok(())
    }

    /// The first partition in ring order.
    pub(super) fn first(&self) -> Option<&Entry> {
        let directory = self.directory()?;
        (0..directory.buckets()).find_map(|number| directory.least(number, None))
    }

    fn first_beyond(&self, place: &Place<'_>) -> Option<&Entry> {
        let directory = self.directory()?;
        let first = directory.bucket_of(place.token);
        let found = directory.least(first, Some(*place));
        found.or_else(|| {
            (first + 1..directory.buckets()).find_map(|number| {
                directory.prefetch_entries(number + BUCKETS_AHEAD);
                directory.least(number, None)
            })
        })
    }

    fn directory(&self) -> Option<&Directory> {
        // SAFETY: null or a directory in the arena, published whole; the arena outlives the map.
        unsafe { self.directory.load(Ordering::Acquire).as_ref() }
    }

    /// The directory; doubled first if `len` entries leave no room for one more.
    fn with_room(&self, len: usize, arena: &Arena) -> &Directory {
        let old = self.directory();
        let bits = match old {
            None => 0,
            Some(old) if len >= old.buckets() * ENTRIES_PER_BUCKET_MAX => old.bits + 1,
            Some(old) => return old,
        };
        let new = Directory::new(arena, bits);
        if let Some(old) = old {
            for number in 0..old.buckets() {
                old.bucket(number).slots().for_each(|(token, entry)| new.add(arena, token, entry));
            }
            old.rest_from(Token::MIN).for_each(|entry| new.add(arena, entry.token, entry));
        }
        let new = arena.place(new);
        self.directory.store(new.as_ptr(), Ordering::Release);
        // SAFETY: just placed; lives as long as the arena, which outlives the map.
        unsafe { new.as_ref() }
    }
}

impl Directory {
    fn new(arena: &Arena, bits: u32) -> Directory {
        let count = 1usize << bits;
        let segment_count = count.div_ceil(SEGMENT_BUCKETS);
        let segments = arena.allocate(segment_count * size_of::<NonNull<Bucket>>()).cast();
        for number in 0..segment_count {
            let segment = Directory::segment(arena, count.min(SEGMENT_BUCKETS));
            // SAFETY: the allocation has room for all of them, and nobody else has a pointer to it.
            unsafe { segments.add(number).write(segment) };
        }
        // SAFETY: the loop above wrote at least the first one.
        let buckets = unsafe { segments.read() };
        Directory { bits, buckets, segments, rest: SkipList::default() }
    }

    /// Creates `count` empty buckets, at most `SEGMENT_BUCKETS`.
    fn segment(arena: &Arena, count: usize) -> NonNull<Bucket> {
        let memory = match count {
            SEGMENT_BUCKETS => arena.allocate_whole(),
            _ => arena.allocate(count * size_of::<Bucket>() + align_of::<Bucket>()),
        };
        let to_alignment = memory.as_ptr().align_offset(align_of::<Bucket>());
        // SAFETY: the allocation has room for the buckets behind the alignment (a whole chunk is aligned), and nobody
        // else has a pointer to it.
        unsafe {
            let first = memory.add(to_alignment).cast::<Bucket>();
            for number in 0..count {
                first.add(number).write(Bucket::default());
            }
            first
        }
    }

    fn buckets(&self) -> usize {
        1 << self.bits
    }

    /// The bucket of a token, in ring order: the token's bits after those that choose the shard.
    fn bucket_of(&self, token: Token) -> usize {
        let place = ((token.0 as u64) ^ (1 << 63)) << SHARD_BITS;
        place.checked_shr(u64::BITS - self.bits).unwrap_or(0) as usize
    }

    fn bucket(&self, number: usize) -> &Bucket {
        assert!(number < self.buckets(), "a bucket's number has as many bits as the directory");
        let (segment, within) = (number / SEGMENT_BUCKETS, number % SEGMENT_BUCKETS);
        // SAFETY: `number` is below the number of buckets. They lie in segments, all full but the last, written when
        // the directory was created, in the arena that outlives it.
        unsafe {
            let first = if segment == 0 { self.buckets } else { self.segments.add(segment).read() };
            first.add(within).as_ref()
        }
    }

    /// Prefetches a bucket.
    fn prefetch_bucket(&self, number: usize) {
        if number < self.buckets() {
            prefetch_lines(self.bucket(number), BUCKET_LINES);
        }
    }

    /// Prefetches the entries of a bucket.
    fn prefetch_entries(&self, number: usize) {
        if number < self.buckets() {
            self.bucket(number).slots().for_each(|(_, entry)| entry.prefetch());
        }
    }

    /// Adds an entry. The caller is the only writer. It does not read the entry itself: growing a directory would have
    /// a cache miss for each entry.
    fn add(&self, arena: &Arena, token: Token, entry: &Entry) {
        let bucket = self.bucket(self.bucket_of(token));
        let count = bucket.count.load(Ordering::Relaxed);
        if let (Some(place), Some(slot)) =
            (bucket.tokens.get(count as usize), bucket.entries.get(count as usize))
        {
            place.store(token.0, Ordering::Relaxed);
            slot.store(std::ptr::from_ref(entry).cast_mut(), Ordering::Relaxed);
            bucket.count.store(count + 1, Ordering::Release);
        } else {
            self.rest.find_or_insert(arena, entry.decorated(), || Overflow(NonNull::from(entry)));
            bucket.beside.fetch_add(1, Ordering::Release);
        }
    }

    /// The first entry of a bucket in ring order, or the first at or after `place`.
    fn least(&self, number: usize, place: Option<Place<'_>>) -> Option<&Entry> {
        let bucket = self.bucket(number);
        let is_ahead =
            |(token, entry): &(Token, &Entry)| place.is_none_or(|place| place.is_before(*token, entry));
        let mut least: Option<(Token, &Entry)> = None;
        for (token, entry) in bucket.slots().filter(is_ahead) {
            let is_less = |(other, other_entry): (Token, &Entry)| {
                token < other || (token == other && entry.cmp(other_entry).is_lt())
            };
            if least.is_none_or(is_less) {
                least = Some((token, entry));
            }
        }
        let least = least.map(|(_, entry)| entry);
        if bucket.beside.load(Ordering::Acquire) == 0 {
            return least;
        }
        // From the place on: many entries of the bucket may lie before it.
        let mut beside = match place {
            Some(place) => self.rest_at(place.decorated),
            None => self.rest_from(self.first_token_of(number, bucket)),
        };
        let beside = beside
            .find(|entry| is_ahead(&(entry.token, entry)))
            .filter(|e| self.bucket_of(e.token) == number);
        least.into_iter().chain(beside).min_by(|one, other| one.cmp(other))
    }

    /// Copies the entries of a bucket into `here`, in any order.
    fn gather<'a>(&'a self, number: usize, here: &mut Vec<(Token, &'a Entry)>) {
        let bucket = self.bucket(number);
        here.clear();
        here.extend(bucket.slots());
        if bucket.beside.load(Ordering::Acquire) > 0 {
            let beside = self.rest_from(self.first_token_of(number, bucket));
            let beside = beside.take_while(|entry| self.bucket_of(entry.token) <= number);
            let beside = beside.filter(|entry| self.bucket_of(entry.token) == number);
            here.extend(beside.map(|entry| (entry.token, entry)));
        }
    }

    /// A token not above any in the bucket. Its leading bits are the shard's, which are taken from an entry.
    fn first_token_of(&self, number: usize, bucket: &Bucket) -> Token {
        let shard =
            ((bucket.tokens[0].load(Ordering::Relaxed) as u64) ^ (1 << 63)) >> (u64::BITS - SHARD_BITS);
        let within = (number as u64).checked_shl(u64::BITS - SHARD_BITS - self.bits).unwrap_or(0);
        Token(((shard << (u64::BITS - SHARD_BITS) | within) ^ (1 << 63)) as i64)
    }

    /// The entries in `rest` from a token on.
    fn rest_from(&self, token: Token) -> RestWalk<'_> {
        let mut first = Vec::with_capacity(16);
        byte_comparable::token_bound(token, true, &mut first);
        self.rest_at(&first)
    }

    /// The entries in `rest` from a position in ring order on.
    fn rest_at(&self, decorated: &[u8]) -> RestWalk<'_> {
        RestWalk(self.rest.at_or_after(decorated))
    }
}

/// The entries of a directory's `rest`, from one on.
struct RestWalk<'a>(Option<NodeRef<'a, Overflow>>);

impl<'a> Iterator for RestWalk<'a> {
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        let node = self.0?;
        work::add(1);
        self.0 = node.next();
        // SAFETY: entries live as long as the arena, which outlives the directory.
        Some(unsafe { node.value().0.as_ref() })
    }
}

impl Bucket {
    /// The entries in the bucket's slots, each with its token.
    fn slots(&self) -> impl Iterator<Item = (Token, &Entry)> {
        let count = self.count.load(Ordering::Acquire) as usize;
        let slots = self.tokens.iter().zip(&self.entries).take(count);
        slots.filter_map(|(token, entry)| {
            // SAFETY: a slot below the count leads to an entry, which lives as long as the arena.
            let entry = unsafe { entry.load(Ordering::Relaxed).as_ref() }?;
            Some((Token(token.load(Ordering::Relaxed)), entry))
        })
    }
}

/// A reference to a partition of a memtable.
#[derive(Clone, Copy)]
pub struct PartitionRef<'a> {
    entry: NonNull<Entry>,
    memtable: PhantomData<&'a Entry>,
}

impl<'a> PartitionRef<'a> {
    pub(super) fn new(entry: &'a Entry) -> PartitionRef<'a> {
        PartitionRef { entry: NonNull::from(entry), memtable: PhantomData }
    }

    pub(super) fn entry(self) -> &'a Entry {
        // SAFETY: made from a reference of the same lifetime.
        unsafe { self.entry.as_ref() }
    }

    /// Ordered encoding of token and key.
    pub fn decorated(self) -> &'a [u8] {
        self.entry().decorated()
    }

    /// The serialised partition key.
    pub fn key(self) -> &'a [u8] {
        self.entry().key()
    }

    /// Its token.
    pub fn token(self) -> Token {
        self.entry().token
    }

    /// Its content.
    pub fn content(self) -> &'a Partition {
        &self.entry().partition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::byte_comparable::decorated_key;
    use std::collections::BTreeMap;

    /// Fills a map and a model with keys of these tokens, each shifted to begin with four zero bits, and compares
    /// them.
    fn check(tokens: impl Iterator<Item = u64>) {
        let (arena, map, mut maker) = (Arena::default(), PartitionMap::default(), MapWriter::default());
        let mut model = BTreeMap::new();
        let decorated = |token, key: &[u8]| {
            let mut out = Vec::new();
            decorated_key(token, key, &mut out);
            out
        };
        for (number, token) in tokens.enumerate() {
            let token = Token(((token >> SHARD_BITS) ^ (1 << 63)) as i64);
            let key = (number as u32).to_be_bytes();
            assert!(map.get(token, &key).is_none());
            map.insert(&mut maker, &arena, token, &key, &decorated(token, &key));
            model.insert(decorated(token, &key), (token, key));
        }
        let in_order = std::iter::successors(map.first(), |entry| map.after(entry));
        assert!(in_order.map(Entry::decorated).eq(model.keys().map(|key| &key[..])));
        let mut in_order = Vec::new();
        let walked: Result<(), ()> = map.walk(&mut |entry| {
            in_order.push(entry.decorated());
            Ok(())
        });
        assert!(walked.is_ok() && in_order.into_iter().eq(model.keys().map(|key| &key[..])));
        for (place, (token, key)) in &model {
            assert!(map.get(*token, key).is_some_and(|entry| entry.key() == key));
            assert!(map.get(*token, b"another").is_none());
            assert!(map.at_or_after(*token, place).is_some_and(|entry| entry.decorated() == place));
            let beyond = decorated(*token, &[&key[..], &[0]].concat());
            let expected = model.range(beyond.clone()..).next().map(|(key, _)| &key[..]);
            assert_eq!(map.at_or_after(*token, &beyond).map(Entry::decorated), expected);
        }
    }

    const COUNT: u64 = if cfg!(miri) { 40 } else { 3_000 };
    /// More entries than two segments of buckets hold.
    const MANY: u64 = if cfg!(miri) { 40 } else { 3 * 2 * SEGMENT_BUCKETS as u64 + 1 };

    #[test]
    fn partitions_of_spread_tokens_are_found_and_come_in_ring_order() {
        check((0..MANY).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    }

    /// Keys can be made to have one token.
    #[test]
    fn many_partitions_of_one_token_cost_searches_and_not_scans() {
        let (arena, map, mut maker) = (Arena::default(), PartitionMap::default(), MapWriter::default());
        work::take();
        for number in 0..COUNT as u32 {
            let (key, mut decorated) = (number.to_be_bytes(), Vec::new());
            decorated_key(Token(i64::MIN), &key, &mut decorated);
            map.insert(&mut maker, &arena, Token(i64::MIN), &key, &decorated);
        }
        let inserted = work::take();
        assert!((0..COUNT as u32).all(|number| map.get(Token(i64::MIN), &number.to_be_bytes()).is_some()));
        assert_eq!(std::iter::successors(map.first(), |entry| map.after(entry)).count() as u64, COUNT);
        let read = work::take();
        assert!(inserted as u64 <= 3 * COUNT && read as u64 <= 5 * COUNT, "{inserted} and {read} steps");
    }

    #[test]
    fn partitions_of_equal_and_crowded_tokens_are_found_and_come_in_ring_order() {
        check((0..COUNT).map(|n| (n % 3) << 60));
        check((0..COUNT).map(|n| n << 8));
        check((0..COUNT).map(|n| u64::MAX - (n / 5)));
    }
}
