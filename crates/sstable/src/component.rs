//! The components of an SSTable. Each is a file, whose name consists of the SSTable's prefix and the component's name.

use crate::version::{Format, Version};
use std::fmt;

/// A component that is known here. TOC.txt may list others, which are kept but not interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// The partitions.
    Data,
    /// BTI only: a trie from partition keys to their positions.
    Partitions,
    /// BTI only: tries from clusterings to positions within wide partitions; empty if there are none.
    Rows,
    /// BIG only: partition keys with their positions, and positions within wide partitions.
    Index,
    /// BIG only: a sample of the keys of Index.db with their positions there. It is made again if it is missing.
    Summary,
    /// Bloom filter of the partition keys.
    Filter,
    /// Statistics of the content, and its encoding.
    Statistics,
    /// Compression parameters and chunk offsets of a compressed Data.db.
    CompressionInfo,
    /// CRC32 of Data.db as a decimal number.
    Digest,
    /// CRC32 of each block of an uncompressed Data.db.
    Crc,
    /// The list of components.
    Toc,
    /// Our own: CRC32 of each 4 KiB page of the components that have no checksum. Cassandra treats it as a custom
    /// component.
    PageChecksums,
}

impl Component {
    /// All components.
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

    /// The component's name, as in file names and TOC.txt.
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

    /// The component with this name; `None` if it is not known here.
    pub fn parse(name: &str) -> Option<Component> {
        Component::ALL.into_iter().find(|component| component.name() == name)
    }

    /// The components that tables of a version can have.
    pub fn all_of(version: Version) -> impl Iterator<Item = Component> {
        Component::ALL.into_iter().filter(move |component| component.is_of(version))
    }

    /// Whether tables of this version can have the component.
    pub fn is_of(self, version: Version) -> bool {
        match self {
            Component::Partitions | Component::Rows => version.format() == Format::Bti,
            Component::Index | Component::Summary => version.format() == Format::Big,
            _ => true,
        }
    }

    /// Whether an SSTable that was written with the component cannot be read without it.
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

    /// Whether our page checksums cover the component in tables of this version, because it has no checksum of its own.
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

/// Whether a component with this name belongs to a secondary index: storage-attached (`Version.fileNameFormatter` of
/// SAI) or SASI (`ColumnIndex`). Helenus builds indexes again. A TOC.txt may list such components even if the index, or
/// this SSTable's part of it, does not exist.
pub fn is_of_an_index(name: &str) -> bool {
    name.starts_with("SAI+") || name.starts_with("SI_")
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
