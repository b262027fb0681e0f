//! A line on the terminal that says how far a command over files is.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

/// Between two drawings.
const REDRAW: Duration = Duration::from_millis(200);

/// Bytes, or things of a kind, towards a total. Nothing is drawn where nobody looks, nor in the first moment.
pub struct Progress {
    what: String,
    total: u64,
    /// What is counted, if not bytes.
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

    /// Begins to count towards so many of `items`.
    pub fn of_items(what: impl Into<String>, total: u64, items: &'static str) -> Progress {
        let mut progress = Progress::begin(what, total);
        progress.items = Some(items);
        progress
    }

    /// What is done now.
    pub fn name(&mut self, what: impl Into<String>) {
        self.what = what.into();
    }

    /// So much is done, all in all.
    pub fn at(&mut self, done: u64) {
        self.done = done;
        if !self.is_terminal {
            return;
        }
        let now = self.begun.elapsed();
        if now.saturating_sub(self.drawn) >= REDRAW {
            self.drawn = now;
            // A terminal that is gone is no reason to end.
            _ = write!(stderr(), "\r\x1b[K{}", line(&self.what, (self.done, self.total), self.items, now));
        }
    }

    /// Takes the line away, so that something else can be printed.
    pub fn clear(&mut self) {
        if self.is_terminal && !self.drawn.is_zero() {
            _ = write!(stderr(), "\r\x1b[K");
        }
    }

    /// Draws nothing, where the output itself goes to the terminal.
    pub fn unless_output_is_shown(mut self) -> Progress {
        self.is_terminal &= !stdout().is_terminal();
        self
    }

    /// So much more.
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

/// Bytes for people.
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
