//! Waits for a key between two pages on a terminal: `q` stops, any other key continues.

use anyhow::Result;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use std::io::{Write, stdin, stdout};

/// The user's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    Page,
    Nothing,
}

/// Shows that there are more rows and waits for a key.
///
/// # Errors
/// The terminal is gone.
pub fn wait_for_more() -> Result<More> {
    let mut out = stdout().lock();
    out.write_all(b"---MORE--- (any key; q stops)")?;
    out.flush()?;
    let key = one_key()?;
    out.write_all(b"\r\x1b[K")?;
    out.flush()?;
    match key {
        // q, Q, Ctrl-C, Ctrl-D, or the end of the input.
        None | Some(b'q' | b'Q' | 3 | 4) => Ok(More::Nothing),
        Some(_) => Ok(More::Page),
    }
}

/// The width of the terminal of the output, in columns.
pub fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Reads a key without waiting for Enter and without echo.
fn one_key() -> Result<Option<u8>> {
    let input = stdin();
    let before = tcgetattr(&input)?;
    let mut raw = before.clone();
    raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(&input, OptionalActions::Now, &raw)?;
    let mut key = [0];
    // Reads past the buffer of the standard input, because text typed ahead belongs to the line editor.
    let read = rustix::io::read(&input, &mut key);
    tcsetattr(&input, OptionalActions::Now, &before)?;
    Ok(if read? == 0 { None } else { key.first().copied() })
}
