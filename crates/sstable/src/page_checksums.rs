//! PageChecksums.db, a component of our own: the CRC32 of each 4 KiB page of the components that have no checksum.
//!
//! Layout, big endian: magic `HelenusP`, layout version (u16, 1), number of components (u16); for each component its
//! name (u16 length, text), its size (u64) and a CRC32 for each page (u32; the last page may be shorter); CRC32 of
//! everything before. It is listed in TOC.txt: Cassandra treats an unknown name as a custom component, links it into
//! snapshots and removes it with the others. Statistics.db is not covered if it has its own checksums, because
//! Cassandra rewrites it in place.

use crate::block::{PAGE_BYTES, PageChecksums};
use crate::checksum::crc32;
use crate::component::Component;
use crate::error::{Error, Result};
use crate::sequential_writer::Finished;
use std::path::Path;

const MAGIC: &[u8; 8] = b"HelenusP";
const LAYOUT: u16 = 1;

/// Checksums of one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredComponent {
    /// The component's name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// CRC32 of each page.
    pub pages: PageChecksums,
}

/// Content of PageChecksums.db.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageChecksumTable {
    /// The covered components.
    pub components: Vec<CoveredComponent>,
}

impl PageChecksumTable {
    /// Adds a component that was written with page checksums.
    pub fn add(&mut self, component: Component, finished: &Finished) {
        let pages = PageChecksums::from(finished.page_crcs.as_slice());
        assert_eq!(pages.len() as u64, finished.size.div_ceil(PAGE_BYTES as u64), "one checksum a page");
        self.components.push(CoveredComponent {
            name: component.name().to_owned(),
            size: finished.size,
            pages,
        });
    }

    /// Adds a component from all of its bytes.
    pub fn add_bytes(&mut self, component: Component, bytes: &[u8]) {
        let page_crcs = bytes.chunks(PAGE_BYTES).map(crc32).collect();
        self.add(component, &Finished { size: bytes.len() as u64, crc32: crc32(bytes), page_crcs });
    }

    /// The checksums of a component whose file `path` has this size. `None` if it is not covered; `Corrupt` if its size
    /// was another when it was written.
    pub fn get(&self, component: Component, size: u64, path: &Path) -> Result<Option<PageChecksums>> {
        let Some(covered) = self.components.iter().find(|covered| covered.name == component.name()) else {
            return Ok(None);
        };
        if covered.size != size {
            let problem = format!("the file has {size} bytes and was written with {}", covered.size);
            return Err(Error::Corrupt { file: path.to_owned(), offset: size.min(covered.size), problem });
        }
        Ok(Some(covered.pages.clone()))
    }

    /// The component's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&LAYOUT.to_be_bytes());
        out.extend_from_slice(&(self.components.len() as u16).to_be_bytes());
        for covered in &self.components {
            out.extend_from_slice(&(covered.name.len() as u16).to_be_bytes());
            out.extend_from_slice(covered.name.as_bytes());
            out.extend_from_slice(&covered.size.to_be_bytes());
            covered.pages.iter().for_each(|crc| out.extend_from_slice(&crc.to_be_bytes()));
        }
        out.extend_from_slice(&crc32(&out).to_be_bytes());
        out
    }

    /// Parses the component. Errors, which name `file`: `Corrupt`, and `Unsupported` for the layout of a later program.
    pub fn parse(bytes: &[u8], file: &Path) -> Result<PageChecksumTable> {
        let corrupt =
            |problem: &str| Error::Corrupt { file: file.to_owned(), offset: 0, problem: problem.to_owned() };
        let Some((content, crc)) = bytes.split_last_chunk::<4>() else {
            return Err(corrupt("too short"));
        };
        if !content.starts_with(MAGIC) || *crc != crc32(content).to_be_bytes() {
            return Err(corrupt("the checksum does not match"));
        }
        let mut rest = content.get(MAGIC.len()..).unwrap_or_default();
        let layout = take_u16(&mut rest).ok_or_else(|| corrupt("too short"))?;
        if layout != LAYOUT {
            let what = format!("layout {layout} of page checksums; 1 is supported");
            return Err(Error::Unsupported { file: file.to_owned(), what });
        }
        let table = take_components(&mut rest).filter(|_| rest.is_empty());
        Ok(PageChecksumTable { components: table.ok_or_else(|| corrupt("lengths do not fit"))? })
    }
}

fn take_components(rest: &mut &[u8]) -> Option<Vec<CoveredComponent>> {
    let count = take_u16(rest)?;
    (0..count)
        .map(|_| {
            let name_len = usize::from(take_u16(rest)?);
            let name = rest.split_off(..name_len)?;
            let size = u64::from_be_bytes(rest.split_off(..8)?.try_into().ok()?);
            let page_count = usize::try_from(size.div_ceil(PAGE_BYTES as u64)).ok()?;
            let (crcs, _) = rest.split_off(..page_count.checked_mul(4)?)?.as_chunks::<4>();
            let name = String::from_utf8(name.to_vec()).ok()?;
            Some(CoveredComponent {
                name,
                size,
                pages: crcs.iter().map(|c| u32::from_be_bytes(*c)).collect(),
            })
        })
        .collect()
}

fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(rest.split_off(..2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> PageChecksumTable {
        let mut table = PageChecksumTable::default();
        table.add_bytes(Component::Rows, &[]);
        table.add_bytes(Component::Filter, &[7; PAGE_BYTES]);
        table.add_bytes(Component::Partitions, &[1; PAGE_BYTES * 2 + 1]);
        table
    }

    #[test]
    fn the_table_comes_back_and_every_flipped_bit_is_found() {
        let mut bytes = table().to_bytes();
        let file = Path::new("p");
        assert_eq!(PageChecksumTable::parse(&bytes, file).unwrap(), table());
        for at in 0..bytes.len() {
            bytes[at] ^= 4;
            assert!(PageChecksumTable::parse(&bytes, file).is_err());
            bytes[at] ^= 4;
            assert!(PageChecksumTable::parse(&bytes[..at], file).is_err());
        }
    }

    #[test]
    fn a_file_of_another_size_than_written_is_refused() {
        let file = Path::new("f");
        let table = table();
        assert_eq!(table.get(Component::Partitions, 2 * 4096 + 1, file).unwrap().unwrap().len(), 3);
        assert!(table.get(Component::Partitions, 2 * 4096, file).is_err());
        assert_eq!(table.get(Component::Data, 9, file).unwrap(), None);
    }
}
