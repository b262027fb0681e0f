//! What is wrong with a file, and where.

use std::fmt;
use std::ops::Range;
use std::path::Path;

/// A complaint about a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// `FILE`, and `FILE:LINE` where there is a line.
    pub place: String,
    pub problem: String,
}

impl FileError {
    /// About the bytes `span` of `text`, the file at `path`.
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
