//! A counter's value as cells store it: a count for each counter id (Cassandra's `CounterContext`).
//!
//! ```text
//! header   count i16, then an i16 for each shard that is not remote: its index, plus i16::MIN if it is global
//! shards   id (16 bytes), clock i64, count i64 each, ascending by id; big endian
//! ```
//!
//! A global shard holds the total count of its id, and the later clock wins. Local shards (before Cassandra 2.1) of one
//! id are added up when they are merged; remote shards are copies of another node's local shards. A header with a
//! negative count marks a context whose local shards became remote when another node sent it.

use std::cmp::Ordering;

/// Bytes of an id.
pub const ID_BYTES: usize = 16;
const SHARD_BYTES: usize = ID_BYTES + 16;

/// The kind of a shard. Of two shards of one id, the one of the greater kind wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShardKind {
    /// A copy of another node's local shard.
    Remote,
    /// To be added to the other local shards of its id.
    Local,
    /// The total count of its id.
    Global,
}

/// The count of one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The counter id.
    pub id: [u8; ID_BYTES],
    /// Its version: the shard with the later clock wins.
    pub clock: i64,
    /// The count.
    pub count: i64,
    /// Its kind.
    pub kind: ShardKind,
}

/// The shards of a context, ascending by id. Of truncated bytes the complete shards are returned.
#[derive(Clone, Debug)]
pub struct Shards<'a> {
    header: &'a [u8],
    rest: &'a [u8],
    index: u16,
    clears_local: bool,
}

/// Reads the shards of a context.
pub fn shards(context: &[u8]) -> Shards<'_> {
    let (count, rest) = context
        .split_first_chunk::<2>()
        .map_or((0, context), |(count, rest)| (i16::from_be_bytes(*count), rest));
    let length = (usize::from(count.unsigned_abs()) * 2).min(rest.len());
    let (header, rest) = rest.split_at(length);
    Shards { header, rest, index: 0, clears_local: count < 0 }
}

impl Iterator for Shards<'_> {
    type Item = Shard;

    #[inline]
    fn next(&mut self) -> Option<Shard> {
        let (shard, rest) = self.rest.split_first_chunk::<SHARD_BYTES>()?;
        self.rest = rest;
        let mut kind = ShardKind::Remote;
        if let Some((element, others)) = self.header.split_first_chunk::<2>() {
            let element = u16::from_be_bytes(*element);
            if element & 0x7FFF == self.index {
                self.header = others;
                kind = match element & 0x8000 != 0 {
                    true => ShardKind::Global,
                    false if self.clears_local => ShardKind::Remote,
                    false => ShardKind::Local,
                };
            }
        }
        self.index = self.index.wrapping_add(1);
        let (id, numbers) = shard.split_first_chunk::<ID_BYTES>()?;
        let (clock, count) = numbers.split_first_chunk::<8>()?;
        let count = count.first_chunk::<8>()?;
        Some(Shard { id: *id, clock: i64::from_be_bytes(*clock), count: i64::from_be_bytes(*count), kind })
    }
}

/// The counter's value: the sum of all shards (wrapping).
pub fn total(context: &[u8]) -> i64 {
    shards(context).fold(0, |sum, shard| sum.wrapping_add(shard.count))
}

/// The shard of one id.
pub fn shard_of(context: &[u8], id: &[u8; ID_BYTES]) -> Option<Shard> {
    shards(context).find(|shard| shard.id == *id)
}

/// The context of one global shard (`createGlobal`).
pub fn global(id: [u8; ID_BYTES], clock: i64, count: i64) -> [u8; 4 + SHARD_BYTES] {
    let mut context = [0; 4 + SHARD_BYTES];
    context[..4].copy_from_slice(&[0, 1, 0x80, 0]);
    context[4..20].copy_from_slice(&id);
    context[20..28].copy_from_slice(&clock.to_be_bytes());
    context[28..].copy_from_slice(&count.to_be_bytes());
    context
}

/// Whether the context has shards that only Cassandra before 2.1 wrote (`hasLegacyShards`). `Statistics.db` records
/// this for a file.
pub fn has_legacy_shards(context: &[u8]) -> bool {
    let clears_local = context.first_chunk::<2>().is_some_and(|count| i16::from_be_bytes(*count) < 0);
    clears_local || shards(context).any(|shard| shard.kind != ShardKind::Global)
}

