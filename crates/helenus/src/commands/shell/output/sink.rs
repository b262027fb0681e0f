//! Where results go: to the standard output, or to the file of CAPTURE.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// The place.
pub struct Sink {
    capture: Option<(PathBuf, BufWriter<File>)>,
    /// Whether the standard output shows colours.
    colours: bool,
}

impl Sink {
    /// To the standard output.
    pub fn new(colours: bool) -> Sink {
        Sink { capture: None, colours }
    }

    /// Whether what goes there may have colours: files have none.
    pub fn in_colour(&self) -> bool {
        self.colours && self.capture.is_none()
    }

    /// The file that results go to.
    pub fn captured(&self) -> Option<&Path> {
        self.capture.as_ref().map(|(path, _)| path.as_path())
    }

    /// Sends results to the end of a file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn capture(&mut self, path: &Path) -> Result<()> {
        let file = File::options().create(true).append(true).open(path);
        let file = file.with_context(|| format!("Could not open {} for append", path.display()))?;
        self.capture = Some((path.to_owned(), BufWriter::new(file)));
        Ok(())
    }

    /// Sends results to the standard output again; whether they went elsewhere.
    ///
    /// # Errors
    /// The file could not be written to its end.
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
    /// Nobody takes them.
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
