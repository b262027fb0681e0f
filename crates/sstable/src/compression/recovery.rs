//! Finds the chunks of a Data.db again when CompressionInfo.db is damaged, for `crate::scrub`.
//!
//! Each chunk is followed by its CRC32. From a chunk's start its end is therefore the first position whose four bytes
//! are the CRC of the bytes before them. Compressor and chunk length are right if a chunk decompresses to exactly that
//! length. So nothing of CompressionInfo.db is needed but the dictionary of Cassandra 6.0.

use super::blocks::CompressedBlocks;
use super::compressor::{CodecError, Compressor};
use super::data_blocks::WHOLE;
use super::info::{CHUNK_CRC_BYTES, CompressionInfo};
use crate::block::{BlockFile, ReadContext};
use crate::checksum::{Crc32, crc32};
use crate::error::Result;
use crate::version::Version;
use helenus_model::schema::CompressionParams;
use std::collections::BTreeMap;

/// The most bytes of a stored chunk that are looked through for its end: four times the longest chunk in use.
const STORED_BYTES_MAX: usize = 4 << 20;

/// The chunk lengths that are tried, the usual ones first.
const CHUNK_BYTES: [u32; 11] =
    [1 << 16, 1 << 14, 1 << 12, 1 << 15, 1 << 13, 1 << 11, 1 << 10, 1 << 17, 1 << 18, 1 << 19, 1 << 20];

/// The number of chunks with which a compressor is tried.
const TRIED_CHUNKS: usize = 64;

/// The parts of a CompressionInfo.db, each as it is if it can be.
#[derive(Default)]
struct Stated {
    class: Option<Compressor>,
    options: BTreeMap<String, String>,
    chunk_bytes: u32,
    max_compressed_bytes: u32,
    data_length: u64,
    offsets: Vec<u64>,
}

/// The number of chunks that cannot be read.
pub(crate) fn unreadable_chunks(blocks: &CompressedBlocks, cx: &mut ReadContext) -> u64 {
    let info = blocks.info();
    let full = info.chunk_count();
    // Only the last chunk may be empty. The data must end in the last one or, if that is empty, the one before.
    let is_short = info.data_length <= full.saturating_sub(2) * u64::from(info.chunk_bytes) && full > 1;
    let with_data = info.data_length.div_ceil(u64::from(info.chunk_bytes).max(1));
    let bad = (0..with_data).filter(|number| blocks.block(*number, WHOLE, cx).is_err()).count() as u64;
    // A chunk behind the end of the data must be empty.
    let behind = with_data < full && !is_empty_chunk(blocks, with_data, cx);
    bad + u64::from(is_short || behind)
}

fn is_empty_chunk(blocks: &CompressedBlocks, number: u64, cx: &mut ReadContext) -> bool {
    let info = blocks.info();
    let Some(start) = info.offset(number) else { return false };
    let Ok(content) =
        stored(blocks.file(), (start, info.offset(number + 1).unwrap_or(info.stored_length)), cx)
    else {
        return false;
    };
    content.is_empty() || info.compressor.decompress(&content, &mut []).is_ok()
}

/// Finds the chunks of `file`, a Data.db whose CompressionInfo.db has these bytes. `None` if they cannot be found.
pub(crate) fn recovered(
    file: &BlockFile,
    info: &[u8],
    version: Version,
    cx: &mut ReadContext,
) -> Result<Option<CompressionInfo>> {
    if version.may_have_dictionary() {
        return Ok(None);
    }
    let stated = Stated::parse(info, version);
    let Some(offsets) = offsets(file, &stated.offsets, cx) else { return Ok(None) };
    let chunks = sample(file, &offsets, cx);
    let Some((compressor, chunk_bytes, max)) = codec(&stated, &chunks) else { return Ok(None) };
    let last = offsets.last().and_then(|last| stored(file, (*last, file.size()), cx).ok());
    let before = (offsets.len() as u64).saturating_sub(1) * u64::from(chunk_bytes);
    let length = match &last {
        Some(last) => content_length((compressor, max), last).map(|len| len as u64),
        // The last chunk is damaged itself, so that its length cannot be checked.
        None => Some(stated.data_length.checked_sub(before).unwrap_or(u64::from(chunk_bytes))),
    };
    let Some(length) = length.filter(|len| *len <= u64::from(chunk_bytes)) else { return Ok(None) };
    made(file, ((compressor, chunk_bytes, max), &stated.options), &offsets, before + length).map(Some)
}

