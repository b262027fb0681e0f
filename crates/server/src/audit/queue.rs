//! The bounded queue of lines between requests and the disk.
//!
//! Threads that answer requests put formatted lines in, many at a time; one thread takes all that are there and writes
//! them. A full queue makes requests wait (`block: true`) or loses their lines, which are counted. Lines that must not be
//! lost always wait.
//!
//! Lines that the disk refuses are kept and written again with `block: true`: no line is lost, so that statements are refused from
//! then on (`Audit::refusal`), until the disk takes lines. Those that it still refuses when the audit log ends, with the server or by
//! `disableauditlog`, go to the server's log. In Cassandra the option is about a full queue alone, and what its disk refuses is lost. With `block: false` they are lost here too, counted and logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use helenus_host::{Clock, Host, Next, TaskHandle, Worker};
use parking_lot::{Condvar, Mutex};

use super::file::Files;
use crate::log::{Entry, Level, Log};

/// Bytes that are written at once, without waiting for more.
const WRITTEN_AT_ONCE_BYTES: usize = 256 << 10;
/// The pause before lines that the disk has refused are written again.
const RETRIED_NS: u64 = 500_000_000;
/// Capacity of a buffer that is kept.
const KEPT_BYTES: usize = 1 << 20;

/// The numbers of lines since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Written.
    pub written: AtomicU64,
    /// Lost because the queue was full.
    pub dropped: AtomicU64,
    /// Lost because the disk refused them.
    pub failed: AtomicU64,
    /// Lines wait that the disk has refused, and none may be lost.
    pub is_blocked: AtomicBool,
}

/// What a queue keeps to.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    pub bytes_max: usize,
    pub blocks: bool,
    pub flush_ns: u64,
}

struct State {
    lines: Vec<u8>,
    count: u64,
    /// When the first of the lines came.
    since_ns: u64,
    /// Whether a line must not wait for others.
    is_urgent: bool,
    is_closing: bool,
}

struct Inner {
    options: QueueOptions,
    state: Mutex<State>,
    room: Condvar,
    clock: Arc<dyn Clock>,
    counts: Arc<Counts>,
}

/// The queue.
pub struct Queue {
    inner: Arc<Inner>,
    task: Arc<dyn TaskHandle>,
}

impl Queue {
    /// Starts the thread that writes to `files`.
    pub fn start(
        host: &Host,
        files: Files,
        options: QueueOptions,
        (counts, log): (&Arc<Counts>, &Arc<Log>),
    ) -> Queue {
        let state = State { lines: Vec::new(), count: 0, since_ns: 0, is_urgent: false, is_closing: false };
        let inner = Arc::new(Inner {
            options,
            state: Mutex::new(state),
            room: Condvar::new(),
            clock: Arc::clone(&host.clock),
            counts: Arc::clone(counts),
        });
        let writer = Writer {
            inner: Arc::clone(&inner),
            files,
            log: Arc::clone(log),
            spare: Vec::new(),
            refused: None,
        };
        Queue { inner, task: host.tasks.start("audit", Box::new(writer)) }
    }

    /// Puts whole lines in. `must_stay`: they are neither lost nor kept waiting for others.
    pub fn put(&self, new: &[u8], new_count: u64, must_stay: bool) {
        let Inner { options, state, room, clock, counts } = &*self.inner;
        let mut state = state.lock();
        if counts.is_blocked.load(Ordering::Relaxed)
            && state.lines.len() > options.bytes_max.saturating_mul(2)
        {
            // More than requests under way can have.
            counts.dropped.fetch_add(new_count, Ordering::Relaxed);
            return;
        }
        // Lines that are longer than the queue have it alone.
        // While the disk refuses lines, requests are refused before they have any. Those under way do not wait for the disk.
        while !state.lines.is_empty()
            && state.lines.len() + new.len() > options.bytes_max
            && !counts.is_blocked.load(Ordering::Relaxed)
        {
            if !options.blocks && !must_stay {
                counts.dropped.fetch_add(new_count, Ordering::Relaxed);
                return;
            }
            state.is_urgent = true;
            self.task.wake();
            room.wait(&mut state);
        }
        let State { lines, count, since_ns, is_urgent, .. } = &mut *state;
        let was_empty = lines.is_empty();
        let was_short = lines.len() < WRITTEN_AT_ONCE_BYTES;
        lines.extend_from_slice(new);
        *count += new_count;
        if was_empty {
            *since_ns = clock.coarse_ns();
        }
        let hurries = must_stay && !std::mem::replace(is_urgent, *is_urgent || must_stay);
        if was_empty || hurries || was_short && lines.len() >= WRITTEN_AT_ONCE_BYTES {
            self.task.wake();
        }
    }

