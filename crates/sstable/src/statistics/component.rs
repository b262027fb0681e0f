//! Reads and writes Statistics.db: the table of its parts, and their checksums.
//!
//! Layout (Cassandra's `MetadataSerializer`, big endian): number of parts (i32), CRC32; for each part its type and
//! offset (i32 each); CRC32 of everything so far without the first CRC; the parts, each followed by its CRC32. Before
//! `na` there are no CRCs.

use super::cardinality::Cardinality;
use super::header::Header;
use super::input::Input;
use super::stats::Stats;
use crate::checksum::{Crc32, crc32};
use crate::error::{Error, Result};
use crate::version::Version;
use std::path::Path;

/// The partitioner of every table here.
pub const MURMUR3_PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

const PARTS: usize = 4;
/// The type of the part that has `Stats`.
const STATS_TYPE: u32 = 2;
const CRC_BYTES: usize = 4;

/// Properties that must match the table for which the file is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Class name of the partitioner.
    pub partitioner: String,
    /// Intended chance of false positives of the Bloom filter.
    pub bloom_filter_fp_chance: f64,
}

/// Content of Statistics.db.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Partitioner and filter.
    pub validation: Validation,
    /// The estimator of the number of partition keys; `None` if another program's estimator cannot be read, which does
    /// no harm.
    pub partitions: Option<Cardinality>,
    /// Statistics of the content.
    pub stats: Stats,
    /// The encoding of the rows.
    pub header: Header,
}

impl Statistics {
    /// The component's bytes in the layout of `version`.
    pub fn to_bytes(&self, version: Version) -> Vec<u8> {
        let mut validation = Vec::new();
        let name = self.validation.partitioner.as_bytes();
        validation.extend_from_slice(&(name.len() as u16).to_be_bytes());
        validation.extend_from_slice(name);
        validation.extend_from_slice(&self.validation.bloom_filter_fp_chance.to_be_bytes());
        let mut parts = [validation, Vec::new(), Vec::new(), Vec::new()];
        let [_, compaction, stats, header] = &mut parts;
        match &self.partitions {
            Some(partitions) => partitions.write(compaction),
            None => Cardinality::default().write(compaction),
        }
        self.stats.write(version, stats);
        self.header.write(header);

        let crc_bytes = if version.has_statistics_checksums() { CRC_BYTES } else { 0 };
        let mut out = (PARTS as u32).to_be_bytes().to_vec();
        let mut crc = Crc32::default();
        let put_crc = |crc: u32, out: &mut Vec<u8>| {
            out.extend_from_slice(crc.to_be_bytes().get(..crc_bytes).unwrap_or_default());
        };
        crc.update(&out);
        put_crc(crc.value(), &mut out);
        let mut offset = 4 + crc_bytes + 8 * PARTS + crc_bytes;
        for (part_type, part) in parts.iter().enumerate() {
            let entry = [(part_type as u32).to_be_bytes(), (offset as u32).to_be_bytes()].concat();
            crc.update(&entry);
            out.extend_from_slice(&entry);
            offset += part.len() + crc_bytes;
        }
        put_crc(crc.value(), &mut out);
        for part in &parts {
            out.extend_from_slice(part);
            put_crc(crc32(part), &mut out);
        }
        out
    }

    /// Parses the component in the layout of `version`. `Corrupt`, which names `file`, if a checksum does not match or
    /// if a part is missing or malformed.
    pub fn read(bytes: &[u8], version: Version, file: &Path) -> Result<Statistics> {
        let mut parts = [const { None }; PARTS];
        for (part_type, offset, part) in split(bytes, version, file)? {
            if let Some(slot) = parts.get_mut(part_type as usize) {
                *slot = Some(Input::new(part, offset as u64, file));
            }
        }
        // Cassandra's readers do not need the estimator of partitions (`SSTableReaderLoadingBuilder` reads the other
        // three parts), and ignore bytes after the known fields of a part.
        let [Some(mut validation), compaction, Some(mut stats), Some(mut header)] = parts else {
            return Err(corrupt(file, 0, "validation, stats or header is missing"));
        };
        let mut header = Header::read(&mut header)?;
        if !version.has_unsigned_deletion_times() {
            header.encoding = header.encoding.signed();
        }
        Ok(Statistics {
            validation: Validation {
                partitioner: validation.short_text()?,
                bloom_filter_fp_chance: validation.f64()?,
            },
            partitions: compaction.and_then(|mut part| Cardinality::read(&mut part).ok()),
            stats: Stats::read(&mut stats, version)?,
            header,
        })
    }
}

/// A component with another level, and all else as it is: later versions have fields that `to_bytes` does not know.
///
/// # Errors
/// As `Statistics::read`.
pub fn with_level(bytes: &[u8], version: Version, file: &Path, level: i32) -> Result<Vec<u8>> {
    let mut changed = bytes.to_vec();
    for (_, offset, part) in split(bytes, version, file)?.iter().filter(|(part, ..)| *part == STATS_TYPE) {
        let (_, at) = Stats::read_noting(&mut Input::new(part, *offset as u64, file), version)?;
        if let Some(place) = changed.get_mut(at as usize..at as usize + size_of::<i32>()) {
            place.copy_from_slice(&level.to_be_bytes());
        }
        if version.has_statistics_checksums() {
            let end = offset + part.len();
            let sum = crc32(changed.get(*offset..end).unwrap_or_default());
            if let Some(place) = changed.get_mut(end..end + CRC_BYTES) {
                place.copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
    Ok(changed)
}

/// Type, offset and bytes of each part. Verifies the checksums, if the version has any.
fn split<'a>(bytes: &'a [u8], version: Version, file: &Path) -> Result<Vec<(u32, usize, &'a [u8])>> {
    let has_crcs = version.has_statistics_checksums();
    let mut input = Input::new(bytes, 0, file);
    let count = input.u32()?;
    let mut crc = Crc32::default();
    crc.update(&count.to_be_bytes());
    if has_crcs && input.u32()? != crc.value() {
        return Err(corrupt(file, 0, "the checksum of the number of parts does not match"));
    }
    let count = input.count(u64::from(count), 8)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let (part_type, offset) = (input.u32()?, input.u32()?);
        crc.update(&part_type.to_be_bytes());
        crc.update(&offset.to_be_bytes());
        entries.push((part_type, offset as usize));
    }
    if has_crcs && input.u32()? != crc.value() {
        return Err(corrupt(file, 8, "the checksum of the table of parts does not match"));
    }
    let ends = entries.iter().skip(1).map(|(_, offset)| *offset).chain([bytes.len()]);
    let part = |((part_type, offset), end): ((u32, usize), usize)| {
        let outside = || corrupt(file, offset, "a part lies outside the file");
        let part = bytes.get(offset..end).ok_or_else(outside)?;
        if !has_crcs {
            return Ok((part_type, offset, part));
        }
        let (part, crc) = part.split_last_chunk::<CRC_BYTES>().ok_or_else(outside)?;
        if *crc != crc32(part).to_be_bytes() {
            return Err(corrupt(file, offset, "the part's checksum does not match"));
        }
        Ok((part_type, offset, part))
    };
    entries.iter().copied().zip(ends).map(part).collect()
}

fn corrupt(file: &Path, offset: usize, problem: &str) -> Error {
    Error::Corrupt { file: file.to_owned(), offset: offset as u64, problem: problem.into() }
}
