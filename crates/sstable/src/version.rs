//! The table of SSTable versions: what each changed, which programs write it, and whether Helenus writes it. All of
//! them are read.
//!
//! A version has two letters, with which a file name begins; the format is in the file name too. Versions that are not
//! in the table are refused: see `names::refusal`. Sources: `BigFormat.BigVersion`, `BtiFormat.BtiVersion`.

use std::fmt;

/// How a file's partitions are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Index.db and Summary.db, all Cassandra versions.
    Big,
    /// Tries in Partitions.db and Rows.db, Cassandra 5.0.
    Bti,
}

impl Format {
    /// The name that file names contain.
    pub fn name(self) -> &'static str {
        match self {
            Format::Big => "big",
            Format::Bti => "bti",
        }
    }
}

/// A version of the files. Later versions are greater. A change of one version applies to all later ones unless a
/// method says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Cassandra 3.0.0: rows instead of cells.
    Ma,
    /// 3.0.7: the start of the commit log interval that the file covers.
    Mb,
    /// 3.0.8: all commit log intervals.
    Mc,
    /// 3.0.18, 3.11.4: correct smallest and greatest clustering.
    Md,
    /// 3.0.25, 3.11.11, ScyllaDB: host id of the writer.
    Me,
    /// 4.0-rc1: chunks stored uncompressed, repair state, checksums in Statistics.db, Bloom filter in another order.
    Na,
    /// 4.0-rc2 to 4.1, and 5.0 as installed: host id of the writer.
    Nb,
    /// Between 4.1 and 5.0, never released: the covered clustering as a slice too. Read as `nb`, as Cassandra 5.0 does.
    Nc,
    /// 5.0: covered clustering as a slice, key range, deletion times to 2106, a mark for partition deletions.
    Oa,
    /// 5.0, BTI: the content of `oa` with tries as indexes.
    Da,
    /// 6.0: a dictionary after the chunk offsets in CompressionInfo.db.
    Pa,
    /// 6.0, BTI: the content of `pa` with tries as indexes.
    Ea,
}

/// A line of the table.
struct Entry {
    version: Version,
    letters: &'static str,
    format: Format,
    written_by: &'static str,
    is_written: bool,
}

const fn entry(
    version: Version,
    letters: &'static str,
    format: Format,
    written_by: &'static str,
    is_written: bool,
) -> Entry {
    Entry { version, letters, format, written_by, is_written }
}

const LEDGER: [Entry; 12] = [
    entry(Version::Ma, "ma", Format::Big, "Cassandra 3.0.0 to 3.0.6", false),
    entry(Version::Mb, "mb", Format::Big, "Cassandra 3.0.7", false),
    entry(Version::Mc, "mc", Format::Big, "Cassandra 3.0.8 to 3.0.17 and 3.11.0 to 3.11.3", false),
    entry(Version::Md, "md", Format::Big, "Cassandra 3.0.18 to 3.0.24 and 3.11.4 to 3.11.10", false),
    entry(Version::Me, "me", Format::Big, "Cassandra 3.0.25 and 3.11.11 on, ScyllaDB", true),
    entry(Version::Na, "na", Format::Big, "Cassandra 4.0-rc1", false),
    entry(Version::Nb, "nb", Format::Big, "Cassandra 4.0, 4.1, and 5.0 in compatibility mode", true),
    entry(Version::Nc, "nc", Format::Big, "Cassandra between 4.1 and 5.0, unreleased", false),
    entry(Version::Oa, "oa", Format::Big, "Cassandra 5.0, format big", true),
    entry(Version::Da, "da", Format::Bti, "Cassandra 5.0, format bti", true),
    entry(Version::Pa, "pa", Format::Big, "Cassandra 6.0, format big", false),
    entry(Version::Ea, "ea", Format::Bti, "Cassandra 6.0, format bti", false),
];

impl Version {
    /// The version that Helenus writes by default.
    pub const CURRENT: Version = Version::Da;

    /// Every version, the oldest first.
    pub fn all() -> impl Iterator<Item = Version> {
        LEDGER.iter().map(|entry| entry.version)
    }

    /// A version by its letters.
    pub fn parse(letters: &str) -> Option<Version> {
        LEDGER.iter().find(|entry| entry.letters == letters).map(|entry| entry.version)
    }

