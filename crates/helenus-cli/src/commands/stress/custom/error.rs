//! Errors in a workload file, with their position.

use std::fmt;
use std::ops::Range;
use std::path::Path;

/// An error at a position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// `FILE:LINE`, or `FILE` if the line is unknown.
    pub place: String,
    pub problem: String,
}

impl FileError {
    /// An error in the bytes `span` of `text`, the content of the file at `path`.
    pub(super) fn at(
        path: &Path,
        text: &str,
        span: Option<Range<usize>>,
        problem: impl fmt::Display,
    ) -> FileError {
        let path = path.display();
        let line = span.map(|span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
        let place = line.map_or(format!("{path}"), |line| format!("{path}:{line}"));
        FileError { place, problem: problem.to_string() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for FileError {}
