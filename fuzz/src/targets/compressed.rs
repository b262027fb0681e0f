//! What decompresses: chunks of Data.db and bodies of the native protocol, whatever length is announced.

use helenus_sstable::compression::{Compressor, Effort};
use helenus_wire::native::{BodyCodec, Compression, Envelope, Flags, Header, Opcode, Version};

const ALL: [Compressor; 5] = [
    Compressor::Lz4,
    Compressor::Snappy,
    Compressor::Deflate,
    Compressor::Zstd { level: 3 },
    Compressor::Noop,
];

fn plain() -> Vec<Vec<u8>> {
    let text = b"the same words, the same words, and the same words again; ".repeat(20);
    let noise = (0..700_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    vec![text, noise, vec![0; 4096], Vec::new()]
}

/// The number of a compressor, the length of the chunk, the compressed bytes.
pub(super) fn chunks() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for (number, compressor) in ALL.iter().enumerate() {
        for chunk in plain() {
            let mut out = vec![0; compressor.bound(chunk.len())];
            let Ok(length) = compressor.compress(&chunk, &mut out, &mut Effort::default()) else { continue };
            let head = [&[number as u8], &(chunk.len() as u16).to_be_bytes()[..]].concat();
            corpus.push([&head, &out[..length]].concat());
        }
    }
    corpus
}

/// What decompresses has a front that is its own, and is compressed and decompressed to the same, however hard it is searched.
pub(super) fn run_chunk(input: &[u8]) {
    let [number, high, low, stored @ ..] = input else { return };
    let compressor = ALL[usize::from(*number) % ALL.len()];
    let mut chunk = vec![0; usize::from(u16::from_be_bytes([*high, *low]))];
    let whole = compressor.decompress(stored, &mut chunk);
    if whole.is_err() {
        return;
    }
    if compressor.decompresses_partially() {
        let mut front = vec![0; chunk.len() / 3];
        let had = compressor.decompress_partial(stored, chunk.len(), &mut front);
        assert!(had.is_ok(), "{compressor:?}: {had:?}");
        // The C library takes a match at distance 0, which there is none of, and gives anything for it. Another decoder does not.
        let other = lz4_flex::block::decompress(stored.get(4..).unwrap_or_default(), chunk.len());
        let is_sound = other.is_ok_and(|other| other == chunk);
        assert!(!is_sound || chunk.starts_with(&front), "{compressor:?}: another front");
    }
    let mut out = vec![0; compressor.bound(chunk.len())];
    let mut effort = Effort::default();
    // A chunk that does not shrink has the second search be another.
    for _ in 0..2 {
        let length = compressor.compress(&chunk, &mut out, &mut effort);
        let length = length.unwrap_or_else(|error| panic!("{compressor:?}: {error}"));
        let mut again = vec![0; chunk.len()];
        let unfolded = compressor.decompress(&out[..length], &mut again);
        assert!(unfolded.is_ok() && again == chunk, "{compressor:?}: {unfolded:?}");
    }
}

pub(super) fn bodies() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for plain in plain() {
        let lz4 = lz4_of(&plain);
        corpus.push([&[0], &(plain.len() as u32).to_be_bytes()[..], &lz4].concat());
        let mut out = vec![0; Compressor::Snappy.bound(plain.len())];
        if let Ok(length) = Compressor::Snappy.compress(&plain, &mut out, &mut Effort::default()) {
            corpus.push([&[1], &out[..length]].concat());
        }
    }
    corpus
}

/// A block without the length that chunks have before it, little endian.
fn lz4_of(plain: &[u8]) -> Vec<u8> {
    let mut out = vec![0; Compressor::Lz4.bound(plain.len())];
    let length = Compressor::Lz4.compress(plain, &mut out, &mut Effort::default()).unwrap_or_default();
    out.get(4..length).unwrap_or_default().to_vec()
}

/// A body behind a sound header: nothing stands before the decompressor.
pub(super) fn run_body(input: &[u8]) {
    let Some((which, body)) = input.split_first() else { return };
    let compression = if which & 1 == 0 { Compression::Lz4 } else { Compression::Snappy };
    for version in [Version::V3, Version::V4] {
        let header = Header {
            version,
            flags: Flags(Flags::COMPRESSED),
            stream: 1,
            opcode: Opcode::Query,
            length: body.len() as u32,
        };
        let mut codec = BodyCodec::new(compression);
        if let Ok(unfolded) = codec.decompress(&Envelope { header, body }, 1 << 20) {
            assert!(unfolded.len() <= 1 << 20);
        }
    }
}