    /// Its letters.
    pub fn letters(self) -> &'static str {
        self.entry().letters
    }

    /// Its format.
    pub fn format(self) -> Format {
        self.entry().format
    }

    /// Which programs wrote it.
    pub fn written_by(self) -> &'static str {
        self.entry().written_by
    }

    /// Whether Helenus can write files of this version. It reads all.
    pub fn is_written(self) -> bool {
        self.entry().is_written
    }

    /// Statistics.db contains the commit log position at which the file's content begins (`hasCommitLogLowerBound`).
    pub fn has_commit_log_start(self) -> bool {
        self >= Version::Mb
    }

    /// Statistics.db contains all commit log intervals of the file's content (`hasCommitLogIntervals`).
    pub fn has_commit_log_intervals(self) -> bool {
        self >= Version::Mc
    }

    /// Statistics.db contains the smallest and greatest clustering as lists of values (`hasLegacyMinMax`). Later
    /// versions store a slice after the clustering types (`hasImprovedMinMax`).
    pub fn has_clustering_values(self) -> bool {
        self < Version::Oa
    }

    /// The smallest and greatest clustering are correct (`hasAccurateMinMax`, `hasImprovedMinMax`).
    pub fn has_right_clusterings(self) -> bool {
        self >= Version::Md
    }

    /// Statistics.db contains the writer's host id (`hasOriginatingHostId`). `na` does not, because it was designed
    /// before `me`.
    pub fn has_host_id(self) -> bool {
        self == Version::Me || self >= Version::Nb
    }

    /// A chunk that does not shrink enough is stored uncompressed (`hasMaxCompressedLength`).
    pub fn has_max_compressed_length(self) -> bool {
        self >= Version::Na
    }

    /// Statistics.db contains the repair session and whether the replica was transient (`hasPendingRepair`,
    /// `hasIsTransient`).
    pub fn has_repair_session(self) -> bool {
        self >= Version::Na
    }

    /// Statistics.db has checksums (`hasMetadataChecksum`).
    pub fn has_statistics_checksums(self) -> bool {
        self >= Version::Na
    }

    /// The filter's bits are stored as big endian words (`hasOldBfFormat`).
    pub fn has_filter_words(self) -> bool {
        self < Version::Na
    }

    /// Deletion times are unsigned and reach to 2106, and `LIVE` takes one byte (`hasUIntDeletionTime`). In earlier
    /// versions they are signed and end in 2038.
    pub fn has_unsigned_deletion_times(self) -> bool {
        self >= Version::Oa
    }

    /// CompressionInfo.db may end with the dictionary of the chunks (`CompressionMetadata.open` of 6.0).
    pub fn may_have_dictionary(self) -> bool {
        self >= Version::Pa
    }

    /// Statistics.db contains whether there are partition deletions, the first and the last key, and the covered part
    /// of the ring (`hasPartitionLevelDeletionPresenceMarker`, `hasKeyRange`, `hasTokenSpaceCoverage`).
    pub fn has_key_range(self) -> bool {
        self >= Version::Oa
    }

    fn entry(self) -> &'static Entry {
        // The table is in the enum's order; a test checks that.
        let [ma, mb, mc, md, me, na, nb, nc, oa, da, pa, ea] = &LEDGER;
        match self {
            Version::Ma => ma,
            Version::Mb => mb,
            Version::Mc => mc,
            Version::Md => md,
            Version::Me => me,
            Version::Na => na,
            Version::Nb => nb,
            Version::Nc => nc,
            Version::Oa => oa,
            Version::Da => da,
            Version::Pa => pa,
            Version::Ea => ea,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.letters())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_names_every_version_by_its_own_letters() {
        for entry in &LEDGER {
            assert_eq!(entry.version.letters(), entry.letters);
            assert_eq!(Version::parse(entry.letters), Some(entry.version));
        }
        assert_eq!(Version::parse("zz"), None);
        assert!(Version::all().is_sorted());
    }

    #[test]
    fn each_version_has_what_cassandras_flags_say() {
        // Read from BigFormat.BigVersion of Cassandra 5.0.6.
        let flags = |version: Version| {
            [
                version.has_commit_log_start(),
                version.has_commit_log_intervals(),
                version.has_right_clusterings(),
                version.has_clustering_values(),
                version.has_host_id(),
                version.has_max_compressed_length(),
                version.has_repair_session(),
                version.has_statistics_checksums(),
                version.has_filter_words(),
                version.has_unsigned_deletion_times(),
                version.has_key_range(),
            ]
            .map(|flag| if flag { '1' } else { '0' })
            .iter()
            .collect::<String>()
        };
        let expected = [
            ("ma", "00010000100"),
            ("mb", "10010000100"),
            ("mc", "11010000100"),
            ("md", "11110000100"),
            ("me", "11111000100"),
            ("na", "11110111000"),
            ("nb", "11111111000"),
            ("nc", "11111111000"),
            ("oa", "11101111011"),
            ("pa", "11101111011"),
        ];
        for (letters, expected) in expected {
            assert_eq!(flags(Version::parse(letters).unwrap()), expected, "{letters}");
        }
    }
}
