//! Tests that parts of chunks are read and decompressed without the rest if the cache is full.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod full_cache;

use full_cache::Full;
use helenus_host::{File, memory};
use helenus_model::schema::CompressionParams;
use helenus_sstable::Error;
use helenus_sstable::block::{BlockFile, ReadContext};
use helenus_sstable::compression::{CompressedBlocks, DataBlocks, DataWriter, EVERYTHING, WrittenData};
use helenus_sstable::sequential_writer::SequentialWriter;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const CHUNK: u64 = 16 << 10;
const CHUNKS: u64 = 20;

fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    number ^ number >> 29
}

/// Rows, the file that contains them, and its blocks. About every two kilobytes a position is marked as one where reads
/// begin.
fn written(cache: Arc<Full>) -> (Vec<u8>, Arc<dyn File>, DataBlocks) {
    let host = memory::host();
    let path = Path::new("/data");
    let params = CompressionParams {
        class: Some("LZ4Compressor".to_owned()),
        options: BTreeMap::new(),
        chunk_bytes: CHUNK as u32,
        max_compressed_bytes: i32::MAX as u32,
    };
    let mut writer =
        DataWriter::new(SequentialWriter::create(&*host.disk, path, false).unwrap(), &params).unwrap();
    let mut content = Vec::new();
    for number in 0.. {
        if content.len() as u64 >= CHUNK * CHUNKS - 5_000 {
            break;
        }
        if number % 50 == 0 {
            writer.mark();
        }
        let value = (0..5).map(|at| format!("{:05x}", mix(number * 5 + at) % 0x10_0000));
        let row = format!("{number:010}{}", value.collect::<String>());
        writer.write(row.as_bytes()).unwrap();
        content.extend_from_slice(row.as_bytes());
    }
    let WrittenData::Compressed(written) = writer.finish().unwrap() else { panic!("it is not compressed") };
    let file = host.disk.open_write(path).unwrap();
    let blocks = BlockFile::new(file.clone(), path, (7, 4096), None, cache).unwrap();
    (content, file, DataBlocks::Compressed(CompressedBlocks::new(blocks, written.info)))
}

fn waiting() -> ReadContext {
    ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() }
}

#[test]
fn a_part_has_what_is_foreseen_and_little_else() {
    let (content, _, blocks) = written(Full::new(0, 1 << 20));
    let mut cx = waiting();
    let (mut bytes, mut asked, mut parts) = (0, 0, 0);
    for round in 0..3_000 {
        let from = mix(round) % (content.len() as u64 - 200);
        let long = 1 + mix(round << 20) % 5_000;
        let end = (from + long).min(content.len() as u64);
        cx.touched = Default::default();
        let (block, start) = blocks.block(from, &(from..end), &mut cx).unwrap();
        let chunk = from / CHUNK * CHUNK;
        assert!((chunk..=from).contains(&start));
        let to = start + block.len() as u64;
        assert!(to >= end.min(chunk + CHUNK), "{from}..{end} in {start}..{to}");
        assert_eq!(block[..], content[start as usize..to as usize]);
        // A chunk that the read extent covers is cached.
        if cx.touched.blocks_cached == 0 && block.len() as u64 != CHUNK && round > 500 {
            assert_eq!((cx.touched.blocks_read, cx.touched.blocks_decompressed), (1, 1));
            bytes += cx.touched.bytes_decompressed;
            asked += end.min(chunk + CHUNK) - from;
            parts += 1;
            assert!(cx.touched.bytes_read < CHUNK, "{:?}", cx.touched);
        }
    }
    assert!(parts > 1_500 && bytes < asked + parts * 3_500, "{bytes} bytes for {asked}");
}

#[test]
fn neighbours_that_are_foreseen_come_with_one_read_of_the_file() {
    let (content, _, blocks) = written(Full::new(0, 1 << 20));
    let mut cx = waiting();
    let mut read = |position: u64, foreseen: std::ops::Range<u64>| {
        cx.touched = Default::default();
        let (block, start) = blocks.block(position, &foreseen, &mut cx).unwrap();
        assert_eq!(block[..], content[start as usize..][..block.len()]);
        cx.touched.bytes_read
    };
    // The first read of each chunk finds its pieces.
    (0..CHUNKS).for_each(|number| assert!(read(number * CHUNK, number * CHUNK..number * CHUNK + 9) > 0));
    let middle = 8 * CHUNK;
    let foreseen = middle - 3_000..middle + 3_000;
    let forward = read(middle - 3_000, foreseen.clone());
    assert_eq!(read(middle, foreseen.clone()), 0, "it came with its neighbour");
    read(0, 0..100);
    let backward = read(middle, foreseen.clone());
    assert_eq!(read(middle - 3_000, foreseen), 0, "it came with its neighbour");
    assert_eq!(forward, backward);
    assert!(read(middle, middle..middle + 100) < forward);
}