/// The result of a merge of two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The left context already contains the right one.
    Left,
    /// The right context already contains the left one.
    Right,
    /// Neither contains the other; the merged context was appended.
    Both,
}

/// Merges two contexts of one counter, shard by shard (`CounterContext.merge`). Appends to `out` only if the result is
/// neither of the two.
pub fn merge(left: &[u8], right: &[u8], out: &mut Vec<u8>) -> Merged {
    let (mut left_has_all, mut right_has_all) = (true, true);
    let (mut shards_count, mut header_count) = (0_usize, 0_usize);
    pairs(left, right, |shard, from| {
        left_has_all &= from != From::Right && from != From::Sum;
        right_has_all &= from != From::Left && from != From::Sum;
        shards_count += 1;
        header_count += usize::from(shard.kind != ShardKind::Remote);
    });
    if left_has_all {
        return Merged::Left;
    }
    if right_has_all {
        return Merged::Right;
    }
    out.extend_from_slice(&(header_count as i16).to_be_bytes());
    let mut header_at = out.len();
    let start = header_at + header_count * 2;
    out.resize(start + shards_count * SHARD_BYTES, 0);
    let mut index = 0_usize;
    pairs(left, right, |shard, _| {
        if shard.kind != ShardKind::Remote {
            let flag = if shard.kind == ShardKind::Global { 0x8000 } else { 0 };
            out[header_at..header_at + 2].copy_from_slice(&(index as u16 | flag).to_be_bytes());
            header_at += 2;
        }
        let at = start + index * SHARD_BYTES;
        out[at..at + 16].copy_from_slice(&shard.id);
        out[at + 16..at + 24].copy_from_slice(&shard.clock.to_be_bytes());
        out[at + 24..at + 32].copy_from_slice(&shard.count.to_be_bytes());
        index += 1;
    });
    Merged::Both
}

/// Where a merged shard comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Left,
    Right,
    Either,
    Sum,
}

fn pairs(left: &[u8], right: &[u8], mut each: impl FnMut(Shard, From)) {
    let (mut lefts, mut rights) = (shards(left), shards(right));
    let (mut l, mut r) = (lefts.next(), rights.next());
    loop {
        let order = match (&l, &r) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(l), Some(r)) => l.id.cmp(&r.id),
        };
        match (order, l, r) {
            (Ordering::Equal, Some(one), Some(other)) => {
                let (shard, from) = stronger(one, other);
                each(shard, from);
                (l, r) = (lefts.next(), rights.next());
            }
            (Ordering::Less, Some(one), _) => {
                each(one, From::Left);
                l = lefts.next();
            }
            (_, _, Some(other)) => {
                each(other, From::Right);
                r = rights.next();
            }
            _ => return,
        }
    }
}

