//! The live output of a run on a terminal: a line of results for each second, and a progress bar below.

use super::results::{Second, micros};
use crate::commands::numbers::{grouped, seconds};
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Time between two drawings of the bar.
const REDRAW: Duration = Duration::from_millis(200);
/// Width of the bar, in cells.
const BAR: u64 = 24;
/// Number of lines after which the column names are repeated.
const PAGE: u64 = 20;

/// The goal that the bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A number of answers.
    Answers(u64),
    /// A duration after the measurement began.
    Time(Duration),
}

/// The live output of a run.
pub(super) struct Live {
    is_shown: bool,
    goal: Goal,
    measure_from: Instant,
    lines: u64,
    /// The number of answers, and the end of the last reported second.
    done: u64,
    told_s: f64,
    drawn: Option<Instant>,
}

impl Live {
    /// Begins the output of a run. Nothing is shown unless `is_wanted` and stderr is a terminal.
    pub fn begin(what: &str, goal: Goal, measure_from: Instant, is_wanted: bool) -> Live {
        let is_shown = is_wanted && stderr().is_terminal();
        if is_shown {
            say(&format!("\r\x1b[K{what}\n"));
        }
        Live { is_shown, goal, measure_from, lines: 0, done: 0, told_s: 0.0, drawn: None }
    }

    /// Shows the results of a second.
    pub fn second(&mut self, second: &Second) {
        self.done += second.operations + second.errors;
        self.told_s = second.at_s;
        if !self.is_shown {
            return;
        }
        if self.lines.is_multiple_of(PAGE) {
            say(&format!("\r\x1b[K{}\n", head()));
        }
        self.lines += 1;
        say(&format!("\r\x1b[K{}\n", line(second)));
        self.draw(Instant::now());
    }

    /// Draws the bar if it is due.
    pub fn tick(&mut self) {
        let now = Instant::now();
        if self.is_shown && self.drawn.is_none_or(|drawn| now.duration_since(drawn) >= REDRAW) {
            self.draw(now);
        }
    }

    fn draw(&mut self, now: Instant) {
        self.drawn = Some(now);
        if now < self.measure_from {
            let left = self.measure_from - now;
            say(&format!("\r\x1b[Kwarming up, {} left", seconds(left)));
            return;
        }
        say(&format!("\r\x1b[K{}", bar(self.goal, (self.done, self.told_s), now - self.measure_from)));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.is_shown && self.drawn.is_some() {
            say("\r\x1b[K");
        }
    }
}

/// Writes to the terminal. A terminal that is gone is no reason to stop.
fn say(text: &str) {
    let mut terminal = stderr();
    let _nobody_looks = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

/// The column names.
fn head() -> String {
    format!(
        "{:>6} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "second", "ops/s", "mean us", "p50", "p95", "p99", "p99.9", "max", "errors"
    )
}

fn line(second: &Second) -> String {
    let mut text = format!("{:>6} {:>10}", second.at_s.ceil(), grouped(second.ops_per_s.round() as u64));
    for (_, us) in second.latency_us.named() {
        text.push_str(&format!(" {:>8}", micros(us)));
    }
    text.push_str(&format!(" {:>7}", grouped(second.errors)));
    text
}

/// The bar at `took` after the measurement began. `done` answers had arrived at the end of the last reported second,
/// `told_s`.
fn bar(goal: Goal, (done, told_s): (u64, f64), took: Duration) -> String {
    let rate = if told_s > 0.0 { done as f64 / told_s } else { 0.0 };
    let took_s = took.as_secs_f64();
    let (share, left_s) = match goal {
        Goal::Time(all) => {
            let all = all.as_secs_f64().max(1e-9);
            (took_s / all, Some(all - took_s))
        }
        Goal::Answers(all) => {
            // The answers of the current second are not known yet and are estimated from the rate.
            let done = done as f64 + rate * (took_s - told_s).max(0.0);
            let all = all.max(1) as f64;
            (done / all, (rate > 0.0).then(|| (all - done) / rate))
        }
    };
    let share = share.clamp(0.0, 1.0);
    let full = (share * BAR as f64) as usize;
    let left =
        left_s.filter(|left| *left > 0.0).and_then(|left| Duration::try_from_secs_f64(left.ceil()).ok());
    format!(
        "[{}{}] {:>3.0} %  {}/s{}",
        "#".repeat(full),
        ".".repeat(BAR as usize - full),
        (share * 100.0).floor(),
        grouped(rate as u64),
        left.map(|left| format!(", {} left", seconds(left))).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::super::results::Latency;
    use super::*;

    #[test]
    fn figures_stand_under_their_names_and_fit_a_terminal() {
        let latency_us =
            Latency { mean: 612.4, p50: 580.0, p95: 900.0, p99: 4_321.0, p999: 65_432.0, max: 123_456.0 };
        let second =
            Second { at_s: 2.0, operations: 1, ops_per_s: 212_345.4, latency_us, ..Second::default() };
        let (head, line) = (head(), line(&second));
        assert!(line.starts_with("     2    212,345    612.4"), "{line}");
        for name in ["ops/s", "p50", "errors"] {
            let end = head.find(name).unwrap() + name.len();
            assert!(line.is_char_boundary(end) && !line[..end].ends_with(' '), "{name}\n{head}\n{line}");
        }
        assert!(head.len() < 80);
    }

    #[test]
    fn the_bar_goes_by_answers_or_by_time() {
        let text = bar(Goal::Answers(1_000_000), (250_000, 2.0), Duration::from_secs(2));
        assert_eq!(text, "[######..................]  25 %  125,000/s, 6.0 s left");
        let text = bar(Goal::Answers(1_000_000), (250_000, 2.0), Duration::from_millis(2_800));
        assert_eq!(text, "[########................]  35 %  125,000/s, 6.0 s left");
        let text = bar(Goal::Time(Duration::from_secs(10)), (5, 5.0), Duration::from_secs(5));
        assert_eq!(text, "[############............]  50 %  1/s, 5.0 s left");
        assert!(bar(Goal::Time(Duration::from_secs(1)), (5, 1.0), Duration::from_secs(2)).ends_with("5/s"));
        bar(Goal::Answers(0), (0, 0.0), Duration::ZERO);
        bar(Goal::Answers(10), (0, 0.0), Duration::from_secs(1));
        bar(Goal::Time(Duration::ZERO), (0, 0.0), Duration::ZERO);
    }
}
