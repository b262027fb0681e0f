//! The queue of log lines, and the thread that writes them to standard error.
//!
//! A caller only formats a line and puts it into the bounded queue, so a stopped terminal or an unread pipe stops no
//! flush and no client. Lines that do not fit are counted, and the count is the next line that is written.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use helenus_host::{Clock, Host, Next, TaskHandle, Worker};
use parking_lot::{Condvar, Mutex};

use super::line::{Entry, Format, Level, line};
use super::sanitize::{TEXT_BYTES_MAX, on_one_line};

/// Most lines that wait for the thread.
const LINES_MAX: usize = 10_000;
/// The least interval between repetitions of the same message.
const RATE_LIMIT_NS: u64 = 10_000_000_000;
/// Bytes of a key that are compared.
const KEY_BYTES_MAX: usize = 256;
/// Most different messages whose repetitions are counted.
const RATE_LIMITED_KEYS_MAX: usize = 256;
/// How long a stopping server waits until its last lines are written.
const CLOSING_MAX: Duration = Duration::from_secs(2);

/// The log of a server.
pub struct Log {
    /// The number of levels of `Level::ALL` that are written.
    levels: AtomicUsize,
    format: Format,
    clock: Arc<dyn Clock>,
    queue: Arc<Queue>,
    task: Arc<dyn TaskHandle>,
    /// Lines written, by level.
    lines: [AtomicU64; Level::ALL.len()],
    seldom: Mutex<HashMap<String, RateLimited>>,
    panics: AtomicU64,
}

/// A message that was written, and the number of its repetitions since.
struct RateLimited {
    written_ns: u64,
    more: u64,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    emptied: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<String>,
    lost: u64,
    /// Whether the thread has taken lines that it has not written yet.
    writing: bool,
    closing: bool,
}

impl Log {
    /// Starts a log of the entries at `level` or more severe; `None` logs nothing.
    pub fn start(host: &Host, format: Format, level: Option<Level>) -> Arc<Log> {
        let queue = Arc::new(Queue::default());
        let task = host.tasks.start(
            "log",
            Box::new(Writer { queue: Arc::clone(&queue), format, clock: Arc::clone(&host.clock) }),
        );
        let (clock, lines) = (Arc::clone(&host.clock), Default::default());
        let log = Arc::new(Log {
            levels: AtomicUsize::new(0),
            format,
            clock,
            queue,
            task,
            lines,
            seldom: Mutex::default(),
            panics: AtomicU64::new(0),
        });
        log.set_level(level);
        log
    }

    /// Sets the least severe level that is written; `None` logs nothing.
    pub fn set_level(&self, level: Option<Level>) {
        self.levels.store(level.map_or(0, |most| most as usize + 1), Ordering::Relaxed);
    }

    /// Whether entries of this level are written.
    pub fn takes(&self, level: Level) -> bool {
        (level as usize) < self.levels.load(Ordering::Relaxed)
    }

    /// Lines written, by level, the most severe first.
    pub fn counts(&self) -> [(Level, u64); Level::ALL.len()] {
        let mut counts = Level::ALL.map(|level| (level, 0));
        for ((_, count), lines) in counts.iter_mut().zip(&self.lines) {
            *count = lines.load(Ordering::Relaxed);
        }
        counts
    }

    /// Writes an entry.
    pub fn write(&self, level: Level, entry: &Entry) {
        if self.takes(level) {
            self.count(level);
            self.put(line(self.format, self.clock.wall_us(), level, entry));
        }
    }

    /// Writes an entry that may occur thousands of times a second: the same event with the same `key` at most once in
    /// ten seconds, with the number of repetitions.
    pub fn write_rate_limited(&self, level: Level, key: &str, mut entry: Entry) {
        if !self.takes(level) {
            return;
        }
        let now_ns = self.clock.monotonic_ns();
        {
            let mut seldom = self.seldom.lock();
            let name = format!("{} {}", entry.event, on_one_line(key, KEY_BYTES_MAX));
            if seldom.len() >= RATE_LIMITED_KEYS_MAX && !seldom.contains_key(&name) {
                seldom.retain(|_, known| now_ns.saturating_sub(known.written_ns) < RATE_LIMIT_NS);
                if seldom.len() >= RATE_LIMITED_KEYS_MAX {
                    seldom.clear();
                }
            }
            if let Some(known) = seldom.get_mut(&name) {
                if now_ns.saturating_sub(known.written_ns) < RATE_LIMIT_NS {
                    known.more += 1;
                    return;
                }
                if known.more > 0 {
                    entry.message.push_str(&format!(" ({} more since it was last written)", known.more));
                    entry = entry.with("more", known.more);
                }
            }
            seldom.insert(name, RateLimited { written_ns: now_ns, more: 0 });
        }
        self.write(level, &entry);
    }