fn made(
    file: &BlockFile,
    ((compressor, chunk_bytes, max), options): ((Compressor, u32, u32), &BTreeMap<String, String>),
    offsets: &[u64],
    data_length: u64,
) -> Result<CompressionInfo> {
    let params = CompressionParams {
        class: Some(compressor.class_name().to_owned()),
        chunk_bytes,
        max_compressed_bytes: max,
        options: options.clone(),
    };
    let mut info = CompressionInfo::new(&params, compressor.class_name(), file.path())?;
    for offset in offsets {
        info.push(*offset, file.path())?;
    }
    (info.data_length, info.stored_length) = (data_length, file.size());
    Ok(info)
}

/// The starts of all chunks. `stated` are those of CompressionInfo.db, of which some may be wrong.
fn offsets(file: &BlockFile, stated: &[u64], cx: &mut ReadContext) -> Option<Vec<u64>> {
    let (mut offsets, mut at) = (Vec::new(), 0);
    let mut stated: Vec<u64> = stated.iter().copied().filter(|offset| *offset < file.size()).collect();
    stated.sort_unstable();
    let mut stated = stated.into_iter().peekable();
    while at < file.size() {
        offsets.push(at);
        while stated.next_if(|offset| *offset <= at).is_some() {}
        let next = stated.peek().copied().unwrap_or(file.size());
        at = match stored(file, (at, next), cx) {
            Ok(_) => next,
            // A chunk that is damaged itself ends where CompressionInfo.db says.
            Err(()) => end_of_chunk(file, at, cx).or_else(|| stated.peek().copied())?,
        };
    }
    Some(offsets)
}

/// The position behind the chunk that begins at `start`, found by its CRC. Few chunks are longer than the first bytes
/// that are read.
fn end_of_chunk(file: &BlockFile, start: u64, cx: &mut ReadContext) -> Option<u64> {
    let sizes = [STORED_BYTES_MAX >> 8, STORED_BYTES_MAX >> 5, STORED_BYTES_MAX >> 2, STORED_BYTES_MAX];
    sizes.into_iter().find_map(|most| end_of_chunk_within(file, (start, most), cx))
}

fn end_of_chunk_within(file: &BlockFile, (start, most): (u64, usize), cx: &mut ReadContext) -> Option<u64> {
    let len = (file.size() - start).min(most as u64);
    let mut bytes = vec![0; len as usize];
    file.read_into(start, &mut bytes, cx).ok()?;
    let mut crc = Crc32::default();
    let mut behind = start + CHUNK_CRC_BYTES;
    for window in bytes.windows(1 + CHUNK_CRC_BYTES as usize) {
        let (byte, stored) = window.split_first()?;
        crc.update(std::slice::from_ref(byte));
        behind += 1;
        if stored == crc.value().to_be_bytes() {
            return Some(behind);
        }
    }
    None
}

/// The bytes of the chunk between two positions, without its CRC. An error if they are none.
fn stored(
    file: &BlockFile,
    (start, end): (u64, u64),
    cx: &mut ReadContext,
) -> std::result::Result<Vec<u8>, ()> {
    let len = end.checked_sub(start).filter(|len| *len >= CHUNK_CRC_BYTES).ok_or(())?;
    if len > STORED_BYTES_MAX as u64 {
        return Err(());
    }
    let mut bytes = vec![0; len as usize];
    file.read_into(start, &mut bytes, cx).map_err(|_| ())?;
    let crc = bytes.split_off((len - CHUNK_CRC_BYTES) as usize);
    if crc32(&bytes).to_be_bytes() == *crc { Ok(bytes) } else { Err(()) }
}

/// Some sound chunks other than the last, or the last if there is no other, and whether they are.
fn sample(file: &BlockFile, offsets: &[u64], cx: &mut ReadContext) -> Vec<(Vec<u8>, bool)> {
    let every = (offsets.len() / TRIED_CHUNKS).max(1);
    let pairs = offsets.windows(2).step_by(every).filter_map(|pair| match pair {
        [start, end] => Some((*start, *end)),
        _ => None,
    });
    let pairs: Vec<(u64, u64)> = pairs.collect();
    let mut chunks: Vec<_> =
        pairs.into_iter().filter_map(|pair| Some((stored(file, pair, cx).ok()?, true))).collect();
    if chunks.is_empty()
        && let Some(only) = offsets.last().and_then(|last| stored(file, (*last, file.size()), cx).ok())
    {
        chunks.push((only, false));
    }
    chunks
}

