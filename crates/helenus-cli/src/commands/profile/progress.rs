//! A progress line for loads and warm-ups.

use crate::commands::numbers::{grouped, seconds};
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Time between two drawings of the bar.
const REDRAW: Duration = Duration::from_millis(100);
/// Width of the bar, in cells.
const BAR: u64 = 24;

/// Counts towards a total. On a terminal the bar is redrawn in place; elsewhere only the final line is written.
pub(super) struct Progress {
    what: String,
    /// The name of the counted items.
    unit: &'static str,
    total: u64,
    done: AtomicU64,
    begun: Instant,
    /// The time of the last drawing, in microseconds after `begun`.
    drawn_us: AtomicU64,
    is_terminal: bool,
}

impl Progress {
    /// Begins to count columns.
    pub fn begin(what: String, total: u64) -> Progress {
        Progress::of(what, total, "columns")
    }

    /// Begins to count items named `unit`.
    pub fn of(what: String, total: u64, unit: &'static str) -> Progress {
        Progress {
            what,
            unit,
            total,
            done: AtomicU64::new(0),
            begun: Instant::now(),
            drawn_us: AtomicU64::new(0),
            is_terminal: stderr().is_terminal(),
        }
    }

    /// Adds to the count.
    pub fn add(&self, columns: u64) {
        let done = self.done.fetch_add(columns, Ordering::Relaxed) + columns;
        if !self.is_terminal {
            return;
        }
        let now = self.begun.elapsed();
        let drawn = Duration::from_micros(self.drawn_us.load(Ordering::Relaxed));
        if now.saturating_sub(drawn) >= REDRAW {
            self.drawn_us.store(now.as_micros() as u64, Ordering::Relaxed);
            // An error does not matter: the next line repeats the progress, and a terminal that is gone is no reason to
            // stop.
            let _ = write!(stderr(), "\r\x1b[K{}", line(&self.what, (done, self.total), now));
        }
    }

    /// Writes the final line; returns the elapsed time.
    pub fn end(&self) -> Duration {
        let took = self.begun.elapsed();
        let (done, clear) =
            (self.done.load(Ordering::Relaxed), if self.is_terminal { "\r\x1b[K" } else { "" });
        let (count, rate) = (grouped(done), grouped(rate(done, took) as u64));
        let _ = writeln!(
            stderr(),
            "{clear}{:<34} {count:>10} {} in {:>8}  {rate:>10}/s",
            self.what,
            self.unit,
            seconds(took)
        );
        took
    }
}

/// Shows a text on the terminal until the next line replaces it.
pub(super) fn show(what: &str) {
    if stderr().is_terminal() {
        let _ = write!(stderr(), "\r\x1b[K{what}");
    }
}

/// Removes the text that `show` has written.
pub(super) fn clear() {
    show("");
}

/// The progress of a table's compaction, as a line.
pub(super) fn compacting(table: &str, bytes_done: u64, bytes_total: u64) -> String {
    let percent = (bytes_done.min(bytes_total) * 100).checked_div(bytes_total).unwrap_or(100);
    format!("{:<34} {percent} % of {} MiB", format!("compact {table}"), grouped(bytes_total >> 20))
}

/// Calls the blocking `wait`, and meanwhile shows the text that `look` returns.
pub(super) fn while_waiting<T: Send>(wait: impl FnOnce() -> T + Send, look: impl Fn() -> String) -> T {
    std::thread::scope(|scope| {
        let (done, is_done) = sync_channel(1);
        let waiting = scope.spawn(move || {
            let ended = wait();
            let _nobody_may_look = done.send(());
            ended
        });
        while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(REDRAW) {
            show(&look());
        }
        waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Items a second.
pub(super) fn rate(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-9)
}

/// The bar, the rate, and the remaining time at that rate.
fn line(what: &str, (done, total): (u64, u64), took: Duration) -> String {
    let full = (done.min(total) * BAR).checked_div(total).unwrap_or(BAR) as usize;
    let rate = rate(done, took);
    let left = Duration::try_from_secs_f64(total.saturating_sub(done) as f64 / rate.max(1e-9))
        .unwrap_or(Duration::MAX);
    let percent = (done.min(total) * 100).checked_div(total).unwrap_or(100);
    format!(
        "{what:<34} [{}{}] {percent:>3} %  {}/s, {} left",
        "#".repeat(full),
        ".".repeat(BAR as usize - full),
        grouped(rate as u64),
        seconds(left)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_share_rate_and_the_time_that_is_left() {
        let line = line("load ascending ten-million", (2_500_000, 10_000_000), Duration::from_secs(2));
        assert!(line.contains("[######..................]  25 %"), "{line}");
        assert!(line.ends_with("1,250,000/s, 6.0 s left"), "{line}");
    }

    #[test]
    fn nothing_done_and_nothing_to_do_are_no_trouble() {
        line("", (0, 0), Duration::ZERO);
        line("", (0, 10), Duration::ZERO);
    }
}
