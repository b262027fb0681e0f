//! A ticket: the promise of an acknowledgement.

use super::append::CommitLog;
use super::record::LogPosition;
use crate::announce::Announcer;
use crate::error::Result;
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

    /// Whether the write may be acknowledged. `Err` if the log has failed before it was safe.
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
        let reached = if log.options.mode.waits_for_sync() { &log.synced } else { &log.written };
        if reached.load(Ordering::Acquire) >= position.0 {
            return Ok(true);
        }
        log.check_failure()?;
        Ok(false)
    }

    /// Blocks until the write may be acknowledged.
    pub fn wait(&self) -> Result<()> {
        let mut ready = || self.is_ready().unwrap_or(true);
        if let Some((log, _)) = &self.logged {
            if !log.options.mode.waits_for_sync() {
                log.write_out()?;
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
