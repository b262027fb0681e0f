//! Reads passwords: from a terminal without echo, or from a file.

use anyhow::{Context, Result, bail};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{Write, stdin, stdout};
use std::path::Path;

/// The first line of a file.
///
/// # Errors
/// The file cannot be read; its first line is empty.
pub fn first_line(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    match text.lines().next().unwrap_or_default() {
        "" => bail!("{}: its first line is empty; write the password there", file.display()),
        password => Ok(password.to_owned()),
    }
}

/// Reads a line without echo, for a password.
///
/// # Errors
/// The terminal is gone.
pub fn read_secret(prompt: &str) -> Result<String> {
    let input = stdin();
    let mut out = stdout().lock();
    out.write_all(prompt.as_bytes())?;
    out.flush()?;
    let before = tcgetattr(&input)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Now, &silent)?;
    let mut line = String::new();
    let read = input.read_line(&mut line);
    tcsetattr(&input, OptionalActions::Now, &before)?;
    out.write_all(b"\n")?;
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
