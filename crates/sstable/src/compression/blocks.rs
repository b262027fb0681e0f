//! Reads a chunk of Data.db: from the cache, or from the file with CRC check and decompression.
//!
//! If a read states which part of a chunk it needs, only that part is read and decompressed, provided that the chunk
//! was written in pieces and that the cache would not keep the whole chunk.

use super::fronts::Fronts;
use super::info::{CHUNK_CRC_BYTES, Chunk, CompressionInfo};
use super::known_pieces::{Known, KnownPieces};
use super::lz4;
use super::pieces::{Part, Pieces};
use crate::block::{Block, BlockFile, ReadContext};
use crate::checksum::crc32;
use crate::error::Result;
use crate::stopwatch::Stage;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The largest buffer that is kept for the next read. Each thread has one.
const KEPT_BYTES_MAX: usize = 256 << 10;

thread_local! {
    // Reused, so that a read allocates only the block that it returns.
    static STORED: RefCell<Stored> = RefCell::default();
}

/// The bytes of a file that were read last: stored bytes of one chunk, or of parts of neighbouring chunks.
#[derive(Default)]
struct Stored {
    bytes: Vec<u8>,
    /// The file that they belong to. File numbers do not identify it, because they are unique only in one database.
    of: Weak<Identity>,
    /// Their offsets in the file.
    place: Range<u64>,
}

/// Identifies an open file: its address is not used again while a `Weak` to it exists.
struct Identity;

impl Stored {
    /// The bytes from `at` on, including the spare ones.
    fn from(&self, at: usize) -> &[u8] {
        self.bytes.get(at..).unwrap_or_default()
    }
}

/// Spare bytes after everything that was ever read, which stay 0. Decompression of a part may read beyond it, for the
/// length of a sequence that is not used; it reads on as long as it finds bytes of 255.
const SPARE_BYTES: usize = 32;

/// How a chunk that is not cached is to be loaded.
enum Had {
    /// Already loaded: the part that the read extent covers, and the offset in the chunk at which the part begins.
    Part(Block, usize),
    /// From its start to the end of the read extent, because it has no pieces.
    Front,
    /// Whole: it was missed not long ago, so the cache will keep it; or it is stored uncompressed; or the read extent
    /// covers all of its pieces; or parts were not enough too often.
    Whole,
}

/// A compressed data file. The cache keeps decompressed chunks by file number and chunk number.
pub struct CompressedBlocks {
    file: BlockFile,
    info: CompressionInfo,
    fronts: Fronts,
    pieces: KnownPieces,
    parts: Fronts,
    identity: Arc<Identity>,
}

impl CompressedBlocks {
    /// Combines an open Data.db with its CompressionInfo.
    pub fn new(file: BlockFile, info: CompressionInfo) -> CompressedBlocks {
        let file = file.with_blocks(info.chunk_count());
        let in_pieces = if info.compressor.has_pieces() { info.chunk_count() } else { 0 };
        let pieces = KnownPieces::of(in_pieces, file.cache().clone());
        CompressedBlocks {
            file,
            info,
            fronts: Fronts::default(),
            pieces,
            parts: Fronts::default(),
            identity: Arc::new(Identity),
        }
    }

    /// The file.
    pub fn file(&self) -> &BlockFile {
        &self.file
    }

    /// The chunks and how they are compressed.
    pub fn info(&self) -> &CompressionInfo {
        &self.info
    }

    /// See `DataBlocks::block`. `Corrupt` carries the chunk's offset in the file if its CRC or its length is wrong.
    pub fn block(&self, position: u64, foreseen: &Range<u64>, cx: &mut ReadContext) -> Result<(Block, u64)> {
        let number = position / u64::from(self.info.chunk_bytes);
        let start = number * u64::from(self.info.chunk_bytes);
        let end = usize::try_from(foreseen.end.saturating_sub(start)).unwrap_or(usize::MAX);
        let may_be_part = foreseen.end < u64::MAX && cx.fill_cache && !self.file.cache().has_room();
        if may_be_part {
            self.pieces.prefetch(number);
        }
        let has_all = |block: &Block| self.has(block.len(), number, end);
        let mut kept = self.file.kept(number, (position - start) as usize);
        if kept.as_ref().is_some_and(|block| !has_all(block)) {
            kept = self.file.kept_by_cache(number);
        }
        let is_whole = match kept {
            Some(block) if has_all(&block) => {
                cx.touched.blocks_cached += 1;
                cx.touched.block_bytes += block.len() as u64;
                return Ok((block, start));
            }
            Some(short) => {
                // A scan, which does not fill the cache, found the block here by chance.
                if cx.fill_cache {
                    self.fronts.fell_short(short.len());
                }
                true
            }
            None => foreseen.end == u64::MAX,
        };
        STORED.with_borrow_mut(|stored| {
            let mut bytes = if is_whole { usize::MAX } else { end };
            if may_be_part
                && !is_whole
                && let Some(known) = self.pieces.of_chunk(number)
            {
                match self.part((number, known), foreseen, stored, cx)? {
                    Had::Part(block, from) => return Ok((block, start + from as u64)),
                    Had::Front => {}
                    Had::Whole => bytes = usize::MAX,
                }
            }
            let block = self.load(number, bytes, stored, cx)?;
            if stored.bytes.capacity() > KEPT_BYTES_MAX {
                *stored = Stored::default();
            }
            if cx.fill_cache {
                self.file.keep(number, block.clone());
            }
            Ok((block, start))
        })
    }

