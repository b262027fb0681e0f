//! A ticket tells when a write may be acknowledged, or a read answered.

use super::log::CommitLog;
use crate::error::{Error, Result};
use crate::log_position::LogPosition;
use crate::memtable::MemoryAccount;
use crate::notify::Notifier;
use helenus_host::{Signal, Tasks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells when a write may be acknowledged. An event loop asks `is_ready` when the database's listener is called; the
/// embedded API blocks in `wait`.
#[must_use = "a write is acknowledged only once its ticket is ready"]
#[derive(Default)]
pub struct Ticket {
    /// The log and the position that must be safe; `None` if nothing in the log is awaited.
    logged: Option<(Arc<CommitLog>, LogPosition)>,
    /// `None` if there was enough memory.
    room: Option<MemoryWait>,
    /// Whether this is a ticket of a read, whose answer shows writes up to the position.
    is_of_read: bool,
    /// For a ticket of a backend other than this engine: whether it is ready, and the signal of changes.
    foreign: Option<(Arc<AtomicBool>, Arc<Signal>)>,
}

/// Memory that must be freed first. It slows down writers that are faster than the disk.
pub(crate) struct MemoryWait {
    pub(crate) account: MemoryAccount,
    pub(crate) announcer: Arc<Notifier>,
    pub(crate) tasks: Arc<dyn Tasks>,
}

impl Ticket {
    pub(super) fn new(log: Arc<CommitLog>, position: LogPosition) -> Ticket {
        Ticket { logged: Some((log, position)), ..Ticket::default() }
    }

    /// A ticket for the answer of a read that has seen writes up to this position.
    pub(crate) fn of_read(log: Arc<CommitLog>, position: LogPosition) -> Ticket {
        Ticket { logged: Some((log, position)), is_of_read: true, ..Ticket::default() }
    }

    /// Of the tickets of two reads for one answer, the later one.
    pub fn later_of(self, other: Option<Ticket>) -> Ticket {
        match other {
            Some(other) if other.position() > self.position() => other,
            _ => self,
        }
    }

    /// Whether a read waits for it, not a write.
    pub fn is_of_read(&self) -> bool {
        self.is_of_read
    }

    /// A ticket of another backend (a gateway, a server of canned answers): ready once `done` is set; `changed`
    /// signals that.
    pub fn when(done: Arc<AtomicBool>, changed: Arc<Signal>) -> Ticket {
        Ticket { foreign: Some((done, changed)), ..Ticket::default() }
    }

    /// A ticket that is ready: for databases without a log, and writes that changed nothing.
    pub fn ready() -> Ticket {
        Ticket::default()
    }

    /// The ticket, ready only once memory is free as well.
    pub(crate) fn waiting_for_memory(self, room: MemoryWait) -> Ticket {
        Ticket { room: Some(room), ..self }
    }

    /// The write's position in the log.
    pub fn position(&self) -> Option<LogPosition> {
        self.logged.as_ref().map(|(_, position)| *position)
    }

    /// Whether the write may be acknowledged, or the read answered. `Err` if the log failed before the position was
    /// safe.
    pub fn is_ready(&self) -> Result<bool> {
        if self.room.as_ref().is_some_and(|room| room.account.is_full()) {
            return Ok(false);
        }
        self.is_logged()
    }

    /// Whether the position is safe; the ticket may still wait for memory. `Err` as for `is_ready`.
    pub fn is_logged(&self) -> Result<bool> {
        let Some((log, position)) = &self.logged else {
            return Ok(self.foreign.as_ref().is_none_or(|(done, _)| done.load(Ordering::Acquire)));
        };
        if log.is_safe(*position) {
            return Ok(true);
        }
        match log.settled_failure() {
            None => Ok(false),
            // It may have become safe just before the failure.
            Some(_) if log.is_safe(*position) => Ok(true),
            Some(reason) if self.is_of_read => Err(Error::Unlogged { reason: reason.to_owned() }),
            Some(reason) => Err(Error::LogFailed { reason: reason.to_owned() }),
        }
    }

    /// Blocks until the write may be acknowledged.
    pub fn wait(&self) -> Result<()> {
        let mut ready = || self.is_ready().unwrap_or(true);
        if let Some((log, _)) = &self.logged {
            if !log.options.mode.waits_for_sync() {
                // `is_ready` below reports a failure of the log.
                let _told = log.write_out();
            }
            log.host.tasks.wait_until(&log.announcer.changed, &mut ready);
        } else if let Some(room) = &self.room {
            room.tasks.wait_until(&room.announcer.changed, &mut ready);
        } else if let Some((_, changed)) = &self.foreign {
            changed.wait(&mut ready);
        }
        self.is_ready().map(|_| ())
    }
}
