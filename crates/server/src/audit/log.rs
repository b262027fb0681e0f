//! The audit log as servers write to it, and its switch (`AuditLogManager`).

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use helenus_cql::audit::EventType;
use helenus_host::Host;
use parking_lot::{Mutex, RwLock};

use super::buffer::{AuditBuffer, HANDED_OVER_BYTES, KeptTail, LineSettings};
use super::entry::{AuditEntry, AuditUser, LOGIN_BYTES_MAX, cut, host_text};
use super::file::{AuditFileError, Files};
use super::filter::{Filter, is_always_written};
use super::options::{AuditOptions, AuditOverrides};
use super::queue::{Counts, Queue, QueueOptions};
use super::repeats::{Repeated, Repeats, Unwritten};
use crate::log::Log;

/// The port that Cassandra writes behind the node's address: that of other nodes, which does not exist here.
const STORAGE_PORT: u16 = 7000;
/// The part of the memory limit that lines may take while they wait.
const QUEUE_SHARE: u64 = 32;
/// The least of it.
const QUEUE_BYTES_MIN: u64 = 1 << 20;

/// Why the log cannot be switched on.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Its files cannot be written.
    #[error(transparent)]
    File(#[from] AuditFileError),
    /// An option is not allowed.
    #[error("{0}")]
    Option(String),
    /// There is no folder for its files.
    #[error(
        "audit_logging_options: a server that keeps nothing on disk has no folder for the audit log; give audit_logs_dir"
    )]
    NoDirectory,
}

/// What the log must know of its node.
#[derive(Clone, Debug)]
pub struct AuditNode {
    /// Its address.
    pub address: IpAddr,
    /// Its data directory; `None` if it has none.
    pub directory: Option<PathBuf>,
    /// Its memory limit, bytes.
    pub memory_limit: u64,
}

/// The numbers of lines since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// Written.
    pub written: u64,
    /// Lost because the queue was full.
    pub dropped: u64,
    /// Lost because the disk refused them.
    pub failed: u64,
}

struct Running {
    options: AuditOptions,
    settings: Arc<LineSettings>,
    queue: Queue,
}

/// The log.
pub struct Audit {
    host: Host,
    log: Arc<Log>,
    node: AuditNode,
    configured: AuditOptions,
    is_on: AtomicBool,
    running: RwLock<Option<Running>>,
    /// Changes, with `running` locked, when the settings of lines change; never 0.
    generation: AtomicU64,
    counts: Arc<Counts>,
    /// The failures of strangers that are not written one by one, by kind.
    repeats: [Mutex<Repeats>; Repeated::ALL.len()],
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").field("is_on", &self.is_on()).finish_non_exhaustive()
    }
}

impl Audit {
    /// Makes the log, and switches it on if the options say so.
    ///
    /// # Errors
    /// It is to be on and cannot.
    pub fn new(
        host: &Host,
        log: &Arc<Log>,
        node: AuditNode,
        configured: AuditOptions,
    ) -> Result<Arc<Audit>, AuditError> {
        let audit = Audit {
            host: host.clone(),
            log: Arc::clone(log),
            node,
            is_on: AtomicBool::new(false),
            running: RwLock::new(None),
            generation: AtomicU64::new(1),
            counts: Arc::default(),
            repeats: Default::default(),
            configured,
        };
        if audit.configured.enabled {
            let running = audit.start(audit.configured.clone())?;
            audit.set(&mut audit.running.write(), Some(running));
        }
        Ok(Arc::new(audit))
    }

