//! The errors of an import.

/// The disk that SSTables come from, which need not be the database's.
pub type SourceDisk = std::sync::Arc<dyn helenus_host::Disk>;

/// The reason why not everything was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The given files cannot be imported; each problem names its file or table.
    #[error("nothing was imported:{}", problems.iter().fold(String::new(), |all, problem| all + "\n  " + problem))]
    Refused {
        /// All problems.
        problems: Vec<String>,
    },
    /// The disk failed half-way. The import is finished as soon as the disk allows, at the latest by the next start.
    #[error(
        "the import is not finished: {source}; the rest of {} is imported as soon as the disk allows; \
         TRUNCATE or DROP of a table gives it up",
        tables.join(", ")
    )]
    Unfinished {
        /// The tables whose files are still to come, with their keyspaces.
        tables: Vec<String>,
        /// The failure.
        source: Box<crate::Error>,
    },
    /// The database failed, and nothing was imported.
    #[error(transparent)]
    Engine(#[from] crate::Error),
}

impl ImportError {
    /// An error with a single problem.
    pub fn refused(problem: impl Into<String>) -> ImportError {
        ImportError::Refused { problems: vec![problem.into()] }
    }
}

impl From<helenus_sstable::Error> for ImportError {
    fn from(error: helenus_sstable::Error) -> ImportError {
        ImportError::Engine(error.into())
    }
}
