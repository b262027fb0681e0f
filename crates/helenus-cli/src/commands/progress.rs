//! A progress line on the terminal, for commands that work on files.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

/// Time between two drawings.
const REDRAW: Duration = Duration::from_millis(200);

/// Progress in bytes, or in items of a kind, towards a total. Draws nothing if stderr is not a terminal, and nothing in
/// the first 200 ms.
pub struct Progress {
    what: String,
    total: u64,
    /// The name of the items, if it does not count bytes.
    items: Option<&'static str>,
    done: u64,
    begun: Instant,
    drawn: Duration,
    is_terminal: bool,
}

impl Progress {
    /// Begins to count towards `total` bytes.
    pub fn begin(what: impl Into<String>, total: u64) -> Progress {
        Progress {
            what: what.into(),
            total,
            items: None,
            done: 0,
            begun: Instant::now(),
            drawn: Duration::ZERO,
            is_terminal: stderr().is_terminal(),
        }
    }

    /// Begins to count towards `total` items.
    pub fn of_items(what: impl Into<String>, total: u64, items: &'static str) -> Progress {
        let mut progress = Progress::begin(what, total);
        progress.items = Some(items);
        progress
    }

    /// Sets the name of the present work.
    pub fn name(&mut self, what: impl Into<String>) {
        self.what = what.into();
    }

    /// Sets the amount done so far.
    pub fn at(&mut self, done: u64) {
        self.done = done;
        if !self.is_terminal {
            return;
        }
        let now = self.begun.elapsed();
        if now.saturating_sub(self.drawn) >= REDRAW {
            self.drawn = now;
            // A terminal that is gone is no reason to stop the work.
            _ = write!(stderr(), "\r\x1b[K{}", line(&self.what, (self.done, self.total), self.items, now));
        }
    }

    /// Removes the line, so that something else can be printed.
    pub fn clear(&mut self) {
        if self.is_terminal && !self.drawn.is_zero() {
            _ = write!(stderr(), "\r\x1b[K");
        }
    }

    /// Draws nothing if the command's own output goes to the terminal.
    pub fn unless_output_is_shown(mut self) -> Progress {
        self.is_terminal &= !stdout().is_terminal();
        self
    }

    /// Adds to the amount done.
    pub fn add(&mut self, bytes: u64) {
        self.at(self.done + bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(what: &str, (done, total): (u64, u64), items: Option<&str>, took: Duration) -> String {
    if let Some(items) = items {
        return format!("{what}  {done} of {total} {items}");
    }
    let percent = (done.min(total) * 100).checked_div(total).unwrap_or(100);
    let rate = done as f64 / took.as_secs_f64().max(1e-9);
    let left = total.saturating_sub(done) as f64 / rate.max(1.0);
    format!("{what}  {percent} % of {}, {}/s, {left:.0} s left", size(total), size(rate as u64))
}

/// A number of bytes in a fitting unit.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if scaled < 1024.0 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, larger);
    }
    format!("{scaled:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_share_rate_and_the_time_that_is_left() {
        let text = line("dump", (5 << 20, 20 << 20), None, Duration::from_secs(1));
        assert_eq!(text, "dump  25 % of 20.0 MiB, 5.0 MiB/s, 3 s left");
        assert_eq!(size(1023), "1023 bytes");
        line("", (0, 0), None, Duration::ZERO);
        let text = line("ls", (5, 20), Some("SSTables"), Duration::from_secs(1));
        assert_eq!(text, "ls  5 of 20 SSTables");
    }
}