    /// Writes and syncs all lines, and ends the thread.
    pub fn close(&self) {
        self.inner.state.lock().is_closing = true;
        self.task.wake();
        self.task.join();
    }
}

struct Writer {
    inner: Arc<Inner>,
    files: Files,
    log: Arc<Log>,
    /// The buffer that the next lines will take.
    spare: Vec<u8>,
    /// Lines that the disk has refused, and their number.
    refused: Option<(Vec<u8>, u64)>,
}

impl Worker for Writer {
    fn step(&mut self) -> Next {
        if let Some((lines, count)) = self.refused.take() {
            let is_closing = self.inner.state.lock().is_closing;
            match self.files.append(&lines, self.inner.clock.wall_us()) {
                Ok(()) => self.written_again(count),
                Err(error) if is_closing => self.lost_at_end(&error, &lines, count),
                Err(_) => {
                    self.refused = Some((lines, count));
                    return Next::WaitAtMost(RETRIED_NS);
                }
            }
            return Next::Again;
        }
        let (lines, count) = {
            let mut state = self.inner.state.lock();
            if state.lines.is_empty() {
                if !state.is_closing {
                    return Next::Wait;
                }
                if let Err(error) = self.files.sync() {
                    self.lost(&error, 0);
                }
                self.inner.counts.is_blocked.store(false, Ordering::Relaxed);
                return Next::Done;
            }
            let waited_ns = self.inner.clock.coarse_ns().saturating_sub(state.since_ns);
            let flush_ns = self.inner.options.flush_ns;
            let is_due = state.is_urgent
                || state.is_closing
                || state.lines.len() >= WRITTEN_AT_ONCE_BYTES
                || waited_ns >= flush_ns;
            if !is_due {
                return Next::WaitAtMost(flush_ns - waited_ns);
            }
            state.is_urgent = false;
            (
                std::mem::replace(&mut state.lines, std::mem::take(&mut self.spare)),
                std::mem::take(&mut state.count),
            )
        };
        self.inner.room.notify_all();
        match self.files.append(&lines, self.inner.clock.wall_us()) {
            Ok(()) => {
                self.inner.counts.written.fetch_add(count, Ordering::Relaxed);
            }
            Err(error) if self.inner.options.blocks => {
                self.refused(&error, count);
                self.refused = Some((lines, count));
                self.inner.room.notify_all();
                return Next::WaitAtMost(RETRIED_NS);
            }
            Err(error) => self.lost(&error, count),
        }
        self.spare = lines;
        self.spare.clear();
        self.spare.shrink_to(KEPT_BYTES);
        Next::Again
    }
}

impl Writer {
    /// Tells that statements are refused until lines can be written.
    #[cold]
    fn refused(&self, error: &std::io::Error, count: u64) {
        self.inner.counts.is_blocked.store(true, Ordering::Relaxed);
        let text = format!(
            "the audit log cannot be written, so statements are refused until it can (block: true); {count} of its lines wait: {error}"
        );
        let entry = Entry::new("audit_blocked", text).with("lines", count);
        self.log.write(Level::Error, &entry);
    }

    #[cold]
    fn written_again(&self, count: u64) {
        self.inner.counts.written.fetch_add(count, Ordering::Relaxed);
        self.inner.counts.is_blocked.store(false, Ordering::Relaxed);
        let text = "the audit log is written again, and statements are run; no line was lost";
        self.log.write(Level::Warn, &Entry::new("audit_written_again", text));
    }

