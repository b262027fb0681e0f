//! Murmur3 as Cassandra computes it, for tokens and Bloom filters.
//!
//! The x64 128-bit variant with one difference from the published one: the up to 15 bytes after the last full block are
//! widened as signed bytes (Cassandra's `MurmurHash.hash3_x64_128`), so a tail byte of 0x80 or more flips all bits
//! above it.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Both halves of the hash of `bytes`. The first is the token before normalisation; a Bloom filter uses both.
pub fn murmur3_x64_128(bytes: &[u8], seed: i64) -> (i64, i64) {
    let mut h1 = seed as u64;
    let mut h2 = seed as u64;
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let block = u128::from_le_bytes(*block);
        h1 ^= mix_low(block as u64);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_high((block >> 64) as u64);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // A missing tail leaves zeros, which mix to zero.
    let (low, high) = tail.split_at(tail.len().min(8));
    h2 ^= mix_high(signed_tail(high));
    h1 ^= mix_low(signed_tail(low));

    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1 as i64, h2 as i64)
}

fn mix_low(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_high(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

/// The little-endian word of up to eight bytes, each sign-extended before it is shifted into position.
fn signed_tail(bytes: &[u8]) -> u64 {
    let mut word = 0_u64;
    for (i, byte) in bytes.iter().enumerate() {
        word ^= (i64::from(*byte as i8) as u64) << (8 * i);
    }
    word
}

fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}