    /// Writes a message about the start or end to standard output: `word` and a text, which people and tools wait for.
    pub fn print_status(&self, entry: &Entry) {
        let text = match self.format {
            Format::Text { .. } => {
                let message = on_one_line(&entry.message, TEXT_BYTES_MAX);
                format!("{:<11} {message}\n", entry.event)
            }
            Format::Json | Format::Cassandra => line(self.format, self.clock.wall_us(), Level::Info, entry),
        };
        // Errors are ignored: standard output was closed.
        let mut out = std::io::stdout().lock();
        let _told = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// The number of panics that were logged.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Writes a panic at once on its own thread, because the process may be about to die.
    pub fn write_panic(&self, entry: &Entry) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        if self.takes(Level::Error) {
            self.count(Level::Error);
            let text = line(self.format, self.clock.wall_us(), Level::Error, entry);
            let _told = std::io::stderr().lock().write_all(text.as_bytes());
        }
    }

    /// Closes the log. Queued lines are still written, if that takes at most two seconds.
    pub fn close(&self) {
        let mut state = self.queue.state.lock();
        state.closing = true;
        self.task.wake();
        while !state.lines.is_empty() || state.writing {
            if self.queue.emptied.wait_for(&mut state, CLOSING_MAX).timed_out() {
                return;
            }
        }
    }

    fn count(&self, level: Level) {
        if let Some(lines) = self.lines.get(level as usize) {
            lines.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn put(&self, line: String) {
        {
            let mut state = self.queue.state.lock();
            if state.lines.len() >= LINES_MAX {
                state.lost += 1;
                return;
            }
            state.lines.push_back(line);
        }
        self.task.wake();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.state.lock().closing = true;
        self.task.wake();
    }
}

/// The worker that writes the queue.
struct Writer {
    queue: Arc<Queue>,
    format: Format,
    clock: Arc<dyn Clock>,
}

impl Worker for Writer {
    fn step(&mut self) -> Next {
        let (lines, lost) = {
            let mut state = self.queue.state.lock();
            if state.lines.is_empty() {
                self.queue.emptied.notify_all();
                return if state.closing { Next::Done } else { Next::Wait };
            }
            state.writing = true;
            (std::mem::take(&mut state.lines), std::mem::take(&mut state.lost))
        };
        let mut text = lines.into_iter().collect::<String>();
        if lost > 0 {
            let entry = Entry::new("lost", format!("{lost} more lines came than could be written"));
            text.push_str(&line(self.format, self.clock.wall_us(), Level::Warn, &entry.with("lines", lost)));
        }
        let _told = std::io::stderr().lock().write_all(text.as_bytes());
        let mut state = self.queue.state.lock();
        state.writing = false;
        if state.lines.is_empty() {
            self.queue.emptied.notify_all();
        }
        Next::Again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_host::sim::Machine;

    #[test]
    fn what_comes_again_and_again_is_counted_and_written_seldom() {
        let machine = Machine::new(1);
        let log = Log::start(&machine.host(), Format::Json, Some(Level::Info));
        for _ in 0..5 {
            log.write_rate_limited(Level::Warn, "a", Entry::new("overloaded", "too much"));
        }
        log.write_rate_limited(Level::Warn, "b", Entry::new("overloaded", "too much"));
        log.write(Level::Debug, &Entry::new("detail", "not at this level"));
        let warned =
            |log: &Log| log.counts().iter().find(|(level, _)| *level == Level::Warn).map(|(_, lines)| *lines);
        assert_eq!(warned(&log), Some(2));
        machine.advance(RATE_LIMIT_NS);
        log.write_rate_limited(Level::Warn, "a", Entry::new("overloaded", "too much"));
        let last = log.queue.state.lock().lines.back().cloned().unwrap_or_default();
        assert!(last.contains("(4 more since it was last written)"), "{last}");
    }

    #[test]
    fn lines_that_nobody_takes_are_lost_and_stop_nobody() {
        let machine = Machine::new(1);
        let log = Log::start(&machine.host(), Format::Json, Some(Level::Info));
        for _ in 0..LINES_MAX + 7 {
            log.write(Level::Info, &Entry::new("flushed", ""));
        }
        let state = log.queue.state.lock();
        assert_eq!((state.lines.len(), state.lost), (LINES_MAX, 7));
    }
}
