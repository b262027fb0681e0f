//! Why TLS cannot be set up. Each text names the file or the key, and the reason.

/// An error in files or options of TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {place}: {source}")]
    Unreadable {
        /// The option and the file that it names.
        place: String,
        /// Why.
        source: std::io::Error,
    },
    /// The contents of a file or of an option cannot be used.
    #[error("{place}: {reason}")]
    Unusable {
        /// The option, and the file that it names.
        place: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl TlsError {
    pub(crate) fn unusable(place: &str, reason: impl Into<String>) -> TlsError {
        TlsError::Unusable { place: place.to_owned(), reason: reason.into() }
    }
}
