//! What a read of a table larger than the processor's cache waits for, whatever the store: the same rows looked at, at random
//! places of many blocks and at one place again and again.
//!
//!     cargo run --profile optimized -p bench --example memory_floor
//!
//! A slice of 100 rows of the wide tables is about 5,000 bytes. Blocks of 16 KiB, each by itself in memory (`Arc<[u8]>`), or of
//! the buffer pool, in huge pages; nothing done but summing, or so much work a row as decoding it is.

use helenus_sstable::buffer::{Block, FramePool};
use std::hint::black_box;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

const BLOCK: usize = 16 << 10;
const CALLS: usize = 200_000;
const ROW: usize = 48;
const ROWS: usize = 100;
/// Multiplications a row, one after the other, about a nanosecond each.
const WORK: [usize; 2] = [0, 16];

fn main() {
    println!("| blocks of | MiB | work a row | one place, us | random places, us | more, us |");
    println!("|---|---|---|---|---|---|");
    let pool = FramePool::new();
    for mib in [1, 50, 500] {
        let count = (mib << 20) / BLOCK;
        let alone: Vec<Arc<[u8]>> = (0..count).map(|_| Arc::from(vec![1; BLOCK])).collect();
        rows("their own", mib, &alone);
        drop(alone);
        let pooled: Vec<Block> = (0..count)
            .map(|_| {
                let mut block = pool.take(BLOCK);
                block.fill(1);
                block.share()
            })
            .collect();
        rows("the pool", mib, &pooled);
    }
}

fn rows<B: Clone + Deref<Target = [u8]>>(kind: &str, mib: usize, blocks: &[B]) {
    for work in WORK {
        let one = median_us(blocks, work, |_| (0, 100));
        let span = (BLOCK - ROW * ROWS) as u64;
        let random = median_us(blocks, work, |number| {
            ((number % blocks.len() as u64) as usize, (number >> 32) as usize % span as usize)
        });
        println!("| {kind} | {mib} | {work} | {one:.2} | {random:.2} | {:.2} |", random - one);
    }
}

/// The median time of a call; `place` makes block and offset of a random number.
fn median_us<B: Clone + Deref<Target = [u8]>>(
    blocks: &[B],
    work: usize,
    place: impl Fn(u64) -> (usize, usize),
) -> f64 {
    let mut state = 0x853c_49e6_748f_ea9b_u64;
    let mut times_ns: Vec<u128> = (0..CALLS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let (block, offset) = place(state);
            let begun = Instant::now();
            let block = blocks[block].clone();
            let mut sum = 0_u64;
            for row in block[offset..offset + ROW * ROWS].chunks_exact(ROW) {
                sum = row
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .fold(sum, |sum, word| sum.rotate_left(5) ^ u64::from_le_bytes(*word));
                for _ in 0..work {
                    sum = black_box(sum.wrapping_mul(3));
                }
            }
            black_box(sum);
            begun.elapsed().as_nanos()
        })
        .collect();
    times_ns.sort_unstable();
    times_ns[CALLS / 2] as f64 / 1e3
}