    /// Whether events are written.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// The time for an entry, milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.host.clock.wall_us().div_euclid(1000)
    }

    /// A new id for the entries of a batch.
    pub fn batch_id(&self) -> uuid::Uuid {
        let mut bytes = [0; 16];
        self.host.random.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// Writes an event at once, if the log is on and takes it.
    pub fn write(&self, entry: &AuditEntry<'_>) {
        let mut buffer = AuditBuffer::default();
        self.write_to(&mut buffer, entry, None);
        self.hand_over(&mut buffer);
    }

    /// Writes a change of roles or rights that no statement of a client made.
    pub fn write_own(&self, event: EventType, who: AuditUser<'_>, operation: &str) {
        self.write(&AuditEntry {
            event,
            user: who,
            source: None,
            timestamp_ms: self.now_ms(),
            batch: None,
            keyspace: Some("system_auth"),
            is_of_session: false,
            scope: None,
            operation,
        });
    }

    /// Writes an event to a thread's buffer, if the log is on and takes it. Lines that must not be lost, and much else, do not
    /// stay there. `tail`: what is kept of the line for the statement's next run.
    pub fn write_to(&self, buffer: &mut AuditBuffer, entry: &AuditEntry<'_>, tail: Option<&mut KeptTail>) {
        if buffer.generation != self.generation.load(Ordering::Acquire) {
            self.renew(buffer);
        }
        if !buffer.settings.as_ref().is_some_and(|settings| settings.filter.passes(entry)) {
            return;
        }
        if let (Some(kind), Some(source)) = (Repeated::of(entry), entry.source) {
            return self.write_repeated(buffer, entry, (kind, source));
        }
        if is_always_written(entry) {
            // The lines before it may be lost.
            self.hand_over(buffer);
            buffer.append(entry, tail);
            self.put(buffer, true);
        } else {
            buffer.append(entry, tail);
            // The request of a failure may be served again, which drops its line.
            let may_be_dropped = entry.event == EventType::RequestFailure;
            if buffer.lines.len() >= HANDED_OVER_BYTES && !may_be_dropped {
                self.hand_over(buffer);
            }
        }
    }

    /// Writes a failure of a stranger, or only counts it if its address has too many.
    #[cold]
    fn write_repeated(
        &self,
        buffer: &mut AuditBuffer,
        entry: &AuditEntry<'_>,
        (kind, source): (Repeated, SocketAddr),
    ) {
        let operation = &*cut(entry.operation, LOGIN_BYTES_MAX);
        let mut over = Vec::new();
        let written = self.repeats[kind as usize].lock().failed(source.ip(), entry.timestamp_ms, &mut over);
        self.hand_over(buffer);
        self.append_unwritten(buffer, kind, &over);
        match written {
            Some(0) => buffer.append(&AuditEntry { operation, ..*entry }, None),
            Some(unwritten) => {
                let operation = format!("{}; {operation}", kind.unwritten_text(unwritten));
                buffer.append(&AuditEntry { operation: &operation, ..*entry }, None);
            }
            None => {}
        }
        if buffer.count > 0 {
            self.put(buffer, true);
        }
    }

    /// Appends the numbers of failures that were not written.
    fn append_unwritten(&self, buffer: &mut AuditBuffer, kind: Repeated, unwritten: &[Unwritten]) {
        for (address, count) in unwritten {
            buffer.append(
                &AuditEntry {
                    event: kind.event(),
                    user: AuditUser::Nobody,
                    source: Some(SocketAddr::new(*address, 0)),
                    timestamp_ms: self.now_ms(),
                    batch: None,
                    keyspace: None,
                    is_of_session: false,
                    scope: None,
                    operation: &kind.unwritten_text(*count),
                },
                None,
            );
        }
    }

    /// Writes what is left to write about failures before a log ends.
    fn end_repeats(&self, running: &Running) {
        let mut buffer = AuditBuffer::default();
        buffer.settings = Some(Arc::clone(&running.settings));
        buffer.generation = self.generation.load(Ordering::Acquire);
        for kind in Repeated::ALL {
            let unwritten = self.repeats[kind as usize].lock().end();
            self.append_unwritten(&mut buffer, kind, &unwritten);
        }
        if buffer.count > 0 {
            running.queue.put(&buffer.lines, buffer.count, true);
        }
    }

    /// Gives the lines of a thread's buffer to the queue. Called before the answers to their requests are sent.
    #[inline]
    pub fn hand_over(&self, buffer: &mut AuditBuffer) {
        if buffer.count > 0 {
            self.put(buffer, false);
        }
    }

    /// Does the same if they are many: before the lines of a failure are appended, which stay until the end of the request. All
    /// lines so far are of earlier requests.
    pub fn hand_over_many(&self, buffer: &mut AuditBuffer) {
        if buffer.lines.len() >= HANDED_OVER_BYTES {
            self.hand_over(buffer);
        }
    }

    fn put(&self, buffer: &mut AuditBuffer, must_stay: bool) {
        // Of a log that was switched off meanwhile, nobody wants the lines.
        if let Some(Running { queue, .. }) = &*self.running.read() {
            queue.put(&buffer.lines, buffer.count, must_stay);
        }
        buffer.clear();
    }

    #[cold]
    fn renew(&self, buffer: &mut AuditBuffer) {
        self.hand_over(buffer);
        let running = self.running.read();
        buffer.settings = running.as_ref().map(|running| Arc::clone(&running.settings));
        buffer.generation = self.generation.load(Ordering::Acquire);
    }

    /// The options in force; those of the configuration while the log is off.
    pub fn options(&self) -> AuditOptions {
        let running = self.running.read();
        running.as_ref().map_or_else(|| self.configured.clone(), |running| running.options.clone())
    }

    /// The folder of the files of some options.
    pub fn directory(&self, options: &AuditOptions) -> Option<PathBuf> {
        let own = || self.node.directory.as_deref().map(|directory| directory.join("audit"));
        options.directory.clone().or_else(own)
    }

    /// Switches the log on, with some options replaced; one that is on takes the new options.
    ///
    /// # Errors
    /// An option is not allowed, or the files cannot be written. A log that was on goes on then.
    pub fn enable(&self, overrides: &AuditOverrides) -> Result<(), AuditError> {
        let options = self.configured.with(overrides).map_err(AuditError::Option)?;
        options.logger.file().map_err(AuditError::Option)?;
        // Locked all the time: lines of requests that run now wait for the new log. The lock on the folder is one, so the old
        // log ends before the new one begins.
        let mut running = self.running.write();
        let before = running.take().map(|before| {
            self.end_repeats(&before);
            before.queue.close();
            before.options
        });
        let started = self.start(options);
        let (now, result) = match started {
            Ok(now) => (Some(now), Ok(())),
            // The former options worked a moment ago. If they do not now, the error says why.
            Err(error) => (before.and_then(|before| self.start(before).ok()), Err(error)),
        };
        self.set(&mut running, now);
        result
    }

    /// Switches the log off. All lines so far are written.
    pub fn disable(&self) {
        let mut running = self.running.write();
        if let Some(before) = running.take() {
            self.end_repeats(&before);
            before.queue.close();
        }
        self.set(&mut running, None);
    }

    fn set(&self, running: &mut Option<Running>, now: Option<Running>) {
        self.is_on.store(now.is_some(), Ordering::Relaxed);
        *running = now;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Why no statement may run now: lines cannot be written, and `block` asks that none is lost. The text says what to do.
    #[inline]
    pub fn refusal(&self) -> Option<String> {
        self.counts.is_blocked.load(Ordering::Relaxed).then(|| self.blocked_text())
    }

    #[cold]
    fn blocked_text(&self) -> String {
        let options = self.options();
        let directory = self.directory(&options).unwrap_or_default();
        format!(
            "The audit log cannot be written, so no statement is run: make room for it in {}, or switch it off with helenus admin \
             disableauditlog, or set block: false in audit_logging_options",
            directory.display()
        )
    }

    /// The numbers of lines.
    pub fn counts(&self) -> AuditCounts {
        AuditCounts {
            written: self.counts.written.load(Ordering::Relaxed),
            dropped: self.counts.dropped.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
        }
    }

    fn start(&self, options: AuditOptions) -> Result<Running, AuditError> {
        let parameters = options.logger.file().map_err(AuditError::Option)?;
        let directory = self.directory(&options).ok_or(AuditError::NoDirectory)?;
        let files = Files::open(&self.host, Path::new(&directory), &options, parameters)?;
        let bytes_max =
            options.queue_bytes_max.min((self.node.memory_limit / QUEUE_SHARE).max(QUEUE_BYTES_MIN));
        let queue_options = QueueOptions {
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            blocks: options.block,
            flush_ns: u64::try_from(parameters.flush_period.as_nanos()).unwrap_or(u64::MAX),
        };
        let settings = Arc::new(LineSettings {
            format: parameters.format,
            filter: Filter::new(&options),
            host: host_text(self.node.address, STORAGE_PORT),
        });
        let queue = Queue::start(&self.host, files, queue_options, (&self.counts, &self.log));
        Ok(Running { options: AuditOptions { enabled: true, ..options }, settings, queue })
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.disable();
    }
}
