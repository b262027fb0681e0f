//! The components of an SSTable: a file each, named by the SSTable's prefix and the component's name.

use crate::version::{Format, Version};
use std::fmt;

/// A component that is known here. TOC.txt may name others, which are kept but not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// The partitions.
    Data,
    /// Of BTI: trie from partition keys to their places.
    Partitions,
    /// Of BTI: tries from clusterings to places within wide partitions; empty when there are none.
    Rows,
    /// Of BIG: partition keys with their places, and places within wide partitions.
    Index,
    /// Of BIG: every so many keys of Index.db with their places there. Made again where it is missing.
    Summary,
    /// Bloom filter over partition keys.
    Filter,
    /// What is known of the content, and its encoding.
    Statistics,
    /// Chunks of a compressed Data.db.
    CompressionInfo,
    /// CRC32 of Data.db, decimal.
    Digest,
    /// CRC32 of each block of an uncompressed Data.db.
    Crc,
    /// The list of components.
    Toc,
    /// Ours: CRC32 of each 4 KiB page of the components that have no checksum; Cassandra takes it as custom.
    PageChecksums,
}

impl Component {
    /// All of them.
    pub const ALL: [Component; 12] = [
        Component::Data,
        Component::Partitions,
        Component::Rows,
        Component::Index,
        Component::Summary,
        Component::Filter,
        Component::Statistics,
        Component::CompressionInfo,
        Component::Digest,
        Component::Crc,
        Component::Toc,
        Component::PageChecksums,
    ];

    /// Its name, as in file names and TOC.txt.
    pub fn name(self) -> &'static str {
        match self {
            Component::Data => "Data.db",
            Component::Partitions => "Partitions.db",
            Component::Rows => "Rows.db",
            Component::Index => "Index.db",
            Component::Summary => "Summary.db",
            Component::Filter => "Filter.db",
            Component::Statistics => "Statistics.db",
            Component::CompressionInfo => "CompressionInfo.db",
            Component::Digest => "Digest.crc32",
            Component::Crc => "CRC.db",
            Component::Toc => "TOC.txt",
            Component::PageChecksums => "PageChecksums.db",
        }
    }

    /// A component by its name; `None` for one that is not known here.
    pub fn parse(name: &str) -> Option<Component> {
        Component::ALL.into_iter().find(|component| component.name() == name)
    }

    /// Those that tables of a version can have.
    pub fn all_of(version: Version) -> impl Iterator<Item = Component> {
        Component::ALL.into_iter().filter(move |component| component.is_of(version))
    }

    /// Whether tables of this version can have it.
    pub fn is_of(self, version: Version) -> bool {
        match self {
            Component::Partitions | Component::Rows => version.format() == Format::Bti,
            Component::Index | Component::Summary => version.format() == Format::Big,
            _ => true,
        }
    }

    /// Whether an SSTable that had it cannot be read without it. What other programs have beside an SSTable is not needed either.
    pub fn is_needed(self) -> bool {
        match self {
            Component::Data
            | Component::Partitions
            | Component::Rows
            | Component::Index
            | Component::Statistics
            | Component::CompressionInfo => true,
            Component::Summary
            | Component::Filter
            | Component::Digest
            | Component::Crc
            | Component::Toc
            | Component::PageChecksums => false,
        }
    }

    /// Whether our page checksums cover it in tables of this version: it has no checksum of its own.
    pub fn is_page_checksummed(self, version: Version) -> bool {
        match self {
            Component::Partitions
            | Component::Rows
            | Component::Index
            | Component::Summary
            | Component::Filter
            | Component::CompressionInfo => true,
            Component::Statistics => !version.has_statistics_checksums(),
            Component::Data
            | Component::Digest
            | Component::Crc
            | Component::Toc
            | Component::PageChecksums => false,
        }
    }
}

/// Whether a component of this name is of an index that a node keeps beside the SSTable: storage-attached (`Version.fileNameFormatter`
/// of SAI) or SASI (`ColumnIndex`). Indexes are made anew here; a TOC.txt names such components also when the index, or this SSTable's
/// part of it, is not there.
pub fn is_of_an_index(name: &str) -> bool {
    name.starts_with("SAI+") || name.starts_with("SI_")
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
