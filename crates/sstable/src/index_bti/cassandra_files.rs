//! Tests with files that a running Cassandra 5.0.6 flushed: every key and every block is found, damage is reported, and
//! a read that had to wait can be repeated. `tests/fixtures/bti/README.md` describes how the files were made.

use super::{
    IndexPosition, PartitionIndex, PartitionIndexBuilder, PartitionIter, RowIndexEntry, RowIndexReader,
};
use crate::block::{BlockFile, PAGE_BYTES, ReadContext};
use crate::buffer::BufferPool;
use crate::error::{Error, Result};
use crate::filter::{Filter, FilterBuilder, hash_byte};
use crate::sequential_writer::SequentialWriter;
use crate::trie::test_file::{MemoryFile, block_file, blocking};
use crate::version::Version;
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;
use helenus_model::murmur3::murmur3_x64_128;
use std::path::Path;

const DATA: &[u8] = include_bytes!("../../tests/fixtures/bti/da-1-bti-Data.db");
const FILTER: &[u8] = include_bytes!("../../tests/fixtures/bti/da-1-bti-Filter.db");
const PARTITIONS: &[u8] = include_bytes!("../../tests/fixtures/bti/da-1-bti-Partitions.db");
const ROWS: &[u8] = include_bytes!("../../tests/fixtures/bti/da-1-bti-Rows.db");

struct Key {
    key: Vec<u8>,
    decorated: Vec<u8>,
    halves: (i64, i64),
}

/// The keys of the table in order.
fn keys() -> Vec<Key> {
    let names = (0..1500).map(|i| format!("key{i}")).chain((0..2).map(|i| format!("wide{i}")));
    let mut keys: Vec<Key> = names
        .map(|name| {
            let key = name.into_bytes();
            let halves = murmur3_x64_128(&key, 0);
            let token = (halves.0 as u64 ^ 1 << 63).to_be_bytes();
            let decorated = [&[0x40], token.as_slice(), &[0x40], key.as_slice(), &[0, 0x38]].concat();
            Key { key, decorated, halves }
        })
        .collect();
    keys.sort_by(|a, b| a.decorated.cmp(&b.decorated));
    keys
}

fn clustering(row: u32) -> Vec<u8> {
    [&[0x40], format!("row{row:05}").as_bytes(), &[0, 0x38]].concat()
}

fn index() -> PartitionIndex {
    PartitionIndex::open(block_file(PARTITIONS.to_vec()), &mut blocking()).unwrap()
}

fn key_in_data(position: u64) -> &'static [u8] {
    let at = position as usize;
    let len = usize::from(u16::from_be_bytes([DATA[at], DATA[at + 1]]));
    &DATA[at + 2..at + 2 + len]
}

#[test]
fn every_partition_is_found_by_key_and_in_order() {
    let (index, rows, cx) = (index(), block_file(ROWS.to_vec()), &mut blocking());
    let keys = keys();
    assert_eq!(index.key_count(), keys.len() as u64);
    assert_eq!((index.first_key(), index.last_key()), (&keys[0].key[..], &keys[keys.len() - 1].key[..]));
    let mut iter = index.iter_from(None, cx).unwrap();
    for key in &keys {
        let found = index.lookup(&key.decorated, hash_byte(key.halves.1), cx).unwrap().unwrap();
        match found {
            IndexPosition::Data(position) => assert_eq!(key_in_data(position), key.key),
            IndexPosition::Rows(position) => {
                let (found, entry) = RowIndexEntry::read(&rows, position, cx).unwrap();
                assert_eq!((&found, key_in_data(entry.data_position)), (&key.key, key.key.as_slice()));
                let read_of = |key: &[u8]| RowIndexEntry::read_of(&rows, position, key, &mut blocking());
                assert_eq!(read_of(&key.key).unwrap(), Some(entry));
                assert_eq!(read_of(b"another").unwrap(), None);
            }
        }
        assert_eq!(iter.next(cx).unwrap(), Some(found));
    }
    assert_eq!(iter.next(cx).unwrap(), None);
}

