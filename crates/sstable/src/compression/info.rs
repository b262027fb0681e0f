//! Reads and writes CompressionInfo.db, which describes how Data.db is compressed and where its chunks begin.
//!
//! Layout (Cassandra's `CompressionMetadata`, big endian): class name (u16 length, text), option count (i32) and
//! options (text, text), chunk length (i32), largest compressed length (i32, from `na` on), data length (i64), chunk
//! count (i32), an offset (i64) for each chunk. From `pa` on a dictionary may follow (`dictionary`). The file contains
//! no checksum; our page checksums cover it.

use super::compressor::{CodecError, Compressor};
use super::dictionary::{self, Dictionary};
use super::offsets::Offsets;
use crate::block::{BlockFile, ReadContext};
use crate::error::{Error, Result};
use crate::version::Version;
use helenus_model::schema::CompressionParams;
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of the CRC32 that follows every chunk.
pub(super) const CHUNK_CRC_BYTES: u64 = 4;

/// The largest chunk length that Cassandra writes: the largest power of two that its `int` holds.
const CASSANDRAS_CHUNK_BYTES_MAX: u32 = 1 << 30;

/// Number of offsets that `write` passes to its sink at once.
const WRITTEN_AT_ONCE: usize = 8 * 1024;

/// How a data file is compressed and where its chunks begin.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionInfo {
    /// The compressor, made from the class name and the options.
    pub compressor: Compressor,
    /// The options as text, as the file holds them.
    pub options: BTreeMap<String, String>,
    /// Size of a chunk in bytes before compression; a power of two.
    pub chunk_bytes: u32,
    /// A chunk whose stored length is at least this is stored uncompressed (`i32::MAX`: no chunk is).
    pub max_compressed_bytes: u32,
    /// Size of the data in bytes before compression.
    pub data_length: u64,
    /// Size of Data.db in bytes.
    pub stored_length: u64,
    /// The dictionary with which the chunks are compressed, in files of Cassandra 6.0.
    pub dictionary: Option<Dictionary>,
    offsets: Offsets,
}

/// Where a chunk lies in Data.db, and its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The offset in Data.db at which it begins.
    pub offset: u64,
    /// Its stored size in bytes, without the CRC that follows.
    pub stored_bytes: usize,
    /// Its size in bytes after decompression.
    pub data_bytes: usize,
}

impl CompressionInfo {
    /// The description of an empty file. Its writer adds each chunk with `push` and sets the lengths. Errors, which
    /// name `file`: `Unsupported` for an unknown class or a chunk length that is not a power of two.
    pub fn new(params: &CompressionParams, class: &str, file: &Path) -> Result<CompressionInfo> {
        let compressor = Compressor::of(class, &params.options, file)?;
        let chunk_bytes = params.chunk_bytes;
        if !is_chunk_length(chunk_bytes) {
            return Err(unsupported_length(chunk_bytes, file));
        }
        Ok(CompressionInfo {
            compressor,
            options: params.options.clone(),
            chunk_bytes,
            max_compressed_bytes: params.max_compressed_bytes.min(i32::MAX as u32),
            data_length: 0,
            stored_length: 0,
            dictionary: None,
            offsets: Offsets::default(),
        })
    }

    /// The parameters with which a file like this one is written.
    pub(super) fn params(&self) -> CompressionParams {
        CompressionParams {
            class: Some(self.compressor.class_name().to_owned()),
            chunk_bytes: self.chunk_bytes,
            max_compressed_bytes: self.max_compressed_bytes,
            options: self.options.clone(),
        }
    }

    /// Adds the chunk that begins at `offset` of Data.db.
    pub(super) fn push(&mut self, offset: u64, file: &Path) -> Result<()> {
        if self.offsets.push(offset) {
            return Ok(());
        }
        Err(Error::Corrupt { file: file.to_owned(), offset, problem: "chunk offsets do not ascend".into() })
    }

