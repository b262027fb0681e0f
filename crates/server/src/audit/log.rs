//! The audit log as servers write to it, and its switch (`AuditLogManager`).

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helenus_host::Host;
use parking_lot::RwLock;

use super::entry::{AuditEntry, LineTexts, host_text};
use super::file::{AuditFileError, Files};
use super::filter::Filter;
use super::options::{AuditOptions, AuditOverrides};
use super::queue::{Counts, Queue, QueueOptions};
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
    filter: Filter,
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
    counts: Arc<Counts>,
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
            counts: Arc::default(),
            configured,
        };
        if audit.configured.enabled {
            audit.start(audit.configured.clone())?;
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

    /// Writes an event, if the log is on and takes it.
    pub fn write(&self, entry: &AuditEntry<'_>) {
        let running = self.running.read();
        if let Some(Running { filter, queue, .. }) = running.as_ref()
            && filter.passes(entry)
        {
            queue.put(entry);
        }
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
        let before = self.running.read().as_ref().map(|running| running.options.clone());
        // The lock on the folder is one, so the old log ends before the new one begins.
        self.disable();
        self.start(options).inspect_err(|_| {
            // The former options worked a moment ago. If they do not now, the error says why.
            let _again = before.map(|before| self.start(before));
        })
    }

    /// Switches the log off. All lines so far are written.
    pub fn disable(&self) {
        self.is_on.store(false, Ordering::Relaxed);
        if let Some(running) = self.running.write().take() {
            running.queue.close();
        }
    }

    /// The numbers of lines.
    pub fn counts(&self) -> AuditCounts {
        AuditCounts {
            written: self.counts.written.load(Ordering::Relaxed),
            dropped: self.counts.dropped.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
        }
    }

    fn start(&self, options: AuditOptions) -> Result<(), AuditError> {
        let parameters = options.logger.file().map_err(AuditError::Option)?;
        let directory = self.directory(&options).ok_or(AuditError::NoDirectory)?;
        let files = Files::open(&self.host, Path::new(&directory), &options, parameters)?;
        let bytes_max =
            options.queue_bytes_max.min((self.node.memory_limit / QUEUE_SHARE).max(QUEUE_BYTES_MIN));
        let queue_options = QueueOptions {
            format: parameters.format,
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            blocks: options.block,
            flush_ns: u64::try_from(parameters.flush_period.as_nanos()).unwrap_or(u64::MAX),
        };
        let texts = LineTexts::new(host_text(self.node.address, STORAGE_PORT));
        let queue = Queue::start(&self.host, files, queue_options, (texts, &self.counts, &self.log));
        let filter = Filter::new(&options);
        *self.running.write() =
            Some(Running { options: AuditOptions { enabled: true, ..options }, filter, queue });
        self.is_on.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.disable();
    }
}
