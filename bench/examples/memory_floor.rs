//! What a read of a table larger than the processor's cache waits for, whatever the store: the same bytes summed at random
//! places of many blocks, and at one place again and again.
//!
//!     cargo run --release -p bench --example memory_floor
//!
//! Blocks of 16 KiB as in the block cache, each by itself in memory. A slice of 100 rows of the wide tables is about 5,000 bytes.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const BLOCK: usize = 16 << 10;
const CALLS: usize = 200_000;

fn main() {
    println!("| bytes read | of MiB | one place, us | random places, us | more, us |");
    println!("|---|---|---|---|---|");
    for (bytes, mib) in [(5_000, 1), (5_000, 50), (5_000, 500), (8_000, 80)] {
        let blocks: Vec<Arc<[u8]>> = (0..(mib << 20) / BLOCK).map(|_| Arc::from(vec![1; BLOCK])).collect();
        let one = median_us(&blocks, bytes, |_| (0, 100));
        let span = (BLOCK - bytes) as u64;
        let random = median_us(&blocks, bytes, |number| {
            ((number % blocks.len() as u64) as usize, (number >> 32) as usize % span as usize)
        });
        println!("| {bytes} | {mib} | {one:.2} | {random:.2} | {:.2} |", random - one);
    }
}

/// The median time of a call; `place` makes block and offset of a random number.
fn median_us(blocks: &[Arc<[u8]>], bytes: usize, place: impl Fn(u64) -> (usize, usize)) -> f64 {
    let mut state = 0x853c_49e6_748f_ea9b_u64;
    let mut times_ns: Vec<u128> = (0..CALLS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let (block, offset) = place(state);
            let begun = Instant::now();
            let block = blocks[block].clone();
            let words = block[offset..offset + bytes].as_chunks::<8>().0;
            let sum = words.iter().fold(0_u64, |sum, word| sum.rotate_left(5) ^ u64::from_le_bytes(*word));
            black_box(sum);
            begun.elapsed().as_nanos()
        })
        .collect();
    times_ns.sort_unstable();
    times_ns[CALLS / 2] as f64 / 1e3
}