#[test]
fn the_same_keys_make_the_same_partitions_and_filter() {
    let (index, keys) = (index(), keys());
    let file = MemoryFile::empty();
    let mut builder = PartitionIndexBuilder::new(SequentialWriter::on(file.clone(), Path::new("p"), true));
    let mut filter = FilterBuilder::new(Filter::with_capacity(keys.len() as u64, 0.01));
    for key in &keys {
        let hash_byte = hash_byte(key.halves.1);
        let position = index.lookup(&key.decorated, hash_byte, &mut blocking()).unwrap().unwrap();
        builder.add(&key.decorated, hash_byte, position).unwrap();
        filter.add(key.halves.0, key.halves.1);
    }
    builder.finish(index.first_key(), index.last_key()).unwrap();
    assert!(file.bytes() == PARTITIONS);

    let file = MemoryFile::empty();
    let mut out = SequentialWriter::on(file.clone(), Path::new("f"), false);
    let filter = filter.finish();
    filter.write(Version::Da, &mut out).unwrap();
    out.finish().unwrap();
    assert!(file.bytes() == FILTER);

    let read = Filter::read(FILTER, Version::Da, Path::new("f")).unwrap();
    assert_eq!(read, filter);
    assert!(keys.iter().all(|key| read.may_contain(key.halves.0, key.halves.1)));
    let strangers = (0..10_000).map(|i| murmur3_x64_128(format!("stranger{i}").as_bytes(), 0));
    let mistaken = strangers.filter(|halves| read.may_contain(halves.0, halves.1)).count();
    assert!(mistaken < 200, "{mistaken} of 10000 strangers pass a filter of 1 %");
}