    /// Number of chunks, including empty ones at the end.
    pub fn chunk_count(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// The offset in Data.db at which a chunk begins.
    pub(super) fn offset(&self, number: u64) -> Option<u64> {
        self.offsets.get(usize::try_from(number).ok()?)
    }

    /// The chunk with this number; `None` after the last one that holds data, or if its offset or length is impossible.
    pub fn chunk(&self, number: u64) -> Option<Chunk> {
        let index = usize::try_from(number).ok()?;
        let offset = self.offsets.get(index)?;
        let next = self.offsets.get(index + 1).unwrap_or(self.stored_length);
        let stored = next.checked_sub(offset)?.checked_sub(CHUNK_CRC_BYTES)?;
        let chunk_bytes = u64::from(self.chunk_bytes);
        let data = self.data_length.checked_sub(number.checked_mul(chunk_bytes)?)?.min(chunk_bytes);
        if data == 0 {
            return None;
        }
        let most = self.compressor.bound(self.chunk_bytes as usize).max(self.chunk_bytes as usize);
        let stored_bytes = usize::try_from(stored).ok().filter(|len| (1..=most).contains(len))?;
        Some(Chunk { offset, stored_bytes, data_bytes: data as usize })
    }

    /// Whether a chunk of this stored length holds its bytes uncompressed.
    pub fn is_stored_plain(&self, stored_bytes: usize) -> bool {
        stored_bytes >= self.max_compressed_bytes as usize
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let dictionary = self.dictionary.as_ref().map_or(0, Dictionary::memory_bytes);
        size_of::<CompressionInfo>() + self.offsets.memory_bytes() + dictionary
    }

    /// Decompresses the first `out.len()` bytes of a chunk of `whole` bytes. `out` must take the whole chunk if the
    /// compressor has no partial decompression or there is a dictionary.
    pub(super) fn decompress_partial(
        &self,
        input: &[u8],
        whole: usize,
        out: &mut [u8],
    ) -> std::result::Result<(), CodecError> {
        match &self.dictionary {
            Some(dictionary) => dictionary.decompress(input, out),
            None => self.compressor.decompress_partial(input, whole, out),
        }
    }

    /// Writes the component in the layout of `version`, in pieces of about 64 KiB. A version that does not store
    /// `max_compressed_bytes` is right only if that is `i32::MAX`.
    pub fn write(&self, version: Version, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut out = Vec::new();
        let text = |text: &str, out: &mut Vec<u8>| {
            out.extend_from_slice(&(text.len() as u16).to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        };
        text(self.compressor.class_name(), &mut out);
        out.extend_from_slice(&(self.options.len() as u32).to_be_bytes());
        for (name, value) in &self.options {
            text(name, &mut out);
            text(value, &mut out);
        }
        out.extend_from_slice(&self.chunk_bytes.to_be_bytes());
        if version.has_max_compressed_length() {
            out.extend_from_slice(&self.max_compressed_bytes.to_be_bytes());
        }
        out.extend_from_slice(&self.data_length.to_be_bytes());
        out.extend_from_slice(&(self.offsets.len() as u32).to_be_bytes());
        for index in 0..self.offsets.len() {
            if index % WRITTEN_AT_ONCE == WRITTEN_AT_ONCE - 1 {
                sink(&out)?;
                out.clear();
            }
            out.extend_from_slice(&self.offsets.get(index).unwrap_or(0).to_be_bytes());
        }
        sink(&out)
    }

    /// Reads the component in the layout of `version`, for a Data.db of `stored_length` bytes.
    pub fn read(file: &BlockFile, stored_length: u64, version: Version) -> Result<CompressionInfo> {
        let mut input = Input { file, block: None, at: 0 };
        let class = input.text()?;
        let mut options = BTreeMap::new();
        for _ in 0..input.u32()? {
            options.insert(input.text()?, input.text()?);
        }
        // Reading needs no level: a strange one does not make the file unreadable.
        let compressor = Compressor::of(&class, &options, file.path());
        let compressor = compressor.or_else(|_| Compressor::of(&class, &BTreeMap::new(), file.path()))?;
        let chunk_bytes = input.u32()?;
        let max_compressed_bytes =
            if version.has_max_compressed_length() { input.u32()? } else { i32::MAX as u32 };
        let data_length = input.u64()?;
        let count = input.u32()?;
        if !is_chunk_length(chunk_bytes) {
            let may_be = chunk_bytes.is_power_of_two() && chunk_bytes <= CASSANDRAS_CHUNK_BYTES_MAX;
            return Err(match may_be {
                true => unsupported_length(chunk_bytes, file.path()),
                false => file.corrupt(0, format!("chunk length {chunk_bytes}")),
            });
        }
        // There may be more chunks: Cassandra's compaction ends a file with an empty chunk.
        if data_length.div_ceil(u64::from(chunk_bytes)) > u64::from(count) {
            let problem = format!("{count} chunks of {chunk_bytes} bytes for {data_length} bytes of data");
            return Err(file.corrupt(input.at, problem));
        }
        let rest = (file.size() - input.at.min(file.size())).checked_sub(u64::from(count) * 8);
        let Some(behind) = rest.filter(|rest| *rest == 0 || version.may_have_dictionary()) else {
            return Err(file.corrupt(input.at, format!("the file does not hold {count} chunk offsets")));
        };
        let mut offsets = Offsets::with_capacity(count as usize);
        for _ in 0..count {
            let at = input.at;
            let offset = input.u64()?;
            if offset >= stored_length || !offsets.push(offset) {
                return Err(file.corrupt(at, format!("chunk offset {offset} cannot be")));
            }
        }
        let dictionary = input.dictionary(behind)?;
        let max_compressed_bytes = max_compressed_bytes.min(i32::MAX as u32);
        Ok(CompressionInfo {
            compressor,
            options,
            chunk_bytes,
            max_compressed_bytes,
            data_length,
            stored_length,
            dictionary,
            offsets,
        })
    }
}

/// Whether chunks of this length are read and written. The bound limits what a damaged file can make us allocate.
fn is_chunk_length(bytes: u32) -> bool {
    bytes.is_power_of_two() && bytes <= CompressionParams::CHUNK_BYTES_MAX
}

fn unsupported_length(bytes: u32, file: &Path) -> Error {
    let most = CompressionParams::CHUNK_BYTES_MAX >> 20;
    let what = format!("chunk length {bytes}; a power of two up to {most} MiB is supported");
    Error::Unsupported { file: file.to_owned(), what }
}

/// Reads numbers and texts across the blocks of a file, one block at a time, without filling the cache.
struct Input<'a> {
    file: &'a BlockFile,
    block: Option<(u64, crate::buffer::Block)>,
    at: u64,
}

impl Input<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    fn fill(&mut self, mut out: &mut [u8]) -> Result<()> {
        let block_bytes = self.file.block_bytes() as u64;
        while !out.is_empty() {
            let number = self.at / block_bytes;
            if self.block.as_ref().is_none_or(|(kept, _)| *kept != number) {
                let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
                self.block = Some((number, self.file.block(number, &mut cx)?));
            }
            let within = (self.at % block_bytes) as usize;
            let rest = self.block.as_ref().and_then(|(_, block)| block.get(within..)).unwrap_or(&[]);
            let len = rest.len().min(out.len());
            if len == 0 {
                return Err(self.file.corrupt(self.at, "the file ends too early"));
            }
            let (now, later) = out.split_at_mut(len);
            now.copy_from_slice(rest.get(..len).unwrap_or(&[]));
            out = later;
            self.at += len as u64;
        }
        Ok(())
    }

    /// The dictionary in the last `bytes` bytes of the file; `None` if `bytes` is 0.
    fn dictionary(&mut self, bytes: u64) -> Result<Option<Dictionary>> {
        let at = self.at;
        if bytes == 0 {
            return Ok(None);
        }
        if bytes > dictionary::BYTES_MAX {
            return Err(self.file.corrupt(at, format!("{bytes} bytes behind the chunk offsets")));
        }
        let mut stored = vec![0; bytes as usize];
        self.fill(&mut stored)?;
        Dictionary::parse(&stored).map(Some).map_err(|problem| self.file.corrupt(at, problem))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.bytes()?))
    }

    fn text(&mut self) -> Result<String> {
        let len = u16::from_be_bytes(self.bytes()?);
        let mut bytes = vec![0; usize::from(len)];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.file.corrupt(self.at, "text is not UTF-8"))
    }
}
