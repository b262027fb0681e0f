//! Why an import did not happen.

/// The disk that SSTables come from, which need not be the database's.
pub type SourceDisk = std::sync::Arc<dyn helenus_host::Disk>;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// What was given cannot be taken; each problem names its file or table.
    #[error("nothing was imported:{}", problems.iter().fold(String::new(), |all, problem| all + "\n  " + problem))]
    Refused {
        /// Everything that speaks against it.
        problems: Vec<String>,
    },
    /// The database could not.
    #[error(transparent)]
    Engine(#[from] crate::Error),
}

impl ImportError {
    /// One problem.
    pub fn refused(problem: impl Into<String>) -> ImportError {
        ImportError::Refused { problems: vec![problem.into()] }
    }
}

impl From<helenus_sstable::Error> for ImportError {
    fn from(error: helenus_sstable::Error) -> ImportError {
        ImportError::Engine(error.into())
    }
}