/// The compressor, the chunk length and the length from which chunks are stored uncompressed, with which most of the
/// chunks can be read.
fn codec(stated: &Stated, chunks: &[(Vec<u8>, bool)]) -> Option<(Compressor, u32, u32)> {
    let usual = [
        Compressor::Lz4,
        Compressor::Snappy,
        Compressor::Deflate,
        Compressor::Zstd { level: 3 },
        Compressor::Noop,
    ];
    let is_length = |len: &u32| len.is_power_of_two() && *len as usize <= CONTENT_BYTES_MAX;
    let chunk_lengths: Vec<u32> =
        [stated.chunk_bytes].into_iter().filter(is_length).chain(CHUNK_BYTES).collect();
    let mut best: Option<(usize, (Compressor, u32, u32))> = None;
    for compressor in stated.class.into_iter().chain(usual) {
        let lengths: Vec<Option<usize>> =
            chunks.iter().map(|(bytes, _)| content_length((compressor, i32::MAX as u32), bytes)).collect();
        for chunk_bytes in &chunk_lengths {
            // Compressed chunks contain their lengths, but a chunk that is stored uncompressed can have any.
            let most = [i32::MAX as u32, *chunk_bytes, stated.max_compressed_bytes];
            for max in most.into_iter().filter(|max| *max > 0) {
                let is_read = |((bytes, is_full), length): &(&(Vec<u8>, bool), &Option<usize>)| {
                    let length = if bytes.len() >= max as usize { Some(bytes.len()) } else { **length };
                    length.is_some_and(|length| match is_full {
                        true => length == *chunk_bytes as usize,
                        false => length <= *chunk_bytes as usize,
                    })
                };
                let read = chunks.iter().zip(&lengths).filter(is_read).count();
                if read > 0 && best.is_none_or(|(most, _)| read > most) {
                    best = Some((read, (compressor, *chunk_bytes, max)));
                }
                if read == chunks.len() && read > 0 {
                    return best.map(|(_, found)| found);
                }
            }
        }
    }
    best.map(|(_, found)| found)
}

/// The most bytes of a chunk before compression: the longest chunk length that is tried.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// The number of bytes to which a chunk decompresses; `None` if it does not.
fn content_length((compressor, max): (Compressor, u32), bytes: &[u8]) -> Option<usize> {
    if bytes.len() >= max as usize {
        return Some(bytes.len());
    }
    match compressor.decompress(bytes, &mut vec![0; CONTENT_BYTES_MAX]) {
        Ok(()) => Some(CONTENT_BYTES_MAX),
        Err(CodecError::WrongLength { found, .. }) if found <= CONTENT_BYTES_MAX => {
            compressor.decompress(bytes, &mut vec![0; found]).is_ok().then_some(found)
        }
        Err(_) => None,
    }
}

impl Stated {
    fn parse(bytes: &[u8], version: Version) -> Stated {
        let mut stated = Stated::default();
        let _cut = stated.read(bytes, version);
        stated
    }

    fn read(&mut self, mut rest: &[u8], version: Version) -> Option<()> {
        fn text(rest: &mut &[u8]) -> Option<String> {
            let length = u16::from_be_bytes(rest.split_off(..2)?.try_into().ok()?);
            String::from_utf8(rest.split_off(..usize::from(length))?.to_vec()).ok()
        }
        fn number(rest: &mut &[u8]) -> Option<u32> {
            Some(u32::from_be_bytes(rest.split_off(..4)?.try_into().ok()?))
        }
        let class = text(&mut rest)?;
        let mut options = BTreeMap::new();
        for _ in 0..number(&mut rest)? {
            options.insert(text(&mut rest)?, text(&mut rest)?);
        }
        self.class = Compressor::of(&class, &options, std::path::Path::new("")).ok();
        if self.class.is_some() {
            self.options = options;
        }
        self.chunk_bytes = number(&mut rest)?;
        self.max_compressed_bytes = match version.has_max_compressed_length() {
            true => number(&mut rest)?.min(i32::MAX as u32),
            false => i32::MAX as u32,
        };
        self.data_length = u64::from_be_bytes(rest.split_off(..8)?.try_into().ok()?);
        let _count = number(&mut rest)?;
        let (offsets, _) = rest.as_chunks::<8>();
        self.offsets = offsets.iter().map(|offset| u64::from_be_bytes(*offset)).collect();
        Some(())
    }
}