    /// Writes the lines to the server's own log, which may go elsewhere: of a log with `block: true` none is to be lost, and one that is told
    /// to end cannot wait for room.
    #[cold]
    fn lost_at_end(&self, error: &std::io::Error, lines: &[u8], count: u64) {
        self.inner.counts.failed.fetch_add(count, Ordering::Relaxed);
        let text = format!(
            "the audit log ends and cannot be written; its last {count} lines follow, as many as the server's log has room for: {error}"
        );
        self.log.write(Level::Error, &Entry::new("audit_failed", text).with("lines", count));
        for line in String::from_utf8_lossy(lines).lines() {
            self.log.write(Level::Error, &Entry::new("audit_line", line.to_owned()));
        }
    }

    #[cold]
    fn lost(&self, error: &std::io::Error, count: u64) {
        self.inner.counts.failed.fetch_add(count, Ordering::Relaxed);
        let text = format!("the audit log cannot be written, and {count} of its lines are lost: {error}");
        let entry = Entry::new("audit_failed", text).with("lines", count);
        self.log.write_rate_limited(Level::Error, "audit", entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::options::{AuditOptions, FileParameters};
    use crate::log::Format;
    use helenus_host::sim::Machine;
    use std::path::Path;

    fn queue(machine: &Machine, blocks: bool) -> (Queue, Arc<Counts>) {
        queue_with_log(machine, blocks, &Log::start(&machine.host(), Format::Json, None))
    }

    fn queue_with_log(machine: &Machine, blocks: bool, log: &Arc<Log>) -> (Queue, Arc<Counts>) {
        let host = machine.host();
        let (options, parameters) = (AuditOptions::default(), FileParameters::default());
        let files = Files::open(&host, Path::new("/audit"), &options, &parameters).unwrap();
        let counts = Arc::<Counts>::default();
        let options = QueueOptions { bytes_max: 1000, blocks, flush_ns: 100_000_000 };
        (Queue::start(&host, files, options, (&counts, log)), counts)
    }

    #[test]
    fn a_full_disk_loses_no_line_where_requests_may_wait_and_is_said() {
        for blocks in [true, false] {
            let machine = Machine::new(1);
            let (queue, counts) = queue(&machine, blocks);
            machine.set_capacity(10);
            queue.put(&[b'a'; 200], 2, true);
            let failed = || counts.failed.load(Ordering::Relaxed);
            let is_blocked = || counts.is_blocked.load(Ordering::Relaxed);
            machine.run_until_idle();
            assert_eq!((is_blocked(), failed()), (blocks, if blocks { 0 } else { 2 }));
            // Those of requests that were under way do not wait, however many they are.
            if blocks {
                (0..10).for_each(|_| queue.put(&[b'b'; 200], 1, false));
                machine.run_until_idle();
            }
            machine.set_capacity(1 << 20);
            machine.advance(RETRIED_NS);
            machine.run_until_idle();
            assert!(!is_blocked());
            queue.close();
            assert_eq!(counts.written.load(Ordering::Relaxed), if blocks { 12 } else { 0 });
            assert_eq!(failed(), if blocks { 0 } else { 2 });
        }
    }

    #[test]
    fn lines_that_the_disk_refuses_until_the_end_go_to_the_servers_log() {
        for (blocks, logged) in [(true, 1 + 1 + 3), (false, 1)] {
            let machine = Machine::new(1);
            let log = Log::start(&machine.host(), Format::Json, Some(Level::Error));
            let (queue, counts) = queue_with_log(&machine, blocks, &log);
            machine.set_capacity(10);
            queue.put("a line of the log\n".repeat(3).as_bytes(), 3, true);
            machine.run_until_idle();
            queue.close();
            assert_eq!(counts.failed.load(Ordering::Relaxed), 3);
            // That statements are refused, that lines follow, and these.
            let lines: u64 = log.counts().iter().map(|(_, lines)| lines).sum();
            assert_eq!(lines, logged, "block: {blocks}");
        }
    }

    #[test]
    fn a_full_queue_loses_lines_and_counts_them() {
        let machine = Machine::new(1);
        let (queue, counts) = queue(&machine, false);
        let lines = "a line\n".repeat(20);
        for _ in 0..20 {
            queue.put(lines.as_bytes(), 20, false);
        }
        let kept = queue.inner.state.lock().count;
        assert_eq!(kept, 7 * 20);
        assert_eq!(counts.dropped.load(Ordering::Relaxed), 13 * 20);
        queue.close();
        assert_eq!(counts.written.load(Ordering::Relaxed), kept);
    }
}
