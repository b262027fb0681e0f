//! The error type of this crate.

use helenus_host::account::Refusal;
use helenus_model::row::RowTooLarge;
use std::path::{Path, PathBuf};

/// An error of reading or writing SSTable files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not in memory and the caller must not wait for the disk. The read must run again where it may
    /// wait.
    #[error("the read needs the disk")]
    WouldBlock,
    /// There is no memory for the data.
    #[error(transparent)]
    NoMemory(Refusal),
    /// The bytes on disk are damaged, or were never valid.
    #[error("corrupt table: {} at byte {offset}: {problem}", file.display())]
    Corrupt {
        /// The component.
        file: PathBuf,
        /// The offset in it.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// The system refused an operation on a file.
    #[error("{}", of_file(file, source))]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A row that no SSTable can hold: nothing of it was written, and a read cannot put it together.
    #[error("{}: {what}", row_place(key))]
    RowTooLarge {
        /// The key of its partition; empty where that is not known.
        key: Vec<u8>,
        /// How large it is, and how large a row may be.
        what: RowTooLarge,
    },
    /// A version, component or compressor that this crate does not handle.
    #[error("{}: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What is not supported, and what is.
        what: String,
    },
}

/// The system's error with the file's name, which errors of `host` contain already.
fn of_file(file: &Path, source: &std::io::Error) -> String {
    let (file, said) = (file.display().to_string(), source.to_string());
    if said.contains(&file) { said } else { format!("{file}: {said}") }
}

/// The partition of a row, by at most 64 bytes of its key.
fn row_place(key: &[u8]) -> String {
    match key {
        [] => "a row cannot be merged".to_owned(),
        key => {
            let shown: String = key.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
            format!("partition 0x{shown}{}", if key.len() > 64 { ".." } else { "" })
        }
    }
}

impl Error {
    /// Names the partition of a row that is too large; leaves any other error as it is.
    #[must_use]
    pub fn of_partition(self, key: &[u8]) -> Error {
        match self {
            Error::RowTooLarge { what, .. } => Error::RowTooLarge { key: key.to_vec(), what },
            other => other,
        }
    }
}

impl From<RowTooLarge> for Error {
    fn from(what: RowTooLarge) -> Error {
        Error::RowTooLarge { key: Vec::new(), what }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal {
            Refusal::WouldBlock => Error::WouldBlock,
            no_room @ Refusal::NoRoom { .. } => Error::NoMemory(no_room),
        }
    }
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