#[test]
fn a_chunk_that_the_cache_would_still_have_is_kept_whole() {
    let cache = Full::new(3, 1 << 20);
    let (content, _, blocks) = written(cache.clone());
    let mut cx = waiting();
    let mut read = |number: u64| {
        cx.touched = Default::default();
        let from = number * CHUNK + 5_000;
        let (block, start) = blocks.block(from, &(from..from + 100), &mut cx).unwrap();
        assert_eq!(block[..], content[start as usize..][..block.len()]);
        (cx.touched.blocks_read, block.len() as u64 == CHUNK)
    };
    for round in 0..2 {
        assert!((0..10).all(|number| read(number) == (1, false)), "round {round}: each too long ago");
    }
    assert_eq!([read(4), read(5), read(4), read(4)], [(1, false), (1, false), (1, true), (0, true)]);
    assert_eq!(cache.kept(), 1);
}

#[test]
fn a_scan_has_whole_chunks_and_so_has_who_foresees_no_end() {
    let (content, _, blocks) = written(Full::new(0, 1 << 20));
    for (foreseen, fill_cache) in [(EVERYTHING, true), (5_000..5_100, false)] {
        let mut cx = ReadContext { fill_cache, ..waiting() };
        let (block, start) = blocks.block(5_000, &foreseen, &mut cx).unwrap();
        assert_eq!(start, 0);
        assert_eq!(block[..], content[..block.len()]);
        assert!(block.len() as u64 == CHUNK || !fill_cache);
    }
}

#[test]
fn where_there_is_no_memory_for_pieces_chunks_are_read_as_before_and_memory_comes_back() {
    let none = Full::new(0, 100);
    let (_, _, blocks) = written(none);
    let (block, start) = blocks.block(5_000, &(5_000..5_100), &mut waiting()).unwrap();
    assert_eq!((block.len(), start), (5_100, 0), "a front");
    let some = Full::new(0, 1 << 20);
    let (_, _, blocks) = written(some.clone());
    blocks.block(5_000, &(5_000..5_100), &mut waiting()).unwrap();
    assert!(some.left() < 1 << 20);
    drop(blocks);
    assert_eq!(some.left(), 1 << 20);
}

#[test]
fn damage_within_a_part_is_told_with_its_place_and_elsewhere_it_is_not_seen() {
    let (content, file, blocks) = written(Full::new(0, 1 << 20));
    let DataBlocks::Compressed(compressed) = &blocks else { panic!("it is not compressed") };
    let chunk = compressed.info().chunk(3).unwrap();
    let from = 3 * CHUNK + 6_000;
    let read = || blocks.block(from, &(from..from + 500), &mut waiting());
    let (block, start) = read().unwrap();
    assert!(start > 3 * CHUNK);
    drop(block);
    let (mut told, mut unseen) = (0, 0);
    for at in (0..chunk.stored_bytes as u64).step_by(23) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, chunk.offset + at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x40], chunk.offset + at).unwrap();
        // Read another chunk, so that the bytes are read from the file again.
        blocks.block(0, &(0..10), &mut waiting()).unwrap();
        match read() {
            Ok((block, start)) => {
                assert_eq!(block[..], content[start as usize..][..block.len()]);
                unseen += 1;
            }
            Err(Error::Corrupt { offset, problem, .. }) => {
                assert!((chunk.offset..=chunk.offset + at).contains(&offset) && problem.contains("checksum"));
                told += 1;
            }
            Err(other) => panic!("{other}"),
        }
        file.write_all_at(&byte, chunk.offset + at).unwrap();
    }
    assert!(told > 20 && unseen > 20, "{told} told, {unseen} not seen");
    // The first read of a chunk checks all of it.
    let mut byte = [0];
    let other = compressed.info().chunk(5).unwrap();
    file.read_exact_at(&mut byte, other.offset + 3_000).unwrap();
    file.write_all_at(&[!byte[0]], other.offset + 3_000).unwrap();
    let from = 5 * CHUNK;
    assert!(matches!(blocks.block(from, &(from..from + 10), &mut waiting()), Err(Error::Corrupt { .. })));
}

#[test]
fn parts_that_do_not_do_too_often_are_no_longer_read() {
    let (content, _, blocks) = written(Full::new(0, 1 << 20));
    let mut cx = waiting();
    let mut read = |round: u64| {
        let from = mix(round) % (CHUNKS - 1) * CHUNK + 5_000;
        cx.touched = Default::default();
        let (block, start) = blocks.block(from, &(from..from + 100), &mut cx).unwrap();
        assert_eq!(block[..], content[start as usize..][..block.len()]);
        (start / CHUNK, block.len())
    };
    let mut rounds = 0..10_000_u64;
    let whole = rounds.find(|round| {
        let (number, bytes) = read(*round);
        blocks.fell_short(number, bytes, true);
        bytes as u64 == CHUNK
    });
    assert!((50..10_000).contains(&whole.unwrap()), "{whole:?}");
    assert_eq!(read(10_001).1 as u64, CHUNK);
}
