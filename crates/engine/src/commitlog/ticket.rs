//! A ticket: the promise of an acknowledgement.

use super::append::CommitLog;
use super::record::LogPosition;
use crate::announce::Announcer;
use crate::error::{Error, Result};
use crate::memtable::MemoryAccount;
use helenus_host::{Signal, Tasks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says when a write may be acknowledged. A door asks `is_ready` when the database's listener calls; the embedded API
/// blocks in `wait`.
#[must_use = "a write is acknowledged only once its ticket is ready"]
#[derive(Default)]
pub struct Ticket {
    /// `None` when the log needs not be waited for.
    logged: Option<(Arc<CommitLog>, LogPosition)>,
    /// `None` when there is memory enough.
    room: Option<Room>,
    /// Whether it is of a read, whose answer tells of the writes up to its place.
    is_of_read: bool,
    /// Of a backend that is not this engine.
    foreign: Option<(Arc<AtomicBool>, Arc<Signal>)>,
}

/// Memory that must become free first: how a writer that outruns the disk is slowed.
pub(crate) struct Room {
    pub(crate) account: MemoryAccount,
    pub(crate) bytes_max: usize,
    pub(crate) announcer: Arc<Announcer>,
    pub(crate) tasks: Arc<dyn Tasks>,
}

impl Ticket {
    pub(super) fn new(log: Arc<CommitLog>, position: LogPosition) -> Ticket {
        Ticket { logged: Some((log, position)), ..Ticket::default() }
    }

    /// A ticket for the answer of a read that has seen writes up to this place.
    pub(crate) fn of_read(log: Arc<CommitLog>, position: LogPosition) -> Ticket {
        Ticket { logged: Some((log, position)), is_of_read: true, ..Ticket::default() }
    }

    /// Of two reads for one answer, the ticket that is ready last.
    pub fn later_of(self, other: Option<Ticket>) -> Ticket {
        match other {
            Some(other) if other.position() > self.position() => other,
            _ => self,
        }
    }

    /// Whether a read waits for it, and not a write.
    pub fn is_of_read(&self) -> bool {
        self.is_of_read
    }

    /// A ticket of another backend (a gateway, a server of canned answers): ready once `done` is set, which is told to
    /// `changed`.
    pub fn when(done: Arc<AtomicBool>, changed: Arc<Signal>) -> Ticket {
        Ticket { foreign: Some((done, changed)), ..Ticket::default() }
    }

    /// A ticket that is ready: for databases without a log, and writes that changed nothing.
    pub fn ready() -> Ticket {
        Ticket::default()
    }

    /// The ticket, ready only once there is room.
    pub(crate) fn with_room(self, room: Room) -> Ticket {
        Ticket { room: Some(room), ..self }
    }

    /// The write's place in the log.
    pub fn position(&self) -> Option<LogPosition> {
        self.logged.as_ref().map(|(_, position)| *position)
    }

    /// Whether the write may be acknowledged, or the read answered. `Err` if the log has failed before it was safe.
    pub fn is_ready(&self) -> Result<bool> {
        if self.room.as_ref().is_some_and(|room| room.account.bytes() >= room.bytes_max) {
            return Ok(false);
        }
        self.is_logged()
    }

    /// Whether the write is as safe as it will be, and only waits because memory is full. `Err` as `is_ready`.
    pub fn is_logged(&self) -> Result<bool> {
        let Some((log, position)) = &self.logged else {
            return Ok(self.foreign.as_ref().is_none_or(|(done, _)| done.load(Ordering::Acquire)));
        };
        if log.is_safe(*position) {
            return Ok(true);
        }
        match log.settled_failure() {
            None => Ok(false),
            // It may have become safe just before.
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
                // A log that has failed says so below.
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