fn wide_entries(rows: &BlockFile) -> Vec<(Vec<u8>, RowIndexEntry)> {
    let (index, cx) = (index(), &mut blocking());
    let wide = keys().into_iter().filter(|key| key.key.starts_with(b"wide"));
    wide.map(|key| match index.lookup(&key.decorated, hash_byte(key.halves.1), cx).unwrap() {
        Some(IndexPosition::Rows(position)) => RowIndexEntry::read(rows, position, cx).unwrap(),
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn every_row_of_a_wide_partition_lies_in_the_block_found_for_it() {
    let (rows, cx) = (block_file(ROWS.to_vec()), &mut blocking());
    for (key, entry) in wide_entries(&rows) {
        let deleted_at = if key == b"wide1" { 500 } else { i64::MIN };
        assert_eq!(entry.deletion.timestamp_us, deleted_at);
        let mut reader = RowIndexReader::new(&rows, &entry, cx).unwrap();
        let mut blocks = Vec::new();
        for row in 0..120 {
            let block = reader.floor(&clustering(row), cx).unwrap().unwrap();
            assert_eq!(reader.floor_reversed(&clustering(row), cx).unwrap(), Some(block));
            let [from, to] = [block.offset, block.end].map(|offset| (entry.data_position + offset) as usize);
            let name = format!("row{row:05}");
            assert!(DATA[from..to].windows(8).any(|bytes| bytes == name.as_bytes()), "{name} in {block:?}");
            // The range deletion from row 30 to 90 is open at the start of the blocks that begin inside.
            let first = (0..120).find(|row| {
                DATA[from..from + 60].windows(8).any(|bytes| bytes == format!("row{row:05}").as_bytes())
            });
            let inside = (30..90).contains(&first.unwrap());
            assert_eq!(block.open.map(|open| open.timestamp_us), inside.then_some(1000));
            blocks.push(block);
        }
        blocks.dedup();
        assert_eq!(blocks.len() as u64, entry.block_count);
        assert_eq!(
            DATA[(entry.data_position + blocks[blocks.len() - 1].end) as usize],
            1,
            "end of partition"
        );
        assert_eq!(reader.floor(AFTER_ALL, cx).unwrap(), None);
        assert_eq!(reader.floor_reversed(AFTER_ALL, cx).unwrap(), blocks.last().copied());
        for block in blocks.iter().rev().skip(1) {
            assert_eq!(reader.previous(cx).unwrap(), Some(*block));
        }
    }
}

/// Reads everything, and counts the entries.
fn read_all(partitions: Vec<u8>, rows: Vec<u8>) -> Result<u64> {
    let (cx, mut count) = (&mut blocking(), 0);
    let index = PartitionIndex::open(block_file(partitions), cx)?;
    let rows = block_file(rows);
    let mut iter = index.iter_from(None, cx)?;
    while let Some(position) = iter.next(cx)? {
        count += 1;
        if count > 100_000 {
            return Ok(count);
        }
        let IndexPosition::Rows(position) = position else { continue };
        let (_, entry) = RowIndexEntry::read(&rows, position, cx)?;
        let mut reader = RowIndexReader::new(&rows, &entry, cx)?;
        let mut block = reader.floor(&clustering(40), cx)?;
        while block.is_some() {
            block = reader.next(cx)?;
        }
        block = reader.floor_reversed(AFTER_ALL, cx)?;
        while block.is_some() {
            block = reader.previous(cx)?;
        }
    }
    for key in keys().iter().step_by(50) {
        index.lookup(&key.decorated, hash_byte(key.halves.1), cx)?;
    }
    Ok(count)
}

#[test]
fn no_flipped_or_missing_byte_panics_or_runs_forever() {
    for at in 0..ROWS.len() {
        for flip in [0x01, 0x08, 0x10, 0x80, 0xFF] {
            let mut rows = ROWS.to_vec();
            rows[at] ^= flip;
            let _ = read_all(PARTITIONS.to_vec(), rows);
        }
        let _ = read_all(PARTITIONS.to_vec(), ROWS[..at].to_vec());
    }
    for at in (0..PARTITIONS.len()).step_by(29).chain(PARTITIONS.len() - 60..PARTITIONS.len()) {
        for flip in [0x10, 0x81, 0xFF] {
            let mut partitions = PARTITIONS.to_vec();
            partitions[at] ^= flip;
            let _ = read_all(partitions, ROWS.to_vec());
        }
        let _ = read_all(PARTITIONS[..at].to_vec(), ROWS.to_vec());
    }
    assert!(matches!(read_all(PARTITIONS[..30].to_vec(), ROWS.to_vec()), Err(Error::Corrupt { .. })));
    assert_eq!(read_all(PARTITIONS.to_vec(), ROWS.to_vec()).unwrap(), 1502);
}

#[test]
fn a_step_that_had_to_wait_can_be_repeated() {
    let file = MemoryFile::empty();
    let mut out = SequentialWriter::on(file.clone(), Path::new("p"), false);
    out.write(PARTITIONS).unwrap();
    out.finish().unwrap();
    let file = BlockFile::new(file, Path::new("p"), PAGE_BYTES, None, BufferPool::offline()).unwrap();
    let index = PartitionIndex::open(file, &mut blocking()).unwrap();
    let mut plain = self::index().iter_from(None, &mut blocking()).unwrap();
    let (mut waits, mut impatient) = (0, ReadContext::default());
    let mut iter: PartitionIter = index.iter_from(None, &mut blocking()).unwrap();
    for _ in 0..=1502 {
        let found = match iter.next(&mut impatient) {
            Err(Error::WouldBlock) => {
                waits += 1;
                iter.next(&mut ReadContext { fill_cache: true, ..blocking() })
            }
            other => other,
        };
        assert_eq!(found.unwrap(), plain.next(&mut blocking()).unwrap());
    }
    assert!(waits > 0);
}

#[test]
fn a_table_without_partitions_or_with_narrow_ones_only_is_read() {
    let file = MemoryFile::empty();
    let builder = PartitionIndexBuilder::new(SequentialWriter::on(file.clone(), Path::new("p"), false));
    builder.finish(&[], &[]).unwrap();
    let cx = &mut blocking();
    let index = PartitionIndex::open(block_file(file.bytes()), cx).unwrap();
    assert_eq!((index.key_count(), index.first_key()), (0, &[][..]));
    assert_eq!(index.lookup(&keys()[0].decorated, 0, cx).unwrap(), None);
    assert_eq!(index.iter_from(None, cx).unwrap().next(cx).unwrap(), None);

    let mut writer = super::RowIndexWriter::new(SequentialWriter::on(file, Path::new("r"), false));
    let end = |data_position| super::PartitionEnd {
        key: b"k",
        data_position,
        deletion: DeletionTime::LIVE,
        end_offset: 9,
    };
    assert_eq!(writer.finish_partition(&end(5)).unwrap(), IndexPosition::Data(5));
    writer.add_block(b"a", b"b", 3, None).unwrap();
    assert_eq!(writer.finish_partition(&end(7)).unwrap(), IndexPosition::Data(7));
    assert_eq!(writer.finish().unwrap().size, 0);
}