    /// See `DataBlocks::fell_short`. A cached block is counted when `block` finds it too short.
    pub(super) fn fell_short(&self, number: u64, bytes: usize, in_same_read: bool) {
        let is_in_pieces = |known: &Known| known.pieces.get().is_some_and(Pieces::are_several);
        if self.file.kept(number, usize::MAX).is_none() {
            match self.pieces.of_chunk(number).is_some_and(is_in_pieces) {
                // The rest is loaded after all, and by another read of the file.
                true if in_same_read => self.parts.fell_short(2 * self.info.chunk_bytes as usize),
                true => {}
                false => self.fronts.fell_short(bytes),
            }
        }
    }

    /// Whether the first `bytes` of a chunk include the `wanted` first bytes, or are the whole chunk.
    fn has(&self, bytes: usize, number: u64, wanted: usize) -> bool {
        bytes >= wanted.min(self.info.chunk_bytes as usize)
            || self.info.chunk(number).is_some_and(|chunk| bytes == chunk.data_bytes)
    }

    /// Loads the part of a chunk that the read extent covers, unless the chunk is to be loaded in another way.
    fn part(
        &self,
        (number, known): (u64, &Known),
        foreseen: &Range<u64>,
        stored: &mut Stored,
        cx: &mut ReadContext,
    ) -> Result<Had> {
        let cache = self.file.cache();
        let (last, miss) = (known.missed.load(Ordering::Relaxed), cache.count_miss());
        if last > 0 && miss.wrapping_sub(last) < cache.misses_between() {
            return Ok(Had::Whole);
        }
        let Some(chunk) =
            self.info.chunk(number).filter(|chunk| !self.info.is_stored_plain(chunk.stored_bytes))
        else {
            return Ok(Had::Whole);
        };
        let wanted = self.within(number, &chunk, foreseen);
        let (pieces, is_new) = match known.pieces.get() {
            Some(pieces) => (pieces, false),
            None => {
                let content = self.stored(&chunk, stored, cx)?;
                (known.pieces.get_or_init(|| Pieces::find(content, chunk.data_bytes)), true)
            }
        };
        if is_new {
            self.pieces.found(pieces);
        }
        let Some(part) = pieces.part(&wanted, chunk.stored_bytes) else {
            return Ok(if pieces.are_several() { Had::Whole } else { Had::Front });
        };
        let at = |stored: usize| chunk.offset + stored as u64;
        let bytes = wanted.end.saturating_sub(part.data_at);
        if self.parts.bytes(bytes, chunk.data_bytes) > bytes {
            return Ok(Had::Whole);
        }
        let content = match is_new {
            true => {
                let at = self.read(at(part.stored.start)..at(chunk.stored_bytes), stored, cx)?;
                stored.from(at)
            }
            false => self.stored_part((number, &chunk, pieces), (&part, foreseen), stored, cx)?,
        };
        cx.touched.blocks_read += 1;
        let before = cx.enter(Stage::Decompress);
        let mut block = cache.room(bytes);
        lz4::decompress_from(content.get(part.prefix..).unwrap_or_default(), &mut block)
            .map_err(|source| self.file.corrupt(chunk.offset, source.to_string()))?;
        cx.touched.blocks_decompressed += 1;
        cx.touched.bytes_decompressed += block.len() as u64;
        cx.touched.block_bytes += block.len() as u64;
        cx.leave(before);
        known.missed.store(miss.max(1), Ordering::Relaxed);
        Ok(Had::Part(block.share(), part.data_at))
    }

    /// The part of a chunk that the read extent covers, as offsets in the chunk.
    fn within(&self, number: u64, chunk: &Chunk, foreseen: &Range<u64>) -> Range<usize> {
        let start = number * u64::from(self.info.chunk_bytes);
        let within = |place: u64| place.saturating_sub(start).min(chunk.data_bytes as u64) as usize;
        within(foreseen.start)..within(foreseen.end)
    }

