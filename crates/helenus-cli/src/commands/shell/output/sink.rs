//! The destination of results: the standard output, or the file of CAPTURE.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// The destination of results.
pub struct Sink {
    capture: Option<(PathBuf, BufWriter<File>)>,
    /// Whether the standard output shows colours.
    colours: bool,
}

impl Sink {
    /// A sink to the standard output.
    pub fn new(colours: bool) -> Sink {
        Sink { capture: None, colours }
    }

    /// Whether results may have colours now. Files get none.
    pub fn in_colour(&self) -> bool {
        self.colours && self.capture.is_none()
    }

    /// The file of CAPTURE, if results go there.
    pub fn captured(&self) -> Option<&Path> {
        self.capture.as_ref().map(|(path, _)| path.as_path())
    }

    /// Appends further results to a file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn capture(&mut self, path: &Path) -> Result<()> {
        let file = File::options().create(true).append(true).open(path);
        let file = file.with_context(|| format!("Could not open {} for append", path.display()))?;
        self.capture = Some((path.to_owned(), BufWriter::new(file)));
        Ok(())
    }

    /// Sends further results to the standard output. Returns whether a file was captured to.
    ///
    /// # Errors
    /// The file could not be written completely.
    pub fn release(&mut self) -> Result<bool> {
        match self.capture.take() {
            Some((path, mut file)) => {
                file.flush().with_context(|| format!("cannot write {}", path.display())).map(|()| true)
            }
            None => Ok(false),
        }
    }

    /// Writes results.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn write(&mut self, text: &str) -> Result<()> {
        match &mut self.capture {
            Some((path, file)) => {
                file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
            }
            None => {
                let mut out = stdout().lock();
                out.write_all(text.as_bytes())?;
                Ok(out.flush()?)
            }
        }
    }
}