/// Merges two shards of one id.
fn stronger(l: Shard, r: Shard) -> (Shard, From) {
    if l.kind != r.kind {
        return if l.kind > r.kind { (l, From::Left) } else { (r, From::Right) };
    }
    if l.kind == ShardKind::Local {
        let (clock, count) = (l.clock.wrapping_add(r.clock), l.count.wrapping_add(r.count));
        return (Shard { clock, count, ..l }, From::Sum);
    }
    let order = if l.clock == r.clock {
        l.count.cmp(&r.count)
    } else if l.kind == ShardKind::Global {
        l.clock.cmp(&r.clock)
    } else {
        // A negative clock means that the id was retired: that shard is final.
        let is_greater = match l.clock < 0 {
            true => r.clock > 0 || l.clock < r.clock,
            false => r.clock > 0 && l.clock >= r.clock,
        };
        if is_greater { Ordering::Greater } else { Ordering::Less }
    };
    match order {
        Ordering::Greater => (l, From::Left),
        Ordering::Equal => (l, From::Either),
        Ordering::Less => (r, From::Right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(id: u8, clock: i64, count: i64, kind: ShardKind) -> Shard {
        Shard { id: [id; 16], clock, count, kind }
    }

    /// A context of these shards in Cassandra's layout.
    fn context(shards: &[Shard]) -> Vec<u8> {
        let header: Vec<u8> = shards
            .iter()
            .enumerate()
            .filter(|(_, shard)| shard.kind != ShardKind::Remote)
            .flat_map(|(index, shard)| {
                let flag = if shard.kind == ShardKind::Global { 0x8000 } else { 0 };
                (index as u16 | flag).to_be_bytes()
            })
            .collect();
        let mut out = ((header.len() / 2) as i16).to_be_bytes().to_vec();
        out.extend_from_slice(&header);
        for shard in shards {
            out.extend_from_slice(&shard.id);
            out.extend_from_slice(&shard.clock.to_be_bytes());
            out.extend_from_slice(&shard.count.to_be_bytes());
        }
        out
    }

    #[test]
    fn a_context_gives_back_its_shards_and_their_sum() {
        use ShardKind::{Global, Local, Remote};
        let all = [shard(1, 5, 10, Global), shard(2, 1, -3, Remote), shard(3, 9, 4, Local)];
        let bytes = context(&all);
        assert_eq!(shards(&bytes).collect::<Vec<_>>(), all);
        assert_eq!(total(&bytes), 11);
        assert_eq!(shard_of(&bytes, &[3; 16]), Some(all[2]));
        assert_eq!(global([7; 16], 5, -2).to_vec(), context(&[shard(7, 5, -2, Global)]));
        let mut cleared = bytes.clone();
        cleared[..2].copy_from_slice(&(-2_i16).to_be_bytes());
        let kinds: Vec<ShardKind> = shards(&cleared).map(|shard| shard.kind).collect();
        assert_eq!(kinds, [Global, Remote, Remote]);
        for length in 0..bytes.len() {
            let _ = shards(&bytes[..length]).count();
        }
    }

    #[test]
    fn merged_contexts_keep_the_stronger_shard_of_each_id_whatever_their_order() {
        use ShardKind::{Global, Local, Remote};
        let left = context(&[shard(1, 5, 10, Global), shard(2, 3, 1, Remote), shard(4, 1, 2, Local)]);
        let right = context(&[shard(1, 6, 8, Global), shard(2, 9, 7, Local), shard(3, 1, 5, Global)]);
        let mut out = Vec::new();
        assert_eq!(merge(&left, &right, &mut out), Merged::Both);
        let expected =
            [shard(1, 6, 8, Global), shard(2, 9, 7, Local), shard(3, 1, 5, Global), shard(4, 1, 2, Local)];
        assert_eq!(out, context(&expected));
        let mut other_way = Vec::new();
        assert_eq!(merge(&right, &left, &mut other_way), Merged::Both);
        assert_eq!(out, other_way);
        // Without local shards, merging with a part of a context changes nothing.
        let part = context(&[shard(1, 6, 8, Global)]);
        let whole = context(&[shard(1, 6, 8, Global), shard(3, 1, 5, Global)]);
        assert_eq!(merge(&whole, &part, &mut out), Merged::Left);
        assert_eq!(merge(&part, &whole, &mut out), Merged::Right);
        assert_eq!(merge(&part, &part, &mut out), Merged::Left);
    }

    #[test]
    fn local_shards_add_up_and_equal_clocks_keep_the_greater_count() {
        use ShardKind::{Global, Local, Remote};
        let mut out = Vec::new();
        let local = context(&[shard(1, 2, 5, Local)]);
        assert_eq!(merge(&local, &local, &mut out), Merged::Both);
        assert_eq!(out, context(&[shard(1, 4, 10, Local)]));
        out.clear();
        let (less, more) = (context(&[shard(1, 2, 5, Global)]), context(&[shard(1, 2, 6, Global)]));
        assert_eq!(merge(&less, &more, &mut out), Merged::Right);
        let (given_up, later) = (context(&[shard(1, -1, 5, Remote)]), context(&[shard(1, 9, 6, Remote)]));
        assert_eq!(merge(&given_up, &later, &mut out), Merged::Left);
        assert!(has_legacy_shards(&local) && !has_legacy_shards(&less));
    }
}
