//! The ledger of version letters: what each changed, who wrote it, and what is read and written here.
//!
//! Sources: `BigFormat.BigVersion`, `BtiFormat.BtiVersion`. The letters are the first part of a file name; the format
//! they belong to stands there too.

use crate::error::{Error, Result};
use std::fmt;
use std::path::Path;

/// How a file's partitions are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Index.db and Summary.db, all Cassandra versions.
    Big,
    /// Tries in Partitions.db and Rows.db, Cassandra 5.0.
    Bti,
}

impl Format {
    /// Its name in file names.
    pub fn name(self) -> &'static str {
        match self {
            Format::Big => "big",
            Format::Bti => "bti",
        }
    }
}

/// A version of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Cassandra 3.0.0: rows instead of cells.
    Ma,
    /// 3.0.7: where the commit log of the file begins.
    Mb,
    /// 3.0.8: all intervals of the commit log.
    Mc,
    /// 3.0.18, 3.11.4: right smallest and greatest clustering.
    Md,
    /// 3.0.25, 3.11.11, ScyllaDB: host id of the writer.
    Me,
    /// 4.0-rc1: chunks stored uncompressed, repair state, checksums in Statistics.db, Bloom filter in another order.
    Na,
    /// 4.0-rc2 to 4.1, and 5.0 as installed: host id of the writer.
    Nb,
    /// 5.0: covered clustering as a slice, key range, deletion times to 2106, mark of partition deletions.
    Oa,
    /// 5.0, BTI: the content of `oa` behind tries.
    Da,
}

/// What a version is; one line a version.
struct Entry {
    version: Version,
    letters: &'static str,
    format: Format,
    written_by: &'static str,
    is_supported: bool,
}

const fn entry(
    version: Version,
    letters: &'static str,
    format: Format,
    written_by: &'static str,
    is_supported: bool,
) -> Entry {
    Entry { version, letters, format, written_by, is_supported }
}

const LEDGER: [Entry; 9] = [
    entry(Version::Ma, "ma", Format::Big, "Cassandra 3.0.0 to 3.0.6", false),
    entry(Version::Mb, "mb", Format::Big, "Cassandra 3.0.7", false),
    entry(Version::Mc, "mc", Format::Big, "Cassandra 3.0.8 to 3.0.17 and 3.11.0 to 3.11.3", false),
    entry(Version::Md, "md", Format::Big, "Cassandra 3.0.18 to 3.0.24 and 3.11.4 to 3.11.10", false),
    entry(Version::Me, "me", Format::Big, "Cassandra 3.0.25 and 3.11.11 on, ScyllaDB", false),
    entry(Version::Na, "na", Format::Big, "Cassandra 4.0-rc1", false),
    entry(Version::Nb, "nb", Format::Big, "Cassandra 4.0, 4.1, and 5.0 in compatibility mode", false),
    entry(Version::Oa, "oa", Format::Big, "Cassandra 5.0, format big", false),
    entry(Version::Da, "da", Format::Bti, "Cassandra 5.0, format bti", true),
];

impl Version {
    /// The version written here.
    pub const CURRENT: Version = Version::Da;

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

    /// Whether files of this version are read and written here.
    pub fn is_supported(self) -> bool {
        self.entry().is_supported
    }

    /// `Unsupported`, with the version's name, unless files of this version are read here.
    pub fn check_supported(self, file: &Path) -> Result<()> {
        if self.is_supported() {
            return Ok(());
        }
        let what = format!(
            "SSTable version {self} ({}) is not read yet; only da is: rewrite the table with Cassandra 5.0 and \
             sstable selected_format bti, storage_compatibility_mode NONE",
            self.written_by()
        );
        Err(Error::Unsupported { file: file.to_owned(), what })
    }

    fn entry(self) -> &'static Entry {
        // The ledger stands in the enum's order: see the test.
        let [ma, mb, mc, md, me, na, nb, oa, da] = &LEDGER;
        match self {
            Version::Ma => ma,
            Version::Mb => mb,
            Version::Mc => mc,
            Version::Md => md,
            Version::Me => me,
            Version::Na => na,
            Version::Nb => nb,
            Version::Oa => oa,
            Version::Da => da,
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
    }

    #[test]
    fn an_old_version_is_refused_by_name() {
        let error = Version::Nb.check_supported(Path::new("nb-1-big-Data.db")).unwrap_err();
        assert!(error.to_string().contains("version nb (Cassandra 4.0"), "{error}");
        Version::Da.check_supported(Path::new("x")).unwrap();
    }
}