    /// Reads the stored bytes of a chunk, and checks them.
    fn stored<'s>(&self, chunk: &Chunk, stored: &'s mut Stored, cx: &mut ReadContext) -> Result<&'s [u8]> {
        let with_crc = chunk.offset + chunk.stored_bytes as u64 + CHUNK_CRC_BYTES;
        let at = self.read(chunk.offset..with_crc, stored, cx)?;
        let before = cx.enter(Stage::Decompress);
        let (content, crc) = stored.from(at).split_at(chunk.stored_bytes);
        if crc.first_chunk() != Some(&crc32(content).to_be_bytes()) {
            // The next read must read the file again.
            stored.place = 0..0;
            return Err(self.file.corrupt(chunk.offset, "the chunk's checksum does not match"));
        }
        cx.leave(before);
        Ok(stored.bytes.get(at..at + chunk.stored_bytes).unwrap_or_default())
    }

    /// Reads the stored bytes of a part, and checks them. Spare bytes follow them.
    fn stored_part<'s>(
        &self,
        (number, chunk, pieces): (u64, &Chunk, &Pieces),
        (part, foreseen): (&Part, &Range<u64>),
        stored: &'s mut Stored,
        cx: &mut ReadContext,
    ) -> Result<&'s [u8]> {
        let place = chunk.offset + part.stored.start as u64..chunk.offset + part.stored.end as u64;
        if !self.is_held(&place, stored) {
            self.read(self.with_neighbours(number, place.clone(), foreseen), stored, cx)?;
        }
        let at = self.read(place.clone(), stored, cx)?;
        let before = cx.enter(Stage::Decompress);
        if !pieces.are(part, stored.from(at), chunk.stored_bytes) {
            stored.place = 0..0;
            let problem = "the checksum of a piece of the chunk does not match";
            return Err(self.file.corrupt(place.start, problem));
        }
        cx.leave(before);
        Ok(stored.from(at))
    }

    /// The file range of a chunk's part and of the parts of its neighbours that the read extent covers, so that one
    /// call reads all of them.
    fn with_neighbours(&self, number: u64, place: Range<u64>, foreseen: &Range<u64>) -> Range<u64> {
        let part = |number: u64| {
            let chunk = self.info.chunk(number)?;
            let wanted = self.within(number, &chunk, foreseen);
            let pieces = self.pieces.of_chunk(number)?.pieces.get().filter(|_| !wanted.is_empty())?;
            let part = pieces.part(&wanted, chunk.stored_bytes)?;
            Some(chunk.offset + part.stored.start as u64..chunk.offset + part.stored.end as u64)
        };
        let start = number * u64::from(self.info.chunk_bytes);
        let is_before = foreseen.start < start;
        let before = is_before.then(|| part(number.checked_sub(1)?)).flatten();
        let is_behind = foreseen.end > start + u64::from(self.info.chunk_bytes);
        let behind = is_behind.then(|| part(number + 1)).flatten();
        before.map_or(place.start, |before| before.start)..behind.map_or(place.end, |behind| behind.end)
    }

    /// Whether a range of the file is among the bytes that were read last.
    fn is_held(&self, place: &Range<u64>, stored: &Stored) -> bool {
        let Stored { of, place: held, .. } = stored;
        held.start <= place.start && place.end <= held.end && of.as_ptr() == Arc::as_ptr(&self.identity)
    }

    /// Reads a range of the file, unless it is among the bytes that were read last, and returns its offset in
    /// `stored.bytes`. Spare bytes follow it.
    fn read(&self, place: Range<u64>, stored: &mut Stored, cx: &mut ReadContext) -> Result<usize> {
        if !self.is_held(&place, stored) {
            let len = (place.end - place.start) as usize;
            if stored.bytes.len() < len + SPARE_BYTES {
                stored.bytes.resize(len + SPARE_BYTES, 0);
            }
            stored.place = 0..0;
            self.file.read_into(place.start, stored.bytes.get_mut(..len).unwrap_or_default(), cx)?;
            stored.place = place.clone();
            if stored.of.as_ptr() != Arc::as_ptr(&self.identity) {
                stored.of = Arc::downgrade(&self.identity);
            }
        }
        Ok((place.start - stored.place.start) as usize)
    }

    fn load(&self, number: u64, wanted: usize, stored: &mut Stored, cx: &mut ReadContext) -> Result<Block> {
        let Some(chunk) = self.info.chunk(number) else {
            let offset = number.saturating_mul(u64::from(self.info.chunk_bytes));
            return Err(self.file.corrupt(offset, format!("there is no chunk {number}")));
        };
        if !cx.fill_cache {
            // Such a read may check what the file contains now, so it must not use bytes that were read before.
            stored.place = 0..0;
        }
        let content = self.stored(&chunk, stored, cx)?;
        cx.touched.blocks_read += 1;
        let before = cx.enter(Stage::Decompress);
        let is_plain = self.info.is_stored_plain(chunk.stored_bytes);
        let has_front = !is_plain && self.info.compressor.has_fronts();
        let bytes = if has_front { self.fronts.bytes(wanted, chunk.data_bytes) } else { chunk.data_bytes };
        let mut block = self.file.cache().room(bytes);
        let out = &mut *block;
        if is_plain {
            let Some(plain) = content.get(..out.len()) else {
                return Err(self.file.corrupt(chunk.offset, "the chunk is shorter than its content"));
            };
            out.copy_from_slice(plain);
        } else {
            self.info
                .decompress_front(content, chunk.data_bytes, out)
                .map_err(|source| self.file.corrupt(chunk.offset, source.to_string()))?;
            cx.touched.blocks_decompressed += 1;
            cx.touched.bytes_decompressed += out.len() as u64;
        }
        cx.touched.block_bytes += block.len() as u64;
        cx.leave(before);
        Ok(block.share())
    }
}
