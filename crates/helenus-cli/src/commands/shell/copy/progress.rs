//! Reports the number and rate of rows: a line that is redrawn on a terminal, and the file of RATEFILE.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::time::{Duration, Instant};

/// Counts rows and reports their rate.
pub struct RateMeter {
    begun: Instant,
    reported: Instant,
    every: Duration,
    rows_reported: u64,
    rate: f64,
    share: Option<f64>,
    is_drawn: bool,
    /// Whether a progress line is on the terminal now.
    has_line: bool,
    file: Option<File>,
}

impl RateMeter {
    /// Begins to measure.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(every: Duration, file: Option<&Path>) -> Result<RateMeter> {
        let file = match file {
            Some(path) => {
                Some(File::create(path).with_context(|| format!("cannot make {}", path.display()))?)
            }
            None => None,
        };
        let now = Instant::now();
        let is_drawn = stderr().is_terminal();
        Ok(RateMeter {
            begun: now,
            reported: now,
            every,
            rows_reported: 0,
            rate: 0.0,
            share: None,
            is_drawn,
            has_line: false,
            file,
        })
    }

    /// Sets the total number of rows so far, and the share of the work that is done, from 0 to 1, if it is known.
    pub fn at(&mut self, rows: u64, share: Option<f64>) {
        let since = self.reported.elapsed();
        if since < self.every || rows == self.rows_reported {
            return;
        }
        let rate = (rows - self.rows_reported) as f64 / since.as_secs_f64().max(1e-9);
        self.rate = if self.rate == 0.0 { rate } else { (self.rate + rate) / 2.0 };
        (self.reported, self.rows_reported, self.share) = (Instant::now(), rows, share);
        self.report(rows);
    }

    fn report(&mut self, rows: u64) {
        let average = rows as f64 / self.begun.elapsed().as_secs_f64().max(1e-9);
        let line = format!(
            "Processed: {rows} rows; Rate: {:7.0} rows/s; Avg. rate: {average:7.0} rows/s",
            self.rate
        );
        if self.is_drawn {
            // A terminal that is gone is no reason to stop.
            let left = self.share.map(|share| left(share, self.begun.elapsed())).unwrap_or_default();
            _ = write!(stderr(), "\r\x1b[K{left}{line}");
            self.has_line = true;
        }
        if let Some(file) = &mut self.file {
            _ = writeln!(file, "{line}");
        }
    }

    /// Removes the line from the terminal, so that something else can be written.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.has_line) {
            _ = write!(stderr(), "\r\x1b[K");
        }
    }

    /// Ends; returns the elapsed time and the rows a second.
    pub fn end(&mut self, rows: u64) -> (Duration, f64) {
        self.report(rows);
        self.clear();
        let took = self.begun.elapsed();
        (took, rows as f64 / took.as_secs_f64().max(1e-9))
    }
}

/// The share of the work that is done, and the time that the rest will take at this pace.
fn left(share: f64, took: Duration) -> String {
    let share = share.clamp(0.0, 1.0);
    let percent = (share * 100.0).floor();
    if share < 0.01 {
        return format!("{percent:.0} %; ");
    }
    let seconds = (took.as_secs_f64() * (1.0 - share) / share).ceil() as u64;
    match seconds {
        0..120 => format!("{percent:.0} %, {seconds} s left; "),
        _ => format!("{percent:.0} %, {} min left; ", seconds.div_ceil(60)),
    }
}

/// A duration in words: `1 minute and 2.345 seconds`.
pub fn interval(took: Duration) -> String {
    let whole = took.as_secs();
    let mut parts = Vec::new();
    for (count, unit) in [(whole / 3_600, "hour"), (whole / 60 % 60, "minute")] {
        if count > 0 {
            parts.push(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }));
        }
    }
    parts.push(format!("{:.3} seconds", (whole % 60) as f64 + f64::from(took.subsec_nanos()) / 1e9));
    parts.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_pace_so_far_says() {
        assert_eq!(left(0.25, Duration::from_secs(10)), "25 %, 30 s left; ");
        assert_eq!(left(0.5, Duration::from_secs(600)), "50 %, 10 min left; ");
        assert_eq!(left(0.001, Duration::from_secs(1)), "0 %; ");
        assert_eq!(left(1.5, Duration::from_secs(1)), "100 %, 0 s left; ");
    }
}
